// What a context will need, and what contexts do cost.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "warm_up_model.h"

namespace program {

namespace {

// Runs and closes a small model, so that what a process pays once (pages of the program, buffers of the C library)
// is not counted as a cost of the model measured.
oneweight::Status warm_up() {
  auto model = oneweight::ModelView::from_bytes(std::as_bytes(std::span(kWarmUpModel)));
  if (!model.ok()) return model.status();
  auto plan = oneweight::make_plan<oneweight::opset::All>(*model);
  if (!plan.ok()) return plan.status();
  auto context = oneweight::ExecutionContext::create(*plan);
  if (!context.ok()) return context.status();
  fill_inputs(*context);
  return context->run();
}

// How often the file is mapped into this process.
int mappings_of(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  const std::string name = resolved ? resolved : path;
  std::free(resolved);
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.size() > name.size() && line.compare(line.size() - name.size(), name.size(), name) == 0;
  return count;
}

void print_chains(const oneweight::Plan& plan) {
  int steps = 0;
  for (const oneweight::Chain& chain : plan.chains()) steps += chain.count;
  if (steps == 0) return;
  std::printf("%d of %zu steps run tile by tile, so that the maps between them never exist whole:\n", steps, plan.steps().size());
  for (const oneweight::Chain& chain : plan.chains()) {
    std::printf("  steps %d to %d in %d tiles:", chain.first, chain.first + chain.count - 1, chain.tiles);
    for (int32_t k = 0; k < chain.count; ++k) std::printf(" %s", plan.steps()[static_cast<size_t>(chain.first + k)].name);
    std::printf("\n");
  }
  std::printf("\n");
}

void print_forecast(const Planned& planned) {
  const oneweight::Plan& plan = *planned.plan;
  std::printf("forecast for one context: %s (%lld bytes)\n", megabytes(static_cast<double>(plan.context_bytes())).c_str(),
              static_cast<long long>(plan.context_bytes()));
  std::printf("  state kept from run to run  %s\n", megabytes(static_cast<double>(plan.state_bytes())).c_str());
  std::printf("  largest scratch of a step   %s\n", megabytes(static_cast<double>(plan.largest_scratch_bytes())).c_str());
  std::printf("plan, shared by all contexts: %s; decoded structure of the model: %s\n\n", megabytes(static_cast<double>(plan.plan_bytes())).c_str(),
              megabytes(static_cast<double>(planned.model->structure_bytes())).c_str());
  if (plan.steps().empty()) return;
  print_chains(plan);
  const int peak = plan.peak_step();
  const oneweight::Step& step = plan.steps()[static_cast<size_t>(peak)];
  std::printf("alive at the peak, step %d of %zu (%s):\n", peak, plan.steps().size(), step.name);
  std::vector<const oneweight::PlanTensor*> alive;
  for (const oneweight::PlanTensor& t : plan.tensors()) {
    const bool now = t.placement == oneweight::Placement::state ||
                     (t.placement == oneweight::Placement::arena && t.first_step <= peak && t.last_step >= peak);
    if (now) alive.push_back(&t);
  }
  std::sort(alive.begin(), alive.end(), [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  std::printf("  %12s  %12s  %-8s %-20s %s\n", "bytes", "at", "type", "shape", "tensor");
  for (const oneweight::PlanTensor* t : alive)
    std::printf("  %12lld  %12lld  %-8s %-20s %s%s\n", static_cast<long long>(t->bytes), static_cast<long long>(t->offset),
                tensor_type_name(t->type), t->shape.to_string().c_str(), std::string(t->name).c_str(),
                t->placement == oneweight::Placement::state ? " (state)" : "");
  if (step.scratch_bytes)
    std::printf("  %12lld  %12lld  scratch of the step\n", static_cast<long long>(plan.scratch_bytes(step)),
                static_cast<long long>(step.scratch_offset));
  std::printf("\n");
}

}  // namespace

int memory(const MemoryArguments& arguments) {
  if (oneweight::Status status = warm_up(); !status.ok())
    return report(oneweight::Status(status.code(), "the warm-up model: " + status.message()));
  const auto count = static_cast<size_t>(arguments.contexts);
  std::vector<ProcessMemory> after(count);
  std::vector<int64_t> weights(count);  // resident bytes of the model's file; -1: the system does not tell
  std::vector<oneweight::ExecutionContext> contexts;
  contexts.reserve(count);
  ::malloc_trim(0);
  const ProcessMemory base = process_memory();

  auto planned = open_and_plan(arguments.model);
  if (!planned.ok()) return report(planned.status());
  for (size_t i = 0; i < count; ++i) {
    auto context = oneweight::ExecutionContext::create(planned->plan);
    if (!context.ok()) return report(context.status());
    fill_inputs(*context);
    if (oneweight::Status status = context->run(); !status.ok()) return report(status);
    contexts.push_back(std::move(*context));
    after[i] = process_memory();
    const auto resident = planned->model->resident_bytes();
    weights[i] = resident.ok() ? static_cast<int64_t>(*resident) : -1;
  }

  const auto file_bytes = static_cast<int64_t>(planned->model->bytes().size());
  const int mappings = mappings_of(arguments.model.model);
  if (arguments.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    nlohmann::ordered_json chains = nlohmann::ordered_json::array();
    for (const oneweight::Chain& chain : planned->plan->chains()) chains.push_back({{"first_step", chain.first}, {"steps", chain.count}, {"tiles", chain.tiles}});
    for (size_t i = 0; i < count; ++i)
      list.push_back({{"rss_bytes", after[i].rss},
                      {"anonymous_bytes", after[i].anonymous},
                      {"file_backed_bytes", after[i].file_backed()},
                      {"resident_weight_bytes", weights[i]}});
    const nlohmann::ordered_json result = {{"file_bytes", file_bytes},
                                           {"forecast_bytes", planned->plan->context_bytes()},
                                           {"plan_bytes", planned->plan->plan_bytes()},
                                           {"structure_bytes", planned->model->structure_bytes()},
                                           {"largest_scratch_bytes", planned->plan->largest_scratch_bytes()},
                                           {"state_bytes", planned->plan->state_bytes()},
                                           {"steps", planned->plan->steps().size()},
                                           {"chains", chains},
                                           {"base_rss_bytes", base.rss},
                                           {"base_anonymous_bytes", base.anonymous},
                                           {"locked_bytes", locked_bytes()},
                                           {"model_mappings", mappings},
                                           {"target", highway_target(*planned->plan)},
                                           {"contexts", list}};
    std::printf("%s\n", result.dump().c_str());
    return kSuccess;
  }
  std::printf("%s: %s, mapped %d time%s\n", arguments.model.model.c_str(), megabytes(static_cast<double>(file_bytes)).c_str(),
              mappings, mappings == 1 ? "" : "s");
  print_forecast(*planned);
  std::printf("measured over the base of this process (a small model had run and was closed), after each context has run:\n");
  std::printf("  contexts      resident     anonymous   file-backed  of the model's file\n");
  for (size_t i = 0; i < count; ++i)
    std::printf("  %8zu  %12s  %12s  %12s  %19s\n", i + 1, megabytes(static_cast<double>(after[i].rss - base.rss)).c_str(),
                megabytes(static_cast<double>(after[i].anonymous - base.anonymous)).c_str(),
                megabytes(static_cast<double>(after[i].file_backed() - base.file_backed())).c_str(), weights[i] < 0 ? "unknown" : megabytes(static_cast<double>(weights[i])).c_str());
  if (const int64_t locked = locked_bytes(); locked > 0) std::printf("locked in memory: %s\n", megabytes(static_cast<double>(locked)).c_str());
  return kSuccess;
}

}  // namespace program
