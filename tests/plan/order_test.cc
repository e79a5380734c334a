#include "oneweight/plan/order.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <numeric>

using namespace oneweight;

namespace {

// The peak of an order, counted plainly.
int64_t peak_of(const OrderGraph& g, const std::vector<int32_t>& order) {
  std::vector<int32_t> position(g.steps.size());
  for (size_t i = 0; i < order.size(); ++i) position[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  const auto n = static_cast<int32_t>(order.size());
  std::vector<int32_t> first(g.bytes.size(), n), last(g.bytes.size(), -1);
  for (size_t m = 0; m < g.bytes.size(); ++m) {
    for (size_t s = 0; s < g.steps.size(); ++s)
      for (int32_t touched : g.steps[s].touches)
        if (touched == static_cast<int32_t>(m)) first[m] = std::min(first[m], position[s]), last[m] = std::max(last[m], position[s]);
    if (g.from_start[m]) first[m] = 0;
    if (g.to_end[m]) last[m] = n;
  }
  int64_t peak = 0;
  for (int32_t at = 0; at < n; ++at) {
    const OrderGraph::Step& step = g.steps[static_cast<size_t>(order[static_cast<size_t>(at)])];
    int64_t bytes = step.scratch;
    for (size_t m = 0; m < g.bytes.size(); ++m)
      if (first[m] <= at && at <= last[m]) bytes += g.bytes[m];
    for (const auto& [from, to] : step.in_place)
      if (first[static_cast<size_t>(to)] == at && last[static_cast<size_t>(from)] == at && !g.to_end[static_cast<size_t>(from)]) {
        bytes -= g.bytes[static_cast<size_t>(to)];
        break;
      }
    peak = std::max(peak, bytes);
  }
  return peak;
}

bool can_run(const OrderGraph& g, const std::vector<int32_t>& order) {
  std::vector<char> done(g.steps.size(), 0);
  for (int32_t s : order) {
    if (done[static_cast<size_t>(s)]) return false;
    for (int32_t a : g.steps[static_cast<size_t>(s)].after)
      if (!done[static_cast<size_t>(a)]) return false;
    done[static_cast<size_t>(s)] = 1;
  }
  return order.size() == g.steps.size();
}

int64_t best_of_all(const OrderGraph& g) {
  std::vector<int32_t> order(g.steps.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t best = std::numeric_limits<int64_t>::max();
  do {
    if (can_run(g, order)) best = std::min(best, peak_of(g, order));
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

// Step s writes memory s + 1; memory 0 is the input.
OrderGraph random_graph(unsigned seed, int32_t n) {
  unsigned state = seed * 2654435761u + 1;
  const auto random = [&state](unsigned most) { return ((state = state * 1664525u + 1013904223u) >> 10) % most; };
  OrderGraph g;
  g.bytes.push_back(100);
  g.from_start.push_back(1), g.to_end.push_back(0);
  for (int32_t s = 0; s < n; ++s) {
    OrderGraph::Step step;
    step.numbers = {s};
    std::vector<int32_t> reads;
    for (unsigned i = 0; i < 1 + random(2); ++i) reads.push_back(static_cast<int32_t>(random(static_cast<unsigned>(s) + 1)));
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    for (int32_t m : reads)
      if (m > 0) step.after.push_back(m - 1);
    step.touches = reads;
    step.touches.push_back(s + 1);
    step.scratch = static_cast<int64_t>(random(3)) * 30;
    g.bytes.push_back(10 + static_cast<int64_t>(random(12)) * 10);
    if (random(3) == 0 && g.bytes[static_cast<size_t>(reads[0])] == g.bytes.back()) step.in_place = {{reads[0], s + 1}};
    g.from_start.push_back(0), g.to_end.push_back(random(5) == 0);
    g.steps.push_back(step);
  }
  return g;
}

}  // namespace

TEST_CASE("the order of a small graph has the smallest peak there is", "[plan][order]") {
  int better = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const OrderGraph g = random_graph(seed, 6);
    std::vector<int32_t> given(g.steps.size());
    std::iota(given.begin(), given.end(), 0);
    const auto found = smallest_peak_order(g);
    INFO("seed " << seed);
    if (!found.empty()) CHECK(can_run(g, found));
    const int64_t peak = peak_of(g, found.empty() ? given : found);
    CHECK(peak == best_of_all(g));
    better += peak < peak_of(g, given);
  }
  CHECK(better > 20);
}

TEST_CASE("the order of a large graph can run and is no worse than the given one", "[plan][order]") {
  for (int32_t n : {100, 700, 3000}) {
    const OrderGraph g = random_graph(static_cast<unsigned>(n), n);
    std::vector<int32_t> given(g.steps.size());
    std::iota(given.begin(), given.end(), 0);
    const auto found = smallest_peak_order(g);
    if (found.empty()) continue;
    CHECK(can_run(g, found));
    CHECK(peak_of(g, found) < peak_of(g, given));
  }
}

TEST_CASE("depth first, a branch is finished before the next is begun", "[plan][order]") {
  // A file that writes two branches of three steps in turns; the last step reads both.
  OrderGraph g;
  g.bytes.assign(8, 10);
  g.from_start.assign(8, 0), g.to_end.assign(8, 0);
  for (int32_t s = 0; s < 6; ++s) {
    OrderGraph::Step step;
    step.numbers = {s};
    if (s >= 2) step.after = {s - 2};
    step.touches = {s};
    g.steps.push_back(step);
  }
  OrderGraph::Step join;
  join.numbers = {6}, join.after = {4, 5}, join.touches = {6};
  g.steps.push_back(join);
  const auto order = depth_first_order(g);
  CHECK(order == std::vector<int32_t>{0, 2, 4, 1, 3, 5, 6});
}
