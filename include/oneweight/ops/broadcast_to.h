// BROADCAST_TO: repeats axes of extent 1 (and missing leading ones) up to the constant shape of input 1.
#ifndef ONEWEIGHT_OPS_BROADCAST_TO_H
#define ONEWEIGHT_OPS_BROADCAST_TO_H

#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct BroadcastTo {
  static bool accepts(const NodeTypes& t) { return t.input_count == 2 && accepts_moved<0>(t); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::broadcast_to, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
ONEWEIGHT_INLINE Status BroadcastTo::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand& input = p.input(0);
  std::vector<int64_t> wanted;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &wanted));
  if (wanted.size() > static_cast<size_t>(kMaxRank))
    return p.invalid("asks for rank %zu, more than %d", wanted.size(), kMaxRank);
  Shape shape;
  for (int64_t extent : wanted) shape.push_back(extent);
  const int lead = shape.rank() - input.shape.rank();
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t have = i < lead ? 1 : input.shape[i - lead];
    if (lead < 0 || shape[i] < 0 || (have != 1 && have != shape[i]))
      return p.invalid("%s does not broadcast to %s", p.describe(input).c_str(), shape.to_string().c_str());
  }
  if (lead < 0) return p.invalid("%s does not broadcast to %s", p.describe(input).c_str(), shape.to_string().c_str());
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  int64_t element = 0, from[kMaxRank], to[kMaxRank];
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &element));
  dense_strides(input.shape, element, from);
  dense_strides(shape, element, to);
  StridedCopy copy;
  for (int i = 0; i < shape.rank(); ++i)
    copy.add_axis(shape[i], i < lead || input.shape[i - lead] == 1 ? 0 : from[i - lead], to[i]);
  copy.finish(element);
  if (shape.elements() == input.shape.elements()) p.allow_alias(0);
  return set_strided_copy(p, copy);
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_BROADCAST_TO_H
