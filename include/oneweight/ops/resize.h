// What RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR share: sizes, scales, checks.
#ifndef ONEWEIGHT_OPS_RESIZE_H
#define ONEWEIGHT_OPS_RESIZE_H

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct ResizeAxis {
  int64_t in = 1, out = 1;
  float scale = 1;          // input cells per output cell
  int64_t scale_10 = 1024;  // the same in 1/1024, rounded
  bool half_pixel = false;
};
struct ResizeGeometry {
  int64_t batch = 1, channels = 1;
  ResizeAxis y, x;
};

#if ONEWEIGHT_HAS_KERNELS
inline Status prepare_resize(Preparation& p, bool align_corners, bool half_pixel, ResizeGeometry* g) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand& input = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(input, 4, 4));
  if (align_corners && half_pixel) return p.invalid("asks for aligned corners and half pixel centres at once");
  std::vector<int64_t> size;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &size));
  if (size.size() != 2)
    return p.invalid("%s has %zu numbers, not height and width", p.describe(p.input(1)).c_str(), size.size());
  constexpr int64_t kMax = int64_t{1} << 31;
  for (int i = 0; i < 2; ++i)
    if (size[i] <= 0 || size[i] >= kMax || input.shape[1 + i] >= kMax ||
        (input.shape[1 + i] <= 0 && input.shape.elements() >= 0 && input.shape[0] > 0))
      return p.invalid("cannot resize %s to %lld x %lld", p.describe(input).c_str(), static_cast<long long>(size[0]),
                       static_cast<long long>(size[1]));
  g->batch = input.shape[0];
  g->channels = input.shape[3];
  for (int i = 0; i < 2; ++i) {
    ResizeAxis& axis = i == 0 ? g->y : g->x;
    axis.in = input.shape[1 + i], axis.out = size[i], axis.half_pixel = half_pixel;
    int64_t from = axis.in, to = axis.out;
    if (align_corners && to > 1) --from, --to;
    axis.scale = static_cast<float>(from) / static_cast<float>(to);
    axis.scale_10 = (1024 * from + to / 2) / to;
  }
  return p.set_output(0, Shape{g->batch, size[0], size[1], g->channels});
}

// Input rows of the output rows, from the input rows [begin, end) that need(y) tells within an image.
template <class Need>
RowRange resize_rows(const ResizeGeometry& g, RowRange rows, Need need) {
  if (rows.size() <= 0 || g.y.out <= 0) return {};
  const int64_t first = rows.begin, last = rows.end - 1;
  return {first / g.y.out * g.y.in + need(first % g.y.out).begin, last / g.y.out * g.y.in + need(last % g.y.out).end};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_RESIZE_H
