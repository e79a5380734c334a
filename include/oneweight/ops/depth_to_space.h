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

struct DepthSpaceParams {
  StridedCopy line;                  // of a wide line, to or from the deep pixels' part for it
  int64_t block = 1;
  int64_t run = 0, wide_line = 0, deep_line = 0;  // bytes
};

#if ONEWEIGHT_HAS_KERNELS
template <bool kToSpace>
void depth_space_kernel(const KernelArgs& args) {
  const auto& p = args.params<DepthSpaceParams>();
  const std::byte* in = args.in<std::byte>(0);
  std::byte* out = args.out<std::byte>(0);
  const auto copy = [&](const std::byte* from, std::byte* to) { copy_strided(p.line, from, to, {0, p.line.rows()}); };
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    if (kToSpace) copy(in + row / p.block * p.deep_line + row % p.block * p.run, out + row * p.wide_line);
    else
      for (int64_t i = 0; i < p.block; ++i) copy(in + (row * p.block + i) * p.wide_line, out + row * p.deep_line + i * p.run);
  }
}
template <bool kToSpace>
RowRange depth_space_rows(const void* params, RowRange rows) {
  const int64_t block = static_cast<const DepthSpaceParams*>(params)->block;
  if (rows.size() <= 0) return {};
  return kToSpace ? RowRange{rows.begin / block, (rows.end - 1) / block + 1} : RowRange{rows.begin * block, rows.end * block};
}

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
  DepthSpaceParams* params = p.make_params<DepthSpaceParams>();
  if (!params) return p.no_memory();
  // A line of the wide side and a pixel row of the deep side have w runs of block * c elements in common.
  const Shape &deep = kToSpace ? in : out, &wide = kToSpace ? out : in;
  const int64_t run = block * wide[3] * element, deep_pixel = deep[3] * element;
  params->block = block;
  params->run = run, params->wide_line = wide[2] * wide[3] * element, params->deep_line = deep[2] * deep_pixel;
  params->line.add_axis(deep[2], kToSpace ? deep_pixel : run, kToSpace ? run : deep_pixel);
  params->line.finish(run);
  if (block == 1) p.allow_alias(0);
  p.set_kernel(&depth_space_kernel<kToSpace>, out.elements() > 0 ? out[0] * out[1] : 0, &depth_space_rows<kToSpace>);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_DEPTH_TO_SPACE_H
