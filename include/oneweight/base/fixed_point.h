// The fixed-point arithmetic of quantised operators, bit by bit as TFLite's reference kernels do it.
#ifndef ONEWEIGHT_BASE_FIXED_POINT_H
#define ONEWEIGHT_BASE_FIXED_POINT_H

#include <cmath>
#include <cstdint>
#include <limits>

#include "oneweight/base/config.h"

namespace oneweight {
inline namespace v1 {

// A positive real factor as multiplier * 2^(shift - 31), multiplier in [2^30, 2^31) (or 0).
struct FixedMultiplier {
  int32_t multiplier = 0;
  int32_t shift = 0;                 // positive: to the left
};

// The nearest FixedMultiplier: the mantissa of frexp in [0.5, 1), rounded to 31 bits (halves away from zero).
// Factors below 2^-32 become 0; factors of 2^30 and more are capped.
inline FixedMultiplier quantize_multiplier(double real) {
  FixedMultiplier result;
  if (!(real > 0)) return result;
  int exponent = 0;
  const double mantissa = std::frexp(real, &exponent);
  int64_t fixed = static_cast<int64_t>(std::round(mantissa * 2147483648.0));
  if (fixed == int64_t{1} << 31) {
    fixed /= 2;
    ++exponent;
  }
  if (exponent < -31) return result;
  if (exponent > 30) {
    exponent = 30;
    fixed = (int64_t{1} << 31) - 1;
  }
  result.multiplier = static_cast<int32_t>(fixed);
  result.shift = exponent;
  return result;
}

// High 32 bits of 2 * a * b, rounded to nearest (halves up), saturated for the one product that does not fit.
constexpr int32_t saturating_rounding_doubling_high_mul(int32_t a, int32_t b) {
  if (a == std::numeric_limits<int32_t>::min() && b == a) return std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>((static_cast<int64_t>(a) * b + (int64_t{1} << 30)) >> 31);
}

// x / 2^exponent, rounded to nearest (halves away from zero), exponent in [0, 31].
constexpr int32_t rounding_divide_by_pot(int32_t x, int exponent) {
  const int32_t mask = static_cast<int32_t>((int64_t{1} << exponent) - 1);
  const int32_t remainder = x & mask;
  const int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> exponent) + (remainder > threshold ? 1 : 0);
}

// x * factor with the double rounding of the reference kernels; a left shift wraps as theirs does.
constexpr int32_t multiply_by_quantized_multiplier(int32_t x, FixedMultiplier factor) {
  const int left = factor.shift > 0 ? factor.shift : 0, right = factor.shift > 0 ? 0 : -factor.shift;
  const auto shifted = static_cast<int32_t>(static_cast<uint32_t>(x) << left);
  return rounding_divide_by_pot(saturating_rounding_doubling_high_mul(shifted, factor.multiplier), right);
}

// The variant for 64-bit accumulators (int16 activations): the multiplier is reduced to 16 bits first.
constexpr int32_t multiply_by_quantized_multiplier(int64_t x, FixedMultiplier factor) {
  const int32_t reduced = factor.multiplier < 0x7fff0000 ? (factor.multiplier + (1 << 15)) >> 16 : 0x7fff;
  const int total = 15 - factor.shift;
  if (total < 1 || total > 62) return 0;
  return static_cast<int32_t>(static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(int64_t{reduced}) + (uint64_t{1} << (total - 1))) >> total);
}

// x * factor rounded once, halves up: what the reference FULLY_CONNECTED does. |x| < 2^46.
constexpr int64_t multiply_rounding_once(int64_t x, FixedMultiplier factor) {
  const int total = 31 - factor.shift;
  const auto product = [&](int64_t a) { return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(int64_t{factor.multiplier})); };  // wraps
  const auto sum = [](int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); };
  if (total < 16) return sum(product(x), (int64_t{1} << total) >> 1) >> total;
  const int64_t high = x >> 16, low = x & 0xffff;
  return sum(product(high), (product(low) + (int64_t{1} << (total - 1))) >> 16) >> (total - 16);
}

// Stored bounds [low, high] that clamp to the real interval [real_low, real_high], for an output of this scale and zero
// point, within the range of its type. Infinite real bounds leave the type's.
struct QuantizedRange {
  int32_t low, high;
};
inline QuantizedRange quantized_range(float real_low, float real_high, float scale, int32_t zero_point, int32_t type_low, int32_t type_high) {
  const auto quantize = [&](float real) {
    const double q = std::round(static_cast<double>(real / scale)) + zero_point;
    return q < type_low ? type_low : q > type_high ? type_high : static_cast<int32_t>(q);
  };
  return {std::isinf(real_low) ? type_low : quantize(real_low), std::isinf(real_high) ? type_high : quantize(real_high)};
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_BASE_FIXED_POINT_H
