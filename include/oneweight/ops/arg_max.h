// ARG_MAX and ARG_MIN along the constant axis of input 1. The first of equal values wins; NaN never wins while a number
// is there (all NaN: index 0).
#ifndef ONEWEIGHT_OPS_ARG_MAX_H
#define ONEWEIGHT_OPS_ARG_MAX_H

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct ArgParams {
  int64_t extent = 0, inner = 1;
};

template <bool kMax>
struct ArgBy {
  static bool accepts(const NodeTypes& t) {
    switch (t.inputs[0]) {
      case TensorType::float32:
      case TensorType::int8:
      case TensorType::uint8:
      case TensorType::int16:
      case TensorType::int32:
      case TensorType::int64:
      case TensorType::boolean: break;
      default: return false;
    }
    return t.input_count == 2 && t.has_input[0] && (t.out(0, TensorType::int32) || t.out(0, TensorType::int64));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kMax ? BuiltinOperator::arg_max : BuiltinOperator::arg_min,
                                .types = "float, int8, uint8, int16, int32, int64, bool",
                                .accepts = &accepts,
                                .prepare = &prepare};
};
using ArgMax = ArgBy<true>;
using ArgMin = ArgBy<false>;

#if ONEWEIGHT_HAS_KERNELS
template <bool kMax, class T, class Index>
void arg_kernel(const KernelArgs& args) {
  const auto& p = args.params<ArgParams>();
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const T* in = args.in<T>(0) + row / p.inner * p.extent * p.inner + row % p.inner;
    int64_t best = 0;
    T value = in[0];
    for (int64_t i = 1; i < p.extent; ++i) {
      const T x = in[i * p.inner];
      if (!(kMax ? x > value : x < value) && !(value != value && x == x)) continue;
      best = i, value = x;
    }
    args.out<Index>(0)[row] = static_cast<Index>(best);
  }
}

template <bool kMax>
Status ArgBy<kMax>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand& input = p.input(0);
  std::vector<int64_t> axes;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &axes));
  if (axes.size() != 1) return p.invalid("names %zu axes, not one", axes.size());
  int axis = 0;
  ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(axes[0], input.shape.rank(), &axis));
  Shape shape;
  for (int i = 0; i < input.shape.rank(); ++i)
    if (i != axis) shape.push_back(input.shape[i]);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  if (input.shape[axis] == 0 && shape.elements() != 0)
    return p.invalid("axis %d of %s has no elements to choose from", axis, p.describe(input).c_str());
  ArgParams* params = p.make_params<ArgParams>();
  if (!params) return p.no_memory();
  params->extent = input.shape[axis];
  params->inner = input.shape.elements(axis + 1, input.shape.rank());
  const bool wide = p.output(0).type == TensorType::int64;
  const auto of = [&]<class T>(T) -> KernelFn {
    return wide ? &arg_kernel<kMax, T, int64_t> : &arg_kernel<kMax, T, int32_t>;
  };
  KernelFn kernel = nullptr;
  switch (input.type) {
    case TensorType::float32: kernel = of(float{}); break;
    case TensorType::int8: kernel = of(int8_t{}); break;
    case TensorType::uint8:
    case TensorType::boolean: kernel = of(uint8_t{}); break;
    case TensorType::int16: kernel = of(int16_t{}); break;
    case TensorType::int32: kernel = of(int32_t{}); break;
    default: kernel = of(int64_t{});
  }
  p.set_kernel(kernel, shape.elements());
  if (axis >= 2) p.set_same_rows_of(0);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_ARG_MAX_H
