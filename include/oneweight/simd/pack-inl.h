// Float and half weights: loads that widen, and panels: weights of many output channels transposed so that the
// channels lie along the vector. Included once per target.
#if defined(ONEWEIGHT_SIMD_PACK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_PACK_INL_H
#undef ONEWEIGHT_SIMD_PACK_INL_H
#else
#define ONEWEIGHT_SIMD_PACK_INL_H
#endif

#include <cstring>
#include <type_traits>

#include "oneweight/base/types.h"
#include "oneweight/simd/config.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors of float: whatever the target has, but not more than this many lanes.
inline constexpr size_t kMaxFloatLanes = 16;
using FloatTag = hn::CappedTag<float, kMaxFloatLanes>;

// One weight (float or half, at any address) as float.
HWY_INLINE float widen_one(const float* from) {
  float value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
HWY_INLINE float widen_one(const half* from) {
  half value;
  std::memcpy(&value, from, sizeof(value));
  return half_to_float(value);
}

// Lanes(d) weights as float; at any address.
template <class D>
HWY_INLINE hn::Vec<D> load_widened(D d, const float* from) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, widen_one(from));
#else
  return hn::LoadU(d, from);
#endif
}
template <class D>
HWY_INLINE hn::Vec<D> load_widened(D d, const half* from) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, widen_one(from));
#else
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from)));
#endif
}

// The first n < Lanes(d) weights, 0 in the other lanes; reads nothing behind them.
template <class D, class W>
HWY_INLINE hn::Vec<D> load_widened_n(D d, const W* from, size_t n) {
#if HWY_TARGET == HWY_SCALAR
  return n ? hn::Set(d, widen_one(from)) : hn::Zero(d);
#else
  if constexpr (std::is_same_v<W, float>) {
    return hn::LoadN(d, from, n);
  } else {
    const hn::Rebind<hwy::float16_t, D> dh;
    const hn::RebindToUnsigned<decltype(dh)> du;
    return hn::PromoteTo(d, hn::BitCast(dh, hn::LoadN(du, reinterpret_cast<const uint16_t*>(from), n)));
  }
#endif
}

// Four weights of each of Lanes/4 rows (pointers rows[0], rows[4], rows[8] ...), one row in each 128-bit block.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const float* const* rows, int64_t at) {
  hn::Vec<D> v = hn::LoadDup128(d, rows[0] + at);
  const hn::RebindToUnsigned<D> du;
  const auto block = hn::ShiftRight<2>(hn::Iota(du, 0));
  for (size_t b = 1; b < hn::Lanes(d) / 4; ++b) {
    const auto mask = hn::RebindMask(d, hn::Eq(block, hn::Set(du, static_cast<uint32_t>(b))));
    v = hn::IfThenElse(mask, hn::LoadDup128(d, rows[4 * b] + at), v);
  }
  return v;
}
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const half* const* rows, int64_t at) {
  const hn::Rebind<hwy::float16_t, D> dh;
  const hn::Repartition<uint64_t, decltype(dh)> d64;
  const auto load = [&](size_t b) HWY_ATTR {
    uint64_t bits;
    std::memcpy(&bits, rows[4 * b] + at, sizeof(bits));
    return hn::Set(d64, bits);
  };
  auto v = load(0);
  for (size_t b = 1; b < hn::Lanes(d) / 4; ++b)
    v = hn::IfThenElse(hn::Eq(hn::Iota(d64, 0), hn::Set(d64, b)), load(b), v);
  return hn::PromoteTo(d, hn::BitCast(dh, v));
}

// panel[k * stride + c] = widened w[c * row_stride + k] for k in [0, count) and the first Lanes channels. Lanes at
// and behind `channels` (at least 1) repeat the last channel.
template <class W>
HWY_INLINE void pack_vector(const W* w, int64_t row_stride, int64_t channels, int64_t count, float* HWY_RESTRICT panel,
                            int64_t stride) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto row = [&](int64_t c) { return w + (c < channels ? c : channels - 1) * row_stride; };
#if HWY_TARGET != HWY_SCALAR
  if (count >= 4) {
    const W* rows[kMaxFloatLanes];
    for (int64_t c = 0; c < lanes; ++c) rows[c] = row(c);
    const hn::Repartition<double, decltype(d)> dd;
    for (int64_t k = 0;; k += 4) {
      if (k > count - 4) {
        if (k == count) break;
        k = count - 4;  // the last four once more rather than a tail
      }
      const auto r0 = load_blocks(d, rows + 0, k), r1 = load_blocks(d, rows + 1, k);
      const auto r2 = load_blocks(d, rows + 2, k), r3 = load_blocks(d, rows + 3, k);
      const auto a0 = hn::BitCast(dd, hn::InterleaveLower(d, r0, r1)), a1 = hn::BitCast(dd, hn::InterleaveLower(d, r2, r3));
      const auto a2 = hn::BitCast(dd, hn::InterleaveUpper(d, r0, r1)), a3 = hn::BitCast(dd, hn::InterleaveUpper(d, r2, r3));
      float* to = panel + k * stride;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, a0, a1)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, a0, a1)), d, to + stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, a2, a3)), d, to + 2 * stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, a2, a3)), d, to + 3 * stride);
    }
    return;
  }
#endif
  for (int64_t k = 0; k < count; ++k)
    for (int64_t c = 0; c < lanes; ++c) panel[k * stride + c] = widen_one(row(c) + k);
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif  // ONEWEIGHT_SIMD_PACK_INL_H
