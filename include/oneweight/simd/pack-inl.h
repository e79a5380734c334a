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
#include "oneweight/simd/half-inl.h"
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
  return widen_half(d, hn::LoadU(hn::Rebind<uint16_t, D>(), reinterpret_cast<const uint16_t*>(from)));
#endif
}

// The first n < Lanes(d) weights, 0 in the other lanes; reads nothing behind them.
template <class D, class W>
HWY_INLINE hn::Vec<D> load_widened_n(D d, const W* from, size_t n) {
#if HWY_TARGET == HWY_SCALAR
  return n ? hn::Set(d, widen_one(from)) : hn::Zero(d);
#else
  using Stored = std::conditional_t<std::is_same_v<W, float>, float, uint16_t>;
  const hn::Rebind<Stored, D> ds;
#if HWY_MEM_OPS_MIGHT_FAULT
  Stored some[kMaxFloatLanes] = {};
  std::memcpy(some, from, n * sizeof(W));
  const auto v = hn::LoadU(ds, some);
#else
  const auto v = hn::LoadN(ds, reinterpret_cast<const Stored*>(from), n);
#endif
  if constexpr (std::is_same_v<W, float>) {
    return v;
  } else {
    return widen_half(d, v);
  }
#endif
}

// to[k] = from[k] for k < count.
template <class W>
HWY_INLINE void widen_row(const W* from, int64_t count, float* HWY_RESTRICT to) {
  const FloatTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t k = 0;
  for (; k + lanes <= count; k += lanes) hn::StoreU(load_widened(d, from + k), d, to + k);
  for (; k < count; ++k) to[k] = widen_one(from + k);
}

#if HWY_TARGET != HWY_SCALAR
// v with 128-bit block b (four halves: 64-bit lane b) replaced by what lies at `from`.
template <class D>
HWY_INLINE hn::Vec<D> insert_block(D d, hn::Vec<D> v, size_t b, const float* from) {
  const hn::RebindToUnsigned<D> du;
  const auto mask = hn::Eq(hn::ShiftRight<2>(hn::Iota(du, 0)), hn::Set(du, static_cast<uint32_t>(b)));
  return hn::IfThenElse(hn::RebindMask(d, mask), hn::LoadDup128(d, from), v);
}
HWY_INLINE uint64_t load_bits(const half* from) {
  uint64_t bits;
  std::memcpy(&bits, from, sizeof(bits));
  return bits;
}
template <class D>
HWY_INLINE hn::Vec<D> insert_bits(D d, hn::Vec<D> v, size_t b, const half* from) {
  return hn::IfThenElse(hn::Eq(hn::Iota(d, 0), hn::Set(d, b)), hn::Set(d, load_bits(from)), v);
}

// Four weights of each of Lanes/4 rows (pointers rows[0], rows[4], rows[8] ...), one row in each 128-bit block.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const float* const* rows, int64_t at) {
#if !HWY_HAVE_SCALABLE
  if constexpr (hn::MaxLanes(D()) == 4) return hn::LoadU(d, rows[0] + at);
  if constexpr (hn::MaxLanes(D()) == 8)
    return hn::ConcatUpperLower(d, hn::LoadDup128(d, rows[4] + at), hn::LoadDup128(d, rows[0] + at));
#endif
  hn::Vec<D> v = hn::LoadDup128(d, rows[0] + at);
  if (hn::Lanes(d) == kMaxFloatLanes) {
    v = insert_block(d, v, 1, rows[4] + at);
    v = insert_block(d, v, 2, rows[8] + at);
    v = insert_block(d, v, 3, rows[12] + at);
  } else {
    for (size_t b = 1; b < hn::Lanes(d) / 4; ++b) v = insert_block(d, v, b, rows[4 * b] + at);
  }
  return v;
}
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const half* const* rows, int64_t at) {
  const hn::Rebind<uint16_t, D> du;
#if !HWY_HAVE_SCALABLE
  if constexpr (hn::MaxLanes(D()) == 4) return load_widened(d, rows[0] + at);
#endif
  const hn::Repartition<uint64_t, decltype(du)> d64;
  auto v = hn::Set(d64, load_bits(rows[0] + at));
  if (hn::Lanes(d) == kMaxFloatLanes) {
    v = insert_bits(d64, v, 1, rows[4] + at);
    v = insert_bits(d64, v, 2, rows[8] + at);
    v = insert_bits(d64, v, 3, rows[12] + at);
  } else {
    for (size_t b = 1; b < hn::Lanes(d) / 4; ++b) v = insert_bits(d64, v, b, rows[4 * b] + at);
  }
  return widen_half(d, hn::BitCast(du, v));
}

// panel[j * stride + c] = lane c of the transposed 4 x 4 blocks of r0, r1, r2, r3 for j in [0, 4).
template <class V>
HWY_INLINE void store_transposed(V r0, V r1, V r2, V r3, float* HWY_RESTRICT panel, int64_t stride) {
  const FloatTag d;
  const hn::Repartition<double, FloatTag> dd;
  const auto a0 = hn::BitCast(dd, hn::InterleaveLower(d, r0, r1)), a1 = hn::BitCast(dd, hn::InterleaveLower(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, a0, a1)), d, panel);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, a0, a1)), d, panel + stride);
  const auto a2 = hn::BitCast(dd, hn::InterleaveUpper(d, r0, r1)), a3 = hn::BitCast(dd, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, a2, a3)), d, panel + 2 * stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, a2, a3)), d, panel + 3 * stride);
}

// panel[j * stride + c] = rows[c][at + j] for j in [0, 4).
template <class W>
HWY_INLINE void pack_four(const W* const* rows, int64_t at, float* HWY_RESTRICT panel, int64_t stride) {
  const FloatTag d;
  const auto r0 = load_blocks(d, rows + 0, at), r1 = load_blocks(d, rows + 1, at);
  const auto r2 = load_blocks(d, rows + 2, at), r3 = load_blocks(d, rows + 3, at);
  store_transposed(r0, r1, r2, r3, panel, stride);
}
#endif

// Where the weights of the channels of a panel begin. Lanes at and behind `channels` (at least 1) repeat the last one.
template <class W>
HWY_INLINE void panel_rows(const W* w, int64_t row_stride, int64_t channels, int64_t lanes, const W** rows) {
  for (int64_t c = 0; c < lanes; ++c) rows[c] = w + (c < channels ? c : channels - 1) * row_stride;
}

// panel[k * stride + c] = rows[c][k], widened, for k in [0, count) and c in [0, Lanes).
template <class W>
HWY_INLINE void pack_vector(const W* const* rows, int64_t count, float* HWY_RESTRICT panel, int64_t stride) {
#if HWY_TARGET != HWY_SCALAR
  if (count >= 4) {
    int64_t k = 0;
    for (; k <= count - 4; k += 4) pack_four(rows, k, panel + k * stride, stride);
    if (k < count) pack_four(rows, count - 4, panel + (count - 4) * stride, stride);  // the last four once more
    return;
  }
#endif
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  for (int64_t k = 0; k < count; ++k)
    for (int64_t c = 0; c < lanes; ++c) panel[k * stride + c] = widen_one(rows[c] + k);
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif  // ONEWEIGHT_SIMD_PACK_INL_H
