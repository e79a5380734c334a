// What is in a file, and whether it can be run.
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "commands.h"

namespace program {

namespace {

using oneweight::SubgraphDef;
using oneweight::TensorDef;

struct Weights {
  int tensors = 0;
  int64_t elements = 0, bytes = 0;
};

// Constants by storage type; a buffer shared by several tensors is counted once.
std::map<std::string, Weights> weights_by_type(const oneweight::ModelView& model) {
  std::map<std::string, Weights> types;
  std::map<const void*, bool> seen;
  for (const SubgraphDef& graph : model.subgraphs())
    for (const TensorDef& tensor : graph.tensors) {
      if (!tensor.is_constant) continue;
      Weights& w = types[tensor_type_name(tensor.type)];
      ++w.tensors;
      if (tensor.data.empty() || std::exchange(seen[tensor.data.data()], true)) continue;
      w.elements += tensor.shape.elements();
      w.bytes += static_cast<int64_t>(tensor.data.size());
    }
  return types;
}

std::map<std::string, int> operators_by_name(const oneweight::ModelView& model) {
  std::map<std::string, int> names;
  for (const SubgraphDef& graph : model.subgraphs())
    for (const oneweight::OperatorDef& op : graph.operators) ++names[std::string(op.name())];
  return names;
}

std::string tensor_text(const SubgraphDef& graph, int32_t index) {
  if (index < 0) return "(left out)";
  const TensorDef& t = graph.tensors[static_cast<size_t>(index)];
  const oneweight::Shape& shape = t.shape_signature.rank() ? t.shape_signature : t.shape;
  std::string text = std::string(tensor_type_name(t.type)) + " " + shape.to_string() + " '" + t.name + "'";
  const oneweight::Quantization& q = t.quantization;
  if (q.scales.size() == 1)
    text += oneweight::format_text(", scale %.6g, zero point %lld", static_cast<double>(q.scales[0]), static_cast<long long>(q.zero_points[0]));
  if (q.scales.size() > 1) text += oneweight::format_text(", %zu scales along axis %d", q.scales.size(), q.axis);
  if (t.sparsity) text += ", sparse";
  if (t.is_variable) text += ", variable";
  return text;
}

void print_list(const char* title, const SubgraphDef& graph, const std::vector<int32_t>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) std::printf("  %s %zu: %s\n", title, i, tensor_text(graph, tensors[i]).c_str());
}

void print_graphs(const oneweight::ModelView& model, const InspectArguments& arguments) {
  for (size_t g = 0; g < model.subgraphs().size(); ++g) {
    const SubgraphDef& graph = model.subgraphs()[g];
    std::printf("\nsubgraph %zu%s%s: %zu tensors, %zu operators\n", g, graph.name.empty() ? "" : " ", graph.name.c_str(),
                graph.tensors.size(), graph.operators.size());
    print_list("input", graph, graph.inputs);
    print_list("output", graph, graph.outputs);
    if (arguments.tensors)
      for (size_t i = 0; i < graph.tensors.size(); ++i)
        std::printf("  tensor %zu: %s%s\n", i, tensor_text(graph, static_cast<int32_t>(i)).c_str(),
                    graph.tensors[i].is_constant ? oneweight::format_text(", constant of %zu bytes", graph.tensors[i].data.size()).c_str() : "");
    if (!arguments.operators) continue;
    for (size_t i = 0; i < graph.operators.size(); ++i) {
      const oneweight::OperatorDef& op = graph.operators[i];
      std::string text;
      for (int32_t t : op.inputs) text += " " + std::to_string(t);
      text += " ->";
      for (int32_t t : op.outputs) text += " " + std::to_string(t);
      std::printf("  operator %zu: %s (version %d)%s\n", i, std::string(op.name()).c_str(), op.version, text.c_str());
    }
  }
}

}  // namespace

int inspect(const InspectArguments& arguments) {
  auto model = oneweight::ModelView::open(arguments.model.model.c_str());
  if (!model.ok()) return report(model.status());
  const auto weights = weights_by_type(**model);
  const auto operators = operators_by_name(**model);
  const auto planned = open_and_plan(arguments.model);

  if (arguments.json) {
    nlohmann::ordered_json j = {{"file_bytes", (*model)->bytes().size()}, {"description", (*model)->description()}};
    for (const oneweight::SignatureDef& s : (*model)->signatures()) {
      nlohmann::ordered_json signature = {{"key", s.key}, {"subgraph", s.subgraph}};
      for (const auto& [name, tensor] : s.inputs) signature["inputs"].push_back(name);
      for (const auto& [name, tensor] : s.outputs) signature["outputs"].push_back(name);
      j["signatures"].push_back(signature);
    }
    for (const auto& [name, count] : operators) j["operators"][name] = count;
    for (const auto& [type, w] : weights)
      j["weights"][type] = {{"tensors", w.tensors}, {"elements", w.elements}, {"bytes", w.bytes}};
    j["runs"] = planned.ok();
    if (!planned.ok()) j["reason"] = planned.status().message();
    if (planned.ok()) j["forecast_bytes"] = planned->plan->context_bytes();
    std::printf("%s\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return kSuccess;
  }

  std::printf("%s: %s%s%s\n", arguments.model.model.c_str(), megabytes(static_cast<double>((*model)->bytes().size())).c_str(),
              (*model)->description().empty() ? "" : ", ", (*model)->description().c_str());
  for (const oneweight::SignatureDef& s : (*model)->signatures()) {
    std::printf("signature '%s' of subgraph %u\n", s.key.c_str(), s.subgraph);
    const SubgraphDef& graph = (*model)->subgraphs()[s.subgraph];
    for (const auto& [name, tensor] : s.inputs) std::printf("  input '%s': %s\n", name.c_str(), tensor_text(graph, tensor).c_str());
    for (const auto& [name, tensor] : s.outputs) std::printf("  output '%s': %s\n", name.c_str(), tensor_text(graph, tensor).c_str());
  }
  print_graphs(**model, arguments);
  std::printf("\noperators:\n");
  for (const auto& [name, count] : operators) std::printf("  %5d  %s\n", count, name.c_str());
  std::printf("\nweights by storage type:\n");
  for (const auto& [type, w] : weights)
    std::printf("  %-10s %5d tensors  %12lld elements  %s\n", type.c_str(), w.tensors, static_cast<long long>(w.elements),
                megabytes(static_cast<double>(w.bytes)).c_str());
  if (planned.ok()) {
    std::printf("\nruns here on %s: %zu steps, %s a context\n", highway_target(*planned->plan).c_str(), planned->plan->steps().size(),
                megabytes(static_cast<double>(planned->plan->context_bytes())).c_str());
  } else {
    std::printf("\ncannot be run here: %s\n", planned.status().message().c_str());
  }
  return kSuccess;
}

}  // namespace program
