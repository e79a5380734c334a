// SQUEEZE: drops axes of extent 1: those named (negative counts from the end), or all of them when none is named.
// The memory is shared with the input where the plan can.
#ifndef ONEWEIGHT_OPS_SQUEEZE_H
#define ONEWEIGHT_OPS_SQUEEZE_H

#include "oneweight/ops/copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct Squeeze {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 1 && t.has_input[0] && t.out(0, t.inputs[0]) && tensor_type_bits(t.inputs[0]) != 0;
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::squeeze, .types = "all of fixed size", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
ONEWEIGHT_INLINE Status Squeeze::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const Shape& in = p.input(0).shape;
  bool drop[kMaxRank] = {};
  const std::vector<int64_t>* named = p.options().vector(0);
  if (named && !named->empty()) {
    for (int64_t wanted : *named) {
      int axis = 0;
      ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(wanted, in.rank(), &axis));
      if (in[axis] != 1)
        return p.invalid("axis %d of %s cannot be dropped: its extent is not 1", axis, p.describe(p.input(0)).c_str());
      drop[axis] = true;
    }
  } else {
    for (int i = 0; i < in.rank(); ++i) drop[i] = in[i] == 1;
  }
  Shape shape;
  for (int i = 0; i < in.rank(); ++i)
    if (!drop[i]) shape.push_back(in[i]);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  return prepare_copy(p);
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_SQUEEZE_H
