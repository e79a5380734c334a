// Matrix products of float activations with float or half weights that are read where they lie: each output
// channel's weights are contiguous along the reduction. Included once per target.
//
// Few rows: dot products straight on the weights. Many rows: the weights of some channels are transposed and widened
// into panels in scratch, used for all rows, and thrown away. Each element of the result is one fixed sequence of
// multiply-adds, which depends on the operator's shape only, never on how its rows are divided among calls.
#if defined(ONEWEIGHT_SIMD_PRODUCT_FLOAT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_PRODUCT_FLOAT_INL_H
#undef ONEWEIGHT_SIMD_PRODUCT_FLOAT_INL_H
#else
#define ONEWEIGHT_SIMD_PRODUCT_FLOAT_INL_H
#endif

#include <algorithm>
#include <type_traits>

#include "oneweight/simd/activation-inl.h"
#include "oneweight/simd/keep-inl.h"
#include "oneweight/simd/pack-inl.h"
#include "oneweight/simd/prefetch.h"
#include "oneweight/simd/product.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of a register tile; the tile is two vectors of channels wide.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
inline constexpr int kTileRows = 14;
#elif HWY_TARGET_IS_NEON || HWY_HAVE_SCALABLE
inline constexpr int kTileRows = 12;
#else
inline constexpr int kTileRows = 6;
#endif
// Elements between gathered rows, which often have a power of two: all of a tile would lie in the same few sets of the cache.
inline constexpr int64_t kPatchPad = 16;
// Whether the rows of a tile, `stride` floats apart, share sets of the first-level cache, so that they should be copied.
inline bool rows_collide(int64_t stride) { return stride > 0 && stride % 1024 == 0; }
// Rows that share one reading of the weights in dot products.
inline constexpr int kDotRows = 4;

// clamp(v, low, high) with NaN in, NaN out.
template <class D>
HWY_INLINE hn::Vec<D> clamp_keep_nan(D d, hn::Vec<D> v, float low, float high) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Min(hn::Set(d, high), hn::Max(hn::Set(d, low), v));  // the second operand where one is NaN
#else
  return clamp_keep_nan(d, v, hn::Set(d, low), hn::Set(d, high));
#endif
}
// The first part of the activation of e, for results that finish_row() will finish if there is more.
template <class D>
HWY_INLINE hn::Vec<D> clamp_sums(D d, hn::Vec<D> v, const Epilogue& e) {
  return e.clamps ? clamp_keep_nan(d, v, e.low, e.high) : v;
}

template <FusedActivation::After kAfter, bool kClamps>
HWY_INLINE void finish_row_as(float* row, int64_t channels, const float* bias, const Epilogue& e) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto finish = [&](auto v) HWY_ATTR {
    if constexpr (kClamps) v = clamp_keep_nan(d, v, e.low, e.high);
    return activate_after<kAfter>(d, v);
  };
  int64_t n = 0;
  if (bias) {
    for (; n + lanes <= channels; n += lanes) hn::StoreU(finish(hn::Add(hn::LoadU(d, row + n), load_widened(d, bias + n))), d, row + n);
  } else {
    for (; n + lanes <= channels; n += lanes) hn::StoreU(finish(hn::LoadU(d, row + n)), d, row + n);
  }
  if (n == channels) return;
  const size_t count = static_cast<size_t>(channels - n);
  auto v = hn::LoadN(d, row + n, count);
  if (bias) v = hn::Add(v, load_widened_n(d, bias + n, count));
  hn::StoreN(finish(v), d, row + n, count);
}
// Adds the bias (or none) and applies e's activation to sums in memory.
inline HWY_NOINLINE void finish_row(float* row, int64_t channels, const float* bias, const Epilogue& e) {
  if (!bias && !e.active()) return;
  with_activation(e.after, [&](auto after) HWY_ATTR {
    constexpr FusedActivation::After kAfter = decltype(after)::value;
    if (e.clamps) finish_row_as<kAfter, true>(row, channels, bias, e);
    else finish_row_as<kAfter, false>(row, channels, bias, e);
  });
}

// ---- Panels

// What one call of product_tile works on.
struct TileArgs {
  const float* const* rows;   // [segment * kTileRows + row]: where the row's activations of a segment begin
  int64_t first_length;       // activations taken from segment 0
  int64_t segment_length;     // and from each later one
  int64_t count;              // activations in all
  const float* panel;         // [count][width of its PanelShape]
  const float* bias;          // whole vectors; null: the sums so far are in `out`
  float* out;
  int64_t out_stride;
  size_t channels;            // of the panel's that exist
  const Epilogue* epilogue;   // null: more terms follow
};

#define ONEWEIGHT_TILE_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)

#if !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR
inline constexpr bool kHasHalves = hn::MaxLanes(FloatTag()) >= 8;
using HalfFloatTag = std::conditional_t<kHasHalves, hn::Half<FloatTag>, FloatTag>;
#else
inline constexpr bool kHasHalves = false;
using HalfFloatTag = FloatTag;
#endif
template <bool kHalf, class D, class V>
HWY_INLINE hn::Vec<D> lower_half([[maybe_unused]] D half, V v) {
  if constexpr (kHalf) return hn::LowerHalf(half, v);
  else return v;
}

// The vectors of a panel of `channels` channels, of which there may be more.
struct PanelShape {
  bool two, half;  // two vectors; the last one is half a vector
  explicit PanelShape(int64_t channels) {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
    two = channels > lanes;
    half = kHasHalves && (two ? channels - lanes : channels) <= lanes / 2;
  }
  int64_t width() const {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
    return (two ? lanes : 0) + (half ? lanes / 2 : lanes);
  }
};

// kRows rows times one or two vectors of channels, the last one perhaps half a vector.
template <int kRows, bool kTwo, bool kHalf>
HWY_NOINLINE void product_tile(const TileArgs& t) {
  using LastTag = std::conditional_t<kHalf, HalfFloatTag, FloatTag>;
  using FirstTag = std::conditional_t<kTwo, FloatTag, LastTag>;
  const FirstTag d;
  const LastTag dl;
  using V = hn::Vec<FirstTag>;
  using L = hn::Vec<LastTag>;
  const size_t lanes = hn::Lanes(d), width = (kTwo ? lanes : 0) + hn::Lanes(dl);
  const bool whole = t.channels == width;
  const size_t last = kTwo ? t.channels - lanes : t.channels;  // channels in the last vector

#define ONEWEIGHT_TILE_DECLARE(r) V x##r = hn::Zero(d); [[maybe_unused]] L y##r = hn::Zero(dl);
  ONEWEIGHT_TILE_ROWS(ONEWEIGHT_TILE_DECLARE)
#undef ONEWEIGHT_TILE_DECLARE
  if (t.bias != nullptr) {
    const V b0 = hn::LoadU(d, t.bias);
    const L b1 = hn::LoadU(dl, kTwo ? t.bias + lanes : t.bias);
#define ONEWEIGHT_TILE_BIAS(r) \
  if constexpr (r < kRows) x##r = b0, y##r = b1;
    ONEWEIGHT_TILE_ROWS(ONEWEIGHT_TILE_BIAS)
#undef ONEWEIGHT_TILE_BIAS
  } else {
    const float* from = t.out;
#define ONEWEIGHT_TILE_RELOAD(r)                                                         \
  if constexpr (r < kRows) {                                                             \
    if constexpr (kTwo) {                                                                \
      x##r = hn::LoadU(d, from);                                                         \
      y##r = whole ? hn::LoadU(dl, from + lanes) : hn::LoadN(dl, from + lanes, last);    \
    } else {                                                                             \
      x##r = whole ? hn::LoadU(d, from) : hn::LoadN(d, from, last);                      \
    }                                                                                    \
    from += t.out_stride;                                                                \
  }
    ONEWEIGHT_TILE_ROWS(ONEWEIGHT_TILE_RELOAD)
#undef ONEWEIGHT_TILE_RELOAD
  }

  const float* panel = t.panel;
  const float* const* rows = t.rows;
  int64_t length = t.first_length;
  for (int64_t done = 0; done < t.count;) {
    if (length > t.count - done) length = t.count - done;
#define ONEWEIGHT_TILE_POINTER(r) [[maybe_unused]] const float* p##r = rows[r < kRows ? r : 0];
    ONEWEIGHT_TILE_ROWS(ONEWEIGHT_TILE_POINTER)
#undef ONEWEIGHT_TILE_POINTER
#define ONEWEIGHT_TILE_STEP(r)                                                     \
  if constexpr (r < kRows) {                                                       \
    const V a = hn::Set(d, p##r[k]);                                               \
    x##r = hn::MulAdd(a, b0, x##r);                                                \
    if constexpr (kTwo) y##r = hn::MulAdd(lower_half<kHalf>(dl, a), b1, y##r);     \
  }
    for (int64_t k = 0; k < length; ++k) {
      const V b0 = hn::LoadU(d, panel);
      [[maybe_unused]] const L b1 = hn::LoadU(dl, kTwo ? panel + lanes : panel);
      panel += width;
      ONEWEIGHT_TILE_ROWS(ONEWEIGHT_TILE_STEP)
    }
#undef ONEWEIGHT_TILE_STEP
    done += length;
    length = t.segment_length;
    rows += kTileRows;
  }

  const bool in_memory = t.epilogue != nullptr && t.epilogue->after != FusedActivation::none;
  if (t.epilogue != nullptr && t.epilogue->clamps && !in_memory) {
    const float low = t.epilogue->low, high = t.epilogue->high;
#define ONEWEIGHT_TILE_CLAMP(r)                                          \
  if constexpr (r < kRows) {                                             \
    x##r = clamp_keep_nan(d, x##r, low, high);                           \
    if constexpr (kTwo) y##r = clamp_keep_nan(dl, y##r, low, high);       \
  }
    ONEWEIGHT_TILE_ROWS(ONEWEIGHT_TILE_CLAMP)
#undef ONEWEIGHT_TILE_CLAMP
  }

  float* to = t.out;
#define ONEWEIGHT_TILE_STORE(r)                                \
  if constexpr (r < kRows) {                                   \
    if constexpr (kTwo) {                                      \
      hn::StoreU(x##r, d, to);                                 \
      if (whole) hn::StoreU(y##r, dl, to + lanes);             \
      else hn::StoreN(y##r, dl, to + lanes, last);             \
    } else {                                                   \
      if (whole) hn::StoreU(x##r, d, to);                      \
      else hn::StoreN(x##r, d, to, last);                      \
    }                                                          \
    to += t.out_stride;                                        \
  }
  ONEWEIGHT_TILE_ROWS(ONEWEIGHT_TILE_STORE)
#undef ONEWEIGHT_TILE_STORE
  if (in_memory)
    for (int r = 0; r < kRows; ++r) finish_row(t.out + r * t.out_stride, static_cast<int64_t>(t.channels), nullptr, *t.epilogue);
}
#undef ONEWEIGHT_TILE_ROWS

// The tile for `rows` rows, rows being one of tile_rows()'s answers.
template <bool kTwo>
HWY_INLINE void run_whole_tile(int rows, const TileArgs& t) {
  switch (rows) {
    case 1: return product_tile<1, kTwo, false>(t);
    case 2: return product_tile<2, kTwo, false>(t);
    case 3: return product_tile<3, kTwo, false>(t);
    case 4: return product_tile<4, kTwo, false>(t);
    case 5: return product_tile<5, kTwo, false>(t);
    case 6: return product_tile<6, kTwo, false>(t);
    default: break;
  }
  if constexpr (kTileRows > 6) {
    switch (rows) {
      case 7: return product_tile<7, kTwo, false>(t);
      case 8: return product_tile<8, kTwo, false>(t);
      case 10: return product_tile<10, kTwo, false>(t);
      case 12: return product_tile<12, kTwo, false>(t);
      default: return product_tile<kTileRows, kTwo, false>(t);
    }
  }
}
// With half a vector at the end: few sizes of tiles, one after the other.
template <bool kTwo>
HWY_INLINE void run_half_tile(int rows, TileArgs t) {
  while (rows > 0) {
    const int done = rows >= kTileRows ? kTileRows : rows >= 4 ? 4 : 1;
    if (done == kTileRows) product_tile<kTileRows, kTwo, kHasHalves>(t);
    else if (done == 4) product_tile<4, kTwo, kHasHalves>(t);
    else product_tile<1, kTwo, kHasHalves>(t);
    t.rows += done;
    t.out += done * t.out_stride;
    rows -= done;
  }
}
HWY_INLINE void run_tile(const PanelShape& shape, int rows, const TileArgs& t) {
  if (shape.half) shape.two ? run_half_tile<true>(rows, t) : run_half_tile<false>(rows, t);
  else shape.two ? run_whole_tile<true>(rows, t) : run_whole_tile<false>(rows, t);
}

// Rows of the next tile when `left` are to be done.
inline int tile_rows(int64_t left) {
  if (left >= kTileRows) return kTileRows;
  const int n = static_cast<int>(left);
  return n <= 8 ? n : n / 2 * 2;
}

// How many channels and terms are packed at one time. Divides the work only; no result depends on it.
struct PanelPlan {
  int64_t channels = 0;  // whole panels
  int64_t terms = 0;
};
inline PanelPlan plan_panels(int64_t rows, int64_t channels, int64_t terms, bool patches) {
  constexpr int64_t kFloats = kCacheBytes / 4;
  constexpr int64_t kTerms = 512;
  const int64_t width = 2 * static_cast<int64_t>(hn::Lanes(FloatTag()));
  const int64_t all = (channels + width - 1) / width * width;
  PanelPlan plan{all, std::max(terms, int64_t{1})};
  const bool rows_stay = rows * std::min(terms, kTerms) <= kFloats;  // in the second-level cache
  if (all * terms > kFloats || rows_stay) {
    const int64_t blocks = (terms + kTerms - 1) / kTerms;
    if (blocks > 1) plan.terms = ((terms + blocks - 1) / blocks + 3) / 4 * 4;
    const int64_t fits = rows_stay ? (patches ? 4 : 1) * width : std::max(kFloats / plan.terms / width, int64_t{1}) * width;
    const int64_t groups = (all + fits - 1) / fits;
    plan.channels = ((all + groups - 1) / groups + width - 1) / width * width;
  }
  return plan;
}

// Entries of a table of segments for `terms` terms that may begin inside one.
inline int64_t table_entries(int64_t terms, int64_t segment_length) {
  return (terms / std::max(segment_length, int64_t{1}) + 2) * kTileRows;
}

// Scratch of product_panels. patches: the source may gather rows.
inline int64_t panels_scratch_bytes(const PanelPlan& plan, int64_t segment_length, bool patches) {
  int64_t bytes = plan.channels * (plan.terms + 1) * static_cast<int64_t>(sizeof(float));
  bytes += table_entries(plan.terms, segment_length) * static_cast<int64_t>(sizeof(float*));
  if (patches) bytes += kTileRows * (plan.terms + kPatchPad) * static_cast<int64_t>(sizeof(float));
  return bytes;
}

// The weights of channel n along the reduction: w[n * stride + k].
template <class W>
struct ChannelWeights {
  const W* w;
  int64_t stride;
  // panel[k - k0][c] of the channels from n on, of which `left` (at least 1) exist. Half a vector is written as a whole one,
  // whose second half the next row or the first vector overwrites; behind the last row there is room.
  void pack(int64_t n, int64_t left, int64_t k0, int64_t count, const PanelShape& shape, float* panel) const {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag())), width = shape.width();
    const W* rows[2 * kMaxFloatLanes];
    panel_rows(w + n * stride + k0, stride, left, shape.two ? 2 * lanes : lanes, rows);
    if (shape.two) pack_vector(rows + lanes, count, panel + lanes, width);
    pack_vector(rows, count, panel, width);
  }
};

// The weights of term k along the channels: w[k * stride + n].
template <class W>
struct TermWeights {
  const W* w;
  int64_t stride;
  void pack(int64_t n, int64_t left, int64_t k0, int64_t count, const PanelShape& shape, float* panel) const {
    const FloatTag d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), behind = shape.two ? left - lanes : left;
    const W* from = w + k0 * stride + n;
    for (int64_t k = 0; k < count; ++k, from += stride) {
      if (shape.two) hn::StoreU(load_widened(d, from), d, panel), panel += lanes;
      const W* last = shape.two ? from + lanes : from;
      hn::StoreU(behind >= lanes ? load_widened(d, last) : load_widened_n(d, last, static_cast<size_t>(behind)), d, panel);
      panel += shape.half ? lanes / 2 : lanes;
    }
  }
};

// Where the rows of a product go: `stride` elements apart.
struct EvenRows {
  float* out;
  int64_t stride;
  float* at(int64_t row) const { return out + row * stride; }
  int64_t together(int64_t) const { return int64_t{1} << 40; }  // from `row` on, that lie `stride` apart
};

// place(row)[n] = activation(bias[n] + sum over k of a[row][k] * w[n][k]) for rows [begin, end) and n < channels.
// `source` finds activations: source.locate(row, rows, k0, k1, patch, table, &first_length) fills the table of
// TileArgs for terms [k0, k1); source.segment_length() is the length of whole segments; Source::kGathers tells whether
// it may write gathered rows to patch. `weights` packs panels.
template <class Weights, class Source, class Place>
void product_panels(const Source& source, int64_t begin, int64_t end, const Weights& weights, int64_t channels, int64_t terms,
                    const Place& place, const Epilogue& e, const PanelPlan& plan, std::byte* scratch) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag())), width = 2 * lanes;
  float* const panels = reinterpret_cast<float*>(scratch);
  float* const bias = panels + plan.channels * plan.terms;
  const float** const table = reinterpret_cast<const float**>(bias + plan.channels);
  float* const patch = reinterpret_cast<float*>(table + table_entries(plan.terms, source.segment_length()));
  for (int64_t n0 = 0; n0 < channels; n0 += plan.channels) {
    const int64_t n1 = std::min(channels, n0 + plan.channels);
    for (int64_t n = n0; n < n0 + plan.channels; ++n) bias[n - n0] = e.bias && n < n1 ? widen_one(e.bias + n) : 0.0f;
    for (int64_t k0 = 0; k0 < terms || k0 == 0; k0 += plan.terms) {
      const int64_t count = std::min(plan.terms, terms - k0);
      TileArgs t;
      t.rows = table;
      t.count = count;
      t.segment_length = source.segment_length();
      t.out_stride = place.stride;
      t.epilogue = k0 + count == terms ? &e : nullptr;
      for (int64_t m = begin; m < end;) {
        const bool first = m == begin;
        const int rows = tile_rows(std::min(end - m, place.together(m)));
        source.locate(m, rows, k0, k0 + count, patch, table, &t.first_length);
        float* const out = place.at(m);
        for (int64_t n = n0; n < n1; n += width) {
          const PanelShape shape(n1 - n);
          float* const panel = panels + (n - n0) * count;
          t.panel = panel;
          t.bias = k0 == 0 ? bias + (n - n0) : nullptr;
          t.out = out + n;
          t.channels = static_cast<size_t>(std::min(n1 - n, width));
          if (first) weights.pack(n, n1 - n, k0, count, shape, panel);
          run_tile(shape, rows, t);
        }
        m += rows;
      }
    }
  }
}
// Weights of `terms` elements a channel, one channel after another; rows `out_stride` apart.
template <class W, class Source>
void product_panels(const Source& source, int64_t begin, int64_t end, const W* w, int64_t channels, int64_t terms, float* out,
                    int64_t out_stride, const Epilogue& e, const PanelPlan& plan, std::byte* scratch) {
  product_panels(source, begin, end, ChannelWeights<W>{w, terms}, channels, terms, EvenRows{out, out_stride}, e, plan, scratch);
}

// ---- Dot products

// What one call of dot_rows works on.
struct DotArgs {
  const float* const* rows;   // [segment * kTileRows + row], as in TileArgs
  int64_t segment_length;
  int64_t terms;
  int64_t channels;
  float* out;
  int64_t out_stride;
};

// to[i] = the sum of the lanes of s_i for i < count, in one order for all.
template <class V>
HWY_INLINE void store_sums(V s0, V s1, V s2, V s3, size_t count, float* to) {
  [[maybe_unused]] const FloatTag d;
#if HWY_TARGET == HWY_SCALAR
  const float sums[4] = {hn::GetLane(s0), hn::GetLane(s1), hn::GetLane(s2), hn::GetLane(s3)};
  for (size_t i = 0; i < count; ++i) to[i] = sums[i];
#elif HWY_HAVE_SCALABLE
  const float sums[4] = {hn::ReduceSum(d, s0), hn::ReduceSum(d, s1), hn::ReduceSum(d, s2), hn::ReduceSum(d, s3)};
  for (size_t i = 0; i < count; ++i) to[i] = sums[i];
#else
  const hn::Repartition<double, FloatTag> dd;
  const auto a = hn::BitCast(dd, hn::Add(hn::InterleaveLower(d, s0, s1), hn::InterleaveUpper(d, s0, s1)));
  const auto b = hn::BitCast(dd, hn::Add(hn::InterleaveLower(d, s2, s3), hn::InterleaveUpper(d, s2, s3)));
  const auto sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(dd, a, b)), hn::BitCast(d, hn::InterleaveUpper(dd, a, b)));
  const hn::FixedTag<float, 4> d4;
  if constexpr (hn::MaxLanes(FloatTag()) == 4) {
    hn::StoreN(sums, d4, to, count);
  } else {
    const hn::Half<FloatTag> dh;
    const auto half_sums = hn::Add(hn::LowerHalf(dh, sums), hn::UpperHalf(dh, sums));
    if constexpr (hn::MaxLanes(FloatTag()) == 8) {
      hn::StoreN(half_sums, d4, to, count);
    } else {
      hn::StoreN(hn::Add(hn::LowerHalf(d4, half_sums), hn::UpperHalf(d4, half_sums)), d4, to, count);
    }
  }
#endif
}

// Sums of kRows rows and kChannels channels, one vector each. The lanes are dealt out anew in each segment.
// kFetches: also fetches the weights of the next channels into the cache.
template <int kRows, int kChannels, bool kFetches, class W>
HWY_INLINE void dot_tile(const DotArgs& t, const W* w, float* sums) {
  const FloatTag d;
  using V = hn::Vec<FloatTag>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), terms = t.terms, stride = t.out_stride;
#define ONEWEIGHT_DOT_CHANNELS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define ONEWEIGHT_DOT_DECLARE(n) V s##n##_0 = hn::Zero(d), s##n##_1 = s##n##_0, s##n##_2 = s##n##_0, s##n##_3 = s##n##_0;
  ONEWEIGHT_DOT_CHANNELS(ONEWEIGHT_DOT_DECLARE)
#undef ONEWEIGHT_DOT_DECLARE
#define ONEWEIGHT_DOT_STEP(n)                                                   \
  if constexpr (n < kChannels) {                                                \
    V b = load(w + n * terms + k);                                              \
    if constexpr (kFetches) prefetch_later(w + (n + kChannels) * terms + k);    \
    if constexpr (kRows > 1) keep_in_register(b);                               \
    s##n##_0 = hn::MulAdd(v0, b, s##n##_0);                                     \
    if constexpr (kRows > 1) s##n##_1 = hn::MulAdd(v1, b, s##n##_1);            \
    if constexpr (kRows > 2) s##n##_2 = hn::MulAdd(v2, b, s##n##_2);            \
    if constexpr (kRows > 3) s##n##_3 = hn::MulAdd(v3, b, s##n##_3);            \
  }
  const float* const* rows = t.rows;
  for (int64_t left = terms; left > 0; left -= t.segment_length) {
    const int64_t length = t.segment_length;
    const float* HWY_RESTRICT a0 = rows[0];
    [[maybe_unused]] const float* HWY_RESTRICT a1 = rows[kRows > 1 ? 1 : 0];
    [[maybe_unused]] const float* HWY_RESTRICT a2 = rows[kRows > 2 ? 2 : 0];
    [[maybe_unused]] const float* HWY_RESTRICT a3 = rows[kRows > 3 ? 3 : 0];
    rows += kTileRows;
    int64_t k = 0;
    for (; k + lanes <= length; k += lanes) {
      const V v0 = hn::LoadU(d, a0 + k);
      [[maybe_unused]] const V v1 = kRows > 1 ? hn::LoadU(d, a1 + k) : v0;
      [[maybe_unused]] const V v2 = kRows > 2 ? hn::LoadU(d, a2 + k) : v0;
      [[maybe_unused]] const V v3 = kRows > 3 ? hn::LoadU(d, a3 + k) : v0;
      const auto load = [d](const W* from) HWY_ATTR { return load_widened(d, from); };
      ONEWEIGHT_DOT_CHANNELS(ONEWEIGHT_DOT_STEP)
    }
    if (k < length) {
      const size_t rest = static_cast<size_t>(length - k);
      const V v0 = hn::LoadN(d, a0 + k, rest);
      [[maybe_unused]] const V v1 = kRows > 1 ? hn::LoadN(d, a1 + k, rest) : v0;
      [[maybe_unused]] const V v2 = kRows > 2 ? hn::LoadN(d, a2 + k, rest) : v0;
      [[maybe_unused]] const V v3 = kRows > 3 ? hn::LoadN(d, a3 + k, rest) : v0;
      const auto load = [d, rest](const W* from) HWY_ATTR { return load_widened_n(d, from, rest); };
      ONEWEIGHT_DOT_CHANNELS(ONEWEIGHT_DOT_STEP)
    }
    w += length;
  }
#undef ONEWEIGHT_DOT_STEP
#define ONEWEIGHT_DOT_STORE(r)                                                                     \
  if constexpr (r < kRows) {                                                                      \
    store_sums(s0_##r, s1_##r, s2_##r, s3_##r, kChannels < 4 ? kChannels : 4, sums + r * stride);  \
    if constexpr (kChannels > 4)                                                                  \
      store_sums(s4_##r, s5_##r, s6_##r, s7_##r, kChannels - 4, sums + r * stride + 4);            \
  }
  ONEWEIGHT_DOT_STORE(0)
  ONEWEIGHT_DOT_STORE(1)
  ONEWEIGHT_DOT_STORE(2)
  ONEWEIGHT_DOT_STORE(3)
#undef ONEWEIGHT_DOT_STORE
#undef ONEWEIGHT_DOT_CHANNELS
}

// All channels of kRows rows.
template <int kRows, bool kFetches, class W>
HWY_NOINLINE void dot_rows(const DotArgs& t, const W* w) {
  constexpr bool kManyRegisters = kTileRows > 6;
  constexpr int kFew = kFetches || sizeof(W) == 2 ? 8 : 4;  // streams that do not fit the cache's ways, or do
  constexpr int kBlock = kRows == 1 ? kFew : kRows == 2 ? (kManyRegisters ? 8 : 4) : kManyRegisters ? (kRows == 3 ? 8 : 6) : 2;
  int64_t n = 0;
  for (; n + kBlock <= t.channels; n += kBlock) dot_tile<kRows, kBlock, kFetches>(t, w + n * t.terms, t.out + n);
  if constexpr (kBlock > 4)
    if (n + 4 <= t.channels) dot_tile<kRows, 4, kFetches>(t, w + n * t.terms, t.out + n), n += 4;
  for (; n < t.channels; ++n) dot_tile<kRows, 1, false>(t, w + n * t.terms, t.out + n);
}

// Rows worked on at once: fewer where gathered rows would take much scratch.
inline int64_t dot_tile_rows(int64_t terms, bool patches) {
  constexpr int64_t kBytes = static_cast<int64_t>(sizeof(float));
  return patches ? std::clamp(kCacheBytes / kBytes / (terms + 1), int64_t{1}, int64_t{kDotRows}) : kDotRows;
}

// Scratch of product_dots.
inline int64_t dots_scratch_bytes(int64_t terms, int64_t segment_length, bool patches) {
  return table_entries(terms, segment_length) * static_cast<int64_t>(sizeof(float*)) +
         (patches ? dot_tile_rows(terms, true) * (terms + kPatchPad) * static_cast<int64_t>(sizeof(float)) : 0);
}

// As product_panels, on weights of `terms` elements a channel, one after another; terms is a multiple of the source's
// segment length.
template <class W, class Source, class Place>
void product_dots(const Source& source, int64_t begin, int64_t end, const W* w, int64_t channels, int64_t terms, const Place& place,
                  const Epilogue& e, std::byte* scratch) {
  // Channels whose weights stay in the second-level cache for all rows.
  const int64_t block = std::max(kCacheBytes / (terms + 1) / static_cast<int64_t>(sizeof(W)) / 24, int64_t{1}) * 24;
  // Weights that do not stay in the second-level cache from run to run.
  const bool streams = channels * terms > (int64_t{1} << 18) / static_cast<int64_t>(sizeof(W));
  DotArgs t;
  t.segment_length = std::max(source.segment_length(), int64_t{1});
  t.terms = terms;
  t.out_stride = place.stride;
  const int64_t most_rows = dot_tile_rows(terms, Source::kGathers);
  const float** const table = reinterpret_cast<const float**>(scratch);
  float* const patch = reinterpret_cast<float*>(table + table_entries(terms, t.segment_length));
  t.rows = table;
  for (int64_t n = 0; n < channels; n += block) {
    t.channels = std::min(block, channels - n);
    const float* bias = e.bias ? e.bias + n : nullptr;
    const W* from = w + n * terms;
    for (int64_t m = begin; m < end;) {
      const int rows = static_cast<int>(std::min(std::min(most_rows, end - m), place.together(m)));
      int64_t first_length;
      source.locate(m, rows, 0, terms, patch, table, &first_length);
      t.out = place.at(m) + n;
      if (rows == 1) streams ? dot_rows<1, true>(t, from) : dot_rows<1, false>(t, from);
      if (rows == 2) dot_rows<2, false>(t, from);
      if (rows == 3) dot_rows<3, false>(t, from);
      if (rows == 4) dot_rows<4, false>(t, from);
      for (int r = 0; r < rows; ++r) finish_row(t.out + r * place.stride, t.channels, bias, e);
      m += rows;
    }
  }
}
template <class W, class Source>
void product_dots(const Source& source, int64_t begin, int64_t end, const W* w, int64_t channels, int64_t terms, float* out,
                  int64_t out_stride, const Epilogue& e, std::byte* scratch) {
  product_dots(source, begin, end, w, channels, terms, EvenRows{out, out_stride}, e, scratch);
}

// Whether dot products are faster for a product of this shape (of the whole operator, not of a band of it).
inline bool prefers_dots(int64_t rows, int64_t channels, int64_t terms, int64_t segment_length) {
  if (HWY_TARGET == HWY_SCALAR || rows < 8) return true;
  if (kTileRows == 14 && rows <= 64 && segment_length >= 256) return true;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  if (segment_length < lanes || channels >= lanes) return false;
  // Vector operations for one row: what loads cost, and the sum over the lanes, against whole vectors of channels.
  const int64_t dots = channels * (terms / segment_length * ((segment_length + lanes - 1) / lanes) * 3 / 2 + 10);
  return dots < terms;
}

// ---- Sources

// Rows `stride` elements apart, each contiguous.
struct DenseRows {
  static constexpr bool kGathers = false;
  const float* base;
  int64_t stride;
  int64_t terms;
  int64_t segment_length() const { return terms; }
  HWY_INLINE void locate(int64_t row, int rows, int64_t k0, int64_t, float*, const float** table, int64_t* first_length) const {
    *first_length = terms - k0;
    for (int r = 0; r < rows; ++r) table[r] = base + (row + r) * stride + k0;
  }
};

// Rows of which each term lies `stride` elements behind the one before, the rows of a term together.
struct TransposedRows {
  static constexpr bool kGathers = true;
  const float* base;
  int64_t stride;
  int64_t terms;
  int64_t segment_length() const { return terms; }
  void locate(int64_t row, int rows, int64_t k0, int64_t k1, float* patch, const float** table, int64_t* first_length) const {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag())), count = k1 - k0;
    *first_length = terms - k0;
    for (int r = 0; r < rows; ++r) table[r] = patch + r * count;
    const float* from = base + k0 * stride + row;
    if (count < lanes) {
      for (int64_t k = 0; k < count; ++k)
        for (int r = 0; r < rows; ++r) patch[r * count + k] = from[k * stride + r];
      return;
    }
    const float* lines[kMaxFloatLanes];
    for (int64_t k = 0; k < count; k += lanes) {
      const int64_t at = std::min(k, count - lanes);  // the last ones once more rather than a tail
      panel_rows(from + at * stride, stride, lanes, lanes, lines);
      pack_vector(lines, rows, patch + at, count);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif  // ONEWEIGHT_SIMD_PRODUCT_FLOAT_INL_H
