// The logistic function and tanh on int16 as TFLite's integer LSTM computes them, written plainly: one number at a time.
#ifndef ONEWEIGHT_TESTS_SUPPORT_INT16_FUNCTIONS_H
#define ONEWEIGHT_TESTS_SUPPORT_INT16_FUNCTIONS_H

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace oneweight::testing::plain16 {

inline int saturated(int x) { return std::min(std::max(x, -32768), 32767); }
inline int wrapped(int x) { return static_cast<int16_t>(x); }
// The product of two Q0.15 numbers, halves up.
inline int times(int a, int b) { return saturated(static_cast<int>(std::floor((static_cast<double>(a) * b + 16384) / 32768))); }
inline int halved(int x, int bits) { return static_cast<int>(std::round(x / std::pow(2.0, bits))); }
inline int constant(double real, int fraction_bits) { return static_cast<int>(std::round(real * std::pow(2.0, fraction_bits))); }

inline int exp_of_negative(int a, int integer_bits) {
  if (a == 0) return 32767;
  if (integer_bits > 5 && a < -32 * (1 << (15 - integer_bits))) return 0;
  const int quarter = 1 << (13 - integer_bits);
  const int rest = (((a % quarter) + quarter) % quarter) - quarter;
  const int x = saturated(rest * (1 << integer_bits)) + 4096;
  const int x2 = times(x, x), x3 = times(x2, x), x4 = times(x2, x2);
  const int tail = halved(times(halved(x4, 2) + x3, constant(1.0 / 3, 15)) + x2, 1);
  const int at_eighth = constant(std::exp(-0.125), 15);
  int y = saturated(at_eighth + times(at_eighth, x + tail));
  const int quarters = (rest - a) / quarter;
  for (int i = 0; i < integer_bits + 2; ++i)
    if (i < 7 && (quarters >> i & 1)) y = times(y, constant(std::exp(-std::pow(2.0, i - 2)), 15));
  return y;
}
inline int reciprocal_of_half(int a) {
  const int half = (a + 32767 + 1) / 2;
  int x = constant(48.0 / 17, 13) + times(half, constant(-32.0 / 17, 13));
  for (int i = 0; i < 3; ++i) x = wrapped(x + saturated(4 * times(x, wrapped(8192 - times(half, x)))));
  return x;
}
inline int logistic(int a) {
  if (a == 0) return 16384;
  const int y = saturated(2 * reciprocal_of_half(exp_of_negative(-std::abs(a), 3)));
  return a > 0 ? y : 32767 - y;
}
inline int tanh(int a, int integer_bits) {
  if (a == 0) return 0;
  const int y = saturated(4 * (reciprocal_of_half(exp_of_negative(-std::abs(a), integer_bits + 1)) - 8192));
  return a > 0 ? y : -y;
}

}  // namespace oneweight::testing::plain16

#endif  // ONEWEIGHT_TESTS_SUPPORT_INT16_FUNCTIONS_H
