// RESHAPE: the same elements under another shape. All types of fixed size.
// Shape: input 1 (constant integers), else the option new_shape; one extent may be -1. The memory is
// shared with the input where the plan can.
#ifndef ONEWEIGHT_OPS_RESHAPE_H
#define ONEWEIGHT_OPS_RESHAPE_H

#include "oneweight/ops/op.h"
#include "oneweight/ops/copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct Reshape {
  static bool accepts(const NodeTypes& types) {
    return types.input_count >= 1 && types.output_count == 1 && types.outputs[0] == types.inputs[0] &&
           tensor_type_bits(types.inputs[0]) != 0;
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::reshape, .types = "all of fixed size", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
ONEWEIGHT_INLINE Status Reshape::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 2));
  const Operand& input = p.input(0);
  std::vector<int64_t> wanted;
  if (p.has_input(1)) {
    ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &wanted));
  } else if (const std::vector<int64_t>* option = p.options().vector(0)) {
    wanted = *option;
    if (wanted.size() == 1 && wanted[0] == 0) wanted.clear();  // how old files write a scalar
  } else {
    return p.invalid("has neither a shape input nor the option new_shape");
  }
  if (wanted.size() > static_cast<size_t>(kMaxRank))
    return p.invalid("asks for rank %zu, more than %d", wanted.size(), kMaxRank);
  Shape shape;
  int unknown = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < -1 || (wanted[i] == -1 && unknown >= 0))
      return p.invalid("extent %lld of its new shape is not valid", static_cast<long long>(wanted[i]));
    if (wanted[i] == -1) unknown = static_cast<int>(i);
    shape.push_back(wanted[i] == -1 ? 1 : wanted[i]);
  }
  const int64_t have = input.shape.elements(), known = shape.elements();
  if (unknown >= 0) {
    if (known > 0 && have % known == 0) shape[unknown] = have / known;
    else if (known == 0 && have == 0) shape[unknown] = 0;
  }
  if (shape.elements() != have)
    return p.invalid("cannot make %s from %s: %lld elements", shape.to_string().c_str(), p.describe(input).c_str(),
                     static_cast<long long>(have));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  return prepare_copy(p);
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_RESHAPE_H
