// EXPAND_DIMS: a new axis of extent 1 at the constant position of input 1 (negative counts from the end of the
// output). The memory is shared with the input where the plan can.
#ifndef ONEWEIGHT_OPS_EXPAND_DIMS_H
#define ONEWEIGHT_OPS_EXPAND_DIMS_H

#include "oneweight/ops/copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct ExpandDims {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 2 && t.has_input[0] && t.out(0, t.inputs[0]) && tensor_type_bits(t.inputs[0]) != 0;
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::expand_dims, .types = "all of fixed size", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
ONEWEIGHT_INLINE Status ExpandDims::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Shape& in = p.input(0).shape;
  std::vector<int64_t> values;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &values));
  if (values.size() != 1) return p.invalid("%s names %zu axes, not one", p.describe(p.input(1)).c_str(), values.size());
  if (in.rank() >= kMaxRank)
    return p.invalid("%s cannot have more than %d axes", p.describe(p.input(0)).c_str(), kMaxRank);
  int axis = 0;
  ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(values[0], in.rank() + 1, &axis));
  Shape shape;
  for (int i = 0; i <= in.rank(); ++i) shape.push_back(i < axis ? in[i] : i == axis ? 1 : in[i - 1]);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  return prepare_copy(p);
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_EXPAND_DIMS_H
