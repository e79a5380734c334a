// Offsets in one block for buffers with known lifetimes: buffers alive at the same step never overlap.
#ifndef ONEWEIGHT_PLAN_ARENA_H
#define ONEWEIGHT_PLAN_ARENA_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace oneweight {
inline namespace v1 {

struct ArenaItem {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;       // steps, inclusive
  int64_t offset = 0;                // the answer
};
// Items alive at the same step that may overlap nevertheless: `inner` may begin from `low` to `high` bytes behind the begin of `outer`.
struct ArenaOverlap {
  int32_t inner = 0, outer = 0;
  int64_t low = 0, high = 0;
};

class ArenaPlacement {
 public:
  // Sizes are rounded up to `alignment`.
  ArenaPlacement(std::vector<ArenaItem>& items, std::span<const ArenaOverlap> overlaps, int64_t alignment)
      : items_(items), bytes_(items.size()), neighbours_(items.size()), overlaps_(items.size()), offsets_(items.size()) {
    const auto n = static_cast<int32_t>(items.size());
    for (int32_t i = 0; i < n; ++i) bytes_[at(i)] = (items[at(i)].bytes + alignment - 1) / alignment * alignment;
    std::vector<int32_t> by_start(at(n)), alive;
    std::iota(by_start.begin(), by_start.end(), 0);
    std::stable_sort(by_start.begin(), by_start.end(), [&](int32_t a, int32_t b) { return items[at(a)].first < items[at(b)].first; });
    int64_t now = 0;
    for (int32_t i : by_start) {
      if (bytes_[at(i)] == 0) continue;
      size_t kept = 0;
      for (int32_t j : alive)
        if (items[at(j)].last >= items[at(i)].first) alive[kept++] = j;
        else now -= bytes_[at(j)];
      alive.resize(kept);
      for (int32_t j : alive) neighbours_[at(i)].push_back(j), neighbours_[at(j)].push_back(i);
      alive.push_back(i);
      now += bytes_[at(i)];
      if (overlaps.empty()) least_ = std::max(least_, now);
    }
    for (ArenaOverlap o : overlaps) {
      o.low = (o.low < 0 ? o.low : o.low + alignment - 1) / alignment * alignment;  // up
      if (o.high < kNone) o.high = (o.high < 0 ? o.high - alignment + 1 : o.high) / alignment * alignment;  // down
      if (o.low > o.high || o.inner == o.outer) continue;
      overlaps_[at(o.inner)].push_back(o), overlaps_[at(o.outer)].push_back(o);
    }
  }

  // The bytes of the whole block.
  int64_t place() {
    std::vector<int32_t> order(items_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto sort_by = [&](auto&& key) { std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return key(a) > key(b); }); };
    const auto life = [&](int32_t i) { return static_cast<double>(items_[at(i)].last - items_[at(i)].first + 1); };
    // Long lives first, then sizes; sizes with lives; sizes alone, the best of the three alone as a rule (Pisarchyk and Lee, "Efficient
    // Memory Management for Deep Neural Net Inference", 2020).
    std::vector<int32_t> best_order;
    for (int kind = 0; kind < 3 && best_ > least_; ++kind) {
      sort_by([&](int32_t i) { return static_cast<double>(bytes_[at(i)]) * (kind == 0 ? 1 : kind == 1 ? life(i) : life(i) * life(i)); });
      if (attempt(order)) best_order = order;
    }
    // What sticks out at the top is placed earlier, somewhere (the same places in every run).
    uint64_t random = 1;
    constexpr int kMost = 400;
    size_t pairs = 1;
    for (const auto& list : neighbours_) pairs += list.size();
    const int rounds = static_cast<int>(std::min<size_t>(kMost, kPairs / pairs + 4));
    order = best_order;
    for (int round = 0; round < rounds && best_ > least_ && !order.empty(); ++round) {
      const auto top = std::max_element(order.begin(), order.end(), [&](int32_t a, int32_t b) { return end_of(a) < end_of(b); });
      random = random * 6364136223846793005u + 1442695040888963407u;
      const auto to = order.begin() + static_cast<std::ptrdiff_t>((random >> 33) % static_cast<uint64_t>(top - order.begin() + 1));
      std::rotate(to, top, top + 1);
      if (attempt(order)) best_order = order;
      else if (round % 16 == 15) order = best_order;
    }
    return best_ == kNone ? 0 : best_;
  }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  static constexpr size_t kPairs = 4000000;
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  int64_t end_of(int32_t i) const { return bytes_[at(i)] == 0 ? 0 : offsets_[at(i)] + bytes_[at(i)]; }

  // Places each item into the smallest gap between those placed before that live when it does. True, and the offsets are kept, when
  // the block gets smaller than ever before.
  bool attempt(const std::vector<int32_t>& order) {
    std::fill(offsets_.begin(), offsets_.end(), -1);
    int64_t total = 0;
    for (int32_t i : order) {
      const int64_t bytes = bytes_[at(i)];
      if (bytes == 0) continue;
      taken_.clear();
      for (int32_t j : neighbours_[at(i)])
        if (offsets_[at(j)] >= 0) forbid(i, j);
      std::sort(taken_.begin(), taken_.end());
      int64_t best = -1, best_gap = kNone, here = 0;
      for (const auto& [begin, end] : taken_) {
        if (here <= begin && begin - here < best_gap) best = here, best_gap = begin - here;
        here = std::max(here, end);
      }
      offsets_[at(i)] = best < 0 ? here : best;
      total = std::max(total, offsets_[at(i)] + bytes);
    }
    if (total >= best_) return false;
    best_ = total;
    for (size_t i = 0; i < items_.size(); ++i) items_[i].offset = std::max<int64_t>(offsets_[i], 0);
    return true;
  }
  // Offsets that item i cannot have because of item j: those between the two numbers of each pair.
  void forbid(int32_t i, int32_t j) {
    const int64_t other = offsets_[at(j)], before = other - bytes_[at(i)], behind = other + bytes_[at(j)];
    for (const ArenaOverlap& o : overlaps_[at(i)].size() <= overlaps_[at(j)].size() ? overlaps_[at(i)] : overlaps_[at(j)]) {
      if (o.inner == i && o.outer == j) {
        taken_.push_back({before, other + o.low});
        if (o.high < kNone && other + o.high < behind) taken_.push_back({other + o.high, behind});
        return;
      }
      if (o.outer == i && o.inner == j) {
        if (o.high < kNone && before < other - o.high) taken_.push_back({before, other - o.high});
        taken_.push_back({other - o.low, behind});
        return;
      }
    }
    taken_.push_back({before, behind});
  }

  std::vector<ArenaItem>& items_;
  std::vector<int64_t> bytes_;
  std::vector<std::vector<int32_t>> neighbours_;
  std::vector<std::vector<ArenaOverlap>> overlaps_;  // that an item is part of
  std::vector<int64_t> offsets_;
  std::vector<std::pair<int64_t, int64_t>> taken_;
  int64_t least_ = 0, best_ = kNone;
};

// Gives all items their offsets; the bytes of the whole block.
inline int64_t place_in_arena(std::vector<ArenaItem>& items, int64_t alignment, std::span<const ArenaOverlap> overlaps = {}) {
  return ArenaPlacement(items, overlaps, alignment).place();
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_ARENA_H
