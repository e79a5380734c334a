// The computation in the body subgraph of STABLEHLO_REDUCE_WINDOW and STABLEHLO_SCATTER: one known operator on its two scalar
// arguments, or the second argument itself.
#ifndef ONEWEIGHT_OPS_STABLEHLO_BODY_H
#define ONEWEIGHT_OPS_STABLEHLO_BODY_H

#include <type_traits>

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

enum class BodyFunction { add, multiply, minimum, maximum, all, any, replace };

#if ONEWEIGHT_HAS_KERNELS
// T: float, bool or an integer (which wraps). NaN wins maxima and minima.
template <BodyFunction kFunction, class T>
T apply_body(T a, T b) {
  using enum BodyFunction;
  if constexpr (kFunction == replace) {
    return b;
  } else if constexpr (std::is_same_v<T, bool>) {
    return kFunction == add || kFunction == maximum || kFunction == any ? a || b : a && b;
  } else if constexpr (kFunction == minimum || kFunction == maximum) {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a || b != b) return a + b;
    }
    return (kFunction == maximum ? a < b : b < a) ? b : a;
  } else if constexpr (kFunction == all || kFunction == any) {
    return static_cast<T>(kFunction == all ? a != T{0} && b != T{0} : a != T{0} || b != T{0});
  } else if constexpr (std::is_floating_point_v<T>) {
    return kFunction == multiply ? a * b : a + b;
  } else {
    const auto wide_a = static_cast<uint64_t>(a), wide_b = static_cast<uint64_t>(b);
    return static_cast<T>(kFunction == multiply ? wide_a * wide_b : wide_a + wide_b);
  }
}

// What subgraph `index` computes from two scalars of the type of `element`.
inline Status body_function(Preparation& p, int index, const Operand& element, BodyFunction* function) {
  static const Quantization none;
  Operand scalar;
  scalar.name = element.name, scalar.type = element.type, scalar.quantization = &none;
  const Operand* const inputs[2] = {&scalar, &scalar};
  const Plan* plan = nullptr;
  ONEWEIGHT_RETURN_IF_ERROR(p.subgraph(index, inputs, &plan));
  const SubgraphDef& body = plan->subgraph();
  const auto unknown = [&] {
    return p.error(ErrorCode::unsupported, "the computation of its subgraph %d is not one known operator on its arguments", index);
  };
  if (body.outputs.size() != 1) return unknown();
  if (body.operators.empty() && body.outputs[0] == body.inputs[1]) {
    *function = BodyFunction::replace;
    return {};
  }
  if (body.operators.size() != 1) return unknown();
  const OperatorDef& op = body.operators[0];
  const bool in_order = op.inputs == body.inputs,
             turned = op.inputs.size() == 2 && op.inputs[0] == body.inputs[1] && op.inputs[1] == body.inputs[0];
  if ((!in_order && !turned) || op.outputs != body.outputs) return unknown();
  switch (op.code) {
    case BuiltinOperator::add:
    case BuiltinOperator::stablehlo_add: *function = BodyFunction::add; return {};
    case BuiltinOperator::mul:
    case BuiltinOperator::stablehlo_multiply: *function = BodyFunction::multiply; return {};
    case BuiltinOperator::minimum:
    case BuiltinOperator::stablehlo_minimum: *function = BodyFunction::minimum; return {};
    case BuiltinOperator::maximum:
    case BuiltinOperator::stablehlo_maximum: *function = BodyFunction::maximum; return {};
    case BuiltinOperator::logical_and: *function = BodyFunction::all; return {};
    case BuiltinOperator::logical_or: *function = BodyFunction::any; return {};
    case BuiltinOperator::stablehlo_and:
      if (element.type != TensorType::boolean) return unknown();
      *function = BodyFunction::all;
      return {};
    default: return unknown();
  }
}

// Calls use(T{}) with the C++ type of `type`; false for types these operators do not take.
template <class Use>
bool with_body_type(TensorType type, Use use) {
  switch (type) {
    case TensorType::float32: use(float{}); return true;
    case TensorType::boolean: use(bool{}); return true;
    case TensorType::int8: use(int8_t{}); return true;
    case TensorType::uint8: use(uint8_t{}); return true;
    case TensorType::int16: use(int16_t{}); return true;
    case TensorType::int32: use(int32_t{}); return true;
    case TensorType::uint32: use(uint32_t{}); return true;
    case TensorType::int64: use(int64_t{}); return true;
    default: return false;
  }
}
#endif

inline bool is_body_type(TensorType type) {
  switch (type) {
    case TensorType::float32:
    case TensorType::boolean:
    case TensorType::int8:
    case TensorType::uint8:
    case TensorType::int16:
    case TensorType::int32:
    case TensorType::uint32:
    case TensorType::int64: return true;
    default: return false;
  }
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_STABLEHLO_BODY_H
