// Where the windows of a convolution or pooling lie: output size, padding, which taps are inside the image.
// Shared by CONV_2D, DEPTHWISE_CONV_2D and the poolings.
#ifndef ONEWEIGHT_OPS_CONV_GEOMETRY_H
#define ONEWEIGHT_OPS_CONV_GEOMETRY_H

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace v1 {

// Extents in elements, NHWC. Tap (ky, kx) of output pixel (oy, ox) reads input pixel
// (oy * stride_h - pad_top + ky * dilation_h, ox * stride_w - pad_left + kx * dilation_w); outside the image it is 0.
struct ConvGeometry {
  int64_t batch = 1;
  int64_t in_h = 1, in_w = 1, in_c = 1;
  int64_t out_h = 1, out_w = 1;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0;

  // Independent rows of the output: batch * out_h.
  int64_t rows() const { return batch * out_h; }
  int64_t output_pixels() const { return batch * out_h * out_w; }
  // Every output pixel reads exactly the input pixel of its own number.
  bool is_pointwise() const {
    return kernel_h == 1 && kernel_w == 1 && stride_h == 1 && stride_w == 1 && pad_top == 0 && pad_left == 0 &&
           out_h == in_h && out_w == in_w;
  }
};

// Taps [first, last) of a window along one axis that lie inside the image; first == last when none does.
// `origin`: position of tap 0.
struct TapRange {
  int64_t first = 0, last = 0;
};
inline TapRange taps_inside(int64_t origin, int64_t extent, int64_t kernel, int64_t dilation) {
  const int64_t first = origin >= 0 ? 0 : (-origin + dilation - 1) / dilation;
  const int64_t last = origin >= extent ? 0 : (extent - origin + dilation - 1) / dilation;
  const int64_t end = last < kernel ? last : kernel;
  return {first < end ? first : end, end};
}

// Output pixels [first, last) along one axis whose whole window lies inside the image.
inline TapRange inner_outputs(int64_t out, int64_t extent, int64_t kernel, int64_t dilation, int64_t stride, int64_t pad) {
  const int64_t room = extent - (kernel - 1) * dilation - 1 + pad;  // largest position of tap 0, from -pad
  const int64_t first = (pad + stride - 1) / stride;
  const int64_t last = room < 0 ? 0 : room / stride + 1;
  const int64_t end = last < out ? last : out;
  return {first < end ? first : end, end > 0 ? end : 0};
}

// Rows batch * in_h + y of the input that the output rows batch * out_h + y need.
inline RowRange input_rows(const ConvGeometry& g, RowRange rows) {
  if (rows.size() <= 0 || g.out_h <= 0 || g.in_h <= 0) return {};
  const auto clamp = [&](int64_t y) { return y < 0 ? 0 : y > g.in_h ? g.in_h : y; };
  const int64_t first = rows.begin, last = rows.end - 1;
  const int64_t top = clamp(first % g.out_h * g.stride_h - g.pad_top);
  const int64_t bottom = clamp(last % g.out_h * g.stride_h - g.pad_top + (g.kernel_h - 1) * g.dilation_h + 1);
  const RowRange need{first / g.out_h * g.in_h + top, last / g.out_h * g.in_h + bottom};
  return need.begin < need.end ? need : RowRange{};
}
// InputRowsFn of parameters that hold a ConvGeometry called `geometry`.
template <class Params>
RowRange input_rows_of(const void* params, RowRange rows) {
  return input_rows(static_cast<const Params*>(params)->geometry, rows);
}

// The options common to all windows.
struct WindowOptions {
  int8_t padding = 0;  // 0 = SAME, 1 = VALID
  int64_t stride_h = 0, stride_w = 0;
  int64_t dilation_h = 1, dilation_w = 1;
};

// Output size and padding in front along one axis; SAME puts the odd element behind.
inline Status place_windows(const Preparation& p, const char* axis, int8_t padding, int64_t in, int64_t kernel, int64_t stride,
                            int64_t dilation, int64_t* out, int64_t* pad) {
  constexpr int64_t kMax = int64_t{1} << 31;  // keeps every product below in range
  const auto shown = [](int64_t n) { return static_cast<long long>(n); };
  if (stride <= 0 || stride >= kMax) return p.invalid("stride %lld along the %s is not valid", shown(stride), axis);
  if (dilation <= 0 || dilation >= kMax) return p.invalid("dilation %lld along the %s is not valid", shown(dilation), axis);
  if (kernel <= 0 || kernel >= kMax) return p.invalid("a window of %lld elements along the %s is not valid", shown(kernel), axis);
  if (in < 0 || in >= kMax) return p.invalid("%s %lld of its input is not valid", axis, shown(in));
  const int64_t extent = (kernel - 1) * dilation + 1;
  *pad = 0;
  if (padding == 0) {
    *out = (in + stride - 1) / stride;
    const int64_t total = *out > 0 ? (*out - 1) * stride + extent - in : 0;
    if (total > 0) *pad = total / 2;
  } else if (padding == 1) {
    if (extent > in && in > 0)
      return p.invalid("the %s %lld of its input is less than its window's %lld, and its padding is VALID", axis, shown(in),
                       shown(extent));
    *out = in > 0 ? (in - extent) / stride + 1 : 0;
  } else {
    return p.invalid("padding %d is neither SAME (0) nor VALID (1)", padding);
  }
  return {};
}

// Fills *g for a kernel_h x kernel_w window over `input` (rank 4, NHWC) with `margins` of zeros around it
// (from Preparation::absorb_padding; spatial axes only).
inline Status make_geometry(const Preparation& p, const Operand& input, const SpatialPadding& margins, int64_t kernel_h,
                            int64_t kernel_w, const WindowOptions& o, ConvGeometry* g) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(input, 4, 4));
  if (margins.before[0] || margins.behind[0] || margins.before[3] || margins.behind[3])
    return p.error(ErrorCode::unsupported, "cannot take over a padding of batch or channels");
  g->batch = input.shape[0], g->in_h = input.shape[1], g->in_w = input.shape[2], g->in_c = input.shape[3];
  g->kernel_h = kernel_h, g->kernel_w = kernel_w;
  g->stride_h = o.stride_h, g->stride_w = o.stride_w;
  g->dilation_h = o.dilation_h, g->dilation_w = o.dilation_w;
  ONEWEIGHT_RETURN_IF_ERROR(place_windows(p, "height", o.padding, g->in_h + margins.before[1] + margins.behind[1], kernel_h,
                                          o.stride_h, o.dilation_h, &g->out_h, &g->pad_top));
  ONEWEIGHT_RETURN_IF_ERROR(place_windows(p, "width", o.padding, g->in_w + margins.before[2] + margins.behind[2], kernel_w,
                                          o.stride_w, o.dilation_w, &g->out_w, &g->pad_left));
  g->pad_top += margins.before[1];
  g->pad_left += margins.before[2];
  return {};
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_CONV_GEOMETRY_H
