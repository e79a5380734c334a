// REVERSE_V2: turns the constant axes of input 1 round.
#ifndef ONEWEIGHT_OPS_REVERSE_V2_H
#define ONEWEIGHT_OPS_REVERSE_V2_H

#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct ReverseV2 {
  static bool accepts(const NodeTypes& t) { return t.input_count == 2 && accepts_moved<0>(t); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::reverse_v2, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
ONEWEIGHT_INLINE Status ReverseV2::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand& input = p.input(0);
  const Shape& in = input.shape;
  std::vector<int64_t> axes;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &axes));
  bool turned[kMaxRank] = {};
  for (int64_t wanted : axes) {
    int axis = 0;
    ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(wanted, in.rank(), &axis));
    if (turned[axis]) return p.invalid("axis %d is named twice", axis);
    turned[axis] = true;
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, in));
  int64_t element = 0, strides[kMaxRank];
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &element));
  dense_strides(in, element, strides);
  StridedCopy copy;
  for (int i = 0; i < in.rank(); ++i) {
    if (turned[i] && in[i] > 0) copy.from_offset += (in[i] - 1) * strides[i];
    copy.add_axis(in[i], turned[i] ? -strides[i] : strides[i], strides[i]);
  }
  copy.finish(element);
  return set_strided_copy(p, copy);
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_REVERSE_V2_H
