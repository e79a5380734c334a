#include "oneweight/plan/tiles.h"

#include <catch2/catch_test_macros.hpp>
#include <deque>
#include <functional>
#include <map>
#include <numeric>

using namespace oneweight;

namespace {

// How the image rows of a step's output hang on those of its input: a window of `size` rows every `stride`, `before` rows of padding;
// stride 0: every row is `repeat` rows of the output.
struct Rows {
  int64_t size = 1, stride = 1, before = 0, repeat = 1, in = 0;
  static RowRange needed(const void* params, RowRange r) {
    const Rows& p = *static_cast<const Rows*>(params);
    if (p.stride == 0) return {r.begin / p.repeat, (r.end - 1) / p.repeat + 1};
    return {std::max<int64_t>(r.begin * p.stride - p.before, 0), std::min(p.in, (r.end - 1) * p.stride - p.before + p.size)};
  }
};

// A graph of maps; the first map is the input.
class Maps {
 public:
  explicit Maps(int64_t rows, int64_t row_bytes = 64) { add_map(rows, row_bytes); maps_[0].is_lasting = true; }
  // The map that a step makes of `from`.
  int window(int from, int64_t size, int64_t stride, int64_t row_bytes = 64) {
    const int64_t in = maps_[at(from)].rows, out = (in + stride - 1) / stride;
    return step({from}, {size, stride, std::max<int64_t>((out - 1) * stride + size - in, 0) / 2, 1, in}, out, row_bytes);
  }
  int enlarge(int from, int64_t repeat, int64_t row_bytes = 64) {
    return step({from}, {1, 0, 0, repeat, maps_[at(from)].rows}, maps_[at(from)].rows * repeat, row_bytes);
  }
  int add(int a, int b) {
    const int y = step({a, b}, {1, 1, 0, 1, maps_[at(a)].rows}, maps_[at(a)].rows, maps_[at(a)].bytes / maps_[at(a)].rows);
    facts_.back().in_place = {{0, 0}, {1, 0}};
    return y;
  }
  void lasting(int map) { maps_[at(map)].is_lasting = true; }
  int64_t rows(int map) const { return maps_[at(map)].rows; }

  // Before use: who lives how long.
  void finish() {
    steps_.clear();
    for (size_t s = 0; s < facts_.size(); ++s) {
      facts_[s].params = &rows_[s];
      steps_.push_back({&facts_[s], inputs_[s], outputs_[s], 1e9});
    }
    const auto last = static_cast<int32_t>(steps_.size());
    for (size_t t = 0; t < maps_.size(); ++t) {
      maps_[t].first = t == 0 ? 0 : last, maps_[t].last = -1;
      for (int32_t s = 0; s < last; ++s) {
        const auto uses = [&](const std::vector<int32_t>& list) { return std::find(list.begin(), list.end(), static_cast<int32_t>(t)) != list.end(); };
        if (uses(outputs_[at(s)])) maps_[t].first = s, maps_[t].last = std::max(maps_[t].last, s);
        if (uses(inputs_[at(s)])) maps_[t].last = s;
      }
      if (maps_[t].is_lasting) maps_[t].last = last;
    }
  }
  std::vector<Tiling> plan(double most_extra, int64_t forced, int64_t* peak) {
    finish();
    return TilePlanner(maps_, steps_).plan(most_extra, forced, peak);
  }

  // Runs the rows of a chain through memory as the plan says; each cell knows which row of which map it holds.
  void simulate(const Tiling& t) const {
    struct Cell { int32_t map = -1; int64_t row = -1; };
    std::vector<std::vector<Cell>> memory;
    std::map<int32_t, std::pair<size_t, int>> place;  // of a map: its memory, the window or -1
    for (size_t w = 0; w < t.windows.size(); ++w) {
      for (int32_t m : t.windows[w].maps) place[m] = {memory.size(), static_cast<int>(w)};
      memory.emplace_back(at(t.windows[w].rows));
    }
    const auto place_of = [&](int32_t m) {
      if (place.count(m) == 0) {
        place[m] = {memory.size(), -1};
        memory.emplace_back(at(maps_[at(m)].rows));
        for (int64_t r = 0; r < maps_[at(m)].rows; ++r)  // written before the chain
          if (maps_[at(m)].first < t.first || m == 0) memory.back()[at(r)] = {m, r};
      }
      return place[m];
    };
    for (const Tiling::InPlace& p : t.in_place)
      if (place.count(p.to) == 0) { const auto from = place_of(p.from); place[p.to] = from; }
    std::vector<int64_t> done(at(t.count()), 0), low(t.windows.size(), 0);
    for (int64_t k = 0; k < t.tiles; ++k) {
      for (size_t w = 0; w < t.windows.size(); ++w) {
        const int64_t now = t.lows[at(k) * t.windows.size() + w];
        REQUIRE(now >= low[w]);
        std::vector<Cell>& cells = memory[place[t.windows[w].maps[0]].first];
        std::rotate(cells.begin(), cells.begin() + std::min<int64_t>(now - low[w], static_cast<int64_t>(cells.size())), cells.end());
        low[w] = now;
      }
      for (int32_t s = t.first; s <= t.last; ++s) {
        const int64_t end = t.ends[at(k) * at(t.count()) + at(s - t.first)], begin = done[at(s - t.first)];
        REQUIRE(end >= begin);
        if (end == begin) continue;
        for (int32_t m : inputs_[at(s)]) {
          const auto [where, window] = place_of(m);
          const RowRange need = Rows::needed(&rows_[at(s)], {begin, end});
          const int64_t first = window < 0 ? 0 : low[at(window)];
          for (int64_t r = need.begin; r < need.end; ++r) {
            const bool inside = r >= first && r - first < static_cast<int64_t>(memory[where].size());
            if (inside && memory[where][at(r - first)].map == m && memory[where][at(r - first)].row == r) continue;
            FAIL("in tile " << k << " step " << s << " reads row " << r << " of map " << m << " for its rows " << begin << " to " << end);
          }
        }
        const int32_t out = outputs_[at(s)][0];
        const auto [where, window] = place_of(out);
        const int64_t first = window < 0 ? 0 : low[at(window)];
        for (int64_t r = begin; r < end; ++r) {
          if (r < first || r - first >= static_cast<int64_t>(memory[where].size())) FAIL("in tile " << k << " step " << s << " writes row " << r << " of map " << out);
          memory[where][at(r - first)] = {out, r};
        }
        done[at(s - t.first)] = end;
      }
    }
    for (int32_t s = t.first; s <= t.last; ++s) CHECK(done[at(s - t.first)] == maps_[at(outputs_[at(s)][0])].rows);
  }
  int64_t window_bytes(const Tiling& t) const {
    int64_t bytes = 0;
    for (const auto& w : t.windows) bytes += w.rows * (maps_[at(w.maps[0])].bytes / maps_[at(w.maps[0])].rows);
    return bytes;
  }
  int steps() const { return static_cast<int>(facts_.size()); }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }
  int add_map(int64_t rows, int64_t row_bytes) {
    MapFacts map;
    map.bytes = rows * row_bytes, map.rows = rows, map.pixels = rows * 4, map.root = static_cast<int32_t>(maps_.size());
    maps_.push_back(map);
    return static_cast<int>(maps_.size()) - 1;
  }
  int step(std::vector<int32_t> inputs, Rows rows, int64_t out_rows, int64_t row_bytes) {
    const int y = add_map(out_rows, row_bytes);
    StepFacts facts;
    facts.rows = out_rows, facts.input_rows = Rows::needed;
    facts.row_inputs = (1u << inputs.size()) - 1;
    facts_.push_back(facts), rows_.push_back(rows), inputs_.push_back(std::move(inputs)), outputs_.push_back({y});
    return y;
  }

  std::vector<MapFacts> maps_;
  std::deque<StepFacts> facts_;
  std::deque<Rows> rows_;
  std::deque<std::vector<int32_t>> inputs_, outputs_;
  std::vector<MapStep> steps_;
};

}  // namespace

TEST_CASE("a chain of windows keeps as many rows as they reach over", "[plan][tiles]") {
  Maps g(256, 16);
  int at = g.window(0, 3, 1, 4096);
  for (int i = 0; i < 4; ++i) at = g.window(at, 3, 1, 4096);
  at = g.window(at, 1, 1, 16);
  g.lasting(at);
  int64_t peak = 0;
  const auto chains = g.plan(0.1, 0, &peak);
  REQUIRE(chains.size() == 1);
  CHECK(chains[0].first == 0);
  CHECK(chains[0].last == 5);
  g.simulate(chains[0]);
  CHECK(peak < 2 * 256 * 4096 / 8);  // two whole maps without tiles
}

TEST_CASE("the step with most rows sets the pace, wherever it is in the chain", "[plan][tiles]") {
  // 1024 rows that become 4: a tile for each of these would hold 256 rows of the maps before.
  Maps g(1024, 16);
  int at = g.window(0, 3, 1, 4096);
  at = g.window(at, 3, 1, 4096);
  for (int i = 0; i < 8; ++i) at = g.window(at, 2, 2, i == 7 ? 64 : 4096);
  g.lasting(at);
  CHECK(g.rows(at) == 4);
  int64_t peak = 0;
  const auto chains = g.plan(0, 1, &peak);
  REQUIRE(chains.size() == 1);
  CHECK(chains[0].tiles == 1024);
  CHECK(g.window_bytes(chains[0]) <= 4096 * (3 + 3 * 8));
  g.simulate(chains[0]);
}

TEST_CASE("nothing is tiled where all fits as it is", "[plan][tiles]") {
  Maps g(64);
  const int y = g.window(g.window(0, 3, 1), 3, 1);
  g.lasting(y), g.lasting(1);
  int64_t peak = 0;
  CHECK(g.plan(0, 0, &peak).empty());  // no extra work is allowed
}

TEST_CASE("a map with a reader behind the chain stays whole", "[plan][tiles]") {
  Maps g(128);
  const int a = g.window(0, 3, 1, 1024), b = g.window(a, 3, 1, 1024), c = g.window(b, 3, 1, 1024);
  g.lasting(b), g.lasting(c);
  int64_t peak = 0;
  const auto chains = g.plan(0, 2, &peak);
  REQUIRE(chains.size() == 1);
  REQUIRE(chains[0].windows.size() == 1);
  CHECK(chains[0].windows[0].maps == std::vector<int32_t>{a});
  g.simulate(chains[0]);
}

TEST_CASE("chains of any shape compute every row once, from rows that are there", "[plan][tiles]") {
  unsigned state = 3;
  const auto random = [&state](unsigned n) { return static_cast<int>(((state = state * 1664525u + 1013904223u) >> 10) % n); };
  int windows = 0, shared = 0, longest = 0;
  for (int round = 0; round < 300; ++round) {
    Maps g(4 + random(60));
    std::vector<int> maps{0};
    for (int i = 0, n = 2 + random(10); i < n; ++i) {
      const int from = maps[maps.size() - 1 - static_cast<size_t>(random(static_cast<unsigned>(std::min<size_t>(maps.size(), 3))))];
      int other = -1;
      for (int m : maps)
        if (m != from && m != 0 && g.rows(m) == g.rows(from)) other = m;
      const int kind = random(6);
      int y = 0;
      if (kind == 0 && other >= 0 && from != 0) y = g.add(from, other);
      else if (kind == 1) y = g.window(from, 1 + random(5), 2);
      else if (kind == 2 && g.rows(from) <= 128) y = g.enlarge(from, 2);
      else if (kind == 3) y = g.window(from, 4, 4);
      else y = g.window(from, 1 + 2 * random(3), 1);
      maps.push_back(y);
      if (random(8) == 0) g.lasting(y);
    }
    g.lasting(maps.back());
    for (int64_t forced : {1, 2, 3, 7, 0}) {
      int64_t peak = 0;
      for (const Tiling& t : g.plan(1, forced, &peak)) {
        INFO("round " << round << ", tiles of " << forced << " rows, steps " << t.first << " to " << t.last);
        g.simulate(t);
        CHECK(t.bytes <= (forced > 0 ? peak : peak * 4 / 3));  // of some tiles the bytes are estimated
        windows += static_cast<int>(t.windows.size());
        longest = std::max(longest, t.count());
        for (const auto& w : t.windows) shared += w.maps.size() > 1;
      }
    }
  }
  CHECK(windows > 1000);
  CHECK(shared > 50);
  CHECK(longest >= 8);
}
