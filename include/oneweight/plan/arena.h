// Offsets in one block for buffers with known lifetimes: buffers alive at the same step never overlap.
#ifndef ONEWEIGHT_PLAN_ARENA_H
#define ONEWEIGHT_PLAN_ARENA_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace oneweight {
inline namespace v1 {

struct ArenaItem {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;       // steps, inclusive
  int64_t offset = 0;                // the answer
};

// Places items greedily by size, each into the smallest gap between those placed before and alive with it
// (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020). Sizes are rounded
// up to `alignment`. Returns the bytes of the whole block.
inline int64_t place_in_arena(std::vector<ArenaItem>& items, int64_t alignment) {
  std::vector<int> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return items[a].bytes > items[b].bytes; });
  std::vector<int> placed;           // by offset
  int64_t total = 0;
  for (int i : order) {
    ArenaItem& item = items[i];
    const int64_t bytes = (item.bytes + alignment - 1) / alignment * alignment;
    if (bytes == 0) continue;
    int64_t best = -1, best_gap = -1, end = 0;
    for (int j : placed) {
      const ArenaItem& other = items[j];
      if (other.last < item.first || other.first > item.last) continue;
      const int64_t gap = other.offset - end;
      if (gap >= bytes && (best < 0 || gap < best_gap)) best = end, best_gap = gap;
      const int64_t other_end = other.offset + (other.bytes + alignment - 1) / alignment * alignment;
      end = std::max(end, other_end);
    }
    item.offset = best < 0 ? end : best;
    total = std::max(total, item.offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](int a, int b) { return items[a].offset < items[b].offset; }), i);
  }
  return total;
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_ARENA_H
