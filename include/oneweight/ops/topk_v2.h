// TOPK_V2: the k (constant) largest elements of each line of the last axis, largest first, and their indices. Equal
// ones keep their order; NaN counts as smallest.
#ifndef ONEWEIGHT_OPS_TOPK_V2_H
#define ONEWEIGHT_OPS_TOPK_V2_H

#include <algorithm>

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct TopKParams {
  int64_t k = 0, extent = 0;
};

struct TopKV2 {
  static bool accepts(const NodeTypes& t) {
    switch (t.inputs[0]) {
      case TensorType::float32:
      case TensorType::int8:
      case TensorType::uint8:
      case TensorType::int16:
      case TensorType::int32:
      case TensorType::int64: break;
      default: return false;
    }
    return t.input_count == 2 && t.has_input[0] && t.out(0, t.inputs[0]) &&
           (t.out(1, TensorType::int32) || t.out(1, TensorType::int16));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::topk_v2,
                                .types = "float, int8, uint8, int16, int32, int64",
                                .accepts = &accepts,
                                .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
template <class T, class Index>
void top_k_kernel(const KernelArgs& args) {
  const auto& p = args.params<TopKParams>();
  auto* order = reinterpret_cast<int32_t*>(args.scratch);
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const T* in = args.in<T>(0) + row * p.extent;
    for (int64_t i = 0; i < p.extent; ++i) order[i] = static_cast<int32_t>(i);
    std::partial_sort(order, order + p.k, order + p.extent, [in](int32_t a, int32_t b) {
      const T x = in[a], y = in[b];
      if (x > y || y > x) return x > y;
      if ((x != x) != (y != y)) return y != y;
      return a < b;
    });
    for (int64_t i = 0; i < p.k; ++i) {
      args.out<T>(0)[row * p.k + i] = in[order[i]];
      args.out<Index>(1)[row * p.k + i] = static_cast<Index>(order[i]);
    }
  }
}

ONEWEIGHT_INLINE Status TopKV2::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2, 2));
  const Operand& input = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(input, 1, kMaxRank));
  std::vector<int64_t> k;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &k));
  const int last = input.shape.rank() - 1;
  const int64_t extent = input.shape[last];
  const bool narrow = p.output(1).type == TensorType::int16;
  if (k.size() != 1 || k[0] < 0 || k[0] > extent)
    return p.invalid("k %lld does not fit %s", k.empty() ? 0LL : static_cast<long long>(k[0]),
                     p.describe(input).c_str());
  if (extent > (narrow ? std::numeric_limits<int16_t>::max() : std::numeric_limits<int32_t>::max()))
    return p.invalid("the last axis of %s is too long for its indices", p.describe(input).c_str());
  Shape shape = input.shape;
  shape[last] = k[0];
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(1, shape));
  TopKParams* params = p.make_params<TopKParams>();
  if (!params) return p.no_memory();
  *params = {k[0], extent};
  const auto of = [&]<class T>(T) -> KernelFn {
    return narrow ? &top_k_kernel<T, int16_t> : &top_k_kernel<T, int32_t>;
  };
  KernelFn kernel = nullptr;
  switch (input.type) {
    case TensorType::float32: kernel = of(float{}); break;
    case TensorType::int8: kernel = of(int8_t{}); break;
    case TensorType::uint8: kernel = of(uint8_t{}); break;
    case TensorType::int16: kernel = of(int16_t{}); break;
    case TensorType::int32: kernel = of(int32_t{}); break;
    default: kernel = of(int64_t{});
  }
  p.set_scratch(extent * static_cast<int64_t>(sizeof(int32_t)));
  p.set_kernel(kernel, input.shape.elements(0, last));
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_TOPK_V2_H
