// What every operator file includes: its row in an operator set, and the interfaces of plan and kernel.
//
// An operator is a struct (a template on its storage types) with
//   static constexpr OpRow row;                     what it takes
//   static Status prepare(Preparation& p);          checks, output shapes, parameters, kernel
// and kernels of type KernelFn.
#ifndef ONEWEIGHT_OPS_OP_H
#define ONEWEIGHT_OPS_OP_H

#include "oneweight/plan/op_row.h"
#include "oneweight/simd/config.h"

namespace oneweight {
inline namespace v1 {

// InputRowsFn of operators whose output row r needs input row r.
inline RowRange same_rows(const void*, RowRange rows) { return rows; }

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

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_OP_H
