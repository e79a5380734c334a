// TRANSPOSE: the axes in the order of the constant input 1. Where only axes of extent 1 move, the memory is shared.
#ifndef ONEWEIGHT_OPS_TRANSPOSE_H
#define ONEWEIGHT_OPS_TRANSPOSE_H

#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct Transpose {
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::transpose,
                                .types = "all of whole bytes",
                                .accepts = &accepts_moved<0>,
                                .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
ONEWEIGHT_INLINE Status Transpose::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand& input = p.input(0);
  const int rank = input.shape.rank();
  std::vector<int64_t> order;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &order));
  if (order.size() != static_cast<size_t>(rank))
    return p.invalid("permutes %zu axes of %s", order.size(), p.describe(input).c_str());
  int64_t element = 0, from[kMaxRank], to[kMaxRank];
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &element));
  dense_strides(input.shape, element, from);
  Shape shape;
  bool seen[kMaxRank] = {};
  int axes[kMaxRank] = {};
  for (int i = 0; i < rank; ++i) {
    ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(order[i], rank, &axes[i]));
    if (seen[axes[i]]) return p.invalid("axis %d occurs twice in the permutation", axes[i]);
    seen[axes[i]] = true;
    shape.push_back(input.shape[axes[i]]);
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  dense_strides(shape, element, to);
  StridedCopy copy;
  for (int i = 0; i < rank; ++i) copy.add_axis(shape[i], from[axes[i]], to[i]);
  copy.finish(element);
  if (copy.rank == 0) p.allow_alias(0);
  return set_strided_copy(p, copy);
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_TRANSPOSE_H
