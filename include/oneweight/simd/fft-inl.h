// Fourier transforms of power-of-two lengths in double, several side by side. Included once per target.
#if defined(ONEWEIGHT_SIMD_FFT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_FFT_INL_H
#undef ONEWEIGHT_SIMD_FFT_INL_H
#else
#define ONEWEIGHT_SIMD_FFT_INL_H
#endif

#include <utility>

#include "oneweight/simd/config.h"
#include "oneweight/simd/fft.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Real and imaginary parts apart.
struct ComplexArrays {
  double *re, *im;
};

// Butterflies [q, side) with one twiddle factor, as many as fit in vectors of d; answers the first that is left.
template <class D>
HWY_INLINE int64_t fft_butterflies(D d, const ComplexArrays& a, const ComplexArrays& b, double wr, double wi, int64_t q, int64_t side,
                                   const ComplexArrays& sum, const ComplexArrays& difference) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto vr = hn::Set(d, wr), vi = hn::Set(d, wi);
  for (; q + lanes <= side; q += lanes) {
    const auto ar = hn::LoadU(d, a.re + q), ai = hn::LoadU(d, a.im + q), br = hn::LoadU(d, b.re + q), bi = hn::LoadU(d, b.im + q);
    hn::StoreU(hn::Add(ar, br), d, sum.re + q);
    hn::StoreU(hn::Add(ai, bi), d, sum.im + q);
    const auto dr = hn::Sub(ar, br), di = hn::Sub(ai, bi);
    hn::StoreU(hn::MulSub(dr, vr, hn::Mul(di, vi)), d, difference.re + q);
    hn::StoreU(hn::MulAdd(dr, vi, hn::Mul(di, vr)), d, difference.im + q);
  }
  return q;
}

// Transforms `side` sequences of n numbers each, number k of sequence q at k * side + q. Works in x and y in turn and
// answers the one with the result. t holds factors for a multiple of n.
inline ComplexArrays fft(ComplexArrays x, ComplexArrays y, int64_t n, int64_t side, const TwiddleTable& t) {
  const hn::CappedTag<double, 8> d;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<double, 2> d2;
#endif
  for (; n > 1; n /= 2, side *= 2, std::swap(x, y)) {
    const int64_t step = t.length / n;
    for (int64_t p = 0; p < n / 2; ++p) {
      const double wr = t.factors[2 * p * step], wi = t.factors[2 * p * step + 1];
      const auto at = [side](const ComplexArrays& c, int64_t k) { return ComplexArrays{c.re + k * side, c.im + k * side}; };
      const ComplexArrays a = at(x, p), b = at(x, p + n / 2), sum = at(y, 2 * p), difference = at(y, 2 * p + 1);
      int64_t q = fft_butterflies(d, a, b, wr, wi, 0, side, sum, difference);
#if HWY_TARGET != HWY_SCALAR
      if (hn::Lanes(d) > 2) q = fft_butterflies(d2, a, b, wr, wi, q, side, sum, difference);
#endif
      const hn::CappedTag<double, 1> d1;
      fft_butterflies(d1, a, b, wr, wi, q, side, sum, difference);
    }
  }
  return x;
}

// The n / 2 + 1 first numbers of the transform of n real numbers x, n >= 2, into out; x.re and x.im hold the even and
// the odd ones. y: room for as many.
inline void real_fft(ComplexArrays x, ComplexArrays y, int64_t n, const TwiddleTable& t, ComplexArrays out) {
  const int64_t m = n / 2, step = t.length / n;
  const ComplexArrays z = fft(x, y, m, 1, t);
  out.re[0] = z.re[0] + z.im[0], out.im[0] = 0;
  out.re[m] = z.re[0] - z.im[0], out.im[m] = 0;
  for (int64_t k = 1; k < m; ++k) {
    // Even and odd numbers' transforms: (z[k] + conj z[m - k]) / 2 and (z[k] - conj z[m - k]) / 2i.
    const double er = (z.re[k] + z.re[m - k]) / 2, ei = (z.im[k] - z.im[m - k]) / 2;
    const double odd_r = (z.im[k] + z.im[m - k]) / 2, odd_i = (z.re[m - k] - z.re[k]) / 2;
    const double wr = t.factors[2 * k * step], wi = t.factors[2 * k * step + 1];
    out.re[k] = er + odd_r * wr - odd_i * wi;
    out.im[k] = ei + odd_r * wi + odd_i * wr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif  // ONEWEIGHT_SIMD_FFT_INL_H
