// BROADCAST_ARGS: the shape to which two shapes broadcast; vectors of int32 or int64, checked while running.
#ifndef ONEWEIGHT_OPS_BROADCAST_ARGS_H
#define ONEWEIGHT_OPS_BROADCAST_ARGS_H

#include <algorithm>

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct BroadcastArgs {
  struct Params {
    int64_t ranks[2] = {}, rank = 0;
  };
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 2 && t.in(1, t.inputs[0]) && t.out(0, t.inputs[0]) &&
           (t.in(0, TensorType::int32) || t.in(0, TensorType::int64));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::broadcast_args, .types = "int32, int64", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
template <class T>
void broadcast_args_kernel(const KernelArgs& args) {
  const auto& p = args.params<BroadcastArgs::Params>();
  for (int64_t i = 0; i < p.rank; ++i) {
    T extents[2];
    for (int n = 0; n < 2; ++n) {
      const int64_t axis = i - (p.rank - p.ranks[n]);
      extents[n] = axis < 0 ? T{1} : Preparation::load<T>(args.in<std::byte>(n), axis);
    }
    if (extents[0] != extents[1] && extents[0] != 1 && extents[1] != 1)
      return args.run->fail(ErrorCode::invalid_data, "extents %lld and %lld of axis %lld do not broadcast",
                            static_cast<long long>(extents[0]), static_cast<long long>(extents[1]), static_cast<long long>(i));
    args.out<T>(0)[i] = extents[0] == 1 ? extents[1] : extents[0];
  }
}

ONEWEIGHT_INLINE Status BroadcastArgs::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  Params* params = p.make_params<Params>();
  if (!params) return p.no_memory();
  for (int i = 0; i < 2; ++i) {
    ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(p.input(i), 1, 1));
    params->ranks[i] = p.input(i).shape[0];
  }
  params->rank = std::max(params->ranks[0], params->ranks[1]);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, Shape{params->rank}));
  p.set_kernel(p.input(0).type == TensorType::int32 ? &broadcast_args_kernel<int32_t> : &broadcast_args_kernel<int64_t>);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_BROADCAST_ARGS_H
