#include "timeline.h"

#include <algorithm>

namespace program {

using oneweight::Placement;
using oneweight::Plan;
using oneweight::PlanTensor;
using oneweight::Step;

const char* name_of(ItemKind kind) {
  constexpr const char* kNames[kItemKinds] = {"addresses", "resources", "state", "input", "output", "intermediate", "scratch"};
  return kNames[static_cast<int>(kind)];
}

namespace {

constexpr int64_t aligned(int64_t bytes) { return (bytes + oneweight::kAlignment - 1) / oneweight::kAlignment * oneweight::kAlignment; }

// What a tensor of the arena holds there, before alignment: all of it, or the rows that its chain keeps.
int64_t held_bytes(const PlanTensor& tensor) {
  const int64_t rows = tensor.window_rows > 0 ? tensor.shape[0] * tensor.shape[1] : 0;
  return std::max<int64_t>(rows > 0 ? tensor.window_rows * (tensor.bytes / rows) : tensor.bytes, 1);
}

// What is held at one step of a chain is held at all of them.
struct Span { int32_t first, last; };
Span held_steps(const Plan& plan, int32_t first, int32_t last) {
  for (const oneweight::Chain& chain : plan.chains()) {
    const int32_t end = chain.first + chain.count - 1;
    if (first > chain.first && first <= end) first = chain.first;
    if (last >= chain.first && last < end) last = end;
  }
  return {first, last};
}

// By tensor: input, output or neither.
std::vector<ItemKind> kinds_of(const Plan& plan) {
  std::vector<ItemKind> kinds(plan.tensors().size(), ItemKind::intermediate);
  for (int32_t t : plan.outputs())
    if (t >= 0) kinds[static_cast<size_t>(t)] = ItemKind::output;
  for (int32_t t : plan.inputs())
    if (t >= 0) kinds[static_cast<size_t>(t)] = ItemKind::input;
  return kinds;
}

// Tensors that share memory, in-place results and views, are one item.
void add_arena(const Plan& plan, int32_t last_step, Timeline* timeline) {
  const auto tensor = [&](int32_t t) -> const PlanTensor& { return plan.tensors()[static_cast<size_t>(t)]; };
  const std::vector<ItemKind> kinds = kinds_of(plan);
  std::vector<int32_t>& order = timeline->tensors;
  const auto begin = static_cast<ptrdiff_t>(order.size());
  for (size_t t = 0; t < plan.tensors().size(); ++t)
    if (plan.tensors()[t].placement == Placement::arena) order.push_back(static_cast<int32_t>(t));
  std::stable_sort(order.begin() + begin, order.end(), [&](int32_t a, int32_t b) {
    return tensor(a).buffer != tensor(b).buffer ? tensor(a).buffer < tensor(b).buffer : tensor(a).first_step < tensor(b).first_step;
  });
  for (size_t i = static_cast<size_t>(begin); i < order.size();) {
    TimelineItem item;
    item.tensors_begin = static_cast<int32_t>(i);
    const PlanTensor& first = tensor(order[i]);
    item.offset = first.offset;
    item.first = first.first_step, item.last = first.last_step;
    int64_t end = 0;
    for (; i < order.size() && tensor(order[i]).buffer == first.buffer; ++i) {
      const PlanTensor& t = tensor(order[i]);
      item.offset = std::min(item.offset, t.offset);
      end = std::max(end, t.offset + held_bytes(t));
      const Span held = held_steps(plan, t.first_step, t.last_step);
      item.first = std::min(item.first, held.first);
      item.last = std::max(item.last, held.last);
      const ItemKind kind = kinds[static_cast<size_t>(order[i])];
      if (kind != ItemKind::intermediate && item.kind != ItemKind::input) item.kind = kind;
    }
    item.bytes = aligned(end - item.offset);
    item.first = std::clamp(item.first, 0, last_step);  // given before the run, read after it
    item.last = std::clamp(item.last, 0, last_step);
    item.tensors_end = static_cast<int32_t>(i);
    timeline->items.push_back(item);
  }
}

}  // namespace

Timeline make_timeline(const Plan& plan) {
  Timeline timeline;
  const auto steps = static_cast<int32_t>(plan.steps().size());
  const int32_t last = std::max(steps - 1, 0);
  timeline.block_bytes = plan.context_bytes();
  timeline.peak_step = plan.peak_step();
  const auto keep = [&](ItemKind kind, int64_t offset, int64_t bytes) {
    const auto at = static_cast<int32_t>(timeline.tensors.size());
    if (bytes > 0) timeline.items.push_back({kind, offset, aligned(bytes), 0, last, at, at});
  };
  keep(ItemKind::addresses, 0, plan.resource_offset());
  keep(ItemKind::resources, plan.resource_offset(), plan.resource_bytes());
  for (size_t t = 0; t < plan.tensors().size(); ++t) {
    const PlanTensor& tensor = plan.tensors()[t];
    if (tensor.placement != Placement::state || tensor.bytes == 0) continue;
    keep(ItemKind::state, tensor.offset, tensor.bytes);
    timeline.tensors.push_back(static_cast<int32_t>(t));
    ++timeline.items.back().tensors_end;
  }
  add_arena(plan, last, &timeline);
  timeline.producers.assign(plan.tensors().size(), -1);
  timeline.steps.resize(static_cast<size_t>(steps));
  for (int32_t s = 0; s < steps; ++s) {
    const Step& step = plan.steps()[static_cast<size_t>(s)];
    TimelineStep& result = timeline.steps[static_cast<size_t>(s)];
    result.scratch_bytes = plan.scratch_bytes(step);
    for (int i = 0; i < step.output_count; ++i) {
      if (step.outputs[i] < 0) continue;
      const auto t = static_cast<size_t>(step.outputs[i]);
      timeline.producers[t] = s;
      if (plan.tensors()[t].placement == Placement::arena || plan.tensors()[t].placement == Placement::state)
        result.output_bytes += plan.tensors()[t].bytes;
    }
    const auto at = static_cast<int32_t>(timeline.tensors.size());
    if (result.scratch_bytes > 0)
      timeline.items.push_back({ItemKind::scratch, step.scratch_offset, aligned(result.scratch_bytes), s, s, at, at});
  }
  // Bytes that two items share are counted once.
  std::vector<const TimelineItem*> by_offset;
  for (const TimelineItem& item : timeline.items) by_offset.push_back(&item);
  std::sort(by_offset.begin(), by_offset.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
  std::vector<int64_t> counted(timeline.steps.size(), 0);  // up to this byte of the block
  for (const TimelineItem* item : by_offset)
    for (auto s = static_cast<size_t>(item->first); s < timeline.steps.size() && s <= static_cast<size_t>(item->last); ++s) {
      const int64_t end = item->offset + item->bytes;
      timeline.steps[s].alive_bytes += std::max<int64_t>(end - std::max(counted[s], item->offset), 0);
      counted[s] = std::max(counted[s], end);
    }
  return timeline;
}

}  // namespace program
