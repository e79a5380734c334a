// MINIMUM and MAXIMUM with broadcasting. NaN in either operand gives NaN. Quantised operands and output share scale
// and zero point. Types: float, half, int8, uint8, int16, int32, int64, uint32.
#ifndef ONEWEIGHT_OPS_MINIMUM_MAXIMUM_H
#define ONEWEIGHT_OPS_MINIMUM_MAXIMUM_H

#include "oneweight/ops/broadcast.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <bool kMaximum>
struct Extremum {
  static bool accepts(const NodeTypes& t) {
    if (t.input_count != 2 || t.inputs[0] != t.inputs[1] || !t.out(0, t.inputs[0])) return false;
    switch (t.inputs[0]) {
      case TensorType::float32: case TensorType::float16: case TensorType::int8: case TensorType::uint8:
      case TensorType::int16: case TensorType::int32: case TensorType::int64: case TensorType::uint32: case TensorType::boolean: return true;
      default: return false;
    }
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kMaximum ? BuiltinOperator::maximum : BuiltinOperator::minimum, .types = "float, half, integers",
                                .accepts = &accepts, .prepare = &prepare};

  using Params = BroadcastParams;
  template <class T>
  static T apply(T a, T b, const Params&, RunState*) {
    if constexpr (std::is_same_v<T, half>) {
      const float x = half_to_float(a), y = half_to_float(b);
      if (x != x || y != y) return x != x ? a : b;
      return (kMaximum ? x > y : x < y) ? a : b;
    } else {
      if (a != a) return a;          // NaN
      if (b != b) return b;
      return (kMaximum ? a > b : a < b) ? a : b;
    }
  }
};
using Maximum = Extremum<true>;
using Minimum = Extremum<false>;

#if ONEWEIGHT_HAS_KERNELS
template <bool kMaximum>
Status Extremum<kMaximum>::prepare(Preparation& p) {
  BroadcastParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_broadcast(p, &params));
  for (int i = 0; i < 2; ++i)
    if (p.input(i).quantized() && p.output(0).quantized() &&
        (p.input(i).scale() != p.output(0).scale() || p.input(i).zero_point() != p.output(0).zero_point()))
      return p.invalid("%s (scale %g, zero point %d) is not quantised as its output (scale %g, zero point %d)", p.describe(p.input(i)).c_str(),
                       static_cast<double>(p.input(i).scale()), static_cast<int>(p.input(i).zero_point()),
                       static_cast<double>(p.output(0).scale()), static_cast<int>(p.output(0).zero_point()));
  switch (p.input(0).type) {
    case TensorType::float32: set_broadcast_kernel(p, &broadcast_kernel<float, float, Extremum>); break;
    case TensorType::float16: set_broadcast_kernel(p, &broadcast_kernel<half, half, Extremum>); break;
    case TensorType::int8: set_broadcast_kernel(p, &broadcast_kernel<int8_t, int8_t, Extremum>); break;
    case TensorType::uint8: case TensorType::boolean: set_broadcast_kernel(p, &broadcast_kernel<uint8_t, uint8_t, Extremum>); break;
    case TensorType::int16: set_broadcast_kernel(p, &broadcast_kernel<int16_t, int16_t, Extremum>); break;
    case TensorType::int32: set_broadcast_kernel(p, &broadcast_kernel<int32_t, int32_t, Extremum>); break;
    case TensorType::uint32: set_broadcast_kernel(p, &broadcast_kernel<uint32_t, uint32_t, Extremum>); break;
    default: set_broadcast_kernel(p, &broadcast_kernel<int64_t, int64_t, Extremum>); break;
  }
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_MINIMUM_MAXIMUM_H
