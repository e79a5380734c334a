// MIRROR_PAD: constant margins filled with the mirrored tensor, without (REFLECT, 0) or with (SYMMETRIC, 1) its edge.
#ifndef ONEWEIGHT_OPS_MIRROR_PAD_H
#define ONEWEIGHT_OPS_MIRROR_PAD_H

#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct MirrorPadParams {
  int rank = 0;
  int64_t element = 1;
  int64_t edge = 0;  // 1 where the edge is repeated
  int64_t in[kMaxRank] = {}, before[kMaxRank] = {}, out[kMaxRank] = {};

  // Input index behind output index `at` of an axis.
  int64_t source(int axis, int64_t at) const {
    const int64_t x = at - before[axis];
    if (x < 0) return -x - edge;
    if (x >= in[axis]) return 2 * in[axis] - 2 + edge - x;
    return x;
  }
};

struct MirrorPad {
  static bool accepts(const NodeTypes& t) { return t.input_count == 2 && accepts_moved<0>(t); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::mirror_pad, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
// A row is a line of the last axis.
inline void mirror_pad_kernel(const KernelArgs& args) {
  const auto& p = args.params<MirrorPadParams>();
  const int last = p.rank - 1;
  const int64_t size = p.element;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    int64_t line = 0, rest = row, weight = 1;
    for (int i = last - 1; i >= 0; --i) {
      line += p.source(i, rest % p.out[i]) * weight;
      rest /= p.out[i];
      weight *= p.in[i];
    }
    const std::byte* from = args.in<std::byte>(0) + line * p.in[last] * size;
    std::byte* to = args.out<std::byte>(0) + row * p.out[last] * size;
    const auto mirror = [&](int64_t x) {
      std::memcpy(to + x * size, from + p.source(last, x) * size, static_cast<size_t>(size));
    };
    for (int64_t x = 0; x < p.before[last]; ++x) mirror(x);
    std::memcpy(to + p.before[last] * size, from, static_cast<size_t>(p.in[last] * size));
    for (int64_t x = p.before[last] + p.in[last]; x < p.out[last]; ++x) mirror(x);
  }
}

// Rows of N,H,W,C without margins along N.
inline RowRange mirror_pad_rows(const void* params, RowRange rows) {
  const auto& p = *static_cast<const MirrorPadParams*>(params);
  if (rows.size() <= 0) return {};
  const int64_t first = rows.begin / p.out[1], last = (rows.end - 1) / p.out[1];
  if (first != last) return {first * p.in[1], (last + 1) * p.in[1]};
  // The source goes down, up and down again: its extremes are at the ends and where it turns.
  const int64_t begin = rows.begin % p.out[1], end = begin + rows.size(), turn = p.before[1], back = turn + p.in[1];
  RowRange need{p.in[1], 0};
  for (int64_t y : {begin, end - 1, turn - 1, turn, back - 1, back}) {
    if (y < begin || y >= end) continue;
    need.begin = std::min(need.begin, p.source(1, y)), need.end = std::max(need.end, p.source(1, y) + 1);
  }
  return {first * p.in[1] + need.begin, first * p.in[1] + need.end};
}

ONEWEIGHT_INLINE Status MirrorPad::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand& input = p.input(0);
  const int rank = input.shape.rank();
  std::vector<int64_t> margins;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &margins));
  const int mode = p.options().get<int8_t>(0, 0);
  if (mode != 0 && mode != 1) return p.invalid("mode %d is neither REFLECT (0) nor SYMMETRIC (1)", mode);
  if (rank < 1 || margins.size() != static_cast<size_t>(2 * rank))
    return p.invalid("%s has rank %d, but its paddings have %zu numbers", p.describe(input).c_str(), rank,
                     margins.size());
  MirrorPadParams* params = p.make_params<MirrorPadParams>();
  if (!params) return p.no_memory();
  params->rank = rank, params->edge = mode;
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    const int64_t before = margins[2 * i], behind = margins[2 * i + 1], most = input.shape[i] - 1 + mode;
    if (before < 0 || behind < 0 || ((before > 0 || behind > 0) && (before > most || behind > most)))
      return p.invalid("axis %d of %s can mirror at most %lld elements, not %lld and %lld", i,
                       p.describe(input).c_str(), static_cast<long long>(std::max<int64_t>(most, 0)),
                       static_cast<long long>(before), static_cast<long long>(behind));
    shape.push_back(input.shape[i] + before + behind);
    params->in[i] = input.shape[i], params->before[i] = before, params->out[i] = shape[i];
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &params->element));
  p.set_kernel(&mirror_pad_kernel, shape.elements() > 0 ? shape.elements(0, rank - 1) : 0);
  if (rank == 4 && shape.elements() > 0 && margins[0] == 0 && margins[1] == 0) p.set_image_rows(&mirror_pad_rows);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_MIRROR_PAD_H
