// Matrix products of few rows with many channels of float or half weights: the rows of activations lie along the vectors,
// transposed for all channels, and weights are broadcast from where they lie, each read from memory once. A result is one
// sequence of multiply-adds behind the bias, as in product_panels. Included once per target.
#if defined(ONEWEIGHT_SIMD_PRODUCT_BROADCAST_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_PRODUCT_BROADCAST_INL_H
#undef ONEWEIGHT_SIMD_PRODUCT_BROADCAST_INL_H
#else
#define ONEWEIGHT_SIMD_PRODUCT_BROADCAST_INL_H
#endif

#include "oneweight/simd/product_float-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What one operator's product is divided into.
struct BroadcastPlan {
  int64_t rows = 0;      // of the operator that are done here; those behind them, fewer than a vector, by dot products
  int64_t padded = 0;    // the same in whole vectors
  int64_t terms = 0;     // transposed at one time
  int64_t channels = 0;  // done before the next ones, whole blocks
};
inline constexpr int64_t kBroadcastBlock = kMaxFloatLanes;  // channels that are transposed back together
inline constexpr int64_t kGatheredTerms = 128;

// All parts of the scratch together stay below 512 KiB: less for panels where rows for dot products are long.
inline BroadcastPlan plan_broadcast(int64_t rows, int64_t terms) {
  const int64_t floats = terms > 4096 ? kCacheBytes / 4 * 3 / 8 : kCacheBytes / 4;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag())), rest = rows % lanes;
  BroadcastPlan plan;
  plan.rows = rest * 4 <= lanes ? rows - rest : rows;
  plan.padded = std::max((plan.rows + lanes - 1) / lanes, int64_t{1}) * lanes;
  const int64_t fits = std::max(floats / plan.padded / kGatheredTerms, int64_t{1}) * kGatheredTerms;
  plan.terms = std::max(std::min({terms, fits, int64_t{2048}}), int64_t{1});
  const int64_t channels = plan.terms < terms ? kCacheBytes / 16 / plan.padded : kCacheBytes / 8 / plan.terms;
  plan.channels = std::max(channels / kBroadcastBlock, int64_t{1}) * kBroadcastBlock;
  return plan;
}

// What one call of broadcast_tile works on.
struct BroadcastArgs {
  const float* const* weights;  // of each channel
  int64_t count;                // terms
  const float* panel;           // [term][row]
  const float* bias;            // of each channel; null: `sums` holds sums so far
  float* sums;                  // [channel][row]
  int64_t stride;               // from channel to channel
  const Epilogue* epilogue;     // its clamp; null: more terms follow
  const std::byte* next;        // the weights of the next channels, which are fetched meanwhile; null: none
  int64_t next_stride;          // bytes from channel to channel
  int64_t next_size;            // of a weight
};

#if !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR
// Channels of a register tile; it is up to three vectors of rows wide.
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3) || HWY_TARGET_IS_NEON
inline constexpr int kBroadcastChannels = 8;
#else
inline constexpr int kBroadcastChannels = 4;
#endif
inline constexpr int kBroadcastVectors = 3;

#define ONEWEIGHT_BROADCAST_CHANNELS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
template <int kVectors>
HWY_NOINLINE void broadcast_tile(const BroadcastArgs& t) {
  const FloatTag d;
  using V = hn::Vec<FloatTag>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
#define ONEWEIGHT_BROADCAST_DECLARE(c)                                        \
  [[maybe_unused]] V x##c = hn::Zero(d), y##c = hn::Zero(d), z##c = hn::Zero(d); \
  [[maybe_unused]] const float* w##c = t.weights[c < kBroadcastChannels ? c : 0];
  ONEWEIGHT_BROADCAST_CHANNELS(ONEWEIGHT_BROADCAST_DECLARE)
#undef ONEWEIGHT_BROADCAST_DECLARE
  if (t.bias) {
#define ONEWEIGHT_BROADCAST_BIAS(c) \
  if constexpr (c < kBroadcastChannels) x##c = y##c = z##c = hn::Set(d, t.bias[c]);
    ONEWEIGHT_BROADCAST_CHANNELS(ONEWEIGHT_BROADCAST_BIAS)
#undef ONEWEIGHT_BROADCAST_BIAS
  } else {
#define ONEWEIGHT_BROADCAST_RELOAD(c)                                                             \
  if constexpr (c < kBroadcastChannels) {                                                         \
    x##c = hn::LoadU(d, t.sums + c * t.stride);                                                   \
    if constexpr (kVectors > 1) y##c = hn::LoadU(d, t.sums + c * t.stride + lanes);               \
    if constexpr (kVectors > 2) z##c = hn::LoadU(d, t.sums + c * t.stride + 2 * lanes);           \
  }
    ONEWEIGHT_BROADCAST_CHANNELS(ONEWEIGHT_BROADCAST_RELOAD)
#undef ONEWEIGHT_BROADCAST_RELOAD
  }
  const float* panel = t.panel;
  const int64_t count = t.count;
  constexpr int64_t kFetched = 16;  // terms whose weights are fetched together
  for (int64_t k = 0; k < count; ++k, panel += kVectors * lanes) {
    if (k % kFetched == 0 && t.next) {
      const std::byte* from = t.next + k * t.next_size;
      for (int c = 0; c < kBroadcastChannels; ++c, from += t.next_stride) prefetch_later(from);
    }
    const V b0 = hn::LoadU(d, panel);
    [[maybe_unused]] const V b1 = kVectors > 1 ? hn::LoadU(d, panel + lanes) : b0;
    [[maybe_unused]] const V b2 = kVectors > 2 ? hn::LoadU(d, panel + 2 * lanes) : b0;
#define ONEWEIGHT_BROADCAST_STEP(c)                              \
  if constexpr (c < kBroadcastChannels) {                        \
    const V a = hn::Set(d, w##c[k]);                             \
    x##c = hn::MulAdd(a, b0, x##c);                              \
    if constexpr (kVectors > 1) y##c = hn::MulAdd(a, b1, y##c);  \
    if constexpr (kVectors > 2) z##c = hn::MulAdd(a, b2, z##c);  \
  }
    ONEWEIGHT_BROADCAST_CHANNELS(ONEWEIGHT_BROADCAST_STEP)
#undef ONEWEIGHT_BROADCAST_STEP
  }
  if (t.epilogue) {
#define ONEWEIGHT_BROADCAST_CLAMP(c)                                              \
  if constexpr (c < kBroadcastChannels) {                                            \
    x##c = clamp_sums(d, x##c, *t.epilogue);                                           \
    if constexpr (kVectors > 1) y##c = clamp_sums(d, y##c, *t.epilogue);               \
    if constexpr (kVectors > 2) z##c = clamp_sums(d, z##c, *t.epilogue);               \
  }
    ONEWEIGHT_BROADCAST_CHANNELS(ONEWEIGHT_BROADCAST_CLAMP)
#undef ONEWEIGHT_BROADCAST_CLAMP
  }
#define ONEWEIGHT_BROADCAST_STORE(c)                                                              \
  if constexpr (c < kBroadcastChannels) {                                                         \
    hn::StoreU(x##c, d, t.sums + c * t.stride);                                                   \
    if constexpr (kVectors > 1) hn::StoreU(y##c, d, t.sums + c * t.stride + lanes);               \
    if constexpr (kVectors > 2) hn::StoreU(z##c, d, t.sums + c * t.stride + 2 * lanes);           \
  }
  ONEWEIGHT_BROADCAST_CHANNELS(ONEWEIGHT_BROADCAST_STORE)
#undef ONEWEIGHT_BROADCAST_STORE
}
#undef ONEWEIGHT_BROADCAST_CHANNELS

// Parts of the scratch.
struct BroadcastScratch {
  float* panel;
  float* sums;
  float* widened;
  float* patch;
  std::byte* dots;
  int64_t bytes;
};
template <class W>
inline BroadcastScratch lay_out_broadcast(const BroadcastPlan& plan, int64_t terms, int64_t segment_length, bool gathers, std::byte* base) {
  int64_t at = 0;
  const auto take = [&](int64_t floats) {
    std::byte* from = base + at;
    at += (floats * 4 + 63) / 64 * 64;
    return reinterpret_cast<float*>(from);
  };
  BroadcastScratch s{};
  s.panel = take(plan.terms * plan.padded);
  s.sums = take((plan.terms < terms ? plan.channels : kBroadcastBlock) * plan.padded);
  if (sizeof(W) != sizeof(float)) s.widened = take(kBroadcastChannels * (plan.terms + kPatchPad));
  if (gathers) s.patch = take(static_cast<int64_t>(kMaxFloatLanes) * (kGatheredTerms + kPatchPad) + 2 * kTileRows * 4);
  s.dots = base + at;
  s.bytes = at + dots_scratch_bytes(terms, segment_length, gathers);
  return s;
}

// panel[k - k0][lane] = terms [k0, k1) of one vector of rows from `row` on; the last one again for those behind `end`.
template <class Source>
void transpose_rows(const Source& source, int64_t row, int64_t end, int64_t k0, int64_t k1, float* patch, float* panel, int64_t stride) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  const float* rows[kMaxFloatLanes];
  const int64_t exist = std::min(lanes, end - row), step = Source::kGathers ? kGatheredTerms : k1 - k0;
  for (int64_t k = k0; k < k1; k += step) {
    const int64_t count = std::min(step, k1 - k);
    for (int64_t r = 0; r < exist; r += 4) {
      const int some = static_cast<int>(std::min(exist - r, int64_t{4}));
      const float* table[kTileRows * (kGatheredTerms + 2)];
      int64_t first_length;
      float* const to = Source::kGathers ? patch + r * (count + kPatchPad) : nullptr;
      source.locate(row + r, some, k, k + count, to, table, &first_length);
      for (int i = 0; i < some; ++i) rows[r + i] = Source::kGathers ? to + i * (count + kPatchPad) : table[i];
    }
    for (int64_t r = exist; r < lanes; ++r) rows[r] = rows[exist - 1];
    pack_vector(rows, count, panel + (k - k0) * stride, stride);
  }
}

// As product_panels. `source` reads rows where they lie, or gathers all of them.
template <class W, class Source>
void product_broadcast(const Source& source, int64_t begin, int64_t end, const W* w, int64_t channels, int64_t terms, float* out,
                       int64_t out_stride, const Epilogue& e, const BroadcastPlan& plan, std::byte* scratch) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  const BroadcastScratch s = lay_out_broadcast<W>(plan, terms, source.segment_length(), Source::kGathers, scratch);
  const int64_t last = std::min(end, plan.rows), rows = last - begin, padded = (rows + lanes - 1) / lanes * lanes;
  const bool whole = plan.terms >= terms;
  for (int64_t n0 = 0; n0 < channels; n0 += plan.channels) {
    const int64_t n1 = std::min(channels, n0 + plan.channels);
    for (int64_t k0 = 0; rows > 0 && (k0 < terms || k0 == 0); k0 += plan.terms) {
      const int64_t k1 = std::min(terms, k0 + plan.terms), count = k1 - k0;
      const auto group_width = [&](int64_t r) { return std::min(kBroadcastVectors * lanes, padded - r); };
      if (!whole || n0 == 0) {
        for (int64_t r = 0; r < padded; r += kBroadcastVectors * lanes)
          for (int64_t v = 0; v < group_width(r); v += lanes)
            transpose_rows(source, begin + r + v, last, k0, k1, s.patch, s.panel + r * count + v, group_width(r));
      }
      for (int64_t n = n0; n < n1; n += kBroadcastBlock) {
        float* const sums = whole ? s.sums : s.sums + (n - n0) * plan.padded;
        const int64_t exist = std::min(kBroadcastBlock, n1 - n);
        for (int64_t c = 0; c < exist; c += kBroadcastChannels) {
          const float* weights[kBroadcastChannels];
          float bias[kBroadcastChannels];
          for (int64_t i = 0; i < kBroadcastChannels; ++i) {
            const int64_t channel = std::min(n + c + i, n1 - 1);
            const W* from = w + channel * terms + k0;
            if constexpr (std::is_same_v<W, float>) {
              weights[i] = from;
            } else {
              float* const to = s.widened + i * (plan.terms + kPatchPad);
              widen_row(from, count, to);
              weights[i] = to;
            }
            bias[i] = e.bias ? widen_one(e.bias + channel) : 0.0f;
          }
          BroadcastArgs t{weights, count, nullptr, k0 == 0 ? bias : nullptr, nullptr, plan.padded, k1 == terms ? &e : nullptr,
                          nullptr, terms * static_cast<int64_t>(sizeof(W)), static_cast<int64_t>(sizeof(W))};
          for (int64_t r = 0; r < padded; r += kBroadcastVectors * lanes) {
            t.next = r == 0 ? reinterpret_cast<const std::byte*>(w + (n + c + kBroadcastChannels) * terms + k0) : nullptr;
            t.panel = s.panel + r * count;
            t.sums = sums + c * plan.padded + r;
            const int64_t vectors = group_width(r) / lanes;
            if (vectors == 3) broadcast_tile<3>(t);
            else if (vectors == 2) broadcast_tile<2>(t);
            else broadcast_tile<1>(t);
          }
        }
        if (k1 < terms) continue;
        if (e.after != FusedActivation::none)
          for (int64_t i = 0; i < exist; ++i) finish_row(sums + i * plan.padded, rows, nullptr, e);
        int64_t c = 0;
        for (; c + lanes <= exist; c += lanes) {
          const float* from[kMaxFloatLanes];
          for (int64_t i = 0; i < lanes; ++i) from[i] = sums + (c + i) * plan.padded;
          pack_vector(from, rows, out + begin * out_stride + n + c, out_stride);
        }
        for (; c < exist; ++c)
          for (int64_t r = 0; r < rows; ++r) out[(begin + r) * out_stride + n + c] = sums[c * plan.padded + r];
      }
    }
    if (end > plan.rows) {
      Epilogue some = e;
      if (e.bias) some.bias = e.bias + n0;
      product_dots(source, std::max(begin, plan.rows), end, w + n0 * terms, n1 - n0, terms, out + n0, out_stride, some, s.dots);
    }
  }
}
template <class W>
int64_t broadcast_scratch_bytes(int64_t rows, int64_t terms, int64_t segment_length, bool gathers) {
  return lay_out_broadcast<W>(plan_broadcast(rows, terms), terms, segment_length, gathers, nullptr).bytes;
}

// Whether this is the fastest form for a product of this shape (of the whole operator).
inline bool prefers_broadcast(int64_t rows, int64_t channels, int64_t terms) {
  if (rows < static_cast<int64_t>(hn::Lanes(FloatTag())) || channels < 64 || terms < 64) return false;
  return rows <= 64 || (rows <= 256 && channels >= rows && plan_broadcast(rows, terms).terms == terms);
}
#else
template <class W, class Source>
void product_broadcast(const Source&, int64_t, int64_t, const W*, int64_t, int64_t, float*, int64_t, const Epilogue&, const BroadcastPlan&,
                       std::byte*) {}
template <class W>
int64_t broadcast_scratch_bytes(int64_t, int64_t, int64_t, bool) {
  return 0;
}
inline bool prefers_broadcast(int64_t, int64_t, int64_t) { return false; }
#endif

// The form of a product of this shape (of the whole operator, not of a band of it).
inline ProductForm product_form(int64_t rows, int64_t channels, int64_t terms, int64_t segment_length) {
  if (prefers_broadcast(rows, channels, terms)) return ProductForm::broadcast;
  return prefers_dots(rows, channels, terms, segment_length) ? ProductForm::dots : ProductForm::panels;
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif  // ONEWEIGHT_SIMD_PRODUCT_BROADCAST_INL_H
