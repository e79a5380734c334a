// Reciprocal, exp, logistic and tanh in 32-bit fixed point, bit by bit as TFLite's reference kernels compute them. Qm.n has
// m integer bits, a sign and n = 31 - m fractional bits.
#ifndef ONEWEIGHT_OPS_FIXED_FUNCTIONS_H
#define ONEWEIGHT_OPS_FIXED_FUNCTIONS_H

#include <bit>

#include "oneweight/base/fixed_point.h"

namespace oneweight {
inline namespace v1 {
namespace fixed {

inline constexpr int32_t kOne = std::numeric_limits<int32_t>::max();  // 1 in Q0.31, as near as it gets

// The product of Qa and Qb in Q(a + b).
constexpr int32_t multiply(int32_t a, int32_t b) { return saturating_rounding_doubling_high_mul(a, b); }
constexpr int32_t add(int32_t a, int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); }
constexpr int32_t subtract(int32_t a, int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b)); }
// x * 2^exponent, exponent >= 0, saturated.
constexpr int32_t shift_left(int32_t x, int exponent) {
  const int64_t wide = static_cast<int64_t>(x) << exponent;
  return wide > std::numeric_limits<int32_t>::max()   ? std::numeric_limits<int32_t>::max()
         : wide < std::numeric_limits<int32_t>::min() ? std::numeric_limits<int32_t>::min()
                                                      : static_cast<int32_t>(wide);
}
// (a + b) / 2, halves away from zero.
constexpr int32_t half_sum(int32_t a, int32_t b) {
  const int64_t sum = static_cast<int64_t>(a) + b;
  return static_cast<int32_t>((sum + (sum >= 0 ? 1 : -1)) / 2);
}

// x in Q2.29 near 2 / d for half a denominator d / 2 in Q0.31 within [1/2, 1]: three steps of Newton's iteration.
constexpr int32_t reciprocal_of_half(int32_t half_denominator) {
  int32_t x = add(1515870810, multiply(half_denominator, -1010580540));  // 48/17 - 32/17 d/2
  for (int i = 0; i < 3; ++i) {
    const int32_t rest = subtract(1 << 29, multiply(half_denominator, x));
    x = add(x, shift_left(multiply(x, rest), 2));
  }
  return x;
}
// 1 / (1 + a) in Q0.31, a in Q0.31 within [0, 1].
constexpr int32_t one_over_one_plus(int32_t a) { return shift_left(reciprocal_of_half(half_sum(a, kOne)), 1); }
// (1 - a) / (1 + a) in Q0.31, likewise.
constexpr int32_t one_minus_over_one_plus(int32_t a) {
  return shift_left(subtract(reciprocal_of_half(half_sum(a, kOne)), 1 << 29), 2);
}

// 1 / x for x > 0 in a format of `integer_bits`: result * 2^-bits_over_unit, result in Q0.31.
constexpr int32_t reciprocal(int32_t x, int integer_bits, int* bits_over_unit) {
  const int zeros = std::countl_zero(static_cast<uint32_t>(x));
  *bits_over_unit = integer_bits - zeros;
  return one_over_one_plus(static_cast<int32_t>((static_cast<uint32_t>(x) << zeros) - (uint32_t{1} << 31)));
}

// 1 / sqrt(x) for x > 0 as a factor: five steps of Newton's iteration on x scaled into [1/4, 1) by a power of 4.
constexpr FixedMultiplier inverse_square_root(int32_t x) {
  if (x <= 1) return {kOne, 0};
  int shift = 11;
  for (; x >= 1 << 29; x /= 4) ++shift;
  const int pairs = (std::countl_zero(static_cast<uint32_t>(x)) - 1) / 2 - 1;
  shift -= pairs;
  x <<= 2 * pairs;                   // in [2^27, 2^29)
  const int32_t half_x = rounding_divide_by_pot(x >> 1, 1);  // Q3.28
  int32_t y = 1 << 28;
  for (int i = 0; i < 5; ++i) {
    const int32_t cube = shift_left(multiply(multiply(y, y), y), 6);
    y = shift_left(subtract(multiply((1 << 28) + (1 << 27), y), multiply(half_x, cube)), 3);
  }
  y = multiply(y, 1518500250);       // sqrt(1/2)
  if (shift < 0) y <<= -shift, shift = 0;
  return {y, -shift};
}

// exp(a) in Q0.31 for a in Q0.31 within [-1/4, 0): a Taylor series around -1/8.
constexpr int32_t exp_of_quarter(int32_t a) {
  const int32_t x = add(a, 1 << 28), x2 = multiply(x, x), x3 = multiply(x2, x), x4 = multiply(x2, x2);
  const int32_t x4_over_4 = rounding_divide_by_pot(x4, 2);
  const int32_t tail = rounding_divide_by_pot(add(multiply(add(x4_over_4, x3), 715827883), x2), 1);
  return add(1895147668, multiply(1895147668, add(x, tail)));
}
// exp(a) in Q0.31 for a <= 0 with `integer_bits` in 0 ... 8.
constexpr int32_t exp_of_negative(int32_t a, int integer_bits) {
  constexpr int32_t factors[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};  // exp(-2^(i - 2))
  const int fraction = 31 - integer_bits;
  const int32_t quarter = int32_t{1} << (fraction - 2);
  const int32_t rest = subtract(a & (quarter - 1), quarter);
  int32_t result = exp_of_quarter(shift_left(rest, integer_bits));
  const int32_t quarters = subtract(rest, a);
  for (int i = 0; i < 7; ++i)
    if (integer_bits > i - 2 && (quarters & (int32_t{1} << (fraction + i - 2)))) result = multiply(result, factors[i]);
  if (integer_bits > 5 && a < -(int32_t{1} << (36 - integer_bits))) result = 0;
  return a == 0 ? kOne : result;
}

// 1 / (1 + exp(-a)) in Q0.31.
constexpr int32_t logistic(int32_t a, int integer_bits) {
  if (a == 0) return 1 << 30;
  const int32_t positive = one_over_one_plus(exp_of_negative(a > 0 ? -a : a, integer_bits));
  return a > 0 ? positive : subtract(kOne, positive);
}
// tanh(a) in Q0.31.
constexpr int32_t tanh(int32_t a, int integer_bits) {
  if (a == 0) return 0;
  // exp of twice the negative: the same bits with one integer bit more.
  const int32_t positive = one_minus_over_one_plus(exp_of_negative(a > 0 ? -a : a, integer_bits + 1));
  return a > 0 ? positive : -positive;
}

}  // namespace fixed
}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_FIXED_FUNCTIONS_H
