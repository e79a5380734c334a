// SHAPE and RANK: known when the plan is made; no step runs.
#ifndef ONEWEIGHT_OPS_SHAPE_OF_H
#define ONEWEIGHT_OPS_SHAPE_OF_H

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct ShapeOf {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 1 && (t.out(0, TensorType::int32) || t.out(0, TensorType::int64));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::shape, .types = "all -> int32, int64", .accepts = &accepts, .prepare = &prepare};
};

struct RankOf {
  static bool accepts(const NodeTypes& t) { return t.input_count == 1 && t.out(0, TensorType::int32); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::rank, .types = "all -> int32", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
ONEWEIGHT_INLINE Status ShapeOf::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const Shape in = p.input(0).shape;
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, Shape{in.rank()}));
  if (p.output(0).type == TensorType::int64) {
    int64_t* values = p.derived<int64_t>(in.rank());
    if (!values) return p.no_memory();
    for (int i = 0; i < in.rank(); ++i) values[i] = in[i];
    p.set_constant_output(0, values);
    return {};
  }
  int32_t* values = p.derived<int32_t>(in.rank());
  if (!values) return p.no_memory();
  for (int i = 0; i < in.rank(); ++i) {
    if (in[i] > std::numeric_limits<int32_t>::max())
      return p.invalid("extent %lld of %s does not fit int32", static_cast<long long>(in[i]),
                       p.describe(p.input(0)).c_str());
    values[i] = static_cast<int32_t>(in[i]);
  }
  p.set_constant_output(0, values);
  return {};
}

ONEWEIGHT_INLINE Status RankOf::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const int rank = p.input(0).shape.rank();
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, Shape()));
  int32_t* value = p.derived<int32_t>(1);
  if (!value) return p.no_memory();
  *value = rank;
  p.set_constant_output(0, value);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_SHAPE_OF_H
