// Factors of Fourier transforms; plain data, the same for every target.
#ifndef ONEWEIGHT_SIMD_FFT_H
#define ONEWEIGHT_SIMD_FFT_H

#include <cmath>
#include <cstdint>

#include "oneweight/base/config.h"

namespace oneweight {
inline namespace v1 {

// factors[2 k], factors[2 k + 1]: real and imaginary part of exp(-2 pi i k / length) for k < max(1, length / 2); length is a
// power of two.
struct TwiddleTable {
  const double* factors = nullptr;
  int64_t length = 1;
};
inline int64_t twiddle_count(int64_t length) { return length < 4 ? 2 : length; }
inline void fill_twiddles(int64_t length, double* factors) {
  const double circle = 6.283185307179586476925286766559;
  factors[0] = 1, factors[1] = 0;
  for (int64_t k = 1; k < length / 2; ++k) {
    const double angle = circle * static_cast<double>(k) / static_cast<double>(length);
    factors[2 * k] = std::cos(angle), factors[2 * k + 1] = -std::sin(angle);
  }
}
inline bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_SIMD_FFT_H
