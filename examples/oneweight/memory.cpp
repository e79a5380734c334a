// What a context will need, and what contexts do cost.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "oneweight/plan/memory_limit.h"
#include "shown_text.h"
#include "timeline_picture.h"
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

// A plan that may add so much work, and what came of it.
struct Rung {
  bool reorder = true, tiles = true;
  double allowed = 0, extra = 0;
  int64_t context_bytes = 0, limited_bytes = 0;
  int tiled_steps = 0;
};

oneweight::Expected<std::vector<Rung>> make_ladder(const ModelArguments& arguments, const std::shared_ptr<const oneweight::ModelView>& model) {
  oneweight::PlanOptions options;
  if (oneweight::Status status = apply(arguments, *model, &options); !status.ok()) return status;
  options.memory_limit = 0;
  std::vector<Rung> ladder = {{.reorder = false, .tiles = false}, {.tiles = false}};
  for (double share : oneweight::kExtraWorkLadder) ladder.push_back({.allowed = share});
  for (Rung& rung : ladder) {
    options.reorder = rung.reorder, options.tile_rows = rung.tiles ? 0 : -1, options.extra_work = rung.allowed;
    auto plan = oneweight::make_plan<oneweight::opset::All>(model, options);
    if (!plan.ok()) return plan.status();
    rung.extra = (*plan)->extra_work(), rung.context_bytes = (*plan)->context_bytes(), rung.limited_bytes = (*plan)->limited_bytes();
    for (const oneweight::Chain& chain : (*plan)->chains()) rung.tiled_steps += chain.count;
  }
  return ladder;
}

void print_ladder(const std::vector<Rung>& ladder) {
  std::printf("what less memory costs (--memory-limit takes the first row that fits; work is an estimate):\n");
  std::printf("  %-24s %12s %16s %12s %10s\n", "plan", "context", "with constants", "tiled steps", "work");
  for (const Rung& rung : ladder) {
    char name[40];
    std::snprintf(name, sizeof name, "tiles, at most %+.0f %%", 100 * rung.allowed);
    std::printf("  %-24s %12s %16s %12d %+8.1f %%\n", rung.tiles ? name : rung.reorder ? "whole maps" : "whole, order of the file",
                megabytes(static_cast<double>(rung.context_bytes)).c_str(), megabytes(static_cast<double>(rung.limited_bytes)).c_str(),
                rung.tiled_steps, 100 * rung.extra);
  }
  std::printf("\n");
}

void print_forecast(const Planned& planned) {
  const oneweight::Plan& plan = *planned.plan;
  std::printf("forecast for one context: %s (%lld bytes)\n", megabytes(static_cast<double>(plan.context_bytes())).c_str(),
              static_cast<long long>(plan.context_bytes()));
  std::printf("  state kept from run to run  %s\n", megabytes(static_cast<double>(plan.state_bytes())).c_str());
  if (plan.extra_work() > 0) std::printf("  work that tiles add         %.1f %%, about\n", 100 * plan.extra_work());
  std::printf("  largest scratch of a step   %s\n", megabytes(static_cast<double>(plan.largest_scratch_bytes())).c_str());
  std::printf("plan, shared by all contexts: %s; decoded structure of the model: %s\n\n", megabytes(static_cast<double>(plan.plan_bytes())).c_str(),
              megabytes(static_cast<double>(planned.model->structure_bytes())).c_str());
}

// The tensor of an item that holds its memory at a step: the last one that has begun.
const oneweight::PlanTensor* tensor_at(const oneweight::Plan& plan, const Timeline& timeline, const TimelineItem& item, int step) {
  const oneweight::PlanTensor* found = nullptr;
  for (int32_t t : timeline.tensors_of(item)) {
    const oneweight::PlanTensor& tensor = plan.tensors()[static_cast<size_t>(t)];
    if (!found || tensor.first_step <= step) found = &tensor;
  }
  return found;
}

// "a -> b" for tensors that share memory.
std::string names_of(const oneweight::Plan& plan, const Timeline& timeline, const TimelineItem& item) {
  constexpr size_t kLongest = 80;
  std::string names;
  for (int32_t t : timeline.tensors_of(item)) {
    if (names.size() > 4 * kLongest) break;
    names += (names.empty() ? "" : " -> ") + short_name(plan.tensors()[static_cast<size_t>(t)].name);
  }
  return ending(names, kLongest);
}

void print_peak(const oneweight::Plan& plan, const Timeline& timeline) {
  if (timeline.steps.empty()) return;
  const int peak = timeline.peak_step;
  std::printf("alive at the peak, step %d of %zu (%s): %s\n", peak, timeline.steps.size(), printable(plan.steps()[static_cast<size_t>(peak)].name).c_str(),
              megabytes(static_cast<double>(timeline.steps[static_cast<size_t>(peak)].alive_bytes)).c_str());
  std::vector<const TimelineItem*> alive;
  for (const TimelineItem& item : timeline.items)
    if (item.is_alive(peak)) alive.push_back(&item);
  std::stable_sort(alive.begin(), alive.end(), [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  std::printf("  %12s  %12s  %-12s %-8s %-20s %s\n", "bytes", "at", "kind", "type", "shape", "tensor");
  for (const TimelineItem* item : alive) {
    const oneweight::PlanTensor* tensor = tensor_at(plan, timeline, *item, peak);
    std::printf("  %12lld  %12lld  %-12s %-8s %-20s %s\n", static_cast<long long>(item->bytes), static_cast<long long>(item->offset), name_of(item->kind),
                tensor ? tensor_type_name(tensor->type) : "", tensor ? tensor->shape.to_string().c_str() : "", names_of(plan, timeline, *item).c_str());
  }
  std::printf("\n");
}

// A line for each step, or for those that hold most.
void print_steps(const oneweight::Plan& plan, const Timeline& timeline, bool all) {
  constexpr size_t kMost = 40, kBar = 40;
  const size_t count = timeline.steps.size();
  if (count == 0) return;
  const auto alive = [&](size_t s) { return timeline.steps[s].alive_bytes; };
  std::vector<size_t> shown(count);
  for (size_t s = 0; s < count; ++s) shown[s] = s;
  if (!all && count > kMost) {
    std::stable_sort(shown.begin(), shown.end(), [&](size_t a, size_t b) { return alive(a) > alive(b); });
    shown.resize(kMost);
    std::sort(shown.begin(), shown.end());
  }
  std::vector<size_t> filled;        // a gap of one step is no shorter than the step
  for (size_t s : shown) {
    if (!filled.empty() && s == filled.back() + 2) filled.push_back(s - 1);
    filled.push_back(s);
  }
  shown = std::move(filled);
  std::printf("bytes alive while a step runs, of %s", megabytes(static_cast<double>(timeline.block_bytes)).c_str());
  if (shown.size() < count) std::printf("; the steps that hold most, of %zu (--steps: all)", count);
  std::printf(":\n  %5s  %-24s %12s %12s %12s\n", "step", "operator", "alive", "outputs", "scratch");
  size_t next = 0;
  for (size_t s : shown) {
    if (s != next) std::printf("  %5s\n", "...");
    next = s + 1;
    const TimelineStep& step = timeline.steps[s];
    const auto size = [](int64_t bytes) { return bytes ? megabytes(static_cast<double>(bytes)) : std::string("-"); };
    const double part = static_cast<double>(step.alive_bytes) / static_cast<double>(std::max<int64_t>(timeline.block_bytes, 1));
    const auto bar = std::min(kBar, static_cast<size_t>(part * kBar + 0.5));
    std::printf("  %5zu  %-24s %12s %12s %12s  %s%s\n", s, beginning(printable(plan.steps()[s].name), 24).c_str(), size(step.alive_bytes).c_str(),
                size(step.output_bytes).c_str(), size(step.scratch_bytes).c_str(), std::string(bar, '#').c_str(),
                static_cast<int>(s) == timeline.peak_step ? " < peak" : "");
  }
  std::printf("\n");
}

// The file's name, behind its folder's where it is called just "model".
std::string title_of(const std::filesystem::path& path) {
  const bool plain = path.stem() == "model" && path.has_parent_path();
  return (plain ? path.parent_path().filename() / path.filename() : path.filename()).string();
}

std::string json_text(const nlohmann::ordered_json& json) { return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

// The members "steps" and "tensors", piece by piece.
void print_json_timeline(const oneweight::Plan& plan, const Timeline& timeline) {
  std::printf(",\"steps\":[");
  for (size_t s = 0; s < timeline.steps.size(); ++s) {
    const oneweight::Step& step = plan.steps()[s];
    const std::string name(step.output_count > 0 ? plan.tensors()[static_cast<size_t>(step.outputs[0])].name : "");
    std::printf("%s%s", s ? "," : "", json_text({{"operator", step.name}, {"operator_index", step.operator_index}, {"name", name},
                                                 {"alive_bytes", timeline.steps[s].alive_bytes}, {"output_bytes", timeline.steps[s].output_bytes},
                                                 {"scratch_bytes", timeline.steps[s].scratch_bytes}}).c_str());
  }
  std::printf("],\"tensors\":[");
  bool first = true;
  for (size_t i = 0; i < timeline.items.size(); ++i) {
    const TimelineItem& item = timeline.items[i];
    for (int32_t t : timeline.tensors_of(item)) {
      const oneweight::PlanTensor& tensor = plan.tensors()[static_cast<size_t>(t)];
      nlohmann::ordered_json shape = nlohmann::ordered_json::array();
      for (int64_t extent : tensor.shape) shape.push_back(extent);
      std::printf("%s%s", first ? "" : ",", json_text({{"name", std::string(tensor.name)}, {"type", tensor_type_name(tensor.type)}, {"shape", shape},
                                                       {"bytes", tensor.bytes}, {"offset", item.offset}, {"held_bytes", item.bytes}, {"item", i},
                                                       {"first_step", item.first}, {"last_step", item.last}, {"kind", name_of(item.kind)}}).c_str());
      first = false;
    }
  }
  std::printf("]}\n");
}

}  // namespace

int memory(const MemoryArguments& arguments) {
  if (!arguments.timeline.empty())
    if (oneweight::Status status = check_picture_path(arguments.timeline); !status.ok()) return report(status), static_cast<int>(kWrongUsage);
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
  const oneweight::Plan& plan = *planned->plan;
  const Timeline timeline = make_timeline(plan);
  if (!arguments.timeline.empty()) {
    const PictureSource source{plan, timeline, title_of(arguments.model.model)};
    if (oneweight::Status status = write_picture(arguments.timeline, source); !status.ok()) return report(status);
  }
  std::vector<Rung> ladder;
  if (arguments.ladder) {
    auto made = make_ladder(arguments.model, planned->model);
    if (!made.ok()) return report(made.status());
    ladder = std::move(*made);
  }
  if (arguments.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    nlohmann::ordered_json chains = nlohmann::ordered_json::array();
    for (const oneweight::Chain& chain : plan.chains()) chains.push_back({{"first_step", chain.first}, {"steps", chain.count}, {"tiles", chain.tiles}});
    for (size_t i = 0; i < count; ++i)
      list.push_back({{"rss_bytes", after[i].rss},
                      {"anonymous_bytes", after[i].anonymous},
                      {"file_backed_bytes", after[i].file_backed()},
                      {"resident_weight_bytes", weights[i]}});
    nlohmann::ordered_json result = {{"file_bytes", file_bytes},
                                           {"forecast_bytes", plan.context_bytes()},
                                           {"limited_bytes", plan.limited_bytes()},
                                           {"extra_work", plan.extra_work()},
                                           {"plan_bytes", plan.plan_bytes()},
                                           {"structure_bytes", planned->model->structure_bytes()},
                                           {"largest_scratch_bytes", plan.largest_scratch_bytes()},
                                           {"state_bytes", plan.state_bytes()},
                                           {"chains", chains},
                                           {"base_rss_bytes", base.rss},
                                           {"base_anonymous_bytes", base.anonymous},
                                           {"locked_bytes", locked_bytes()},
                                           {"model_mappings", mappings},
                                           {"target", highway_target(plan)},
                                           {"contexts", list},
                                           {"peak_step", timeline.peak_step},
                                           {"peak_operator", plan.steps().empty() ? "" : plan.steps()[static_cast<size_t>(timeline.peak_step)].name}};
    if (arguments.ladder) {
      nlohmann::ordered_json rungs = nlohmann::ordered_json::array();
      for (const Rung& rung : ladder)
        rungs.push_back({{"reorder", rung.reorder}, {"tiles", rung.tiles}, {"allowed_extra_work", rung.allowed}, {"extra_work", rung.extra},
                         {"forecast_bytes", rung.context_bytes}, {"limited_bytes", rung.limited_bytes}, {"tiled_steps", rung.tiled_steps}});
      result["ladder"] = rungs;
    }
    std::string members = json_text(result);
    members.pop_back();
    std::printf("%s", members.c_str());
    print_json_timeline(plan, timeline);
    return kSuccess;
  }
  std::printf("%s: %s, mapped %d time%s\n", arguments.model.model.c_str(), megabytes(static_cast<double>(file_bytes)).c_str(),
              mappings, mappings == 1 ? "" : "s");
  print_forecast(*planned);
  print_chains(plan);
  if (arguments.ladder) print_ladder(ladder);
  print_peak(plan, timeline);
  print_steps(plan, timeline, arguments.steps);
  if (!arguments.timeline.empty()) std::printf("picture of the timeline: %s\n\n", arguments.timeline.c_str());
  if (count == 0) return kSuccess;
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
