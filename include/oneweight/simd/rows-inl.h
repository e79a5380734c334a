// Dot products of a few vectors with rows of weights, for operators that step through time: y += W x with W [rows, columns]
// as it lies in the file (float, half or int8), one product after the other.
#if defined(ONEWEIGHT_SIMD_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_ROWS_INL_H
#undef ONEWEIGHT_SIMD_ROWS_INL_H
#else
#define ONEWEIGHT_SIMD_ROWS_INL_H
#endif

#include "oneweight/base/types.h"
#include "oneweight/simd/config.h"
#include "oneweight/simd/half-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Loads of n <= Lanes(d) stored values as floats; lanes from n on are zero.
template <class D>
HWY_INLINE hn::Vec<D> row_load(D d, const float* p) { return hn::LoadU(d, p); }
template <class D>
HWY_INLINE hn::Vec<D> row_load_n(D d, const float* p, size_t n) { return hn::LoadN(d, p, n); }
template <class D>
HWY_INLINE hn::Vec<D> row_load(D d, const half* p) {
  return widen_half(d, hn::LoadU(hn::Rebind<uint16_t, D>(), reinterpret_cast<const uint16_t*>(p)));
}
template <class D>
HWY_INLINE hn::Vec<D> row_load_n(D d, const half* p, size_t n) {
  return widen_half(d, hn::LoadN(hn::Rebind<uint16_t, D>(), reinterpret_cast<const uint16_t*>(p), n));
}

// Dot product of one row with x, in an order that depends on `columns` alone.
template <class W>
HWY_INLINE float row_dot(const W* HWY_RESTRICT row, const float* HWY_RESTRICT x, size_t columns) {
  const hn::ScalableTag<float> d;
  const size_t n = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = hn::Zero(d);
  size_t k = 0;
  for (; k + 2 * n <= columns; k += 2 * n) {
    s0 = hn::MulAdd(row_load(d, row + k), hn::LoadU(d, x + k), s0);
    s1 = hn::MulAdd(row_load(d, row + k + n), hn::LoadU(d, x + k + n), s1);
  }
  for (; k < columns; k += n) {
    const size_t left = columns - k < n ? columns - k : n;
    s0 = hn::MulAdd(row_load_n(d, row + k, left), hn::LoadN(d, x + k, left), s0);
  }
  return hn::ReduceSum(d, hn::Add(s0, s1));
}

// Exact integer dot product of int8 values.
HWY_INLINE int32_t row_dot(const int8_t* HWY_RESTRICT row, const int8_t* HWY_RESTRICT x, size_t columns) {
  const hn::ScalableTag<int32_t> d32;
  const hn::Repartition<int16_t, decltype(d32)> d16;
  const hn::Rebind<int8_t, decltype(d16)> d8;
  const size_t n = hn::Lanes(d16);
  auto sum = hn::Zero(d32);
  for (size_t k = 0; k < columns; k += n) {
    const size_t left = columns - k < n ? columns - k : n;
    const auto a = hn::PromoteTo(d16, hn::LoadN(d8, row + k, left)), b = hn::PromoteTo(d16, hn::LoadN(d8, x + k, left));
    sum = hn::Add(sum, hn::WidenMulPairwiseAdd(d32, a, b));
  }
  return hn::ReduceSum(d32, sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif
