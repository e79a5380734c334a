// Integer scaling as TFLite's reference kernels do it: a factor is a 31-bit multiplier and a power of two, products
// round twice (to the high half, then by the shift; both halves away from zero for the second of them).
#ifndef ONEWEIGHT_OPS_FIXED_POINT_H
#define ONEWEIGHT_OPS_FIXED_POINT_H

#include <cmath>
#include <cstdint>
#include <limits>

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// factor = multiplier * 2^(shift - 31).
struct FixedFactor {
  int32_t multiplier = 0;
  int shift = 0;
};

// Factors below 2^-32 become 0, those above 2^30 the largest. `factor` is finite and >= 0.
inline FixedFactor fixed_factor(double factor) {
  if (factor == 0) return {};
  int shift = 0;
  int64_t multiplier = static_cast<int64_t>(std::round(std::frexp(factor, &shift) * 2147483648.0));
  if (multiplier == int64_t{1} << 31) multiplier /= 2, ++shift;
  if (shift < -31) return {};
  if (shift > 30) return {std::numeric_limits<int32_t>::max(), 30};
  return {static_cast<int32_t>(multiplier), shift};
}

// (a * b) / 2^31, halves away from zero; saturates.
inline int32_t doubling_high_multiply(int32_t a, int32_t b) {
  if (a == b && a == std::numeric_limits<int32_t>::min()) return std::numeric_limits<int32_t>::max();
  const int64_t product = static_cast<int64_t>(a) * b;
  const int64_t nudge = product >= 0 ? int64_t{1} << 30 : 1 - (int64_t{1} << 30);
  return static_cast<int32_t>((product + nudge) / (int64_t{1} << 31));
}

// x / 2^exponent, halves away from zero; exponent in [0, 31].
inline int32_t rounding_shift_right(int32_t x, int exponent) {
  const auto mask = static_cast<int32_t>((int64_t{1} << exponent) - 1);
  const int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> exponent) + ((x & mask) > threshold ? 1 : 0);
}

// x * f; the left shift wraps.
inline int32_t scale_fixed(int32_t x, FixedFactor f) {
  const int left = f.shift > 0 ? f.shift : 0, right = f.shift > 0 ? 0 : -f.shift;
  return rounding_shift_right(doubling_high_multiply(static_cast<int32_t>(static_cast<uint32_t>(x) << left), f.multiplier), right);
}

// The form for 64-bit sums (16-bit activations): a 16-bit multiplier, one rounding. |x| < 2^47.
inline int32_t scale_fixed_wide(int64_t x, FixedFactor f) {
  const int32_t reduced = f.multiplier < 0x7fff0000 ? (f.multiplier + (1 << 15)) >> 16 : 0x7fff;
  const int total = 15 - f.shift;
  return static_cast<int32_t>((x * reduced + (int64_t{1} << (total - 1))) >> total);
}

// Bounds of a fused activation on stored values of [low, high] with this scale and zero point.
inline Status quantized_activation_bounds(const Preparation& p, Activation activation, const Operand& output, int32_t low, int32_t high,
                                          int32_t* least, int32_t* most) {
  FusedActivation bounds;
  ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, activation, &bounds));
  const auto stored = [&](float real, int32_t otherwise) {
    if (std::isinf(real)) return otherwise;
    const double value = output.zero_point() + std::round(static_cast<double>(real / output.scale()));
    return static_cast<int32_t>(value < low ? low : value > high ? high : value);
  };
  *least = stored(bounds.low, low);
  *most = stored(bounds.high, high);
  if (activation != Activation::none && output.scale() <= 0)
    return p.invalid("%s has a fused activation but no scale", p.describe(output).c_str());
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_FIXED_POINT_H
