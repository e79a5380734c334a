// EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL: bool results, with broadcasting.
// Types: float, half, int8, uint8, int16, int32, int64, uint32; EQUAL and NOT_EQUAL also bool. NaN is unequal to
// everything. Quantised operands are compared by their real values, scale * (stored - zero_point), in double.
#ifndef ONEWEIGHT_OPS_COMPARISON_H
#define ONEWEIGHT_OPS_COMPARISON_H

#include "oneweight/ops/broadcast.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct EqualTo { static constexpr auto code = BuiltinOperator::equal; template <class T> static bool apply(T a, T b) { return a == b; } };
struct NotEqualTo { static constexpr auto code = BuiltinOperator::not_equal; template <class T> static bool apply(T a, T b) { return !(a == b); } };
struct LessThan { static constexpr auto code = BuiltinOperator::less; template <class T> static bool apply(T a, T b) { return a < b; } };
struct LessOrEqual { static constexpr auto code = BuiltinOperator::less_equal; template <class T> static bool apply(T a, T b) { return a <= b; } };
struct GreaterThan { static constexpr auto code = BuiltinOperator::greater; template <class T> static bool apply(T a, T b) { return a > b; } };
struct GreaterOrEqual { static constexpr auto code = BuiltinOperator::greater_equal; template <class T> static bool apply(T a, T b) { return a >= b; } };

struct ComparisonParams {
  BroadcastPlan<2> broadcast;
  bool rescale = false;              // operands of different scale or zero point
  double scale[2] = {};
  int32_t zero_point[2] = {};
};

// Relation: one of the structs above.
template <class Relation>
struct Comparison {
  static bool accepts(const NodeTypes& t) {
    if (t.input_count != 2 || t.inputs[0] != t.inputs[1] || !t.out(0, TensorType::boolean)) return false;
    switch (t.inputs[0]) {
      case TensorType::float32: case TensorType::float16: case TensorType::int8: case TensorType::uint8:
      case TensorType::int16: case TensorType::int32: case TensorType::int64: case TensorType::uint32: return true;
      case TensorType::boolean: return Relation::code == BuiltinOperator::equal || Relation::code == BuiltinOperator::not_equal;
      default: return false;
    }
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = Relation::code, .types = "float, half, integers, bool", .accepts = &accepts, .prepare = &prepare};

  using Params = ComparisonParams;
  template <class T>
  static bool apply(T a, T b, const Params& p, RunState*) {
    if constexpr (std::is_same_v<T, half>) {
      return Relation::apply(half_to_float(a), half_to_float(b));
    } else if constexpr (std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t> || std::is_same_v<T, int16_t>) {
      if (p.rescale)
        return Relation::apply(p.scale[0] * static_cast<double>(a - p.zero_point[0]), p.scale[1] * static_cast<double>(b - p.zero_point[1]));
      return Relation::apply(a, b);
    } else {
      return Relation::apply(a, b);
    }
  }
};

using Equal = Comparison<EqualTo>;
using NotEqual = Comparison<NotEqualTo>;
using Less = Comparison<LessThan>;
using LessEqual = Comparison<LessOrEqual>;
using Greater = Comparison<GreaterThan>;
using GreaterEqual = Comparison<GreaterOrEqual>;

#if ONEWEIGHT_HAS_KERNELS
template <class Relation>
Status Comparison<Relation>::prepare(Preparation& p) {
  ComparisonParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_broadcast(p, &params));
  const Operand &a = p.input(0), &b = p.input(1);
  params->rescale = a.quantized() && b.quantized() && (a.scale() != b.scale() || a.zero_point() != b.zero_point());
  params->scale[0] = a.scale(), params->scale[1] = b.scale();
  params->zero_point[0] = a.zero_point(), params->zero_point[1] = b.zero_point();
  switch (a.type) {
    case TensorType::float32: set_broadcast_kernel(p, &broadcast_kernel<float, bool, Comparison>); break;
    case TensorType::float16: set_broadcast_kernel(p, &broadcast_kernel<half, bool, Comparison>); break;
    case TensorType::int8: set_broadcast_kernel(p, &broadcast_kernel<int8_t, bool, Comparison>); break;
    case TensorType::uint8: set_broadcast_kernel(p, &broadcast_kernel<uint8_t, bool, Comparison>); break;
    case TensorType::boolean: set_broadcast_kernel(p, &broadcast_kernel<uint8_t, bool, Comparison>); break;
    case TensorType::int16: set_broadcast_kernel(p, &broadcast_kernel<int16_t, bool, Comparison>); break;
    case TensorType::int32: set_broadcast_kernel(p, &broadcast_kernel<int32_t, bool, Comparison>); break;
    case TensorType::uint32: set_broadcast_kernel(p, &broadcast_kernel<uint32_t, bool, Comparison>); break;
    default: set_broadcast_kernel(p, &broadcast_kernel<int64_t, bool, Comparison>); break;
  }
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_COMPARISON_H
