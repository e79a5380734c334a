// CUMSUM along an axis (input 1, constant): float, int32, int64. Exclusive sums leave out the element itself; reverse ones
// run from the end. Float sums are kept in float, one after the other; integers wrap.
#ifndef ONEWEIGHT_OPS_CUMSUM_H
#define ONEWEIGHT_OPS_CUMSUM_H

#include "oneweight/ops/elementwise.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct CumsumParams {
  int64_t extent = 0, inner = 1;     // of the axis; elements behind it
  bool exclusive = false, reverse = false;
};

struct Cumsum {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 2 && t.out(0, t.inputs[0]) &&
           (t.inputs[0] == TensorType::float32 || t.inputs[0] == TensorType::int32 || t.inputs[0] == TensorType::int64);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::cumsum, .types = "float, int32, int64", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
// T: float, or an unsigned integer. A row is one index of the axes before the summed one.
template <class T>
void cumsum_kernel(const KernelArgs& args) {
  const auto& p = args.params<CumsumParams>();
  for (int64_t r = args.rows.begin; r < args.rows.end; ++r) {
    const T* in = args.in<T>(0) + r * p.extent * p.inner;
    T* out = args.out<T>(0) + r * p.extent * p.inner;
    for (int64_t k = 0; k < p.inner; ++k) {
      T sum = 0;
      for (int64_t i = 0; i < p.extent; ++i) {
        const int64_t at = (p.reverse ? p.extent - 1 - i : i) * p.inner + k;
        const T value = in[at], next = sum + value;
        out[at] = p.exclusive ? sum : next;
        sum = next;
      }
    }
  }
}

ONEWEIGHT_INLINE Status Cumsum::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand& in = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(in, 1, kMaxRank));
  std::vector<int64_t> axes;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &axes));
  if (axes.size() != 1) return p.invalid("has %zu axes, not one", axes.size());
  int axis = 0;
  ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(axes[0], in.shape.rank(), &axis));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, in.shape));
  CumsumParams* params = p.make_params<CumsumParams>();
  if (!params) return p.no_memory();
  params->extent = in.shape[axis];
  params->inner = in.shape.elements(axis + 1, in.shape.rank());
  params->exclusive = p.options().get<bool>(0, false);
  params->reverse = p.options().get<bool>(1, false);
  p.set_kernel(in.type == TensorType::float32 ? &cumsum_kernel<float> : in.type == TensorType::int32 ? &cumsum_kernel<uint32_t> : &cumsum_kernel<uint64_t>,
               in.shape.elements(0, axis));
  p.allow_in_place(0);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_CUMSUM_H
