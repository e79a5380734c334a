// base/fixed_point.h on vectors of int32, bit for bit.
#if defined(ONEWEIGHT_SIMD_REQUANTIZE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_REQUANTIZE_INL_H
#undef ONEWEIGHT_SIMD_REQUANTIZE_INL_H
#else
#define ONEWEIGHT_SIMD_REQUANTIZE_INL_H
#endif

#include "oneweight/base/fixed_point.h"
#include "oneweight/simd/config.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// saturating_rounding_doubling_high_mul for b > -2^31 (multipliers are never negative).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V doubling_high_mul(D d, V a, V b) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, saturating_rounding_doubling_high_mul(hn::GetLane(a), hn::GetLane(b)));
#else
  const hn::RepartitionToWide<D> dw;
  const hn::RebindToUnsigned<decltype(dw)> du;
  const auto nudge = hn::Set(dw, int64_t{1} << 30);
  const auto even = hn::BitCast(du, hn::Add(hn::MulEven(a, b), nudge));
  const auto odd = hn::BitCast(du, hn::Add(hn::MulOdd(a, b), nudge));
  // The result is bits 31..62 of each product.
  return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<1>(odd)), hn::BitCast(d, hn::ShiftRight<31>(even)));
#endif
}

// rounding_divide_by_pot with one exponent for all lanes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V rounding_shift_right(D d, V x, int exponent) {
  const auto mask = hn::Set(d, static_cast<int32_t>((int64_t{1} << exponent) - 1));
  const auto remainder = hn::And(x, mask);
  const auto threshold = hn::Sub(hn::ShiftRight<1>(mask), hn::ShiftRight<31>(x));  // + 1 where x < 0
  const auto up = hn::VecFromMask(d, hn::Gt(remainder, threshold));                // -1 where true
  return hn::Sub(hn::ShiftRightSame(x, exponent), up);
}
// The same with an exponent per lane.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V rounding_shift_right(D d, V x, V exponent) {
  const auto mask = hn::Sub(hn::Shl(hn::Set(d, 1), exponent), hn::Set(d, 1));
  const auto remainder = hn::And(x, mask);
  const auto threshold = hn::Sub(hn::ShiftRight<1>(mask), hn::ShiftRight<31>(x));
  const auto up = hn::VecFromMask(d, hn::Gt(remainder, threshold));
  return hn::Sub(hn::Shr(x, exponent), up);
}

// multiply_by_quantized_multiplier, one factor for all lanes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V requantize(D d, V x, FixedMultiplier factor) {
  if (factor.shift > 0) return doubling_high_mul(d, hn::ShiftLeftSame(x, factor.shift), hn::Set(d, factor.multiplier));
  return rounding_shift_right(d, doubling_high_mul(d, x, hn::Set(d, factor.multiplier)), -factor.shift);
}
// One factor per lane: multipliers and shifts (positive: to the left), at most 31 in size.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V requantize(D d, V x, V multiplier, V shift) {
  const auto zero = hn::Zero(d);
  const auto left = hn::Max(shift, zero), right = hn::Max(hn::Neg(shift), zero);
  return rounding_shift_right(d, doubling_high_mul(d, hn::Shl(x, left), multiplier), right);
}

// multiply_rounding_once, saturated to 32 bits, for any factors; lane by lane.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V requantize_once(D d, V x, V multiplier, V shift) {
  int32_t xs[HWY_MAX_BYTES / 4], ms[HWY_MAX_BYTES / 4], ss[HWY_MAX_BYTES / 4];
  hn::StoreU(x, d, xs), hn::StoreU(multiplier, d, ms), hn::StoreU(shift, d, ss);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    const int64_t scaled = multiply_rounding_once(xs[i], {ms[i], ss[i]});
    xs[i] = static_cast<int32_t>(scaled < INT32_MIN ? INT32_MIN : scaled > INT32_MAX ? INT32_MAX : scaled);
  }
  return hn::LoadU(d, xs);
}

// The constants of requantize_narrow and requantize_plain for the channels of one vector.
template <class D>
struct NarrowFactors {
  hn::Vec<D> multiplier, right, rounds;
  bool once;
#if HWY_TARGET != HWY_SCALAR
  hn::Vec<hn::RepartitionToWide<D>> even, odd;
#endif
};

// shift in [-31, 0]. once: one rounding (halves up), as multiply_rounding_once.
template <class D, class V = hn::Vec<D>>
HWY_INLINE NarrowFactors<D> narrow_factors(D d, V multiplier, V shift, bool once) {
  NarrowFactors<D> f;
  f.once = once;
  f.multiplier = multiplier;
  f.right = hn::Neg(shift);
  f.rounds = hn::VecFromMask(d, hn::Lt(shift, hn::Zero(d)));
#if HWY_TARGET != HWY_SCALAR
  const hn::RepartitionToWide<D> dw;
  const auto bit = hn::Set(d, static_cast<int32_t>(uint32_t{1} << 31));
  const auto low = once ? hn::AndNot(f.rounds, bit) : bit;
  const auto half = hn::BitCast(dw, hn::And(f.rounds, hn::Shl(hn::Set(d, 1), hn::Sub(f.right, hn::And(f.rounds, hn::Set(d, 1))))));
  const hn::RebindToUnsigned<decltype(dw)> du;
  const auto low_even = hn::BitCast(dw, hn::And(hn::BitCast(du, low), hn::Set(du, uint64_t{0xffffffff})));
  const auto low_odd = hn::BitCast(dw, hn::ShiftRight<32>(hn::BitCast(du, low)));
  f.even = hn::Or(hn::ShiftLeft<32>(half), low_even);
  f.odd = hn::BitCast(dw, hn::OddEven(hn::BitCast(d, half), hn::BitCast(d, low_odd)));
  if (once) f.rounds = hn::Zero(d);
#endif
  return f;
}
// requantize for |x| < 2^30 and shifts <= 0, in fewer steps: with h = 2^(s-1), s = -shift,
// ((x m + 2^30) >> 31 + h) is the high half of 2 x m + 2^31 + (h << 32); the half away from zero takes 1 from it
// where x < 0 (the sign of the product is that of x except for x = -1, m = 2^30, where both answer 0). Rounding once,
// it is the high half of 2 x m + 2^(31+s), shifted by s.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V requantize_narrow(D d, V x, const NarrowFactors<D>& f) {
#if HWY_TARGET == HWY_SCALAR
  const FixedMultiplier factor{hn::GetLane(f.multiplier), -hn::GetLane(f.right)};
  if (f.once) return hn::Set(d, static_cast<int32_t>(multiply_rounding_once(hn::GetLane(x), factor)));
  return hn::Set(d, multiply_by_quantized_multiplier(hn::GetLane(x), factor));
#else
  const auto twice = hn::Add(x, x);
  const auto even = hn::Add(hn::MulEven(twice, f.multiplier), f.even), odd = hn::Add(hn::MulOdd(twice, f.multiplier), f.odd);
  const auto high = hn::InterleaveOdd(d, hn::BitCast(d, even), hn::BitCast(d, odd));
  return hn::Shr(hn::MaskedAddOr(high, hn::Lt(x, hn::Zero(d)), high, f.rounds), f.right);
#endif
}

// shift in [-31, -1], for requantize_plain.
template <class D, class V = hn::Vec<D>>
HWY_INLINE NarrowFactors<D> plain_factors(D d, V multiplier, V shift, bool once) {
  NarrowFactors<D> f;
  f.once = once;
  f.multiplier = multiplier;
  f.right = hn::Max(hn::Sub(hn::Neg(shift), hn::Set(d, 1)), hn::Zero(d));
#if HWY_TARGET != HWY_SCALAR
  const hn::RepartitionToWide<D> dw;
  const hn::RebindToUnsigned<decltype(dw)> du;
  const auto bit = hn::Set(dw, int64_t{1} << 31), first = hn::Set(dw, once ? 0 : int64_t{1} << 30);
  const auto right_even = hn::BitCast(dw, hn::And(hn::BitCast(du, f.right), hn::Set(du, uint64_t{0xffffffff})));
  const auto right_odd = hn::BitCast(dw, hn::ShiftRight<32>(hn::BitCast(du, f.right)));
  f.even = hn::Add(hn::Shl(bit, right_even), first);
  f.odd = hn::Add(hn::Shl(bit, right_odd), first);
#endif
  return f;
}
// As requantize_narrow, but halves of negative numbers are rounded up (once: that is the rounding; otherwise for results that
// are clamped where they are negative): the high half of x m + 2^30 + 2^(30+s), shifted by s - 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V requantize_plain(D d, V x, const NarrowFactors<D>& f) {
#if HWY_TARGET == HWY_SCALAR
  const FixedMultiplier factor{hn::GetLane(f.multiplier), -1 - hn::GetLane(f.right)};
  if (f.once) return hn::Set(d, static_cast<int32_t>(multiply_rounding_once(hn::GetLane(x), factor)));
  return hn::Set(d, multiply_by_quantized_multiplier(hn::GetLane(x), factor));
#else
  const auto even = hn::Add(hn::MulEven(x, f.multiplier), f.even), odd = hn::Add(hn::MulOdd(x, f.multiplier), f.odd);
  return hn::Shr(hn::InterleaveOdd(d, hn::BitCast(d, even), hn::BitCast(d, odd)), f.right);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif
