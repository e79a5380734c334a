// From the sums of 8-bit products to the outputs: requantised bytes, or float. Included once per target.
#if defined(ONEWEIGHT_SIMD_QUANTIZED_STORE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_QUANTIZED_STORE_INL_H
#undef ONEWEIGHT_SIMD_QUANTIZED_STORE_INL_H
#else
#define ONEWEIGHT_SIMD_QUANTIZED_STORE_INL_H
#endif

#include <algorithm>

#include "oneweight/simd/activation-inl.h"
#include "oneweight/simd/product_int8.h"
#include "oneweight/simd/requantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Int32Tag = hn::CappedTag<int32_t, 16>;

#if !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR
#undef ONEWEIGHT_PACKS_BYTES
#define ONEWEIGHT_PACKS_BYTES 1
// Four vectors of scaled values as one of bytes of Out, in their order: zero added, then clamped to [low, high]. All three are
// values of Out.
template <class Out, class D>
class BytePacker {
 public:
  static_assert(HWY_IS_LITTLE_ENDIAN, "");
  using D16 = hn::Repartition<int16_t, D>;
  using D8 = hn::Repartition<Out, D>;
  HWY_INLINE BytePacker(D d, int32_t zero, int32_t low, int32_t high)
      : zero_(hn::Set(D16(), static_cast<int16_t>(zero))), low_(hn::Set(D8(), static_cast<Out>(low))),
        high_(hn::Set(D8(), static_cast<Out>(high))) {
    // Packing works on 128-bit blocks: lane 4 b + j holds block b of vector j.
    constexpr int32_t kBlocks = static_cast<int32_t>(hn::MaxLanes(D()) / 4);
    HWY_ALIGN int32_t order[hn::MaxLanes(D())];
    for (int32_t j = 0; j < 4; ++j)
      for (int32_t b = 0; b < kBlocks; ++b) order[j * kBlocks + b] = 4 * b + j;
    order_ = hn::Load(d, order);
  }
  template <class V>
  HWY_INLINE hn::Vec<D8> pack(V a, V b, V c, V e) const {
    const auto ab = hn::SaturatedAdd(hn::ReorderDemote2To(D16(), a, b), zero_), ce = hn::SaturatedAdd(hn::ReorderDemote2To(D16(), c, e), zero_);
    const auto bytes = hn::Min(hn::Max(hn::ReorderDemote2To(D8(), ab, ce), low_), high_);
    if constexpr (hn::MaxLanes(D()) == 4) return bytes;
    else return hn::BitCast(D8(), hn::TableLookupLanes(hn::BitCast(D(), bytes), hn::IndicesFromVec(D(), order_)));
  }
  HWY_INLINE void store_half(hn::Vec<D8> v, Out* to) const {
    const hn::Half<D8> half;
    hn::StoreU(hn::LowerHalf(half, v), half, to);
  }
  HWY_INLINE void store_halves(hn::Vec<D8> v, Out* to, int64_t apart) const {
    const hn::Half<D8> half;
    hn::StoreU(hn::LowerHalf(half, v), half, to);
    hn::StoreU(hn::UpperHalf(half, v), half, to + apart);
  }
  HWY_INLINE void store_quarters(hn::Vec<D8> v, Out* to, int64_t apart) const {
    const hn::Half<D8> half;
    const hn::Half<decltype(half)> quarter;
    const auto lower = hn::LowerHalf(half, v), upper = hn::UpperHalf(half, v);
    hn::StoreU(hn::LowerHalf(quarter, lower), quarter, to);
    hn::StoreU(hn::UpperHalf(quarter, lower), quarter, to + apart);
    hn::StoreU(hn::LowerHalf(quarter, upper), quarter, to + 2 * apart);
    hn::StoreU(hn::UpperHalf(quarter, upper), quarter, to + 3 * apart);
  }

 private:
  hn::Vec<D16> zero_;
  hn::Vec<D8> low_, high_;
  hn::Vec<D> order_;
};
#else
#undef ONEWEIGHT_PACKS_BYTES
#define ONEWEIGHT_PACKS_BYTES 0
#endif

// Requantises to Out (int8 or uint8).
template <class Out>
struct QuantizedStore {
  QuantizedScaling q;
  Out* out;                // of row 0, channel 0
  int64_t stride;
  bool needs_row_sums() const { return q.weight_zero != 0; }

  // `count` channels from n on of `rows` rows from m on.
  HWY_NOINLINE void store(const int32_t* sums, int64_t sums_stride, int rows, const int32_t* row_sums, int64_t m, int64_t n,
                          int64_t count) const {
    const Part part{sums, sums_stride, rows, row_sums, out + m * stride + n, n, count, q.weight_zero};
#if ONEWEIGHT_PACKS_BYTES
    // Half vectors hold what there is.
    const hn::Half<Int32Tag> half;
    if (hn::MaxLanes(half) > 4 && count <= static_cast<int64_t>(hn::Lanes(half))) return store_part(half, part);
#endif
    store_part(Int32Tag(), part);
  }

 private:
  struct Part {
    const int32_t* sums;
    int64_t sums_stride;
    int rows;
    const int32_t* row_sums;
    Out* to;
    int64_t n, count;
    int32_t weight_zero;
  };

  enum class Scale { any, narrow, plain };

  template <class D>
  HWY_INLINE void store_part(D d, const Part& part) const {
    if (!q.narrow) store_rows<Scale::any>(d, part);
    else if (q.plain) store_rows<Scale::plain>(d, part);
    else store_rows<Scale::narrow>(d, part);
  }

  // What the channels of one vector share.
  template <class D>
  struct Factors {
    hn::Vec<D> multiplier, shift;
    NarrowFactors<D> narrow;
  };
  template <Scale kScale, class D>
  HWY_INLINE Factors<D> factors(D d, int64_t n) const {
    const auto multiplier = hn::LoadU(d, q.multiplier + n), shift = hn::LoadU(d, q.shift + n);
    if constexpr (kScale == Scale::plain) return {multiplier, shift, plain_factors(d, multiplier, shift, q.once)};
    else return {multiplier, shift, narrow_factors(d, multiplier, hn::Min(shift, hn::Zero(d)), q.once)};
  }
  template <Scale kScale, class D>
  HWY_INLINE hn::Vec<D> scaled(D d, const Part& part, const Factors<D>& f, int r, int64_t i) const {
    auto x = hn::LoadU(d, part.sums + r * part.sums_stride + i);
    if (part.weight_zero != 0) x = hn::Sub(x, hn::Set(d, part.weight_zero * part.row_sums[r]));
    if constexpr (kScale == Scale::plain) return requantize_plain(d, x, f.narrow);
    else if constexpr (kScale == Scale::narrow) return requantize_narrow(d, x, f.narrow);
    else return q.once ? requantize_once(d, x, f.multiplier, f.shift) : requantize(d, x, f.multiplier, f.shift);
  }

  template <Scale kScale, class D>
  HWY_INLINE void store_rows(D d, const Part& part) const {
    const hn::Rebind<Out, D> d_out;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), to_stride = stride;
    int64_t i = 0;
#if ONEWEIGHT_PACKS_BYTES
    const BytePacker<Out, D> packer(d, q.zero, q.low, q.high);
    for (; i + 2 * lanes <= part.count; i += 2 * lanes) {
      const auto f0 = factors<kScale>(d, part.n + i), f1 = factors<kScale>(d, part.n + i + lanes);
      Out* HWY_RESTRICT to = part.to + i;
      int r = 0;
      for (; r + 2 <= part.rows; r += 2, to += 2 * to_stride) {
        const auto bytes = packer.pack(scaled<kScale>(d, part, f0, r, i), scaled<kScale>(d, part, f1, r, i + lanes),
                                       scaled<kScale>(d, part, f0, r + 1, i), scaled<kScale>(d, part, f1, r + 1, i + lanes));
        packer.store_halves(bytes, to, to_stride);
      }
      if (r < part.rows) {
        const auto x = scaled<kScale>(d, part, f0, r, i), y = scaled<kScale>(d, part, f1, r, i + lanes);
        packer.store_half(packer.pack(x, y, x, y), to);
      }
    }
#endif
    const auto zero = hn::Set(d, q.zero), low = hn::Set(d, q.low), high = hn::Set(d, q.high);
    for (; i < part.count; i += lanes) {
      const auto f = factors<kScale>(d, part.n + i);
      Out* HWY_RESTRICT to = part.to + i;
      int r = 0;
#if ONEWEIGHT_PACKS_BYTES
      if (i + lanes <= part.count) {
        for (; r + 4 <= part.rows; r += 4, to += 4 * to_stride) {
          const auto bytes = packer.pack(scaled<kScale>(d, part, f, r, i), scaled<kScale>(d, part, f, r + 1, i),
                                         scaled<kScale>(d, part, f, r + 2, i), scaled<kScale>(d, part, f, r + 3, i));
          packer.store_quarters(bytes, to, to_stride);
        }
      }
#endif
      for (; r < part.rows; ++r, to += to_stride) {
        const auto x = hn::Add(scaled<kScale>(d, part, f, r, i), zero);
        const auto bytes = hn::DemoteTo(d_out, hn::Min(hn::Max(x, low), high));
        if (i + lanes <= part.count) hn::StoreU(bytes, d_out, to);
        else hn::StoreN(bytes, d_out, to, static_cast<size_t>(part.count - i));
      }
    }
  }
};

// Back to float: activation(scale of the row * scale of the channel * (sum - zero of the row * sum of the weights) + bias).
struct FloatStore {
  const float* row_scales;         // of row m / rows_per_scale
  const int32_t* row_zeros;        // in a'
  int64_t rows_per_scale;
  const float* channel_scales;     // readable 32 elements behind the last
  const int32_t* weight_sums;      // likewise
  const float* bias;               // may be null
  float low, high;
  float* out;
  int64_t stride;
  FusedActivation::After after = FusedActivation::none;
  bool needs_row_sums() const { return false; }

  void store(const int32_t* sums, int64_t sums_stride, int rows, const int32_t*, int64_t m, int64_t n, int64_t count) const {
    with_activation(after, [&](auto a) HWY_ATTR { store_after<decltype(a)::value>(sums, sums_stride, rows, m, n, count); });
  }
  template <FusedActivation::After kAfter>
  HWY_NOINLINE void store_after(const int32_t* sums, int64_t sums_stride, int rows, int64_t m, int64_t n, int64_t count) const {
    const Int32Tag d;
    const hn::RebindToFloat<Int32Tag> df;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto least = hn::Set(df, low), most = hn::Set(df, high);
    const int64_t first = m / rows_per_scale, next = (first + 1) * rows_per_scale - m;  // rows before the next scale
    for (int64_t i = 0; i < count; i += lanes) {
      const size_t some = static_cast<size_t>(std::min(lanes, count - i));
      const auto scale = hn::LoadU(df, channel_scales + n + i);
      const auto weight_sum = hn::LoadU(d, weight_sums + n + i);
      const auto add = bias ? hn::LoadN(df, bias + n + i, some) : hn::Zero(df);
      int64_t of = first, end = next;
      for (int r = 0; r < rows; ++of, end += rows_per_scale) {
        const auto less = hn::Mul(weight_sum, hn::Set(d, row_zeros[of]));
        const auto factor = hn::Mul(scale, hn::Set(df, row_scales[of]));
        for (; r < rows && r < end; ++r) {
          const auto x = hn::Sub(hn::LoadU(d, sums + r * sums_stride + i), less);
          auto y = hn::Add(hn::Mul(hn::ConvertTo(df, x), factor), add);
          y = hn::IfThenElse(hn::Lt(y, least), least, y);
          y = activate_after<kAfter>(df, hn::IfThenElse(hn::Gt(y, most), most, y));
          float* const to = out + (m + r) * stride + n + i;
          if (static_cast<int64_t>(some) == lanes) hn::StoreU(y, df, to);
          else hn::StoreN(y, df, to, some);
        }
      }
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif  // ONEWEIGHT_SIMD_QUANTIZED_STORE_INL_H
