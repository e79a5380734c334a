// Where the tensors of a plan lie in the arena: which of them share memory, in which order the steps run, which run tile by tile.
#ifndef ONEWEIGHT_PLAN_LAYOUT_H
#define ONEWEIGHT_PLAN_LAYOUT_H

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "oneweight/plan/arena.h"
#include "oneweight/plan/order.h"
#include "oneweight/plan/tiles.h"

namespace oneweight {
inline namespace v1 {

struct LayoutTensor {
  int64_t bytes = 0;
  int64_t rows = 0, pixels = 0;      // of a map (image_rows()): batch * height, batch * height * width
  bool in_arena = false;
  bool is_input = false, is_output = false, is_kept = false;
};
struct LayoutStep {
  const StepFacts* facts = nullptr;
  std::span<const int32_t> inputs, outputs;
  bool stays = false;                // its place among others that stay: they act on what is no tensor of the arena
};

class Layout {
 public:
  static constexpr int kMoves = 6;   // orders that are tried besides the file's and that of the search
  struct Place { int64_t offset = 0; int32_t buffer = -1; int64_t window_rows = 0; };

  Layout(std::vector<LayoutTensor> tensors, std::vector<LayoutStep> steps)
      : tensors_(std::move(tensors)), steps_(std::move(steps)), parents_(tensors_.size()), shifts_(tensors_.size(), 0) {
    for (size_t t = 0; t < tensors_.size(); ++t) parents_[t] = static_cast<int32_t>(t);
    share_views();
  }

  // Decides order and tiles: at most `most_extra` of a chain's work is added to it, less than 0 for no tiles. forced > 0: tiles of that
  // many rows wherever they can be.
  void arrange(double most_extra, int64_t forced, bool reorder) {
    parents_ = views_, shifts_ = view_shifts_;
    Arrangement best = arranged(file_order_, most_extra, forced);
    if (reorder && forced == 0 && most_extra >= 0) {
      chains_ = best.chains;
      const auto consider = [&](const std::vector<int32_t>& order) {
        if (order.empty() || order == best.order) return false;
        Arrangement other = arranged(order, most_extra, forced);
        if (other.bytes >= best.bytes - best.bytes / 100) return false;
        best = std::move(other);
        return true;
      };
      consider(smallest_peak_order(order_graph()));
      chains_.clear();
      consider(depth_first_order(order_graph()));
      int moves = kMoves;
      for (bool better = true; better && moves > 0;) {
        better = false;
        for (const std::vector<int32_t>& order : with_large_output_last(best))
          if (moves-- > 0 && consider(order)) { better = true; break; }
      }
    }
    use(best);
    arena_bytes_ = best.bytes;
  }

  // Gives all tensors their places; `scratch`: bytes by position in the order. Returns the bytes of the arena.
  int64_t place(std::span<const int64_t> scratch) {
    const auto n = tensors_.size(), count = order_.size();
    std::vector<int> item_of(n, -1);
    std::vector<int32_t> begin_of(count), end_of(count);
    for (size_t s = 0; s < count; ++s) begin_of[s] = end_of[s] = static_cast<int32_t>(s);
    std::vector<int64_t> window(n, 0);
    for (const Tiling& chain : chains_) {
      for (int32_t s = chain.first; s <= chain.last; ++s) begin_of[static_cast<size_t>(s)] = chain.first, end_of[static_cast<size_t>(s)] = chain.last;
      for (const Tiling::Window& w : chain.windows)
        for (int32_t t : w.maps) window[static_cast<size_t>(t)] = w.rows;
    }
    items_.clear();
    places_.assign(n, {});
    const auto see = [&](int32_t t, int32_t first, int32_t last) {
      if (t < 0 || !tensors_[static_cast<size_t>(t)].in_arena) return;
      const auto root = static_cast<size_t>(find(t));
      if (item_of[root] < 0) {
        item_of[root] = static_cast<int>(items_.size());
        items_.push_back({0, first, last, 0});
      }
      ArenaItem& item = items_[static_cast<size_t>(item_of[root])];
      const LayoutTensor& top = tensors_[root];
      item.bytes = std::max<int64_t>(window[root] > 0 ? window[root] * (top.bytes / top.rows) : top.bytes, 1);
      item.first = std::min(item.first, first), item.last = std::max(item.last, last);
    };
    const auto end = static_cast<int32_t>(count);
    for (size_t t = 0; t < n; ++t) {
      if (tensors_[t].is_input) see(static_cast<int32_t>(t), -1, end);
      if (tensors_[t].is_output || tensors_[t].is_kept) see(static_cast<int32_t>(t), end, end);
    }
    for (size_t s = 0; s < count; ++s) {
      for (int32_t t : step(s).inputs) see(t, begin_of[s], end_of[s]);
      for (int32_t t : step(s).outputs) see(t, begin_of[s], end_of[s]);
    }
    first_scratch_ = items_.size();
    for (size_t s = 0; s < count; ++s) items_.push_back({scratch[s], static_cast<int32_t>(s), static_cast<int32_t>(s), 0});
    std::vector<ArenaOverlap> overlaps = overlapping(item_of);
    add_unwritten(item_of, begin_of, window, &overlaps);
    const int64_t arena = place_in_arena(items_, kAlignment, overlaps);
    for (size_t t = 0; t < n; ++t) {
      const int32_t root = find(static_cast<int32_t>(t));
      if (!tensors_[t].in_arena || item_of[static_cast<size_t>(root)] < 0) continue;
      places_[t] = {items_[static_cast<size_t>(item_of[static_cast<size_t>(root)])].offset + shift(static_cast<int32_t>(t)), root, window[t]};
    }
    return arena;
  }

  // Of the arrangement, with the scratch of one thread.
  int64_t arena_bytes() const { return arena_bytes_; }
  const std::vector<int32_t>& order() const { return order_; }  // numbers of the steps given, without the vanished ones
  const std::vector<Tiling>& chains() const { return chains_; }
  const Place& place_of(int32_t tensor) const { return places_[static_cast<size_t>(tensor)]; }
  int64_t scratch_offset(size_t position) const { return items_[first_scratch_ + position].offset; }
  // The position at which most bytes of the arena are in use.
  int peak() const {
    std::vector<const ArenaItem*> by_offset;
    for (const ArenaItem& item : items_) by_offset.push_back(&item);
    std::sort(by_offset.begin(), by_offset.end(), [](const ArenaItem* a, const ArenaItem* b) { return a->offset < b->offset; });
    std::vector<int64_t> used(order_.size(), 0), counted(order_.size(), 0);
    for (const ArenaItem* item : by_offset)
      for (auto s = static_cast<size_t>(std::max<int32_t>(item->first, 0)); s < used.size() && static_cast<int32_t>(s) <= item->last; ++s) {
        const int64_t end = item->offset + (item->bytes + kAlignment - 1) / kAlignment * kAlignment;
        used[s] += std::max<int64_t>(end - std::max(counted[s], item->offset), 0);  // shared bytes once
        counted[s] = std::max(counted[s], end);
      }
    return static_cast<int>(std::max_element(used.begin(), used.end()) - used.begin());
  }

  // Work that the chains' tiles add, as a share of all work.
  double extra_work() const {
    double work = 0, extra = 0;
    for (const LayoutStep& step : steps_) work += work_of(step);
    for (const Tiling& chain : chains_) extra += chain.extra;
    return work > 0 ? extra / work : 0;
  }

 private:
  const LayoutStep& step(size_t position) const { return steps_[static_cast<size_t>(order_[position])]; }

  // Maps that chains read for the last time, and what they write over them.
  std::vector<ArenaOverlap> overlapping(const std::vector<int>& item_of) const {
    std::vector<ArenaOverlap> overlaps;
    for (const Tiling& chain : chains_)
      for (const Tiling::Overlap& o : chain.overlaps) {
        const int32_t read = find(o.read), written = find(o.written);
        const auto y = static_cast<size_t>(o.written);
        ArenaOverlap allowed{item_of[static_cast<size_t>(read)], item_of[static_cast<size_t>(written)], o.least, std::numeric_limits<int64_t>::max()};
        if (read != o.read || read == written || bytes_of(read) != bytes_of(o.read)) continue;  // shares its memory with others
        if (shift(o.written) != 0 || bytes_of(written) != tensors_[y].bytes) {
          const int64_t begin = shift(o.written);
          allowed.low = begin + std::max<int64_t>(o.least, 0), allowed.high = begin + tensors_[y].bytes - bytes_of(o.read);
        }
        overlaps.push_back(allowed);
      }
    return overlaps;
  }
  struct Part { int32_t written; int64_t begin, end; };  // of a buffer, and the step (or its chain's first) that writes it
  struct Gap { int64_t begin = 0, end = 0; };
  // The longest part of a buffer that nothing is written to up to step `until`; `parts` by their begins.
  static Gap longest_gap(const std::vector<Part>& parts, int32_t until, int64_t bytes) {
    Gap longest;
    int64_t here = 0;
    const auto end_gap = [&](int64_t end) {
      if (end - here > longest.end - longest.begin) longest = {here, end};
    };
    for (const Part& part : parts) {
      if (part.written > until) continue;
      end_gap(part.begin);
      here = std::max(here, part.end);
    }
    end_gap(bytes);
    return longest;
  }
  // Parts of a buffer that are written late (of a concatenation, for one) may hold other buffers until then.
  void add_unwritten(const std::vector<int>& item_of, const std::vector<int32_t>& begin_of, const std::vector<int64_t>& window,
                     std::vector<ArenaOverlap>* overlaps) const {
    constexpr size_t kMostParts = 256;
    std::vector<std::vector<Part>> parts(tensors_.size());
    const auto add = [&](int32_t t, int32_t at) {
      if (t < 0 || !tensors_[static_cast<size_t>(t)].in_arena) return;
      parts[static_cast<size_t>(find(t))].push_back({at, shift(t), shift(t) + bytes_of(t)});
    };
    for (size_t t = 0; t < tensors_.size(); ++t)
      if (tensors_[t].is_input) add(static_cast<int32_t>(t), -1);
    for (size_t s = 0; s < order_.size(); ++s)
      for (int32_t t : step(s).outputs) add(t, begin_of[s]);
    const size_t in_chains = overlaps->size();
    for (size_t host = 0; host < parts.size(); ++host) {
      std::vector<Part>& written = parts[host];
      if (written.size() < 2 || written.size() > kMostParts || window[host] > 0 || item_of[host] < 0) continue;
      std::sort(written.begin(), written.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
      const int32_t outer = item_of[host];
      int32_t last = 0;
      for (const Part& part : written) last = std::max(last, part.written);
      std::vector<char> is_known(items_.size(), 0);
      for (size_t k = 0; k < in_chains; ++k)
        if ((*overlaps)[k].outer == outer) is_known[static_cast<size_t>((*overlaps)[k].inner)] = 1;
      std::map<int32_t, Gap> gaps;
      for (size_t i = 0; i < items_.size(); ++i) {
        const ArenaItem& inner = items_[i];
        if (static_cast<int32_t>(i) == outer || is_known[i] || inner.bytes == 0 || inner.last >= last || inner.last < items_[static_cast<size_t>(outer)].first) continue;
        const auto [gap, is_new] = gaps.try_emplace(inner.last);
        if (is_new) gap->second = longest_gap(written, inner.last, bytes_of(static_cast<int32_t>(host)));
        const auto [begin, end] = gap->second;
        if (end - begin >= inner.bytes) overlaps->push_back({static_cast<int32_t>(i), outer, begin, end - inner.bytes});
      }
    }
  }
  // A forest: each tensor lies inside its parent, `shift` bytes behind its begin.
  int32_t find(int32_t t) const {
    while (parents_[static_cast<size_t>(t)] != t) t = parents_[static_cast<size_t>(t)];
    return t;
  }
  int64_t shift(int32_t t) const {
    int64_t sum = 0;
    for (; parents_[static_cast<size_t>(t)] != t; t = parents_[static_cast<size_t>(t)]) sum += shifts_[static_cast<size_t>(t)];
    return sum;
  }

  // Steps whose outputs are bytes of an input, or whose inputs can be computed where the output needs them, vanish.
  void share_views() {
    std::vector<char> has_input(tensors_.size(), 0), has_output(tensors_.size(), 0);
    for (size_t t = 0; t < tensors_.size(); ++t) has_input[t] = tensors_[t].is_input, has_output[t] = tensors_[t].is_output;
    const auto attach = [&](int32_t inner, int32_t outer, int64_t offset) {
      const auto top = static_cast<size_t>(find(outer)), root = static_cast<size_t>(inner);
      parents_[root] = outer, shifts_[root] = offset;
      has_input[top] |= has_input[root], has_output[top] |= has_output[root];
    };
    for (size_t s = 0; s < steps_.size(); ++s) {
      const LayoutStep& step = steps_[s];
      int64_t placed = 0, all = 0;
      for (int32_t t : step.outputs) all += bytes_of(t);
      for (const StepFacts::View& view : step.facts->views) {
        const int32_t in = step.inputs[static_cast<size_t>(view.in)], out = step.outputs[static_cast<size_t>(view.out)];
        if (in < 0 || !tensors_[static_cast<size_t>(in)].in_arena || !tensors_[static_cast<size_t>(out)].in_arena) continue;
        const int32_t in_root = find(in), out_root = find(out);
        if (in_root == out_root) continue;
        const auto i = static_cast<size_t>(in_root), o = static_cast<size_t>(out_root);
        if (view.gathers) {
          if (has_input[i] || has_output[i] || shift(in) != 0 || bytes_of(in_root) != bytes_of(in)) continue;
          attach(in_root, out, view.offset);
          placed += bytes_of(in);
        } else {
          const bool is_all = view.offset == 0 && bytes_of(out) == bytes_of(in);
          if (out_root != out || (has_output[o] && (!is_all || has_input[i] || has_output[i]))) continue;
          attach(out, in, view.offset);
          placed += bytes_of(out);
        }
      }
      if (placed == 0 || placed != all || step.facts->changes_state) file_order_.push_back(static_cast<int32_t>(s));
    }
    views_ = parents_, view_shifts_ = shifts_;
  }
  int64_t bytes_of(int32_t t) const { return tensors_[static_cast<size_t>(t)].bytes; }

  // Lifetimes of the views' roots in this order.
  void use_order(const std::vector<int32_t>& order) {
    order_ = order;
    const auto n = tensors_.size();
    const auto end = static_cast<int32_t>(order_.size());
    std::vector<int32_t> first(n, end), last(n, -1), members(n, 0);
    std::vector<char> lasting(n, 0);
    const auto see = [&](int32_t t, int32_t at) {
      if (t < 0) return;
      const auto root = static_cast<size_t>(find(t));
      first[root] = std::min(first[root], at), last[root] = std::max(last[root], at);
    };
    map_steps_.clear();
    for (size_t s = 0; s < order_.size(); ++s) {
      for (int32_t t : step(s).inputs) see(t, static_cast<int32_t>(s));
      for (int32_t t : step(s).outputs) see(t, static_cast<int32_t>(s));
      map_steps_.push_back({step(s).facts, step(s).inputs, step(s).outputs, work_of(step(s))});
    }
    for (size_t t = 0; t < n; ++t) {
      const LayoutTensor& tensor = tensors_[t];
      if (!tensor.in_arena) continue;
      const auto root = static_cast<size_t>(find(static_cast<int32_t>(t)));
      ++members[root];
      lasting[root] |= tensor.is_input || tensor.is_output || tensor.is_kept;
      if (tensor.is_input) see(static_cast<int32_t>(t), -1), see(static_cast<int32_t>(t), end);
      if (tensor.is_output || tensor.is_kept) see(static_cast<int32_t>(t), end);
    }
    maps_.assign(n, {});
    for (size_t t = 0; t < n; ++t) {
      const int32_t root = find(static_cast<int32_t>(t));
      const auto r = static_cast<size_t>(root);
      if (!tensors_[t].in_arena || last[r] < first[r]) continue;
      maps_[t] = {tensors_[t].bytes, tensors_[t].rows, tensors_[t].pixels, root, members[r] == 1, lasting[r] != 0, first[r], last[r]};
    }
  }
  double work_of(const LayoutStep& step) const {
    if (step.facts->work.all >= 0) return step.facts->work.all;
    double bytes = 0;
    for (int32_t t : step.inputs) bytes += t >= 0 && tensors_[static_cast<size_t>(t)].in_arena ? static_cast<double>(bytes_of(t)) : 0;
    for (int32_t t : step.outputs) bytes += static_cast<double>(bytes_of(t));
    return kByteWork * bytes;
  }

  struct Arrangement {
    std::vector<int32_t> order;
    std::vector<Tiling> chains;
    std::vector<Tiling::InPlace> in_place;
    int64_t bytes = 0;               // of the arena
  };
  Arrangement arranged(const std::vector<int32_t>& order, double most_extra, int64_t forced) {
    constexpr int kRounds = 3;
    Arrangement best;
    use_order(order);
    for (int round = 0; round < kRounds; ++round) {
      Arrangement a;
      a.order = order;
      tile(most_extra, forced, &a);
      measure(&a);
      // What lies inside another buffer need not be counted while both live: then tiles elsewhere may lower the peak.
      const bool again = forced == 0 && most_extra >= 0 && nest();
      if (round == 0 || a.bytes < best.bytes) best = std::move(a);
      if (!again) break;
    }
    return best;
  }
  void tile(double most_extra, int64_t forced, Arrangement* a) {
    TilePlanner planner(maps_, map_steps_);
    int64_t counted = 0;             // measure() tells what it comes to
    a->chains = planner.plan(most_extra, forced, &counted);
    size_t next = 0;
    for (int32_t s = 0; s < static_cast<int32_t>(order_.size());) {
      const bool starts = next < a->chains.size() && a->chains[next].first == s;
      const Tiling single = starts ? Tiling() : planner.schedule(s, s, 0, false);
      const Tiling& here = starts ? a->chains[next++] : single;
      a->in_place.insert(a->in_place.end(), here.in_place.begin(), here.in_place.end());
      s = starts ? here.last + 1 : s + 1;
    }
  }
  // Tells the maps which others they were placed in. True when that is news.
  bool nest() {
    std::vector<int32_t> hosts;
    const auto is_root = [&](size_t t) { return maps_[t].bytes > 0 && maps_[t].root == static_cast<int32_t>(t); };
    for (size_t t = 0; t < maps_.size(); ++t)
      if (is_root(t) && !maps_[t].is_alone) hosts.push_back(static_cast<int32_t>(t));
    bool news = false;
    for (size_t t = 0; t < maps_.size(); ++t) {
      if (!is_root(t)) continue;
      MapFacts& inner = maps_[t];
      const int32_t before = std::exchange(inner.nested_in, -1);
      for (int32_t h : hosts) {
        const MapFacts& host = maps_[static_cast<size_t>(h)];
        if (h == static_cast<int32_t>(t) || host.bytes < inner.bytes || host.last < inner.first || inner.last < host.first) continue;
        const int64_t begin = places_[t].offset - places_[static_cast<size_t>(h)].offset;
        if (begin >= 0 && begin + inner.bytes <= host.bytes && places_[static_cast<size_t>(h)].buffer >= 0) inner.nested_in = h;
      }
      news = news || inner.nested_in != before;
    }
    return news;
  }
  // Makes an arrangement the one that place() works with.
  void use(const Arrangement& a) {
    parents_ = views_, shifts_ = view_shifts_;
    use_order(a.order);
    chains_ = a.chains, in_place_ = a.in_place;
    share_in_place();
  }
  void measure(Arrangement* a) {
    const std::vector<MapFacts> maps = maps_;
    use(*a);
    std::vector<int64_t> scratch;
    for (size_t s = 0; s < order_.size(); ++s) scratch.push_back(step(s).facts->scratch);
    a->bytes = place(scratch);
    parents_ = views_, shifts_ = view_shifts_;
    maps_ = maps;
  }

  // Of two chains that read one map, the one that writes more comes last, with all that depends on it, or behind all: the map can then
  // lie where that output will be.
  std::vector<std::vector<int32_t>> with_large_output_last(const Arrangement& a) {
    use_order(a.order);
    std::vector<std::vector<int32_t>> orders;
    const auto written_bytes = [&](const Tiling& chain) {
      int64_t most = 0;
      for (int32_t s = chain.first; s <= chain.last; ++s)
        for (int32_t t : step(static_cast<size_t>(s)).outputs) most = std::max(most, bytes_of(t));
      return most;
    };
    const auto reads = [&](const Tiling& chain, int32_t t) {
      for (int32_t s = chain.first; s <= chain.last; ++s)
        for (int32_t in : step(static_cast<size_t>(s)).inputs)
          if (in == t) return true;
      return false;
    };
    for (const Tiling& last : a.chains)
      for (int32_t s = last.first; s <= last.last; ++s)
        for (int32_t x : step(static_cast<size_t>(s)).inputs) {
          if (x < 0 || maps_[static_cast<size_t>(x)].bytes == 0 || maps_[static_cast<size_t>(x)].last > last.last || maps_[static_cast<size_t>(x)].is_lasting) continue;
          for (const Tiling& earlier : a.chains) {
            if (earlier.first >= last.first || !reads(earlier, x) || written_bytes(earlier) <= written_bytes(last)) continue;
            for (const int32_t to : {last.last, static_cast<int32_t>(order_.size()) - 1})
              if (std::vector<int32_t> order = moved_behind(earlier.first, to); !order.empty()) orders.push_back(std::move(order));
          }
        }
    return orders;
  }
  // The order in which the step at position `from`, and all up to `to` that depend on it, come behind `to`. Empty: step `to` is one of them.
  std::vector<int32_t> moved_behind(int32_t from, int32_t to) const {
    std::vector<char> tainted(tensors_.size(), 0);
    std::vector<int32_t> stay, move;
    for (int32_t s = from; s <= to; ++s) {
      bool depends = s == from;
      for (int32_t t : step(static_cast<size_t>(s)).inputs)
        if (t >= 0) depends = depends || tainted[static_cast<size_t>(t)];
      if (depends && ((s == to && to + 1 < static_cast<int32_t>(order_.size())) || step(static_cast<size_t>(s)).stays)) return {};
      (depends ? move : stay).push_back(order_[static_cast<size_t>(s)]);
      if (depends)
        for (int32_t t : step(static_cast<size_t>(s)).outputs) taint(t, &tainted);
    }
    if (stay.empty()) return {};
    std::vector<int32_t> order(order_.begin(), order_.begin() + from);
    order.insert(order.end(), stay.begin(), stay.end());
    order.insert(order.end(), move.begin(), move.end());
    order.insert(order.end(), order_.begin() + to + 1, order_.end());
    return order;
  }
  // Tensor t, and all whose bytes are among its own or hold them.
  void taint(int32_t t, std::vector<char>* tainted) const {
    const int32_t root = find(t);
    const int64_t begin = shift(t), end = begin + bytes_of(t);
    for (size_t u = 0; u < tensors_.size(); ++u) {
      const auto other = static_cast<int32_t>(u);
      if (find(other) == root && shift(other) < end && begin < shift(other) + bytes_of(other)) (*tainted)[u] = 1;
    }
  }

  void share_in_place() {
    for (const Tiling::InPlace& pair : in_place_) {
      const int32_t from = find(pair.from);
      if (from == find(pair.to)) continue;
      parents_[static_cast<size_t>(from)] = pair.to, shifts_[static_cast<size_t>(from)] = 0;
    }
  }

  OrderGraph order_graph() const {
    OrderGraph graph;
    const auto n = tensors_.size();
    graph.bytes.assign(n, 0), graph.from_start.assign(n, 0), graph.to_end.assign(n, 0);
    for (size_t t = 0; t < n; ++t) {
      if (!tensors_[t].in_arena) continue;
      const auto root = static_cast<size_t>(find(static_cast<int32_t>(t)));
      graph.bytes[root] = std::max(graph.bytes[root], tensors_[t].bytes);
      if (tensors_[t].is_input) graph.from_start[root] = graph.to_end[root] = 1;
      if (tensors_[t].is_output || tensors_[t].is_kept) graph.to_end[root] = 1;
    }
    // Each chain is one step of the search, so that it stays together; its windows are scratch.
    std::vector<int32_t> chain_of(file_order_.size(), -1);
    std::vector<char> inside(n, 0);
    for (size_t c = 0; c < chains_.size(); ++c) {
      std::fill(chain_of.begin() + chains_[c].first, chain_of.begin() + chains_[c].last + 1, static_cast<int32_t>(c));
      for (const Tiling::Window& window : chains_[c].windows)
        for (int32_t t : window.maps) inside[static_cast<size_t>(t)] = 1;
    }
    struct Piece { int64_t begin, end; int32_t step; };
    std::vector<std::vector<Piece>> written(n);
    const auto in_arena = [&](int32_t t) { return t >= 0 && tensors_[static_cast<size_t>(t)].in_arena; };
    int32_t last_that_stays = -1;
    for (size_t position = 0; position < file_order_.size(); ++position) {
      const LayoutStep& step = steps_[static_cast<size_t>(file_order_[position])];
      const int32_t chain = chain_of[position];
      if (position == 0 || chain < 0 || chain != chain_of[position - 1]) {
        graph.steps.emplace_back();
        if (chain >= 0)
          for (const Tiling::Window& window : chains_[static_cast<size_t>(chain)].windows) {
            const LayoutTensor& map = tensors_[static_cast<size_t>(window.maps[0])];
            graph.steps.back().scratch += window.rows * (map.bytes / map.rows);
          }
      }
      const auto index = static_cast<int32_t>(graph.steps.size()) - 1;
      OrderGraph::Step& node = graph.steps.back();
      node.numbers.push_back(file_order_[position]);
      if (chain < 0) node.scratch = step.facts->scratch;
      for (int32_t t : step.inputs) {
        if (!in_arena(t)) continue;
        const int64_t begin = shift(t), end = begin + bytes_of(t);
        for (const Piece& piece : written[static_cast<size_t>(find(t))])
          if (piece.begin < end && begin < piece.end && piece.step != index) node.after.push_back(piece.step);
        if (!inside[static_cast<size_t>(t)]) node.touches.push_back(find(t));
      }
      for (int32_t t : step.outputs) {
        if (!in_arena(t)) continue;
        written[static_cast<size_t>(find(t))].push_back({shift(t), shift(t) + bytes_of(t), index});
        if (!inside[static_cast<size_t>(t)]) node.touches.push_back(find(t));
      }
      for (const StepFacts::InPlace& pair : step.facts->in_place) {
        const int32_t from = step.inputs[static_cast<size_t>(pair.in)], to = step.outputs[static_cast<size_t>(pair.out)];
        if (chain < 0 && in_arena(from) && in_arena(to) && bytes_of(find(from)) == bytes_of(to) && bytes_of(find(to)) == bytes_of(to)) node.in_place.push_back({find(from), find(to)});
      }
      if (step.stays) {
        if (last_that_stays >= 0 && last_that_stays != index) node.after.push_back(last_that_stays);
        last_that_stays = index;
      }
    }
    for (OrderGraph::Step& node : graph.steps)
      for (std::vector<int32_t>* list : {&node.after, &node.touches}) {
        std::sort(list->begin(), list->end());
        list->erase(std::unique(list->begin(), list->end()), list->end());
      }
    return graph;
  }

  std::vector<LayoutTensor> tensors_;
  std::vector<LayoutStep> steps_;
  std::vector<int32_t> parents_, views_;
  std::vector<int64_t> shifts_, view_shifts_;
  std::vector<int32_t> file_order_, order_;
  std::vector<MapFacts> maps_;
  std::vector<MapStep> map_steps_;
  std::vector<Tiling> chains_;
  std::vector<Tiling::InPlace> in_place_;
  std::vector<ArenaItem> items_;
  std::vector<Place> places_;
  size_t first_scratch_ = 0;
  int64_t arena_bytes_ = 0;
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_LAYOUT_H
