// Which bytes of a context's block are held by what, at which steps: what pictures and tables of the memory are made from.
#ifndef ONEWEIGHT_EXAMPLES_TIMELINE_H
#define ONEWEIGHT_EXAMPLES_TIMELINE_H

#include <cstdint>
#include <span>
#include <vector>

#include "oneweight/plan/plan.h"

namespace program {

enum class ItemKind : uint8_t { addresses, resources, state, input, output, intermediate, scratch };
inline constexpr int kItemKinds = 7;
const char* name_of(ItemKind kind);  // "input"

// A part of the block that is held from one step to another.
struct TimelineItem {
  ItemKind kind = ItemKind::intermediate;
  int64_t offset = 0, bytes = 0;     // from the start of the block; bytes with those that alignment adds
  int32_t first = 0, last = 0;       // steps, inclusive: from 0 to the last one
  int32_t tensors_begin = 0, tensors_end = 0;  // in Timeline::tensors
  bool is_alive(int step) const { return first <= step && step <= last; }
};

struct TimelineStep {
  int64_t alive_bytes = 0;           // held while it runs, scratch and state included
  int64_t output_bytes = 0;
  int64_t scratch_bytes = 0;         // with as many bands at work as there can be
};

struct Timeline {
  int64_t block_bytes = 0;           // of one context
  int peak_step = 0;
  std::vector<TimelineItem> items;   // those alive at one step overlap only where a chain writes over rows it has read
  std::vector<TimelineStep> steps;
  std::vector<int32_t> tensors;      // of the plan, item by item, in the order of their first steps
  std::vector<int32_t> producers;    // step that writes a tensor of the plan; -1: none, it is given, constant or a view

  std::span<const int32_t> tensors_of(const TimelineItem& item) const {
    return std::span(tensors).subspan(static_cast<size_t>(item.tensors_begin), static_cast<size_t>(item.tensors_end - item.tensors_begin));
  }
};

// The only place that knows how a plan lays out a block. Some dozens of bytes a tensor and a step.
Timeline make_timeline(const oneweight::Plan& plan);

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_TIMELINE_H
