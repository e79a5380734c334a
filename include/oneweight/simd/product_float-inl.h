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

#include "oneweight/simd/pack-inl.h"
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
// Rows that share one reading of the weights in dot products.
inline constexpr int kDotRows = 4;

// clamp(v, low, high) with NaN in, NaN out.
template <class D>
HWY_INLINE hn::Vec<D> clamp_keep_nan(D d, hn::Vec<D> v, float low, float high) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Min(hn::Set(d, high), hn::Max(hn::Set(d, low), v));  // the second operand where one is NaN
#else
  v = hn::IfThenElse(hn::Lt(v, hn::Set(d, low)), hn::Set(d, low), v);
  return hn::IfThenElse(hn::Gt(v, hn::Set(d, high)), hn::Set(d, high), v);
#endif
}

// The activation of e on sums that already hold the bias.
template <class D>
HWY_INLINE hn::Vec<D> activate(D d, hn::Vec<D> v, const Epilogue& e) {
  if (e.clamps) v = clamp_keep_nan(d, v, e.low, e.high);
  if (e.after == FusedActivation::hard_swish) {
    const auto gate = clamp_keep_nan(d, hn::Add(v, hn::Set(d, 3.0f)), 0.0f, 6.0f);
    v = hn::Mul(hn::Mul(v, gate), hn::Set(d, 1.0f / 6.0f));
  }
  return v;
}

// ---- Panels

// What one call of product_tile works on.
struct TileArgs {
  const float* const* rows;   // [segment * kTileRows + row]: where the row's activations of a segment begin
  int64_t first_length;       // activations taken from segment 0
  int64_t segment_length;     // and from each later one
  int64_t count;              // activations in all
  const float* panel;         // [count][1 or 2 vectors]
  const float* bias;          // whole vectors; null: the sums so far are in `out`
  float* out;
  int64_t out_stride;
  size_t channels;            // of the panel's that exist
  const Epilogue* epilogue;   // null: more terms follow
};

#define ONEWEIGHT_TILE_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)

// kRows rows times one or two vectors of channels.
template <int kRows, bool kTwo>
HWY_NOINLINE void product_tile(const TileArgs& t) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  using V = hn::Vec<FloatTag>;
  const size_t width = kTwo ? 2 * lanes : lanes;
  const bool whole = t.channels == width;
  const size_t last = kTwo ? t.channels - lanes : t.channels;  // channels in the last vector

#define ONEWEIGHT_TILE_DECLARE(r) V x##r = hn::Zero(d), y##r = hn::Zero(d);
  ONEWEIGHT_TILE_ROWS(ONEWEIGHT_TILE_DECLARE)
#undef ONEWEIGHT_TILE_DECLARE
  if (t.bias != nullptr) {
    const V b0 = hn::LoadU(d, t.bias), b1 = kTwo ? hn::LoadU(d, t.bias + lanes) : b0;
#define ONEWEIGHT_TILE_BIAS(r) \
  if constexpr (r < kRows) x##r = b0, y##r = b1;
    ONEWEIGHT_TILE_ROWS(ONEWEIGHT_TILE_BIAS)
#undef ONEWEIGHT_TILE_BIAS
  } else {
    const float* from = t.out;
#define ONEWEIGHT_TILE_RELOAD(r)                                                               \
  if constexpr (r < kRows) {                                                                   \
    if constexpr (kTwo) x##r = hn::LoadU(d, from);                                             \
    V& end = kTwo ? y##r : x##r;                                                               \
    const float* at = kTwo ? from + lanes : from;                                              \
    end = whole ? hn::LoadU(d, at) : hn::LoadN(d, at, last);                                   \
    from += t.out_stride;                                                                      \
  }
    ONEWEIGHT_TILE_ROWS(ONEWEIGHT_TILE_RELOAD)
#undef ONEWEIGHT_TILE_RELOAD
  }

  const float* HWY_RESTRICT panel = t.panel;
  const float* const* rows = t.rows;
  int64_t length = t.first_length;
  for (int64_t left = t.count; left > 0;) {
    if (length > left) length = left;
#define ONEWEIGHT_TILE_POINTER(r) [[maybe_unused]] const float* HWY_RESTRICT p##r = rows[r < kRows ? r : 0];
    ONEWEIGHT_TILE_ROWS(ONEWEIGHT_TILE_POINTER)
#undef ONEWEIGHT_TILE_POINTER
    for (int64_t k = 0; k < length; ++k) {
      const V b0 = hn::LoadU(d, panel), b1 = kTwo ? hn::LoadU(d, panel + lanes) : b0;
      panel += width;
#define ONEWEIGHT_TILE_STEP(r)                              \
  if constexpr (r < kRows) {                                \
    const V a = hn::Set(d, p##r[k]);                        \
    x##r = hn::MulAdd(a, b0, x##r);                         \
    if constexpr (kTwo) y##r = hn::MulAdd(a, b1, y##r);     \
  }
      ONEWEIGHT_TILE_ROWS(ONEWEIGHT_TILE_STEP)
#undef ONEWEIGHT_TILE_STEP
    }
    left -= length;
    length = t.segment_length;
    rows += kTileRows;
  }

  if (t.epilogue != nullptr && t.epilogue->active()) {
    const Epilogue& e = *t.epilogue;
#define ONEWEIGHT_TILE_ACTIVATE(r)                          \
  if constexpr (r < kRows) {                                \
    x##r = activate(d, x##r, e);                            \
    if constexpr (kTwo) y##r = activate(d, y##r, e);        \
  }
    ONEWEIGHT_TILE_ROWS(ONEWEIGHT_TILE_ACTIVATE)
#undef ONEWEIGHT_TILE_ACTIVATE
  }

  float* to = t.out;
#define ONEWEIGHT_TILE_STORE(r)                                                                \
  if constexpr (r < kRows) {                                                                   \
    if constexpr (kTwo) hn::StoreU(x##r, d, to);                                               \
    if (whole) hn::StoreU(kTwo ? y##r : x##r, d, kTwo ? to + lanes : to);                      \
    else hn::StoreN(kTwo ? y##r : x##r, d, kTwo ? to + lanes : to, last);                      \
    to += t.out_stride;                                                                        \
  }
  ONEWEIGHT_TILE_ROWS(ONEWEIGHT_TILE_STORE)
#undef ONEWEIGHT_TILE_STORE
}
#undef ONEWEIGHT_TILE_ROWS

// The tile for `rows` rows, rows being one of tile_rows()'s answers.
template <bool kTwo>
HWY_INLINE void run_tile(int rows, const TileArgs& t) {
  switch (rows) {
    case 1: return product_tile<1, kTwo>(t);
    case 2: return product_tile<2, kTwo>(t);
    case 3: return product_tile<3, kTwo>(t);
    case 4: return product_tile<4, kTwo>(t);
    case 5: return product_tile<5, kTwo>(t);
    case 6: return product_tile<6, kTwo>(t);
    default: break;
  }
  if constexpr (kTileRows > 6) {
    switch (rows) {
      case 7: return product_tile<7, kTwo>(t);
      case 8: return product_tile<8, kTwo>(t);
      case 10: return product_tile<10, kTwo>(t);
      case 12: return product_tile<12, kTwo>(t);
      default: return product_tile<kTileRows, kTwo>(t);
    }
  }
}

// Rows of the next tile when `left` are to be done.
inline int tile_rows(int64_t left) {
  if (left >= kTileRows) return kTileRows;
  const int n = static_cast<int>(left);
  return n <= 8 ? n : n / 2 * 2;
}

// How many channels and terms are packed at one time.
struct PanelPlan {
  int64_t channels = 0;  // whole panels
  int64_t terms = 0;
};
inline PanelPlan plan_panels(int64_t channels, int64_t terms) {
  constexpr int64_t kFloats = 64 * 1024;  // 256 KiB
  const int64_t width = 2 * static_cast<int64_t>(hn::Lanes(FloatTag()));
  const int64_t all = (channels + width - 1) / width * width;
  PanelPlan plan{all, terms};
  if (all * terms <= kFloats) return plan;
  const int64_t blocks = (terms + 511) / 512;
  plan.terms = ((terms + blocks - 1) / blocks + 3) / 4 * 4;
  const int64_t fits = std::max(kFloats / plan.terms / width, int64_t{1}) * width;
  const int64_t groups = (all + fits - 1) / fits;
  plan.channels = ((all + groups - 1) / groups + width - 1) / width * width;
  return plan;
}

// Scratch of product_panels.
inline int64_t panels_scratch_bytes(int64_t channels, int64_t terms, bool patches) {
  const PanelPlan plan = plan_panels(channels, terms);
  int64_t bytes = plan.channels * (plan.terms + 1) * 4;
  bytes += (plan.terms + 1) * kTileRows * 8;
  if (patches) bytes += kTileRows * plan.terms * 4;
  return bytes + 64;
}

// out[row][n] = activation(bias[n] + sum over k of a[row][k] * w[n][k]) for rows [begin, end) and n < channels.
// `source` finds activations: source.locate(row, rows, k0, k1, patch, table, &first_length) fills the table of
// TileArgs for terms [k0, k1); source.segment_length() is the length of whole segments. `out` is row 0's.
template <class W, class Source>
void product_panels(const Source& source, int64_t begin, int64_t end, const W* w, int64_t channels, int64_t terms, float* out,
                    int64_t out_stride, const Epilogue& e, std::byte* scratch) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag())), width = 2 * lanes;
  const PanelPlan plan = plan_panels(channels, terms);
  float* const panels = reinterpret_cast<float*>(scratch);
  float* const bias = panels + plan.channels * plan.terms;
  const float** const table = reinterpret_cast<const float**>(bias + plan.channels);
  float* const patch = reinterpret_cast<float*>(table + (plan.terms + 1) * kTileRows);
  for (int64_t n0 = 0; n0 < channels; n0 += plan.channels) {
    const int64_t n1 = std::min(channels, n0 + plan.channels);
    for (int64_t n = n0; n < n0 + plan.channels; ++n) bias[n - n0] = e.bias && n < n1 ? widen_one(e.bias + n) : 0.0f;
    for (int64_t k0 = 0; k0 < terms || k0 == 0; k0 += plan.terms) {
      const int64_t count = std::min(plan.terms, terms - k0);
      for (int64_t n = n0; n < n1; n += width) {
        float* panel = panels + (n - n0) * count;
        const int64_t vectors = n1 - n > lanes ? 2 : 1;
        for (int64_t v = 0; v < vectors; ++v)
          pack_vector(w + (n + v * lanes) * terms + k0, terms, n1 - n - v * lanes, count, panel + v * lanes, vectors * lanes);
      }
      TileArgs t;
      t.rows = table;
      t.count = count;
      t.segment_length = source.segment_length();
      t.out_stride = out_stride;
      t.epilogue = k0 + count == terms ? &e : nullptr;
      for (int64_t m = begin; m < end;) {
        const int rows = tile_rows(end - m);
        source.locate(m, rows, k0, k0 + count, patch, table, &t.first_length);
        for (int64_t n = n0; n < n1; n += width) {
          t.panel = panels + (n - n0) * count;
          t.bias = k0 == 0 ? bias + (n - n0) : nullptr;
          t.out = out + m * out_stride + n;
          t.channels = static_cast<size_t>(std::min(n1 - n, width));
          if (n1 - n > lanes) run_tile<true>(rows, t);
          else run_tile<false>(rows, t);
        }
        m += rows;
      }
    }
  }
}

// ---- Dot products

// sums[row * stride + n] for kRows rows and kChannels channels.
template <int kRows, int kChannels, class W>
HWY_INLINE void dot_tile(const float* const* rows, const W* w, int64_t terms, float* sums, int64_t stride) {
  const FloatTag d;
  using V = hn::Vec<FloatTag>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
#define ONEWEIGHT_DOT_CHANNELS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define ONEWEIGHT_DOT_DECLARE(n) V s##n##_0 = hn::Zero(d), s##n##_1 = s##n##_0, s##n##_2 = s##n##_0, s##n##_3 = s##n##_0;
  ONEWEIGHT_DOT_CHANNELS(ONEWEIGHT_DOT_DECLARE)
#undef ONEWEIGHT_DOT_DECLARE
  const float* HWY_RESTRICT a0 = rows[0];
  [[maybe_unused]] const float* HWY_RESTRICT a1 = rows[kRows > 1 ? 1 : 0];
  [[maybe_unused]] const float* HWY_RESTRICT a2 = rows[kRows > 2 ? 2 : 0];
  [[maybe_unused]] const float* HWY_RESTRICT a3 = rows[kRows > 3 ? 3 : 0];
#define ONEWEIGHT_DOT_STEP(n)                                                   \
  if constexpr (n < kChannels) {                                                \
    const V b = load(w + n * terms + k);                                        \
    s##n##_0 = hn::MulAdd(v0, b, s##n##_0);                                     \
    if constexpr (kRows > 1) s##n##_1 = hn::MulAdd(v1, b, s##n##_1);            \
    if constexpr (kRows > 2) s##n##_2 = hn::MulAdd(v2, b, s##n##_2);            \
    if constexpr (kRows > 3) s##n##_3 = hn::MulAdd(v3, b, s##n##_3);            \
  }
  int64_t k = 0;
  for (; k + lanes <= terms; k += lanes) {
    const V v0 = hn::LoadU(d, a0 + k);
    [[maybe_unused]] const V v1 = kRows > 1 ? hn::LoadU(d, a1 + k) : v0;
    [[maybe_unused]] const V v2 = kRows > 2 ? hn::LoadU(d, a2 + k) : v0;
    [[maybe_unused]] const V v3 = kRows > 3 ? hn::LoadU(d, a3 + k) : v0;
    const auto load = [d](const W* from) HWY_ATTR { return load_widened(d, from); };
    ONEWEIGHT_DOT_CHANNELS(ONEWEIGHT_DOT_STEP)
  }
  if (k < terms) {
    const size_t rest = static_cast<size_t>(terms - k);
    const V v0 = hn::LoadN(d, a0 + k, rest);
    [[maybe_unused]] const V v1 = kRows > 1 ? hn::LoadN(d, a1 + k, rest) : v0;
    [[maybe_unused]] const V v2 = kRows > 2 ? hn::LoadN(d, a2 + k, rest) : v0;
    [[maybe_unused]] const V v3 = kRows > 3 ? hn::LoadN(d, a3 + k, rest) : v0;
    const auto load = [d, rest](const W* from) HWY_ATTR { return load_widened_n(d, from, rest); };
    ONEWEIGHT_DOT_CHANNELS(ONEWEIGHT_DOT_STEP)
  }
#undef ONEWEIGHT_DOT_STEP
#define ONEWEIGHT_DOT_STORE(n)                                                  \
  if constexpr (n < kChannels) {                                                \
    sums[n] = hn::ReduceSum(d, s##n##_0);                                       \
    if constexpr (kRows > 1) sums[stride + n] = hn::ReduceSum(d, s##n##_1);     \
    if constexpr (kRows > 2) sums[2 * stride + n] = hn::ReduceSum(d, s##n##_2); \
    if constexpr (kRows > 3) sums[3 * stride + n] = hn::ReduceSum(d, s##n##_3); \
  }
  ONEWEIGHT_DOT_CHANNELS(ONEWEIGHT_DOT_STORE)
#undef ONEWEIGHT_DOT_STORE
#undef ONEWEIGHT_DOT_CHANNELS
}

// All channels of kRows rows.
template <int kRows, class W>
HWY_NOINLINE void dot_rows(const float* const* rows, const W* w, int64_t channels, int64_t terms, float* out, int64_t stride) {
  constexpr bool kManyRegisters = kTileRows > 6;
  constexpr int kBlock = kRows == 1 ? 8 : kRows == 2 ? (kManyRegisters ? 8 : 4) : kManyRegisters ? 4 : 2;
  int64_t n = 0;
  for (; n + kBlock <= channels; n += kBlock) dot_tile<kRows, kBlock>(rows, w + n * terms, terms, out + n, stride);
  for (; n < channels; ++n) dot_tile<kRows, 1>(rows, w + n * terms, terms, out + n, stride);
}

// Adds the bias and applies the activation to sums.
inline void finish_row(float* row, int64_t channels, const Epilogue& e) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (!e.bias && !e.active()) return;
  for (int64_t n = 0; n < channels; n += lanes) {
    const size_t count = static_cast<size_t>(std::min(lanes, channels - n));
    auto v = hn::LoadN(d, row + n, count);
    if (e.bias) v = hn::Add(v, load_widened_n(d, e.bias + n, count));
    hn::StoreN(activate(d, v, e), d, row + n, count);
  }
}

// Scratch of product_dots.
inline int64_t dots_scratch_bytes(int64_t terms, bool patches) { return patches ? kDotRows * terms * 4 : 0; }

// As product_panels, but source.contiguous(row, patch) answers where the row's activations lie one after another
// (gathered into patch if they do not).
template <class W, class Source>
void product_dots(const Source& source, int64_t begin, int64_t end, const W* w, int64_t channels, int64_t terms, float* out,
                  int64_t out_stride, const Epilogue& e, std::byte* scratch) {
  constexpr int64_t kBlock = 64;  // channels whose weights stay in cache for all rows
  float* patch = reinterpret_cast<float*>(scratch);
  for (int64_t n = 0; n < channels; n += kBlock) {
    const int64_t count = std::min(kBlock, channels - n);
    Epilogue of_block = e;
    if (e.bias) of_block.bias = e.bias + n;
    for (int64_t m = begin; m < end;) {
      const int rows = static_cast<int>(std::min<int64_t>(kDotRows, end - m));
      const float* table[kDotRows];
      for (int r = 0; r < rows; ++r) table[r] = source.contiguous(m + r, patch + r * terms);
      float* to = out + m * out_stride + n;
      const W* from = w + n * terms;
      if (rows == 1) dot_rows<1>(table, from, count, terms, to, out_stride);
      if (rows == 2) dot_rows<2>(table, from, count, terms, to, out_stride);
      if (rows == 3) dot_rows<3>(table, from, count, terms, to, out_stride);
      if (rows == 4) dot_rows<4>(table, from, count, terms, to, out_stride);
      for (int r = 0; r < rows; ++r) finish_row(to + r * out_stride, count, of_block);
      m += rows;
    }
  }
}

// Whether `rows` rows in all are few enough for dot products.
inline bool prefers_dots(int64_t rows) { return HWY_TARGET == HWY_SCALAR || rows < 8; }

// ---- Sources

// Rows `stride` elements apart, each contiguous.
struct DenseRows {
  const float* base;
  int64_t stride;
  int64_t terms;
  int64_t segment_length() const { return terms; }
  HWY_INLINE void locate(int64_t row, int rows, int64_t k0, int64_t, float*, const float** table, int64_t* first_length) const {
    *first_length = terms - k0;
    for (int r = 0; r < rows; ++r) table[r] = base + (row + r) * stride + k0;
  }
  const float* contiguous(int64_t row, float*) const { return base + row * stride; }
};

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif  // ONEWEIGHT_SIMD_PRODUCT_FLOAT_INL_H
