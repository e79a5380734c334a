// Makes a plan: lets each operator of a set prepare its node, folds what is known, fuses what may be fused,
// and gives every tensor its place. Names no operator.
#ifndef ONEWEIGHT_PLAN_BUILDER_H
#define ONEWEIGHT_PLAN_BUILDER_H

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "oneweight/plan/bands.h"
#include "oneweight/plan/layout.h"
#include "oneweight/plan/memory_limit.h"
#include "oneweight/plan/op_row.h"
#include "oneweight/plan/resources.h"

namespace oneweight {
inline namespace v1 {

class PlanBuilder {
 public:
  // Thread-safe. `rows`: the operator set; `target`: one Highway target bit that was compiled in.
  // Errors: invalid_model, unsupported (all missing operators in one message), invalid_argument,
  // out_of_memory (also: the memory limit is too small, with what would be needed).
  static Expected<std::shared_ptr<const Plan>> build(std::shared_ptr<const ModelView> model, const PlanOptions& options,
                                                     std::span<const OpRow> rows, int64_t target) {
#if defined(__cpp_exceptions)
    try {
#endif
      Resources resources;
      PlanBuilder builder(options, rows, target, &resources, {});
      ONEWEIGHT_RETURN_IF_ERROR(builder.run(std::move(model)));
      return std::shared_ptr<const Plan>(std::move(builder.plan_));
#if defined(__cpp_exceptions)
    } catch (const std::bad_alloc&) {
      return make_error(ErrorCode::out_of_memory, "no memory to plan the model");
    }
#endif
  }

 private:
  friend class Preparation;
  // Constants up to this size are computed when the plan is made rather than in every run.
  static constexpr int64_t kFoldBytes = 64 * 1024;
  // Widened copies of stored constants are kept in the plan up to this size (biases, slopes).
  static constexpr int64_t kWidenBytes = 4 * 1024;

  static constexpr int kMaxDepth = 16;     // of nested subgraphs
  static constexpr int kMaxGraphs = 4096;  // calls of subgraphs in a model, nested ones counted

  struct Tensor {
    int32_t producer = -1;           // operator index
    int32_t uses = 0;                // operator inputs and graph outputs
    int32_t widened_from = -1;       // this is the float value of that constant tensor
    bool is_input = false;
    bool is_output = false;
    bool keep = false;
    bool available = false;
    bool computed = false;           // an arena tensor
    bool unsized = false;            // has no shape: for consumers that look through its producer
  };
  struct Node {
    Preparation preparation;
    std::vector<int32_t> inputs, outputs;
    bool live = false;               // becomes a step
    bool deferred = false;           // live only when a consumer asks for the widened constant
    explicit Node(PlanBuilder* builder) : preparation(builder) {}
  };

  // `path`: subgraphs being planned, outermost first; the last one is this builder's (empty: the main graph).
  PlanBuilder(const PlanOptions& options, std::span<const OpRow> rows, int64_t target, Resources* resources, std::vector<int> path)
      : options_(options), rows_(rows), target_(target), resources_(resources), path_(std::move(path)), plan_(new Plan) {}

  Status run(std::shared_ptr<const ModelView> model) {
    plan_->model_ = std::move(model);
    plan_->target_ = target_;
    plan_->workers_ = std::clamp(options_.workers, 1, kMaxWorkers);
    if (target_ == 0)
      return make_error(ErrorCode::unsupported, "no compiled processor target fits this processor and the target mask");
    ONEWEIGHT_RETURN_IF_ERROR(bind_graph());
    if (path_.empty()) path_.push_back(plan_->subgraph_);
    ONEWEIGHT_RETURN_IF_ERROR(check_operators());
    for (size_t i = 0; i < subgraph().operators.size(); ++i) ONEWEIGHT_RETURN_IF_ERROR(prepare(static_cast<int>(i)));
    for (int32_t t : plan_->outputs_)
      if (!info_[t].available)
        return make_error(ErrorCode::invalid_model, "output tensor '%s' is not computed by any operator",
                          std::string(plan_->tensors_[t].name).c_str());
    for (int32_t t : plan_->outputs_)
      if (is_sparse(t)) return sparse_error(t);
    for (size_t t = 0; t < info_.size(); ++t)
      if (info_[t].unsized && (info_[t].is_output || info_[t].keep)) return unsized_error(static_cast<int>(t), " and is asked for");
    for (int32_t t : plan_->outputs_) ONEWEIGHT_RETURN_IF_ERROR(need_value(t));
    remove_unused();
    lay_out();
    if (options_.memory_limit > 0 && plan_->limited_bytes() > options_.memory_limit) return limit_error(*plan_, options_);
    return {};
  }

  const SubgraphDef& subgraph() const { return plan_->subgraph(); }

  Status bind_graph() {
    Plan& plan = *plan_;
    const SignatureDef* signature = nullptr;
    if (!options_.signature.empty()) {
      signature = plan.model_->find_signature(options_.signature);
      if (!signature) {
        std::string known;
        for (const SignatureDef& s : plan.model_->signatures()) known += (known.empty() ? "'" : ", '") + s.key + "'";
        return make_error(ErrorCode::not_found, "no signature '%s'; the model has %s", options_.signature.c_str(),
                          known.empty() ? "none" : known.c_str());
      }
      plan.subgraph_ = static_cast<int>(signature->subgraph);
    } else if (!path_.empty()) {
      plan.subgraph_ = path_.back();
    }
    const SubgraphDef& graph = subgraph();
    const size_t n = graph.tensors.size();
    plan.tensors_.resize(n);
    info_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      const TensorDef& def = graph.tensors[i];
      PlanTensor& t = plan.tensors_[i];
      t.name = def.name;
      t.type = def.type;
      t.shape = def.shape;
      t.quantization = &def.quantization;
      if (def.is_constant) {
        ONEWEIGHT_RETURN_IF_ERROR(set_constant(static_cast<int>(i), def.data.data(), def.data.size()));
      } else if (def.is_variable) {
        t.placement = Placement::state;
        info_[i].available = true;
      }
    }
    if (signature) {
      for (const auto& [name, t] : signature->inputs) plan.inputs_.push_back(t), plan.input_names_.push_back(name);
      for (const auto& [name, t] : signature->outputs) plan.outputs_.push_back(t), plan.output_names_.push_back(name);
    } else {
      plan.inputs_ = graph.inputs;
      plan.outputs_ = graph.outputs;
      for (int32_t t : plan.inputs_) plan.input_names_.emplace_back(t < 0 ? "" : graph.tensors[t].name);
      for (int32_t t : plan.outputs_) plan.output_names_.emplace_back(graph.tensors[t].name);
    }
    for (const auto& [number, bytes] : constant_inputs_)
      ONEWEIGHT_RETURN_IF_ERROR(set_constant(plan.inputs_[number], bytes, sizeof(int32_t)));
    for (int32_t t : plan.inputs_) {
      if (!constant_inputs_.empty() && is_constant(t)) continue;
      if (info_[t].available && plan.tensors_[t].placement == Placement::constant)
        return make_error(ErrorCode::invalid_model, "input tensor '%s' is a constant", graph.tensors[t].name.c_str());
      info_[t].is_input = info_[t].available = true;
      if (plan.tensors_[t].placement == Placement::none) info_[t].computed = true;
    }
    // Other inputs of the subgraph than the signature names are allowed only if nothing reads them.
    for (const auto& [number, shape] : options_.input_shapes) {
      if (number < 0 || static_cast<size_t>(number) >= plan.inputs_.size())
        return make_error(ErrorCode::invalid_argument, "cannot resize input %d: the model has %zu inputs", number,
                          plan.inputs_.size());
      plan.tensors_[plan.inputs_[number]].shape = shape;
    }
    for (int32_t t : plan.inputs_) {
      if (tensor_type_bits(plan.tensors_[t].type) == 0)
        return make_error(ErrorCode::unsupported, "input tensor '%s' has type %s, which is not supported",
                          graph.tensors[t].name.c_str(), tensor_type_name(plan.tensors_[t].type));
      if (plan.tensors_[t].shape.bytes(plan.tensors_[t].type) < 0 ||
          plan.tensors_[t].shape.bytes(plan.tensors_[t].type) > (int64_t{1} << 46))
        return make_error(ErrorCode::invalid_argument, "input tensor '%s' cannot have the shape %s",
                          graph.tensors[t].name.c_str(), plan.tensors_[t].shape.to_string().c_str());
    }
    for (int32_t t : plan.outputs_) info_[t].is_output = true, ++info_[t].uses;
    for (const std::string& name : options_.keep) {
      const int t = plan.find_tensor(name);
      if (t < 0) return make_error(ErrorCode::not_found, "no tensor '%s' to keep", name.c_str());
      info_[t].keep = true;
      ++info_[t].uses;
    }
    for (const OperatorDef& op : graph.operators)
      for (int32_t t : op.inputs)
        if (t >= 0) ++info_[t].uses;
    return {};
  }

  // The constant's address, or an aligned copy where a small one lies unaligned in the file.
  Status set_constant(int t, const std::byte* data, size_t bytes) {
    PlanTensor& tensor = plan_->tensors_[t];
    const size_t alignment = static_cast<size_t>(std::max(8, tensor_type_bits(tensor.type))) / 8;
    if (bytes > 0 && bytes <= static_cast<size_t>(kWidenBytes) && reinterpret_cast<uintptr_t>(data) % alignment != 0) {
      void* copy = plan_->memory_.allocate(bytes);
      if (!copy) return make_error(ErrorCode::out_of_memory, "no memory for the plan");
      std::memcpy(copy, data, bytes);
      data = static_cast<std::byte*>(copy);
    }
    tensor.placement = Placement::constant;
    tensor.constant = data;
    tensor.bytes = static_cast<int64_t>(bytes);
    info_[t].available = true;
    info_[t].computed = false;
    return {};
  }

  bool is_constant(int t) const { return plan_->tensors_[t].placement == Placement::constant; }
  bool is_state(int t) const { return t >= 0 && plan_->tensors_[t].placement == Placement::state; }

  bool is_sparse(int t) const { return is_constant(t) && subgraph().tensors[t].sparsity != nullptr; }
  Status sparse_error(int t) const {
    return make_error(ErrorCode::unsupported, "tensor '%s' is a constant that is stored sparsely; only DENSIFY may read it", name_of(t).c_str());
  }

  // Types of a node as `row` would see them.
  NodeTypes types_of(const OperatorDef& op, const OpRow& row) const {
    NodeTypes types;
    types.input_count = static_cast<int>(op.inputs.size());
    types.output_count = static_cast<int>(op.outputs.size());
    for (int i = 0; i < std::min(types.input_count, NodeTypes::kMax); ++i) {
      int t = op.inputs[i];
      types.has_input[i] = t >= 0;
      if (t < 0) continue;
      if (reads_stored(row, i) && info_[t].widened_from >= 0) t = info_[t].widened_from;
      types.inputs[i] = plan_->tensors_[t].type;
      types.constant[i] = is_constant(t);
    }
    for (int i = 0; i < std::min(types.output_count, 4); ++i) types.outputs[i] = plan_->tensors_[op.outputs[i]].type;
    return types;
  }
  static bool reads_stored(const OpRow& row, int input) { return input < 32 && (row.stored_inputs >> input & 1u); }

  bool is_named(const OpRow& row, const OperatorDef& op) const {
    return row.code == op.code && (op.code != BuiltinOperator::custom || (row.custom_code && op.custom_code == row.custom_code));
  }
  const OpRow* find_row(const OperatorDef& op) const {
    const auto fits = [&](const OpRow& row) {
      return is_named(row, op) && op.version >= row.min_version && op.version <= row.max_version && row.accepts(types_of(op, row));
    };
    for (const OpRow* row : options_.custom_operators)
      if (row && fits(*row)) return row;
    for (const OpRow& row : rows_)
      if (fits(row)) return &row;
    return nullptr;
  }

  // Finds widened constants, and all operators that no row takes.
  Status check_operators() {
    std::map<std::string, int> missing;
    for (const OperatorDef& op : subgraph().operators) {
      const OpRow* row = find_row(op);
      if (row && row->widens && !op.inputs.empty() && op.inputs[0] >= 0 && !op.outputs.empty() && is_constant(op.inputs[0]) &&
          !is_state(op.outputs[0]))
        info_[op.outputs[0]].widened_from = op.inputs[0];
      if (row) continue;
      bool named = false;
      for (const OpRow& r : rows_) named = named || is_named(r, op);
      std::string text = op.code == BuiltinOperator::custom ? "custom '" + op.custom_code + "'" : std::string(op.name());
      text += " version " + std::to_string(op.version);
      if (named) {
        text += " (";
        for (size_t i = 0; i < op.inputs.size() && i < 4; ++i)
          text += std::string(i ? ", " : "") + (op.inputs[i] < 0 ? "none" : tensor_type_name(plan_->tensors_[op.inputs[i]].type));
        text += " -> ";
        for (size_t i = 0; i < op.outputs.size() && i < 4; ++i)
          text += std::string(i ? ", " : "") + tensor_type_name(plan_->tensors_[op.outputs[i]].type);
        text += ")";
      }
      ++missing[text];
    }
    if (missing.empty()) return {};
    std::string text;
    for (const auto& [name, count] : missing)
      text += (text.empty() ? "" : "; ") + name + (count > 1 ? " in " + std::to_string(count) + " places" : "");
    return make_error(ErrorCode::unsupported, "operators or types that are not built in: %s", text.c_str());
  }

  std::string name_of(int t) const { return std::string(plan_->tensors_[t].name); }

  Operand operand(int t) const {
    const PlanTensor& tensor = plan_->tensors_[t];
    const TensorDef& def = subgraph().tensors[t];
    Operand o;
    o.name = tensor.name;
    o.type = tensor.type;
    o.shape = tensor.shape;
    o.quantization = tensor.quantization;
    o.data = tensor.constant;
    o.data_bytes = tensor.constant ? tensor.bytes : 0;
    o.is_constant = tensor.placement == Placement::constant;
    o.is_variable = def.is_variable;
    o.sparsity = def.sparsity.get();
    return o;
  }

  Status prepare(int index) {
    const OperatorDef& op = subgraph().operators[index];
    const OpRow* row = find_row(op);
    nodes_.push_back(std::make_unique<Node>(this));
    Node& node = *nodes_.back();
    Preparation& p = node.preparation;
    p.op_ = &op;
    p.index_ = index;
    p.target_ = target_;
    p.memory_ = &plan_->memory_;
    node.inputs = op.inputs;
    node.outputs = op.outputs;
    if (!row) return p.error(ErrorCode::unsupported, "is not built in for these types");
    if (row->widens && op.outputs.size() == 1 && is_state(op.outputs[0])) return initial_value(p, node);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      int32_t& t = node.inputs[i];
      if (t < 0) continue;
      if (!info_[t].available)
        return p.invalid("reads tensor '%s' before any operator has computed it", name_of(t).c_str());
      if (is_sparse(t) && !row->takes_sparse) return sparse_error(t);
      if (info_[t].unsized && !row->takes_unsized) return unsized_error(t, " and is read by operator " + std::to_string(index) + " " + std::string(op.name()));
      if (info_[t].widened_from >= 0 && !is_constant(t)) {
        if (reads_stored(*row, static_cast<int>(i))) {
          --info_[t].uses;
          t = info_[t].widened_from;
          ++info_[t].uses;
        } else {
          ONEWEIGHT_RETURN_IF_ERROR(need_value(t));
        }
      }
    }
    for (int32_t t : op.outputs) {
      if (t < 0) return p.invalid("an output is left out");
      if (info_[t].producer >= 0 || info_[t].is_input || is_constant(t) || plan_->tensors_[t].placement == Placement::state)
        return p.invalid("writes tensor '%s', which is an input, a constant, a variable or already written", name_of(t).c_str());
      info_[t].producer = index;
    }
    p.input_ids_ = node.inputs;
    p.output_ids_ = node.outputs;
    for (int32_t t : node.inputs) p.inputs_.push_back(t < 0 ? empty_operand() : operand(t));
    for (int32_t t : node.outputs) p.outputs_.push_back(operand(t));
    p.output_set_.assign(node.outputs.size(), 0);
    ONEWEIGHT_RETURN_IF_ERROR(row->prepare(p));
    if (p.unsized_) {
      info_[node.outputs[0]].available = info_[node.outputs[0]].unsized = true;
      return {};
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      PlanTensor& t = plan_->tensors_[node.outputs[i]];
      if (!p.output_set_[i]) return p.error(ErrorCode::unsupported, "did not state the shape of output %zu", i);
      t.shape = p.outputs_[i].shape;
      t.bytes = t.shape.bytes(t.type);
      if (t.bytes < 0) return p.error(ErrorCode::unsupported, "output type %s is not supported", tensor_type_name(t.type));
      info_[node.outputs[i]].available = info_[node.outputs[i]].computed = true;
    }
    if (p.fused_away_) return {};
    node.inputs = p.input_ids_;      // a padding may have been absorbed
    for (const Preparation::ConstantOutput& c : p.constant_outputs_) {
      PlanTensor& t = plan_->tensors_[node.outputs[c.out]];
      ONEWEIGHT_RETURN_IF_ERROR(set_constant(node.outputs[c.out], c.bytes, static_cast<size_t>(t.bytes)));
    }
    if (!p.constant_outputs_.empty() && p.constant_outputs_.size() == node.outputs.size()) return {};
    if (!p.facts_.kernel) return p.error(ErrorCode::unsupported, "did not state a kernel");
    if (p.facts_.scratch < 0) return p.error(ErrorCode::unsupported, "needs more scratch than can be counted");
    node.live = true;
    if (!node.outputs.empty() && info_[node.outputs[0]].widened_from >= 0) {
      node.live = false;
      node.deferred = true;
      return {};
    }
    return fold(node, kFoldBytes);
  }

  // Converters widen the initial value of a variable into it. The value is zero, which variables begin with anyway.
  Status initial_value(const Preparation& p, const Node& node) const {
    const std::string name = name_of(node.outputs[0]);
    if (node.inputs.size() != 1 || node.inputs[0] < 0 || !is_constant(node.inputs[0]))
      return p.invalid("writes the variable '%s'", name.c_str());
    const PlanTensor& value = plan_->tensors_[node.inputs[0]];
    const auto* bytes = reinterpret_cast<const uint8_t*>(value.constant);
    if (std::any_of(bytes, bytes + value.bytes, [](uint8_t b) { return b != 0; }))
      return p.error(ErrorCode::unsupported, "begins the variable '%s' with another value than 0", name.c_str());
    return {};
  }

  static Operand empty_operand() {
    static const Quantization none;
    Operand o;
    o.quantization = &none;
    return o;
  }

  // The float value of a widened constant is needed: kept in the plan when small, else computed in each run.
  Status need_value(int t) {
    if (info_[t].widened_from < 0 || is_constant(t) || info_[t].producer < 0) return {};
    Node& node = *nodes_[info_[t].producer];
    if (!node.deferred) return {};
    node.deferred = false;
    node.live = true;
    const bool vector = plan_->tensors_[t].shape.rank() <= 1;
    return fold(node, vector ? kFoldBytes : kWidenBytes);
  }

  // Runs a node whose inputs are all known now, if its outputs are small enough to be kept.
  Status fold(Node& node, int64_t limit) {
    Preparation& p = node.preparation;
    if (!p.foldable_ || p.facts_.changes_state) return {};
    for (int32_t t : node.inputs)
      if (t >= 0 && !is_constant(t)) return {};
    int64_t bytes = 0;
    for (int32_t t : node.outputs) {
      if (info_[t].is_output || tensor_type_bits(plan_->tensors_[t].type) == 0) return {};
      bytes += plan_->tensors_[t].bytes;
    }
    if (bytes > limit || p.facts_.scratch > 16 * limit) return {};
    std::vector<std::byte*> addresses(plan_->tensors_.size(), nullptr);
    for (int32_t t : node.inputs)
      if (t >= 0) addresses[t] = const_cast<std::byte*>(plan_->tensors_[t].constant);
    for (int32_t t : node.outputs) {
      addresses[t] = static_cast<std::byte*>(plan_->memory_.allocate(static_cast<size_t>(plan_->tensors_[t].bytes) + 1));
      if (!addresses[t]) return p.no_memory();
    }
    PlanMemory temporary;
    auto* scratch = static_cast<std::byte*>(temporary.allocate(static_cast<size_t>(p.facts_.scratch) + 1));
    if (!scratch) return p.no_memory();
    RunState state;
    std::vector<int32_t> inputs = node.inputs;
    inputs.insert(inputs.end(), kAbsentInputs, -1);
    p.facts_.kernel(KernelArgs{p.facts_.params, addresses.data(), inputs.data(), node.outputs.data(), scratch, {0, p.facts_.rows}, &state, {0, p.facts_.blocks}});
    if (state.failed()) return p.error(state.code(), "%s", state.message());
    for (int32_t t : node.outputs)
      ONEWEIGHT_RETURN_IF_ERROR(set_constant(t, addresses[t], static_cast<size_t>(plan_->tensors_[t].bytes)));
    node.live = false;
    return {};
  }

  Node* producer_of(int t) {
    const int i = info_[t].producer;
    return i >= 0 && static_cast<size_t>(i) < nodes_.size() && nodes_[i]->live ? nodes_[i].get() : nullptr;
  }

  bool absorb_padding(Preparation& consumer, SpatialPadding* padding) {
    if (!options_.fuse || consumer.input_ids_.empty() || consumer.input_ids_[0] < 0) return false;
    const int t = consumer.input_ids_[0];
    Node* node = producer_of(t);
    if (!node || !node->preparation.is_padding_ || info_[t].uses != 1) return false;
    *padding = node->preparation.padding_;
    node->live = false;
    consumer.input_ids_[0] = node->inputs[0];
    consumer.inputs_[0] = operand(node->inputs[0]);
    return true;
  }

  Status unsized_error(int t, const std::string& why) const {
    const OperatorDef& op = subgraph().operators[info_[t].producer];
    return make_error(ErrorCode::unsupported, "operator %d %s: the shape of its output '%s' depends on values that are computed while running%s",
                      info_[t].producer, std::string(op.name()).c_str(), name_of(t).c_str(), why.c_str());
  }
  bool absorb_unsized(Preparation& consumer, int i, int* first) {
    const int t = consumer.input_ids_[i];
    if (t < 0 || !info_[t].unsized || info_[t].uses != 1) return false;
    const std::vector<int32_t>& inputs = nodes_[info_[t].producer]->inputs;
    consumer.input_ids_[i] = inputs[0];
    consumer.inputs_[i] = operand(inputs[0]);
    *first = consumer.input_count();
    for (size_t k = 1; k < inputs.size(); ++k) {
      consumer.input_ids_.push_back(inputs[k]);
      consumer.inputs_.push_back(inputs[k] < 0 ? empty_operand() : operand(inputs[k]));
    }
    return true;
  }

  int absorb_function(Preparation& consumer, const uint8_t** table) {
    if (!options_.fuse || consumer.input_ids_.size() != 2) return -1;
    for (int i = 0; i < 2; ++i) {
      const int gate = consumer.input_ids_[i], x = consumer.input_ids_[1 - i];
      Node* node = gate < 0 ? nullptr : producer_of(gate);
      if (!node || info_[gate].uses != 1 || node->inputs[0] != x) continue;
      if (*table = node->preparation.table_; !*table && !node->preparation.is_logistic_) continue;
      node->live = info_[gate].computed = false;
      --info_[x].uses;
      consumer.input_ids_ = {x};
      consumer.inputs_.resize(1);
      consumer.inputs_[0] = operand(x);
      return i;
    }
    return -1;
  }

  bool fuse_activation(Preparation& consumer, const FusedActivation& wanted) {
    if (!options_.fuse || consumer.input_ids_.empty() || consumer.input_ids_[0] < 0) return false;
    const int in = consumer.input_ids_[0], out = consumer.output_ids_[0];
    Node* node = producer_of(in);
    if (!node || !node->preparation.activation_ || info_[in].uses != 1 || node->outputs.size() != 1) return false;
    FusedActivation& have = *node->preparation.activation_;
    if (have.after != FusedActivation::none) return false;
    const float low = std::max(have.low, wanted.low), high = std::min(have.high, wanted.high);
    if (low > high) return false;
    have = {low, high, wanted.after};
    // The producer writes this node's output; shapes are equal for an activation.
    node->outputs[0] = out;
    node->preparation.output_ids_[0] = out;
    info_[out].producer = info_[in].producer;
    info_[in].computed = false;
    consumer.fused_away_ = true;
    consumer.outputs_[0].shape = plan_->tensors_[in].shape;
    consumer.output_set_[0] = true;
    return true;
  }

  // A node lives when one of its outputs is read by a living node or kept, or when it changes state.
  void remove_unused() {
    std::vector<char> needed(info_.size(), 0);
    for (size_t t = 0; t < info_.size(); ++t) needed[t] = info_[t].is_output || info_[t].keep;
    for (size_t i = nodes_.size(); i-- > 0;) {
      Node& node = *nodes_[i];
      if (!node.live) continue;
      bool used = node.preparation.facts_.changes_state;
      for (int32_t t : node.outputs) used = used || needed[t];
      for (int32_t t : node.inputs) used = used || (t >= 0 && plan_->tensors_[t].placement == Placement::state);
      node.live = used;
      if (!used) continue;
      for (int32_t t : node.inputs)
        if (t >= 0) needed[t] = 1;
    }
  }

  bool in_arena(int t) const { return t >= 0 && info_[t].computed && plan_->tensors_[t].placement != Placement::state; }

  // All outputs are without elements, and no variable changes.
  bool computes_nothing(const Node& node) const {
    bool nothing = !node.preparation.facts_.changes_state;
    for (int32_t t : node.outputs) nothing = nothing && plan_->tensors_[t].bytes == 0;
    for (int32_t t : node.inputs)
      nothing = nothing && (t < 0 || plan_->tensors_[t].placement != Placement::state || plan_->tensors_[t].bytes == 0);
    return nothing;
  }

  // The outputs are constants, as bytes of a constant input.
  bool is_view_of_constant(const Node& node) {
    const std::vector<StepFacts::View>& views = node.preparation.facts_.views;
    if (views.empty() || node.preparation.facts_.changes_state) return false;
    std::vector<char> viewed(node.outputs.size(), 0);
    for (const StepFacts::View& view : views) {
      const int from = node.inputs[view.in], to = node.outputs[view.out];
      if (view.gathers || from < 0 || !is_constant(from) || info_[to].is_output) return false;
      viewed[view.out] = 1;
    }
    if (std::count(viewed.begin(), viewed.end(), 0) > 0) return false;
    for (const StepFacts::View& view : views) {
      PlanTensor& result = plan_->tensors_[node.outputs[view.out]];
      result.placement = Placement::constant;
      result.constant = plan_->tensors_[node.inputs[view.in]].constant + view.offset;
      info_[node.outputs[view.out]].computed = false;
    }
    return true;
  }

  bool stays(const Node& node) const {
    bool stays = node.preparation.facts_.changes_state || !node.preparation.foldable_;
    for (int32_t t : node.inputs) stays = stays || (t >= 0 && (plan_->tensors_[t].placement == Placement::state || plan_->tensors_[t].type == TensorType::resource));
    return stays;
  }

  void lay_out() {
    for (PlanTensor& t : plan_->tensors_)
      if (t.placement != Placement::constant) t.bytes = std::max<int64_t>(t.shape.bytes(t.type), 0);
    std::vector<LayoutStep> steps;
    for (auto& node : nodes_) {
      if (!node->live || computes_nothing(*node) || is_view_of_constant(*node)) continue;
      order_.push_back(node.get());
    }
    for (Node* node : order_) steps.push_back({&node->preparation.facts_, node->inputs, node->outputs, stays(*node)});
    std::vector<LayoutTensor> tensors(info_.size());
    for (size_t t = 0; t < info_.size(); ++t) {
      const PlanTensor& tensor = plan_->tensors_[t];
      const int64_t rows = image_rows(tensor.shape);
      tensors[t] = {.bytes = tensor.bytes,
                    .rows = rows,
                    .pixels = rows > 0 ? tensor.shape.elements(0, 3) : 0,
                    .in_arena = in_arena(static_cast<int>(t)) && tensor.placement != Placement::constant,
                    .is_input = info_[t].is_input,
                    .is_output = info_[t].is_output,
                    .is_kept = info_[t].keep};
    }
    Layout layout(std::move(tensors), std::move(steps));
    std::vector<double> shares = {options_.tile_rows >= 0 ? options_.extra_work : -1};
    for (double share : kExtraWorkLadder)
      if (options_.memory_limit > 0 && options_.tile_rows == 0 && share > shares[0]) shares.push_back(share);
    size_t best = 0;
    int64_t least = 0;
    const auto arrange = [&](double share) {
      layout.arrange(share, options_.tile_rows, options_.reorder);
      emit(layout);
    };
    for (size_t i = 0; i < shares.size(); ++i) {
      arrange(shares[i]);
      if (i == 0 || plan_->context_bytes_ < least) best = i, least = plan_->context_bytes_;
      if (plan_->limited_bytes() <= options_.memory_limit) return;
    }
    if (shares.size() > 1) arrange(shares[best]);  // for the message
  }

  void emit(Layout& layout) {
    Plan& plan = *plan_;
    plan.steps_.clear(), plan.operands_.clear(), plan.chains_.clear(), plan.chain_tables_.clear();
    size_t operands = 0;
    for (int32_t i : layout.order()) operands += order_[i]->inputs.size() + kAbsentInputs + order_[i]->outputs.size();
    for (const Tiling& chain : layout.chains())
      for (const Tiling::Window& window : chain.windows) operands += window.maps.size();
    plan.operands_.reserve(operands);
    plan.steps_.reserve(layout.order().size());
    std::vector<StepWork> works;
    for (int32_t i : layout.order()) {
      const Node* node = order_[i];
      const StepFacts& facts = node->preparation.facts_;
      Step step;
      step.kernel = facts.kernel;
      step.name = node->preparation.op_->name().data();  // both sources of names end with a zero
      step.params = facts.params;
      step.inputs = plan.operands_.data() + plan.operands_.size();
      plan.operands_.insert(plan.operands_.end(), node->inputs.begin(), node->inputs.end());
      plan.operands_.insert(plan.operands_.end(), kAbsentInputs, -1);
      step.outputs = plan.operands_.data() + plan.operands_.size();
      plan.operands_.insert(plan.operands_.end(), node->outputs.begin(), node->outputs.end());
      step.rows = facts.rows, step.rows_each = facts.rows_each, step.blocks = facts.blocks;
      step.scratch_bytes = (facts.scratch + kAlignment - 1) / kAlignment * kAlignment;
      step.input_count = static_cast<int32_t>(node->inputs.size());
      step.output_count = static_cast<int32_t>(node->outputs.size());
      step.operator_index = node->preparation.index_;
      plan.steps_.push_back(step);
      works.push_back(facts.work);
    }
    emit_chains(layout);
    plan.is_divided_ = divide_into_bands(plan.tensors_, plan.steps_, works, plan.workers_, options_.band_work);
    place(layout);
  }

  void emit_chains(const Layout& layout) {
    Plan& plan = *plan_;
    for (const Tiling& tiling : layout.chains()) {
      auto table = std::make_unique<int32_t[]>(tiling.ends.size() + tiling.lows.size());
      auto windows = std::make_unique<Chain::Window[]>(tiling.windows.size());
      std::copy(tiling.ends.begin(), tiling.ends.end(), table.get());
      std::copy(tiling.lows.begin(), tiling.lows.end(), table.get() + tiling.ends.size());
      for (size_t w = 0; w < tiling.windows.size(); ++w) {
        const Tiling::Window& from = tiling.windows[w];
        Chain::Window& window = windows[w];
        window.tensors = plan.operands_.data() + plan.operands_.size();
        plan.operands_.insert(plan.operands_.end(), from.maps.begin(), from.maps.end());
        window.tensor_count = static_cast<int32_t>(from.maps.size());
        window.writer = from.writer;
        const PlanTensor& map = plan.tensors_[static_cast<size_t>(from.maps[0])];
        window.row_bytes = map.bytes / (map.shape[0] * map.shape[1]);
      }
      Chain chain;
      chain.first = tiling.first, chain.count = tiling.count();
      chain.tiles = static_cast<int32_t>(tiling.tiles), chain.window_count = static_cast<int32_t>(tiling.windows.size());
      chain.windows = windows.get();
      chain.ends = table.get(), chain.lows = table.get() + tiling.ends.size();
      for (int32_t k = 0; k < chain.count; ++k) {
        Step& step = plan.steps_[static_cast<size_t>(chain.first + k)];
        step.tile_rows = (step.rows / step.rows_each + chain.tiles - 1) / chain.tiles;
      }
      plan.chains_.push_back(chain);
      plan.chain_tables_.push_back({std::move(table), std::move(windows)});
      plan.chain_bytes_ += (tiling.ends.size() + tiling.lows.size()) * sizeof(int32_t) + tiling.windows.size() * sizeof(Chain::Window);
    }
  }

  void place(Layout& layout) {
    Plan& plan = *plan_;
    const auto end = static_cast<int32_t>(plan.steps_.size());
    const auto aligned = [](int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; };
    // The block begins with the addresses of all tensors, and one address per output for bound memory.
    plan.arena_offset_ = aligned(static_cast<int64_t>(plan.tensors_.size() + plan.outputs_.size()) * static_cast<int64_t>(sizeof(void*)));
    // The main plan's block holds the resources of all.
    if (path_.size() == 1) plan.resource_bytes_ = resources_->bytes();
    int64_t state = plan.arena_offset_ + aligned(plan.resource_bytes_);
    for (PlanTensor& tensor : plan.tensors_) {
      tensor.first_step = end, tensor.last_step = -1;
      if (tensor.placement != Placement::state) continue;
      tensor.offset = state;
      state += aligned(tensor.bytes);
    }
    plan.state_bytes_ = state - plan.arena_offset_;  // with resources
    const auto see = [&](int32_t t, int32_t step) {
      PlanTensor& tensor = plan.tensors_[static_cast<size_t>(t)];
      tensor.first_step = std::min(tensor.first_step, step), tensor.last_step = std::max(tensor.last_step, step);
    };
    std::vector<int64_t> scratch;
    plan.largest_scratch_ = 0;
    for (int32_t s = 0; s < end; ++s) {
      const Step& step = plan.steps_[static_cast<size_t>(s)];
      for (int i = 0; i < step.input_count; ++i)
        if (step.inputs[i] >= 0) see(step.inputs[i], s);
      for (int i = 0; i < step.output_count; ++i) see(step.outputs[i], s);
      scratch.push_back(plan.scratch_bytes(step));
      plan.largest_scratch_ = std::max(plan.largest_scratch_, step.scratch_bytes);
    }
    for (size_t t = 0; t < info_.size(); ++t) {
      if (info_[t].is_input) see(static_cast<int32_t>(t), -1), see(static_cast<int32_t>(t), end);
      if (info_[t].is_output || info_[t].keep) see(static_cast<int32_t>(t), end);
    }
    plan.context_bytes_ = state + layout.place(scratch);
    for (size_t t = 0; t < info_.size(); ++t) {
      const Layout::Place& place = layout.place_of(static_cast<int32_t>(t));
      PlanTensor& tensor = plan.tensors_[t];
      if (place.buffer < 0 || tensor.last_step < tensor.first_step) continue;
      tensor.placement = Placement::arena;
      tensor.buffer = place.buffer, tensor.offset = state + place.offset;
      tensor.window_rows = place.window_rows;
    }
    for (size_t s = 0; s < plan.steps_.size(); ++s) plan.steps_[s].scratch_offset = state + layout.scratch_offset(s);
    for (size_t c = 0; c < plan.chains_.size(); ++c)
      for (int32_t w = 0; w < plan.chains_[c].window_count; ++w) {
        Chain::Window& window = plan.chain_tables_[c].windows[static_cast<size_t>(w)];
        window.offset = plan.tensors_[static_cast<size_t>(window.tensors[0])].offset;
      }
    plan.peak_step_ = layout.peak();
    plan.extra_work_ = layout.extra_work();
  }

  Status subgraph_plan(Preparation& parent, int index, std::span<const Operand* const> inputs, const Plan** result) {
    const auto& graphs = plan_->model_->subgraphs();
    if (index < 0 || static_cast<size_t>(index) >= graphs.size())
      return parent.invalid("calls subgraph %d of %zu", index, graphs.size());
    if (std::find(path_.begin(), path_.end(), index) != path_.end())
      return parent.invalid("calls subgraph %d from inside itself: recursion is not supported", index);
    if (path_.size() >= kMaxDepth) return parent.invalid("nests subgraphs deeper than %d", kMaxDepth);
    if (++resources_->graphs > kMaxGraphs) return parent.error(ErrorCode::unsupported, "calls more than %d subgraphs, nested calls counted", kMaxGraphs);
    std::vector<int32_t> distinct = graphs[index].inputs;
    std::sort(distinct.begin(), distinct.end());
    if (std::adjacent_find(distinct.begin(), distinct.end()) != distinct.end())
      return parent.invalid("calls subgraph %d, which names a tensor twice among its inputs", index);
    if (graphs[index].inputs.size() != inputs.size())
      return parent.invalid("gives subgraph %d %zu inputs, it has %zu", index, inputs.size(), graphs[index].inputs.size());
    PlanOptions options;
    options.fuse = options_.fuse;
    options.reorder = options_.reorder, options.tile_rows = options_.tile_rows, options.extra_work = options_.extra_work;
    options.custom_operators = options_.custom_operators;
    std::vector<int> path = path_;
    path.push_back(index);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const TensorDef& def = graphs[index].tensors[graphs[index].inputs[i]];
      if (def.type != inputs[i]->type)
        return parent.invalid("gives input %zu of subgraph %d %s, it takes %s", i, index, parent.describe(*inputs[i]).c_str(), tensor_type_name(def.type));
      options.input_shapes.push_back({static_cast<int>(i), inputs[i]->shape});
    }
    PlanBuilder child(options, rows_, target_, resources_, std::move(path));
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i]->type == TensorType::resource && inputs[i]->is_constant)
        child.constant_inputs_.push_back({static_cast<int>(i), inputs[i]->data});
    if (Status status = child.run(plan_->model_); !status.ok())
      return parent.error(status.code(), "in subgraph %d: %s", index, status.message().c_str());
    if (child.plan_->state_bytes_ > 0) return parent.error(ErrorCode::unsupported, "subgraph %d has variable tensors", index);
    plan_->children_.push_back(std::move(child.plan_));
    *result = plan_->children_.back().get();
    return {};
  }

  const PlanOptions& options_;
  std::span<const OpRow> rows_;
  int64_t target_;
  Resources* resources_;
  std::vector<int> path_;
  std::vector<std::pair<int, const std::byte*>> constant_inputs_;  // resource handles given to a subgraph
  std::unique_ptr<Plan> plan_;
  std::vector<Tensor> info_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Node*> order_;         // that become steps, in the file's order
};

inline Status Preparation::resource(const std::string& name, TensorType type, const Shape& shape, int64_t* offset) {
  return builder_->resources_->place(*this, name, type, shape, offset);
}
inline const Quantization& Preparation::intermediate(int i) const {
  const int32_t t = op_->intermediates[static_cast<size_t>(i)];
  return t < 0 ? *PlanBuilder::empty_operand().quantization : builder_->subgraph().tensors[static_cast<size_t>(t)].quantization;
}
inline int32_t Preparation::resource_handle(const std::string& name) { return builder_->resources_->handle(name); }
inline const std::string* Preparation::resource_name(int32_t handle) const { return builder_->resources_->name(handle); }
inline Status Preparation::subgraph(int index, std::span<const Operand* const> inputs, const Plan** plan) {
  return builder_->subgraph_plan(*this, index, inputs, plan);
}
inline bool Preparation::absorb_padding_impl(SpatialPadding* padding) { return builder_->absorb_padding(*this, padding); }
inline bool Preparation::is_unsized_impl(int i) const { return input_ids_[i] >= 0 && builder_->info_[input_ids_[i]].unsized; }
inline bool Preparation::absorb_unsized_impl(int i, int* first) { return builder_->absorb_unsized(*this, i, first); }
inline int Preparation::absorb_function_impl(const uint8_t** table) { return builder_->absorb_function(*this, table); }
inline bool Preparation::fuse_activation_impl(const FusedActivation& wanted) { return builder_->fuse_activation(*this, wanted); }

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_BUILDER_H
