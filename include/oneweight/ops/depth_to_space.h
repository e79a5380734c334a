// DEPTH_TO_SPACE and SPACE_TO_DEPTH on NHWC: blocks of pixels against groups of channels (the block's position counts
// before the channel).
#ifndef ONEWEIGHT_OPS_DEPTH_TO_SPACE_H
#define ONEWEIGHT_OPS_DEPTH_TO_SPACE_H

#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <bool kToSpace>
struct DepthSpace {
  static bool accepts(const NodeTypes& t) { return t.input_count == 1 && accepts_moved<0>(t); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kToSpace ? BuiltinOperator::depth_to_space : BuiltinOperator::space_to_depth,
                                .types = "all of whole bytes",
                                .accepts = &accepts,
                                .prepare = &prepare};
};
using DepthToSpace = DepthSpace<true>;
using SpaceToDepth = DepthSpace<false>;

#if ONEWEIGHT_HAS_KERNELS
template <bool kToSpace>
Status DepthSpace<kToSpace>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const Operand& input = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(input, 4, 4));
  const Shape& in = input.shape;
  const int64_t block = p.options().get<int32_t>(0, 0);
  if (block <= 0) return p.invalid("block size %lld is not positive", static_cast<long long>(block));
  const bool fits = kToSpace ? in[3] % (block * block) == 0 : in[1] % block == 0 && in[2] % block == 0;
  if (!fits)
    return p.invalid("%s cannot be cut into blocks of %lld", p.describe(input).c_str(), static_cast<long long>(block));
  const Shape out = kToSpace ? Shape{in[0], in[1] * block, in[2] * block, in[3] / (block * block)}
                             : Shape{in[0], in[1] / block, in[2] / block, in[3] * block * block};
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, out));
  int64_t element = 0;
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &element));
  // The deep side is [n, h, w, block, block, c]; the wide side walks [n, h, block, w, block, c].
  const Shape& deep = kToSpace ? in : out;
  const int64_t c = kToSpace ? out[3] : in[3];
  const int64_t extents[6] = {deep[0], deep[1], block, deep[2], block, c};
  const int64_t pixel = c * element, line = deep[2] * block * pixel;  // of the wide side
  const int64_t wide[6] = {deep[1] * block * line, block * line, line, block * pixel, pixel, element};
  const int64_t deep_pixel = deep[3] * element;
  const int64_t narrow[6] = {
      deep[1] * deep[2] * deep_pixel, deep[2] * deep_pixel, block * pixel, deep_pixel, pixel, element};
  StridedCopy copy;
  for (int i = 0; i < 6; ++i) copy.add_axis(extents[i], kToSpace ? narrow[i] : wide[i], kToSpace ? wide[i] : narrow[i]);
  copy.finish(element);
  if (block == 1) p.allow_alias(0);
  return set_strided_copy(p, copy);
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_DEPTH_TO_SPACE_H
