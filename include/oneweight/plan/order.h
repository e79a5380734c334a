// An order of the steps of a graph with a small peak of bytes alive.
#ifndef ONEWEIGHT_PLAN_ORDER_H
#define ONEWEIGHT_PLAN_ORDER_H

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace oneweight {
inline namespace v1 {

struct OrderGraph {
  struct Step {
    std::vector<int32_t> numbers;                // what the answer calls it: steps that stay together
    std::vector<int32_t> after;                  // indices of steps that must have run
    std::vector<int32_t> touches;                // memory that it reads or writes, each once
    std::vector<std::pair<int32_t, int32_t>> in_place;  // (read, written): the second lies where the first dies
    int64_t scratch = 0;
  };
  std::vector<Step> steps;                       // in an order that can run
  std::vector<int64_t> bytes;                    // of each piece of memory
  std::vector<char> from_start, to_end;          // alive before the first step, behind the last
};

// Beam search over sets of steps that have run: exact while there are no more such sets of one size than the beam is wide, as in
// small graphs and in those of few branches. Empty where nothing better than the given order is found.
class OrderSearch {
 public:
  explicit OrderSearch(const OrderGraph& graph) : graph_(graph), users_(graph.bytes.size()), before_(graph.steps.size()), keys_(graph.steps.size()) {
    uint64_t key = 0x9E3779B97F4A7C15u;
    for (size_t s = 0; s < graph.steps.size(); ++s) {
      for (int32_t m : graph.steps[s].touches) users_[static_cast<size_t>(m)].push_back(static_cast<int32_t>(s));
      for (int32_t a : graph.steps[s].after) before_[static_cast<size_t>(a)].push_back(static_cast<int32_t>(s));
      key += 0x9E3779B97F4A7C15u;  // splitmix64
      uint64_t z = key;
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u, z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
      keys_[s] = z ^ (z >> 31);
    }
  }

  std::vector<int32_t> find() {
    const size_t n = graph_.steps.size();
    if (n < 3 || n > kMostSteps) return {};
    const size_t width = std::clamp<size_t>(kExpansions / n, 8, 2048);
    State start;
    start.done.assign((n + 63) / 64, 0);
    for (size_t m = 0; m < graph_.bytes.size(); ++m)
      if (graph_.from_start[m]) start.alive += graph_.bytes[m];
    State last = start;
    for (size_t s = 0; s < n; ++s) last = after(last, static_cast<int32_t>(s), -1);
    const int64_t given_peak = last.peak;
    for (size_t s = 0; s < n; ++s)
      if (graph_.steps[s].after.empty()) start.ready.push_back(static_cast<int32_t>(s));
    std::vector<std::vector<std::pair<int32_t, int32_t>>> history;  // by level: (state before, step)
    std::vector<State> beam{start};
    for (size_t level = 0; level < n; ++level) {
      std::vector<State> next;
      std::unordered_map<uint64_t, size_t> known;
      for (size_t b = 0; b < beam.size(); ++b)
        for (int32_t s : beam[b].ready) {
          const uint64_t hash = beam[b].hash ^ keys_[static_cast<size_t>(s)];
          const int64_t peak = std::max(beam[b].peak, peak_at(beam[b], s));
          if (peak >= given_peak) continue;
          const auto found = known.find(hash);
          if (found != known.end() && !(peak < next[found->second].peak)) continue;
          State state = after(beam[b], s, static_cast<int32_t>(b));
          if (found != known.end()) next[found->second] = std::move(state);
          else known.emplace(hash, next.size()), next.push_back(std::move(state));
        }
      if (next.empty()) return {};
      if (next.size() > width) {
        std::nth_element(next.begin(), next.begin() + static_cast<std::ptrdiff_t>(width), next.end(), [](const State& a, const State& b) { return a.rank() < b.rank(); });
        next.resize(width);
      }
      history.emplace_back();
      for (const State& s : next) history.back().push_back({s.parent, s.step});
      beam = std::move(next);
    }
    size_t best = 0;
    for (size_t b = 1; b < beam.size(); ++b)
      if (beam[b].rank() < beam[best].rank()) best = b;
    std::vector<int32_t> steps, order;
    for (size_t level = n; level-- > 0; best = static_cast<size_t>(history[level][best].first)) steps.push_back(history[level][best].second);
    for (size_t i = n; i-- > 0;) {
      const std::vector<int32_t>& numbers = graph_.steps[static_cast<size_t>(steps[i])].numbers;
      order.insert(order.end(), numbers.begin(), numbers.end());
    }
    return order;
  }

 private:
  static constexpr size_t kMostSteps = 4000, kExpansions = 40000;
  struct State {
    std::vector<uint64_t> done;
    std::vector<int32_t> ready;
    int64_t alive = 0, peak = 0;
    double sum = 0;                  // of bytes alive at each step
    uint64_t hash = 0;
    int32_t parent = -1, step = -1;
    std::pair<int64_t, double> rank() const { return {peak, sum}; }
    bool has(int32_t s) const { return done[static_cast<size_t>(s) / 64] >> (s % 64) & 1u; }
  };
  bool begins(const State& state, int32_t memory) const {
    if (graph_.from_start[static_cast<size_t>(memory)]) return false;
    for (int32_t u : users_[static_cast<size_t>(memory)])
      if (state.has(u)) return false;
    return true;
  }
  bool dies(const State& state, int32_t memory, int32_t at) const {
    if (graph_.to_end[static_cast<size_t>(memory)]) return false;
    for (int32_t u : users_[static_cast<size_t>(memory)])
      if (u != at && !state.has(u)) return false;
    return true;
  }
  int64_t peak_at(const State& state, int32_t s) const {
    const OrderGraph::Step& step = graph_.steps[static_cast<size_t>(s)];
    int64_t bytes = state.alive + step.scratch;
    for (int32_t m : step.touches)
      if (begins(state, m)) bytes += graph_.bytes[static_cast<size_t>(m)];
    for (const auto& [from, to] : step.in_place)
      if (begins(state, to) && dies(state, from, s)) return bytes - graph_.bytes[static_cast<size_t>(to)];
    return bytes;
  }
  State after(const State& state, int32_t s, int32_t parent) const {
    State next = state;
    const OrderGraph::Step& step = graph_.steps[static_cast<size_t>(s)];
    const int64_t peak = peak_at(state, s);
    next.peak = std::max(state.peak, peak), next.sum = state.sum + static_cast<double>(peak);
    next.hash = state.hash ^ keys_[static_cast<size_t>(s)], next.parent = parent, next.step = s;
    for (int32_t m : step.touches) {
      if (begins(state, m)) next.alive += graph_.bytes[static_cast<size_t>(m)];
      if (dies(state, m, s)) next.alive -= graph_.bytes[static_cast<size_t>(m)];
    }
    next.done[static_cast<size_t>(s) / 64] |= uint64_t{1} << (s % 64);
    next.ready.erase(std::remove(next.ready.begin(), next.ready.end(), s), next.ready.end());
    if (parent >= 0)
      for (int32_t f : before_[static_cast<size_t>(s)]) {
        const std::vector<int32_t>& needed = graph_.steps[static_cast<size_t>(f)].after;
        if (std::all_of(needed.begin(), needed.end(), [&](int32_t a) { return next.has(a); })) next.ready.push_back(f);
      }
    return next;
  }

  const OrderGraph& graph_;
  std::vector<std::vector<int32_t>> users_, before_;
  std::vector<uint64_t> keys_;
};

// Each step as late as what needs it allows, branch behind branch: what belongs together, as the heads of a detector, stays together.
inline std::vector<int32_t> depth_first_order(const OrderGraph& graph) {
  const auto n = static_cast<int32_t>(graph.steps.size());
  std::vector<char> is_needed(graph.steps.size(), 0), seen(graph.steps.size(), 0);
  for (const OrderGraph::Step& step : graph.steps)
    for (int32_t a : step.after) is_needed[static_cast<size_t>(a)] = 1;
  std::vector<int32_t> order;
  std::vector<std::pair<int32_t, size_t>> stack;  // step, how many of its predecessors were visited
  for (int32_t last = 0; last < n; ++last) {
    if (is_needed[static_cast<size_t>(last)] || seen[static_cast<size_t>(last)]) continue;
    stack.push_back({last, 0});
    seen[static_cast<size_t>(last)] = 1;
    while (!stack.empty()) {
      auto& [s, visited] = stack.back();
      const OrderGraph::Step& step = graph.steps[static_cast<size_t>(s)];
      if (visited < step.after.size()) {
        const int32_t next = step.after[visited++];
        if (!seen[static_cast<size_t>(next)]) seen[static_cast<size_t>(next)] = 1, stack.push_back({next, 0});
        continue;
      }
      order.insert(order.end(), step.numbers.begin(), step.numbers.end());
      stack.pop_back();
    }
  }
  return order;
}

inline std::vector<int32_t> smallest_peak_order(const OrderGraph& graph) { return OrderSearch(graph).find(); }

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_ORDER_H
