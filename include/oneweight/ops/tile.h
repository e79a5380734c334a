// TILE: repeats a tensor along each axis, as often as the constant input 1 says.
#ifndef ONEWEIGHT_OPS_TILE_H
#define ONEWEIGHT_OPS_TILE_H

#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct Tile {
  static bool accepts(const NodeTypes& t) { return t.input_count == 2 && accepts_moved<0>(t); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::tile, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
ONEWEIGHT_INLINE Status Tile::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand& input = p.input(0);
  const int rank = input.shape.rank();
  std::vector<int64_t> times;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &times));
  if (times.size() != static_cast<size_t>(rank))
    return p.invalid("has %zu multiples for %s", times.size(), p.describe(input).c_str());
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    int64_t extent = 0;
    if (times[i] < 0 || !checked_multiply(input.shape[i], times[i], &extent))
      return p.invalid("cannot repeat axis %d of %s %lld times", i, p.describe(input).c_str(),
                       static_cast<long long>(times[i]));
    shape.push_back(extent);
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  int64_t element = 0, from[kMaxRank], to[kMaxRank];
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &element));
  dense_strides(input.shape, element, from);
  dense_strides(shape, element, to);
  StridedCopy copy;
  for (int i = 0; i < rank; ++i) {
    copy.add_axis(times[i], 0, to[i] * input.shape[i]);
    copy.add_axis(input.shape[i], from[i], to[i]);
  }
  copy.finish(element);
  if (shape == input.shape) p.allow_alias(0);
  return set_strided_copy(p, copy);
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_TILE_H
