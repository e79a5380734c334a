// BITCAST: the same bytes as elements of another type, all types of whole bytes. Narrower elements add a last axis, wider
// ones take away a last axis of as many elements as make one. The memory is shared with the input where the plan can.
#ifndef ONEWEIGHT_OPS_BITCAST_H
#define ONEWEIGHT_OPS_BITCAST_H

#include "oneweight/ops/copy.h"
#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct Bitcast {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 1 && t.has_input[0] && t.output_count == 1 && tensor_type_bits(t.inputs[0]) >= 8 &&
           tensor_type_bits(t.outputs[0]) >= 8;
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::bitcast, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
ONEWEIGHT_INLINE Status Bitcast::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const Operand& input = p.input(0);
  const int from = tensor_type_bits(input.type), to = tensor_type_bits(p.output(0).type);
  Shape shape = input.shape;
  if (from > to) {
    if (shape.rank() == kMaxRank) return p.invalid("makes more than %d axes of %s", kMaxRank, p.describe(input).c_str());
    shape.push_back(from / to);
  } else if (from < to) {
    const int last = shape.rank() - 1;
    if (last < 0 || shape[last] != to / from)
      return p.invalid("%s has no last axis of %d elements, which make one %s", p.describe(input).c_str(), to / from,
                       tensor_type_name(p.output(0).type));
    Shape shorter;
    for (int i = 0; i < last; ++i) shorter.push_back(shape[i]);
    shape = shorter;
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  return prepare_copy(p);
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_BITCAST_H
