// What every operator file includes: its row in an operator set, and the interfaces of plan and kernel.
//
// An operator is a struct (a template on its storage types) with
//   static constexpr OpRow row;                     what it takes
//   static Status prepare(Preparation& p);          checks, output shapes, parameters, kernel
// and kernels of type KernelFn.
#ifndef ONEWEIGHT_OPS_OP_H
#define ONEWEIGHT_OPS_OP_H

#include <cmath>
#include <limits>

#include "oneweight/plan/op_row.h"
#include "oneweight/simd/config.h"

namespace oneweight {
inline namespace v1 {

// The fused activation of an options table (ActivationFunctionType of the schema).
enum class Activation : int8_t { none = 0, relu = 1, relu_n1_to_1 = 2, relu6 = 3, tanh = 4, sign_bit = 5 };

// Bounds of a fused activation on float. tanh and sign_bit are refused, as LiteRT's kernels refuse them.
inline Status activation_bounds(const Preparation& p, Activation activation, FusedActivation* bounds) {
  *bounds = FusedActivation();
  switch (activation) {
    case Activation::none: return {};
    case Activation::relu: bounds->low = 0.0f; return {};
    case Activation::relu_n1_to_1: bounds->low = -1.0f, bounds->high = 1.0f; return {};
    case Activation::relu6: bounds->low = 0.0f, bounds->high = 6.0f; return {};
    default: return p.error(ErrorCode::unsupported, "fused activation %d is not supported", static_cast<int>(activation));
  }
}

// An error unless t has one scale > 0 and a zero point that its type can store.
inline Status expect_quantized(const Preparation& p, const Operand& t) {
  if (t.quantization->scales.size() != 1)
    return p.invalid("%s has %zu scales, not one", p.describe(t).c_str(), t.quantization->scales.size());
  if (!(t.scale() > 0) || std::isinf(t.scale())) return p.invalid("%s has the scale %g", p.describe(t).c_str(), static_cast<double>(t.scale()));
  int32_t low = std::numeric_limits<int32_t>::min(), high = std::numeric_limits<int32_t>::max();
  switch (t.type) {
    case TensorType::int8: low = -128, high = 127; break;
    case TensorType::uint8: low = 0, high = 255; break;
    case TensorType::int16: low = -32768, high = 32767; break;
    default: break;
  }
  if (t.zero_point() < low || t.zero_point() > high)
    return p.invalid("%s has zero point %d, outside of its type", p.describe(t).c_str(), t.zero_point());
  return {};
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_OP_H
