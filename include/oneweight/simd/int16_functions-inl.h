// The logistic function and tanh on int16 in fixed point, bit by bit as the gates of TFLite's integer LSTM compute them.
// Qm.n has m integer bits, a sign and n = 15 - m fractional bits; results are Q0.15.
#if defined(ONEWEIGHT_SIMD_INT16_FUNCTIONS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_INT16_FUNCTIONS_INL_H
#undef ONEWEIGHT_SIMD_INT16_FUNCTIONS_INL_H
#else
#define ONEWEIGHT_SIMD_INT16_FUNCTIONS_INL_H
#endif

#include "oneweight/simd/config.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// x * 2^kBits, saturated.
template <int kBits, class D, class V = hn::Vec<D>>
HWY_INLINE V shift_left_saturated(D d, V x) {
  constexpr int16_t kMost = (1 << (15 - kBits)) - 1;
  const V high = hn::Set(d, int16_t{32767}), low = hn::Set(d, int16_t{-32768});
  const V shifted = hn::IfThenElse(hn::Gt(x, hn::Set(d, kMost)), high, hn::ShiftLeft<kBits>(x));
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, static_cast<int16_t>(-kMost))), low, shifted);
}
// x / 2^kBits, halves away from zero.
template <int kBits, class D, class V = hn::Vec<D>>
HWY_INLINE V shift_right_rounded(D d, V x) {
  constexpr int16_t kMask = (1 << kBits) - 1;
  const V threshold = hn::Sub(hn::Set(d, int16_t{kMask >> 1}), hn::ShiftRight<15>(x));  // + 1 where x < 0
  return hn::Sub(hn::ShiftRight<kBits>(x), hn::VecFromMask(d, hn::Gt(hn::And(x, hn::Set(d, kMask)), threshold)));
}

// exp(a) for a <= 0 with kInteger integer bits.
template <int kInteger, class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of_negative_int16(D d, V a) {
  constexpr int kFraction = 15 - kInteger;
  const V quarter = hn::Set(d, static_cast<int16_t>(1 << (kFraction - 2)));
  const V rest = hn::Sub(hn::And(a, hn::Sub(quarter, hn::Set(d, int16_t{1}))), quarter);  // in [-1/4, 0)
  // A Taylor series around -1/8.
  const V x = hn::Add(shift_left_saturated<kInteger>(d, rest), hn::Set(d, int16_t{1 << 12}));
  const V x2 = hn::MulFixedPoint15(x, x), x3 = hn::MulFixedPoint15(x2, x), x4 = hn::MulFixedPoint15(x2, x2);
  const V third = hn::MulFixedPoint15(hn::Add(shift_right_rounded<2>(d, x4), x3), hn::Set(d, int16_t{10923}));
  const V tail = shift_right_rounded<1>(d, hn::Add(third, x2));
  const V at_eighth = hn::Set(d, int16_t{28918});
  V y = hn::SaturatedAdd(at_eighth, hn::MulFixedPoint15(at_eighth, hn::Add(x, tail)));
  const V quarters = hn::Sub(rest, a);
  constexpr int16_t kFactors[] = {25520, 19875, 12055, 4435, 600, 11, 0};  // exp(-2^(i - 2))
  const auto multiply = [&](int i) HWY_ATTR {
    const V bit = hn::Set(d, static_cast<int16_t>(1 << (kFraction + i - 2)));
    y = hn::IfThenElse(hn::Eq(hn::And(quarters, bit), bit), hn::MulFixedPoint15(y, hn::Set(d, kFactors[i])), y);
  };
  multiply(0);
  multiply(1);
  if constexpr (kInteger > 0) multiply(2);
  if constexpr (kInteger > 1) multiply(3);
  if constexpr (kInteger > 2) multiply(4);
  if constexpr (kInteger > 3) multiply(5);
  if constexpr (kInteger > 4) multiply(6);
  if constexpr (kInteger > 5) y = hn::IfThenZeroElse(hn::Lt(a, hn::Set(d, static_cast<int16_t>(-(1 << (20 - kInteger))))), y);
  return hn::IfThenElse(hn::Eq(a, hn::Zero(d)), hn::Set(d, int16_t{32767}), y);
}

// 2 / (1 + a) in Q2.13 for a in [0, 1]: three steps of Newton's iteration.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V reciprocal_of_half_int16(D d, V a) {
  const hn::RebindToUnsigned<D> du;
  const V half = hn::BitCast(d, hn::AverageRound(hn::BitCast(du, a), hn::Set(du, uint16_t{32767})));
  V x = hn::Add(hn::Set(d, int16_t{23130}), hn::MulFixedPoint15(half, hn::Set(d, int16_t{-15420})));
  for (int i = 0; i < 3; ++i) {
    const V rest = hn::Sub(hn::Set(d, int16_t{1 << 13}), hn::MulFixedPoint15(half, x));
    x = hn::Add(x, shift_left_saturated<2>(d, hn::MulFixedPoint15(x, rest)));
  }
  return x;
}

// The logistic function of a in Q3.12.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logistic_int16(D d, V a) {
  const V positive = shift_left_saturated<1>(d, reciprocal_of_half_int16(d, exp_of_negative_int16<3>(d, hn::Min(a, hn::Neg(a)))));
  const V y = hn::IfThenElse(hn::Gt(a, hn::Zero(d)), positive, hn::Sub(hn::Set(d, int16_t{32767}), positive));
  return hn::IfThenElse(hn::Eq(a, hn::Zero(d)), hn::Set(d, int16_t{1 << 14}), y);
}

// tanh of a with kInteger integer bits.
template <int kInteger, class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_int16(D d, V a) {
  // exp of twice the negative: the same bits with one integer bit more.
  const V e = exp_of_negative_int16<kInteger + 1>(d, hn::Min(a, hn::Neg(a)));
  const V positive = shift_left_saturated<2>(d, hn::Sub(reciprocal_of_half_int16(d, e), hn::Set(d, int16_t{1 << 13})));
  const V y = hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Neg(positive), positive);
  return hn::IfThenZeroElse(hn::Eq(a, hn::Zero(d)), y);
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif
