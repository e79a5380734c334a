// Chains of steps that run tile by tile: a few image rows of every step at a time, so that the maps between them never exist whole.
// A map inside a chain is a window: the rows that are computed and still needed. Nothing is computed twice, answers are the same bits.
#ifndef ONEWEIGHT_PLAN_TILES_H
#define ONEWEIGHT_PLAN_TILES_H

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "oneweight/plan/preparation.h"

namespace oneweight {
inline namespace v1 {

// A tensor as the tiling sees it.
struct MapFacts {
  int64_t bytes = 0;                 // 0: not in the arena
  int64_t rows = 0, pixels = 0;      // image rows and pixels of a map
  int32_t root = -1;                 // tensors with one root share memory as views
  bool is_alone = true;              // no other tensor has its root
  bool is_lasting = false;           // an input, output or kept: never a window
  int32_t first = 0, last = -1;      // steps at which the root is alive
  int32_t nested_in = -1;            // lies inside that root while both are alive
};
struct MapStep {
  const StepFacts* facts = nullptr;
  std::span<const int32_t> inputs, outputs;
  double work = 0;                   // of all rows
};

// Steps [first, last] of the order, run in `tiles` tiles.
struct Tiling {
  struct Window { std::vector<int32_t> maps; int32_t writer = 0; int64_t rows = 0; };  // maps that share it; step of the chain that fills it
  struct InPlace { int32_t step = 0, from = 0, to = 0; };
  struct Overlap { int32_t read = 0, written = 0; int64_t least = 0; };  // the first may begin from `least` bytes behind the second's begin on
  int32_t first = 0, last = 0;
  int64_t tiles = 1;
  int64_t bytes = 0;                 // of all memory alive while these steps run
  double extra = 0;                  // work that one run of all rows would not have
  std::vector<InPlace> in_place;
  std::vector<Overlap> overlaps;
  std::vector<Window> windows;
  std::vector<int32_t> ends;         // [tiles][steps]: rows of the step computed at the end of the tile
  std::vector<int32_t> lows;         // [tiles][windows]: first row of the window during the tile
  int count() const { return last - first + 1; }
};

class TilePlanner {
 public:
  // All in the order of execution. Tensors are alive as MapFacts says.
  TilePlanner(std::span<const MapFacts> maps, std::span<const MapStep> steps) : maps_(maps), steps_(steps), readers_(maps.size()), writer_(maps.size(), -1), root_writers_(maps.size()), stamp_(maps.size(), -1), slot_(maps.size(), -1) {
    for (size_t s = 0; s < steps.size(); ++s) {
      for (int32_t t : steps[s].outputs)
        if (t >= 0 && maps[static_cast<size_t>(t)].bytes > 0) {
          writer_[static_cast<size_t>(t)] = static_cast<int32_t>(s);
          root_writers_[static_cast<size_t>(root(t))].push_back(static_cast<int32_t>(s));
        }
      for (size_t i = 0; i < steps[s].inputs.size(); ++i) {
        const int32_t t = steps[s].inputs[i];
        if (t >= 0 && maps[static_cast<size_t>(t)].bytes > 0) readers_[static_cast<size_t>(t)].push_back({static_cast<int32_t>(s), static_cast<int32_t>(i)});
      }
    }
    for (size_t t = 0; t < maps.size(); ++t)
      if (maps[t].bytes > 0 && maps[t].root == static_cast<int32_t>(t)) roots_.push_back(static_cast<int32_t>(t));
  }

  // The partition of all steps into chains (and single steps) with the smallest peak, of those that add at most `most_extra` of its
  // work to each chain; among such with the same peak, the one with least extra work. `peak`: its bytes. Only chains of several steps
  // are returned. forced > 0: every chain that is possible, as long as possible, with that many rows.
  std::vector<Tiling> plan(double most_extra, int64_t forced, int64_t* peak) {
    const auto n = static_cast<int32_t>(steps_.size());
    std::vector<Tiling> chosen;
    *peak = 0;
    if (forced > 0) {
      for (int32_t i = 0; i < n;) {
        int32_t j = i;
        while (j + 1 < n && joins(i, j + 1)) ++j;
        if (can_tile(i)) chosen.push_back(schedule(i, j, forced, true));
        *peak = std::max(*peak, can_tile(i) ? chosen.back().bytes : schedule(i, i, 0, false).bytes);
        i = j + 1;
      }
      return chosen;
    }
    std::vector<int64_t> single(static_cast<size_t>(n));
    int64_t most = 0;
    for (int32_t s = 0; s < n; ++s) most = std::max(most, single[static_cast<size_t>(s)] = schedule(s, s, 0, false).bytes);
    *peak = most;
    // Candidates: chains that contain a step at which much is alive, and more of them as long as the peak falls.
    struct Candidate { int32_t first = 0, last = 0; int64_t bytes = 0, band = 0; double extra = 0; };
    std::vector<std::vector<Candidate>> ending(static_cast<size_t>(n));
    std::vector<int64_t> best(static_cast<size_t>(n) + 1, 0);
    int64_t bound = most;
    for (int64_t much = most + 1, next = most - most / 4, before = 2 * most; next < much && bound < before - before / 50; next = bound - bound / 8) {
      for (int32_t i = 0; i < n; ++i) {
        int64_t alive = 0;
        for (int32_t j = i; j < n && j - i < kMostSteps && (j == i ? can_tile(i) : joins(i, j)); ++j) {
          alive = std::max(alive, single[static_cast<size_t>(j)]);
          if (alive <= next || alive > much) continue;  // not yet, or known
          const int64_t band = band_for(i, j, most_extra);
          if (band <= 0) continue;
          const Tiling t = schedule(i, j, band, false);
          ending[static_cast<size_t>(j)].push_back({i, j, t.bytes, band, t.extra});
        }
      }
      for (int32_t j = 0; j < n; ++j) {
        int64_t least = std::max(best[static_cast<size_t>(j)], single[static_cast<size_t>(j)]);
        for (const Candidate& c : ending[static_cast<size_t>(j)]) least = std::min(least, std::max(best[static_cast<size_t>(c.first)], c.bytes));
        best[static_cast<size_t>(j) + 1] = least;
      }
      before = much > most ? most + bound : bound;  // the first round is never the last
      bound = best[static_cast<size_t>(n)];
      much = next;
    }
    if (n == 0 || bound > most - most / 50) return {};
    *peak = bound;
    constexpr double kNever = std::numeric_limits<double>::infinity();
    std::vector<double> cost(static_cast<size_t>(n) + 1, kNever);
    std::vector<const Candidate*> from(static_cast<size_t>(n) + 1, nullptr);
    cost[0] = 0;
    for (int32_t j = 0; j < n; ++j) {
      const auto to = static_cast<size_t>(j) + 1;
      if (single[static_cast<size_t>(j)] <= bound) cost[to] = cost[static_cast<size_t>(j)];
      for (const Candidate& c : ending[static_cast<size_t>(j)])
        if (c.bytes <= bound && cost[static_cast<size_t>(c.first)] + c.extra < cost[to]) cost[to] = cost[static_cast<size_t>(c.first)] + c.extra, from[to] = &c;
    }
    for (int32_t j = n; j > 0;) {
      const Candidate* c = from[static_cast<size_t>(j)];
      if (!c) { --j; continue; }
      chosen.push_back(schedule(c->first, c->last, c->band, true));
      j = c->first;
    }
    std::reverse(chosen.begin(), chosen.end());
    return chosen;
  }

  // Steps [i, j] in tiles of `band` rows of the step that has most rows (0: in one run, for i == j). With `exact`, all tables; else an
  // estimate from some tiles.
  Tiling schedule(int32_t i, int32_t j, int64_t band, bool exact) {
    Tiling t;
    t.first = i, t.last = j;
    const int32_t pace = pace_of(i, j);
    const int64_t rows = rows_of(pace);
    t.tiles = band > 0 ? std::max<int64_t>((rows + band - 1) / band, 1) : 1;
    count_ = static_cast<size_t>(j - i) + 1;
    tiles_.clear();
    const int64_t slowest = std::min<int64_t>(t.tiles / std::max<int64_t>(fewest_rows(i, j), 1), 13) + 3;  // tiles for one row of it
    for (int64_t b = 0; b < t.tiles; ++b)
      if (exact || t.tiles < 12 || b < 4 || b >= t.tiles - 3 || (b >= t.tiles / 2 && b < t.tiles / 2 + slowest)) tiles_.push_back(b);
    ends_.assign(tiles_.size() * count_, 0);
    if (band > 0) {
      follows_.assign(count_, false);
      for (int32_t k = pace; k <= j; ++k) follows_[static_cast<size_t>(k - i)] = k == pace || reads_following(k, i);
      for (size_t k = 0; k < tiles_.size(); ++k) ends_of_tile(i, j, pace, tiles_[k], t.tiles, band, &ends_[k * count_]);
    } else {
      ends_[0] = rows;
    }
    touch(i, j);
    find_in_place(i, j, &t);
    add_memory(i, j, exact, &t);
    if (band > 0) find_overlaps(i, j, &t);
    t.extra = t.tiles > 1 ? extra_of(i, j, t.tiles) : 0;
    if (exact) t.ends.assign(ends_.begin(), ends_.end());
    return t;
  }

 private:
  static constexpr int32_t kMostSteps = 32;
  static constexpr int64_t kMostRows = int64_t{1} << 20, kMostTiles = 4096;
  struct Reader { int32_t step, input; };

  int32_t root(int32_t t) const { return maps_[static_cast<size_t>(t)].root; }
  const MapFacts& map(int32_t t) const { return maps_[static_cast<size_t>(t)]; }
  static int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  bool can_tile(int32_t s) const {
    const MapStep& step = steps_[static_cast<size_t>(s)];
    if (!step.facts->input_rows || step.outputs.size() != 1 || step.facts->changes_state) return false;
    const MapFacts& out = map(step.outputs[0]);
    return out.bytes > 0 && out.rows > 0 && out.rows == step.facts->image_rows() && out.rows <= kMostRows && step.facts->rows == out.rows * step.facts->rows_each && out.bytes % out.rows == 0;
  }
  // Whether step j can follow the steps [i, j) of a chain.
  bool joins(int32_t i, int32_t j) const {
    if (!can_tile(j) || (j == i + 1 && !can_tile(i))) return false;
    const MapStep& step = steps_[static_cast<size_t>(j)];
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      const int32_t t = step.inputs[k];
      if (t < 0 || map(t).bytes == 0) continue;
      const bool by_rows = k < 32 && (step.facts->row_inputs >> k & 1u);
      for (int32_t w : root_writers_[static_cast<size_t>(root(t))])
        if (w >= i && w < j && !(by_rows && map(t).is_alone && writer_[static_cast<size_t>(t)] == w)) return false;
    }
    // A view of what step j writes may not be read or written inside the chain by another name: its root is then read above.
    return true;
  }

  // Rows of input k of a step that its output rows need; {0, 0}: none.
  RowRange needs(const Reader& r, RowRange rows) const {
    const MapStep& step = steps_[static_cast<size_t>(r.step)];
    if (rows.size() <= 0) return {};
    if (!(r.input < 32 && (step.facts->row_inputs >> r.input & 1u))) return {0, map(step.inputs[static_cast<size_t>(r.input)]).rows};
    return step.facts->input_rows(step.facts->params, rows);
  }
  int64_t rows_of(int32_t step) const { return steps_[static_cast<size_t>(step)].facts->image_rows(); }
  // The step whose rows the tiles divide: the last of those with most rows, so that none computes many rows at a time.
  int32_t pace_of(int32_t i, int32_t j) const {
    int32_t pace = j;
    for (int32_t s = j - 1; s >= i; --s)
      if (rows_of(s) > rows_of(pace)) pace = s;
    return pace;
  }
  int64_t fewest_rows(int32_t i, int32_t j) const {
    int64_t rows = rows_of(i);
    for (int32_t s = i + 1; s <= j; ++s) rows = std::min(rows, rows_of(s));
    return rows;
  }
  bool reads_following(int32_t step, int32_t i) const {
    for (int32_t t : steps_[static_cast<size_t>(step)].inputs) {
      const int32_t w = t < 0 || map(t).bytes == 0 ? -1 : writer_[static_cast<size_t>(t)];
      if (w >= i && w < step && follows_[static_cast<size_t>(w - i)]) return true;
    }
    return false;
  }
  // Rows of a step that its inputs allow, of those that follow the pace, when `ends` rows of each are computed.
  int64_t possible_rows(int32_t step, int32_t i, const int64_t* ends) const {
    const MapStep& s = steps_[static_cast<size_t>(step)];
    int64_t possible = rows_of(step);
    for (size_t k = 0; k < s.inputs.size(); ++k) {
      const int32_t t = s.inputs[k], w = t < 0 || map(t).bytes == 0 ? -1 : writer_[static_cast<size_t>(t)];
      if (w < i || w >= step || !follows_[static_cast<size_t>(w - i)]) continue;
      int64_t least = 0;  // rows [0, least) are possible, [0, possible + 1) are not
      while (least < possible) {
        const int64_t middle = least + (possible - least + 1) / 2;
        if (needs({step, static_cast<int32_t>(k)}, {0, middle}).end <= ends[w - i]) least = middle; else possible = middle - 1;
      }
    }
    return possible;
  }
  // In every tile the pace goes on by a band; what follows it does as much as it can; what others need for that is computed, no more.
  void ends_of_tile(int32_t i, int32_t j, int32_t pace, int64_t tile, int64_t tiles, int64_t band, int64_t* ends) const {
    for (int32_t k = i; k <= j; ++k) {
      const bool follows = follows_[static_cast<size_t>(k - i)];
      ends[k - i] = tile == tiles - 1 ? rows_of(k) : k == pace ? (tile + 1) * band : follows ? possible_rows(k, i, ends) : 0;
    }
    if (tile == tiles - 1) return;
    for (int32_t k = j; k >= i; --k) {
      const MapStep& step = steps_[static_cast<size_t>(k)];
      const int64_t rows = rows_of(k);
      int64_t end = ends[k - i];
      bool is_read = follows_[static_cast<size_t>(k - i)];
      for (const Reader& r : readers_[static_cast<size_t>(step.outputs[0])])
        if (r.step <= j && r.step > k) {
          is_read = true;
          const int64_t done = ends[r.step - i];
          if (done > 0) end = std::max(end, needs(r, {0, done}).end);
        }
      if (!is_read) end = (rows * (tile + 1) + tiles - 1) / tiles;
      ends[k - i] = std::min(end, rows);
    }
  }
  // First row of tensor t that steps of [i, j] other than `but` still need, when `ends` rows of each are computed; `rows`: none.
  int64_t first_needed(int32_t t, int32_t i, int32_t j, const int64_t* ends, int32_t but, int64_t rows) const {
    int64_t first = rows;
    for (const Reader& r : readers_[static_cast<size_t>(t)]) {
      if (r.step < i || r.step > j || r.step == but) continue;
      const RowRange need = needs(r, {ends ? ends[r.step - i] : 0, steps_[static_cast<size_t>(r.step)].facts->image_rows()});
      if (need.size() > 0) first = std::min(first, need.begin);
    }
    return first;
  }

  // Tensors of the chain, those with one root in one group.
  void touch(int32_t i, int32_t j) {
    touched_.clear();
    ++mark_;
    const auto add = [&](int32_t t) {
      if (t < 0 || map(t).bytes == 0 || stamp_[static_cast<size_t>(t)] == mark_) return;
      stamp_[static_cast<size_t>(t)] = mark_;
      int32_t group = slot_[static_cast<size_t>(t)] = static_cast<int32_t>(touched_.size());
      if (!map(t).is_alone)
        for (const Touched& other : touched_)
          if (root(other.tensor) == root(t)) group = other.group;
      touched_.push_back({t, group});
    };
    for (int32_t s = i; s <= j; ++s) {
      for (int32_t t : steps_[static_cast<size_t>(s)].outputs) add(t);
      for (int32_t t : steps_[static_cast<size_t>(s)].inputs) add(t);
    }
  }
  struct Touched { int32_t tensor, group; };
  Touched& touched(int32_t t) { return touched_[static_cast<size_t>(slot_[static_cast<size_t>(t)])]; }

  // Read and written only by steps of [i, j].
  bool is_inside(int32_t t, int32_t i, int32_t j) const {
    const MapFacts& m = map(t);
    const int32_t w = writer_[static_cast<size_t>(t)];
    return m.is_alone && !m.is_lasting && w >= i && w <= j && m.first >= i && m.last <= j && m.rows > 0;
  }

  // Steps whose output may lie where an input lay: it is the last to read it, also within every tile.
  void find_in_place(int32_t i, int32_t j, Tiling* t) {
    for (int32_t s = i; s <= j; ++s) {
      const MapStep& step = steps_[static_cast<size_t>(s)];
      int32_t best_from = -1, best_to = -1;
      for (const StepFacts::InPlace& pair : step.facts->in_place) {
        if (pair.in >= static_cast<int>(step.inputs.size()) || pair.out >= static_cast<int>(step.outputs.size())) continue;
        const int32_t from = step.inputs[static_cast<size_t>(pair.in)], to = step.outputs[static_cast<size_t>(pair.out)];
        if (!is_overwritable(from, to, s, i, j, pair.in, t->tiles)) continue;
        const bool better = best_from < 0 || (is_inside(best_from, i, j) && !is_inside(from, i, j));
        if (better) best_from = from, best_to = to;
      }
      if (best_from < 0) continue;
      t->in_place.push_back({s, best_from, best_to});
      const int32_t old = touched(best_to).group, now = touched(best_from).group;
      for (Touched& other : touched_)
        if (other.group == old) other.group = now;
    }
  }
  bool is_overwritable(int32_t from, int32_t to, int32_t s, int32_t i, int32_t j, int input, int64_t tiles) {
    if (from < 0 || to < 0 || map(from).bytes == 0 || map(to).bytes != map(from).bytes) return false;
    const MapFacts &f = map(from), &o = map(to);
    if (f.is_lasting || f.last != s || root(from) == root(to) || map(root(from)).bytes != f.bytes || (i != j && !f.is_alone)) return false;
    const MapStep& step = steps_[static_cast<size_t>(s)];
    const int32_t group = touched(from).group;
    for (int32_t t : step.inputs)  // another input in the same memory under another name
      if (t >= 0 && t != from && map(t).bytes > 0 && touched(t).group == group) return false;
    for (int32_t t : step.outputs)
      if (t >= 0 && t != to && map(t).bytes > 0 && touched(t).group == group) return false;
    if (tiles == 1) return true;
    if (!(input < 32 && (step.facts->row_inputs >> input & 1u)) || f.rows != o.rows) return false;
    // Members of the memory that were read before step s may be needed by later tiles.
    for (size_t k = 0; k + 1 < tiles_.size(); ++k) {
      const int64_t* ends = &ends_[k * count_];
      for (const Touched& member : touched_)
        if (member.group == group && first_needed(member.tensor, i, j, ends, s, f.rows) < ends[s - i]) return false;
    }
    return true;
  }

  void add_memory(int32_t i, int32_t j, bool exact, Tiling* t) {
    int64_t scratch = 0;
    for (int32_t s = i; s <= j; ++s) scratch = std::max(scratch, aligned(steps_[static_cast<size_t>(s)].facts->scratch));
    t->bytes = scratch;
    counted_.clear();
    for (const Touched& first : touched_) {
      if (std::find(counted_.begin(), counted_.end(), first.group) != counted_.end()) continue;
      counted_.push_back(first.group);
      int64_t whole = 0;
      bool inside = true;
      Tiling::Window window;
      for (const Touched& member : touched_) {
        if (member.group != first.group) continue;
        whole = std::max(whole, map(root(member.tensor)).bytes);
        inside = inside && is_inside(member.tensor, i, j);
        window.maps.push_back(member.tensor);
      }
      if (!inside) {
        if (!is_nested(first.tensor, i, j)) t->bytes += aligned(whole);
        continue;
      }
      std::sort(window.maps.begin(), window.maps.end(), [&](int32_t a, int32_t b) { return writer_[static_cast<size_t>(a)] < writer_[static_cast<size_t>(b)]; });
      const int32_t head = window.maps[0];
      window.writer = writer_[static_cast<size_t>(head)] - i;
      const int64_t rows = map(head).rows;
      std::vector<int32_t> lows;
      for (size_t k = 0; k < tiles_.size(); ++k) {
        const bool follows = k > 0 && tiles_[k - 1] + 1 == tiles_[k];
        const int64_t* before = k == 0 ? nullptr : &ends_[(k - 1) * count_];
        const int64_t* after = &ends_[k * count_];
        int64_t low = tiles_[k] == 0 ? 0 : rows;
        for (int32_t member : window.maps)
          if (tiles_[k] > 0) low = std::min(low, first_needed(member, i, j, before, -1, rows));
        low = std::min(low, before ? before[window.writer] : 0);
        lows.push_back(static_cast<int32_t>(low));
        if (follows || tiles_[k] == 0) window.rows = std::max(window.rows, after[window.writer] - low);
      }
      t->bytes += aligned(window.rows * (map(head).bytes / rows));
      if (exact) {
        const size_t number = t->windows.size();
        all_lows_.resize(std::max(all_lows_.size(), number + 1));
        all_lows_[number] = std::move(lows);
        t->windows.push_back(std::move(window));
      }
    }
    if (exact)
      for (size_t k = 0; k < tiles_.size(); ++k)
        for (size_t w = 0; w < t->windows.size(); ++w) t->lows.push_back(all_lows_[w][k]);
    // What is alive and not touched.
    ++mark_;
    for (const Touched& a : touched_) stamp_[static_cast<size_t>(root(a.tensor))] = mark_;
    for (int32_t r : roots_)
      if (stamp_[static_cast<size_t>(r)] != mark_ && map(r).first <= j && map(r).last >= i && !is_nested(r, i, j)) t->bytes += aligned(map(r).bytes);
  }

  // What a chain reads for the last time and what it writes may overlap, as long as no row is written over one that is still to be read
  // (the idea of "diagonal memory optimisation", Ducasse et al., for tiles). The largest saving counts.
  void find_overlaps(int32_t i, int32_t j, Tiling* t) {
    int64_t most = 0;
    for (const Touched& x : touched_) {
      const MapFacts& read = map(x.tensor);
      const int32_t w = writer_[static_cast<size_t>(x.tensor)];
      if (!read.is_alone || read.is_lasting || read.rows <= 0 || read.last > j || (w >= i && w <= j) || is_shared(x)) continue;
      for (const Touched& y : touched_) {
        const MapFacts& written = map(y.tensor);
        if (written.rows <= 0 || is_inside(y.tensor, i, j) || !is_written_inside(y, i, j)) continue;
        const int64_t least = least_distance(x, y, i, j);
        const int64_t span = std::max(written.bytes, least + read.bytes) - std::min<int64_t>(least, 0);
        const int64_t saved = read.bytes + written.bytes - span;
        if (saved <= 0) continue;
        if (!is_nested(x.tensor, i, j)) most = std::max(most, saved);
        t->overlaps.push_back({x.tensor, y.tensor, least});
      }
    }
    t->bytes -= most;
  }
  // Nothing in the memory of y is older than the chain.
  bool is_written_inside(const Touched& y, int32_t i, int32_t j) const {
    const int32_t w = writer_[static_cast<size_t>(y.tensor)];
    if (w < i || w > j) return false;
    for (const Touched& other : touched_) {
      const int32_t v = writer_[static_cast<size_t>(other.tensor)];
      if (other.group == y.group && (v < i || v > j)) return false;
    }
    return true;
  }
  bool is_shared(const Touched& x) const {
    return std::any_of(touched_.begin(), touched_.end(), [&](const Touched& other) { return other.tensor != x.tensor && other.group == x.group; });
  }
  int64_t least_distance(const Touched& x, const Touched& y, int32_t i, int32_t j) const {
    const MapFacts &read = map(x.tensor), &written = map(y.tensor);
    const int64_t read_row = read.bytes / read.rows, written_row = written.bytes / written.rows;
    int64_t least = std::numeric_limits<int64_t>::min();
    for (const Touched& member : touched_) {
      const int32_t w = writer_[static_cast<size_t>(member.tensor)];
      if (member.group != y.group || w < i || w > j) continue;
      for (size_t k = 0; k < tiles_.size(); ++k) {
        if (tiles_[k] > 0 && (k == 0 || tiles_[k - 1] + 1 != tiles_[k])) continue;  // an estimate knows no tile before this one
        const int64_t* after = &ends_[k * count_];
        int64_t needed = read.rows;
        for (const Reader& r : readers_[static_cast<size_t>(x.tensor)]) {
          if (r.step < i || r.step > j) continue;
          const int64_t done = r.step < w ? after[r.step - i] : tiles_[k] > 0 ? ends_[(k - 1) * count_ + static_cast<size_t>(r.step - i)] : 0;
          const RowRange need = needs(r, {done, steps_[static_cast<size_t>(r.step)].facts->image_rows()});
          if (need.size() > 0) needed = std::min(needed, need.begin);
        }
        if (needed < read.rows) least = std::max(least, after[w - i] * written_row - needed * read_row);
      }
    }
    return std::max(least, -read.bytes);
  }

  bool is_nested(int32_t t, int32_t i, int32_t j) const {
    const int32_t outer = map(t).nested_in;
    return outer >= 0 && map(outer).first <= i && map(outer).last >= j;
  }

  // Work that tiles repeat: what a step does for every range of rows, calls, pixels that fill no register.
  double extra_of(int32_t i, int32_t j, int64_t tiles) const {
    constexpr double kCall = 20000, kPixels = 4;
    double extra = 0;
    for (int32_t s = i; s <= j; ++s) {
      const MapStep& step = steps_[static_cast<size_t>(s)];
      const int32_t out = step.outputs[0];
      const int64_t rows = std::max<int64_t>(rows_of(s), 1);
      const double each = kCall + step.facts->work.each_range + step.work * kPixels / static_cast<double>(std::max<int64_t>(map(out).pixels, 1)) +
                          kByteWork * static_cast<double>(map(out).bytes / rows);
      extra += each * static_cast<double>(std::min(tiles, rows) - 1);
    }
    return extra;
  }
  // Rows in a tile, of the step that has most, so that the extra work stays below `most` of all work; 0: cannot be.
  int64_t band_for(int32_t i, int32_t j, double most) const {
    double work = 0;
    for (int32_t s = i; s <= j; ++s) work += steps_[static_cast<size_t>(s)].work;
    const int64_t rows = rows_of(pace_of(i, j));
    int64_t tiles = 1, more = std::min(rows, kMostTiles);
    while (tiles < more) {
      const int64_t middle = tiles + (more - tiles + 1) / 2;
      if (extra_of(i, j, middle) <= work * most) tiles = middle; else more = middle - 1;
    }
    return tiles < 2 ? 0 : (rows + tiles - 1) / tiles;
  }

  std::span<const MapFacts> maps_;
  std::span<const MapStep> steps_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<int32_t> writer_;
  std::vector<std::vector<int32_t>> root_writers_;
  std::vector<int32_t> roots_;
  // Of the chain that is looked at
  size_t count_ = 0;
  std::vector<int64_t> tiles_, ends_;
  std::vector<bool> follows_;  // step reads the pace's rows, of other steps' or its own
  std::vector<Touched> touched_;
  std::vector<int32_t> counted_;
  std::vector<std::vector<int32_t>> all_lows_;
  std::vector<int32_t> stamp_, slot_;
  int32_t mark_ = 0;
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_TILES_H
