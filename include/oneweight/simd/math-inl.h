// exp, log, tanh and the logistic function on float vectors: the same bits on every target with fused multiply-add (but the logistic
// function, whose division is approximated on some), NaN passes, infinities are right. Errors against double: exp 1.5, log 2, tanh 3,
// logistic 3 ulp.
// Polynomials: Cephes (S. Moshier), single precision.
#if defined(ONEWEIGHT_SIMD_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_MATH_INL_H
#undef ONEWEIGHT_SIMD_MATH_INL_H
#else
#define ONEWEIGHT_SIMD_MATH_INL_H
#endif

#include <limits>

#include "oneweight/simd/config.h"
#include "oneweight/simd/targets.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Clamp that lets NaN through.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V clamp_keep_nan(D d, V x, V low, V high) {
  (void)d;
  const V clamped = hn::IfThenElse(hn::Lt(x, low), low, x);
  return hn::IfThenElse(hn::Gt(clamped, high), high, clamped);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_float(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V high = hn::Set(d, 88.7228394f), low = hn::Set(d, -104.0f);
  const V clamped = hn::IfThenElse(hn::IsNaN(x), hn::Zero(d), hn::Min(hn::Max(x, low), high));
  // x = q ln 2 + r with |r| <= ln 2 / 2; ln 2 in two parts.
  const V q = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504088896341f)));
  V r = hn::NegMulAdd(q, hn::Set(d, 0.693359375f), clamped);
  r = hn::NegMulAdd(q, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0f));
  // 2^q in two factors, so that neither leaves the exponent's range.
  const auto n = hn::ConvertTo(di, q);
  const auto half = hn::ShiftRight<1>(n);
  const auto bias = hn::Set(di, 127);
  const V first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(n, half), bias)));
  const V y = hn::Mul(hn::Mul(p, first), second);
  const V inf = hn::Set(d, std::numeric_limits<float>::infinity());
  const V bounded = hn::IfThenElse(hn::Gt(x, high), inf, hn::IfThenElse(hn::Lt(x, low), hn::Zero(d), y));
  return hn::IfThenElse(hn::IsNaN(x), x, bounded);
}

// 1 / (1 + exp(-x)), by t = exp(-|x|), which cannot overflow: 1 / (1 + t), or t / (1 + t) where x is negative. Any number for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logistic_number(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V lowest = hn::Set(d, -86.5f);  // 2^q stays a normal number
  const V z = hn::Max(hn::Or(x, hn::SignBit(d)), lowest);
  // z = q ln 2 + r; the sum with 1.5 * 2^23 has q in its low bits.
  const V magic = hn::Set(d, 12582912.0f), shifted = hn::MulAdd(z, hn::Set(d, 1.44269504088896341f), magic), q = hn::Sub(shifted, magic);
  V r = hn::NegMulAdd(q, hn::Set(d, 0.693359375f), z);
  r = hn::NegMulAdd(q, hn::Set(d, -2.12194440e-4f), r);
  // exp(r) as 1 + r + r^2 P(r), the largest relative error (3e-9) made smallest over |r| <= ln 2 / 2.
  V p = hn::Set(d, 1.3814583458e-3f);
  p = hn::MulAdd(p, r, hn::Set(d, 8.3687239877e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1668388742e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666520573e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.9999993444e-1f));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0f));
  const V t = hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
  const V one = hn::Set(d, 1.0f), sum = hn::Add(one, t), above = hn::IfNegativeThenElse(x, t, one);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // 14 bits, doubled by a step of Newton's.
  const V guess = hn::ApproximateReciprocal(sum);
  const V y = hn::Mul(above, hn::Mul(guess, hn::NegMulAdd(sum, guess, hn::Set(d, 2.0f))));
#else
  const V y = hn::Div(above, sum);
#endif
  return hn::IfThenZeroElse(hn::Lt(x, lowest), y);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logistic_float(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, logistic_number(d, x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_float(D d, V x) {
  const V magnitude = hn::Abs(x);
  // Small: x + x^3 P(x^2).
  const V z = hn::Mul(x, x);
  V p = hn::Set(d, -5.70498872745e-3f);
  p = hn::MulAdd(p, z, hn::Set(d, 2.06390887954e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, -5.37397155531e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, 1.33314422036e-1f));
  p = hn::MulAdd(p, z, hn::Set(d, -3.33332819422e-1f));
  const V small = hn::MulAdd(hn::Mul(p, z), x, x);
  // Large: 1 - 2 / (exp(2|x|) + 1), with the sign of x.
  const V one = hn::Set(d, 1.0f);
  const V large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(exp_float(d, hn::Add(magnitude, magnitude)), one)));
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.625f)), small, hn::CopySign(large, x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_float(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V smallest = hn::Set(d, std::numeric_limits<float>::min());
  // Denormals are scaled up by 2^23.
  const auto tiny = hn::Lt(x, smallest);
  const V scaled = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 8388608.0f)), x);
  const auto bits = hn::BitCast(di, scaled);
  auto exponent = hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, 126));
  V mantissa = hn::BitCast(d, hn::Or(hn::And(bits, hn::Set(di, 0x007fffff)), hn::Set(di, 0x3f000000)));  // [0.5, 1)
  V e = hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(tiny, hn::Set(d, 23.0f)));
  const auto below = hn::Lt(mantissa, hn::Set(d, 0.70710678118654752f));
  e = hn::Sub(e, hn::IfThenElseZero(below, hn::Set(d, 1.0f)));
  const V one = hn::Set(d, 1.0f);
  const V f = hn::Sub(hn::IfThenElse(below, hn::Add(mantissa, mantissa), mantissa), one);
  const V z = hn::Mul(f, f);
  V p = hn::Set(d, 7.0376836292e-2f);
  p = hn::MulAdd(p, f, hn::Set(d, -1.1514610310e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.1676998740e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, -1.2420140846e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.4249322787e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, -1.6668057665e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.0000714765e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, -2.4999993993e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 3.3333331174e-1f));
  V y = hn::Mul(hn::Mul(p, f), z);
  y = hn::MulAdd(e, hn::Set(d, -2.12194440e-4f), y);
  y = hn::MulAdd(z, hn::Set(d, -0.5f), y);
  y = hn::MulAdd(e, hn::Set(d, 0.693359375f), hn::Add(f, y));
  const V inf = hn::Set(d, std::numeric_limits<float>::infinity());
  const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  y = hn::IfThenElse(hn::Eq(x, inf), inf, y);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(inf), y);
  y = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), nan, y);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif
