// MediaPipe's custom operators MaxPoolingWithArgmax2D and MaxUnpooling2D on float maps N,H,W,C.
// Options of both: the six int32 padding (1 SAME, 2 VALID), stride of columns and rows, window's columns and rows, activation.
// Pooling: output 0 the maximum of a window (the least float where all are NaN), clamped to the activation; output 1 where it lies in the
// window, y * columns + x, the first of equals, plus 0.1 (so that it survives as a half; readers cut it off).
// Unpooling: input 1 holds such places; the output, window times as large, is 0 elsewhere. Where windows overlap the later
// pixel wins; a place outside of the window or the map is left out. Rows: N * H of the output.
#ifndef ONEWEIGHT_OPS_MAX_UNPOOLING_2D_H
#define ONEWEIGHT_OPS_MAX_UNPOOLING_2D_H

#include <algorithm>
#include <cstring>

#include "oneweight/ops/conv_geometry.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct ArgmaxPoolParams {
  ConvGeometry geometry;             // unpooling: from the small map (out) to the large one (in)
  FusedActivation activation;
};

struct MaxPoolingWithArgmax2D {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 1 && t.in(0, TensorType::float32) && t.out(0, TensorType::float32) && t.out(1, TensorType::float32);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::custom, .custom_code = "MaxPoolingWithArgmax2D", .types = "float", .accepts = &accepts, .prepare = &prepare};
};
struct MaxUnpooling2D {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 2 && t.in(0, TensorType::float32) && t.in(1, TensorType::float32) && t.out(0, TensorType::float32);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::custom, .custom_code = "MaxUnpooling2D", .types = "float", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
namespace argmax_pool {
struct Options {
  int32_t padding, stride_w, stride_h, window_w, window_h, activation;
};
inline Status read_options(const Preparation& p, Options* o) {
  const std::vector<std::byte>& bytes = p.op().custom_options;
  if (bytes.size() < sizeof(*o)) return p.invalid("has %zu bytes of options, not %zu", bytes.size(), sizeof(*o));
  std::memcpy(o, bytes.data(), sizeof(*o));
  if (o->padding != 1 && o->padding != 2) return p.invalid("padding %d is neither SAME (1) nor VALID (2)", o->padding);
  if (o->stride_w <= 0 || o->stride_h <= 0) return p.invalid("strides %d x %d are not valid", o->stride_h, o->stride_w);
  // Places are floats.
  if (o->window_w <= 0 || o->window_h <= 0 || int64_t{o->window_w} * o->window_h > 1 << 20)
    return p.invalid("a window of %d x %d is not valid", o->window_h, o->window_w);
  return {};
}

inline void pool_kernel(const KernelArgs& args) {
  const auto& p = args.params<ArgmaxPoolParams>();
  const ConvGeometry& g = p.geometry;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int64_t n = row / g.out_h, y0 = row % g.out_h * g.stride_h - g.pad_top;
    const TapRange ys = taps_inside(y0, g.in_h, g.kernel_h, 1);
    for (int64_t x = 0; x < g.out_w; ++x) {
      const int64_t x0 = x * g.stride_w - g.pad_left;
      const TapRange xs = taps_inside(x0, g.in_w, g.kernel_w, 1);
      float* most = args.out<float>(0) + (row * g.out_w + x) * g.in_c;
      float* place = args.out<float>(1) + (row * g.out_w + x) * g.in_c;
      std::fill(most, most + g.in_c, std::numeric_limits<float>::lowest());
      std::fill(place, place + g.in_c, 0.1f);
      for (int64_t ky = ys.first; ky < ys.last; ++ky) {
        for (int64_t kx = xs.first; kx < xs.last; ++kx) {
          const float* in = args.in<float>(0) + ((n * g.in_h + y0 + ky) * g.in_w + x0 + kx) * g.in_c;
          const float here = static_cast<float>(ky * g.kernel_w + kx) + 0.1f;
          for (int64_t c = 0; c < g.in_c; ++c) {
            const bool more = in[c] > most[c];
            most[c] = more ? in[c] : most[c];
            place[c] = more ? here : place[c];
          }
        }
      }
      for (int64_t c = 0; c < g.in_c; ++c) most[c] = std::min(std::max(most[c], p.activation.low), p.activation.high);
    }
  }
}

inline void unpool_kernel(const KernelArgs& args) {
  const auto& p = args.params<ArgmaxPoolParams>();
  const ConvGeometry& g = p.geometry;
  const int64_t line = g.in_w * g.in_c;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    float* out = args.out<float>(0) + row * line;
    std::memset(out, 0, static_cast<size_t>(line) * sizeof(float));
    const int64_t n = row / g.in_h, y = row % g.in_h;
    // Small rows whose windows hold y.
    const int64_t reach = y + g.pad_top, behind = std::max<int64_t>(reach - g.kernel_h + 1, 0);
    const int64_t last = std::min(g.out_h - 1, reach / g.stride_h);
    for (int64_t sy = (behind + g.stride_h - 1) / g.stride_h; sy <= last; ++sy) {
      const auto ky = static_cast<int32_t>(reach - sy * g.stride_h);
      for (int64_t sx = 0; sx < g.out_w; ++sx) {
        const int64_t from = ((n * g.out_h + sy) * g.out_w + sx) * g.in_c;
        const float *in = args.in<float>(0) + from, *places = args.in<float>(1) + from;
        for (int64_t c = 0; c < g.in_c; ++c) {
          if (!(places[c] >= 0) || places[c] >= static_cast<float>(g.kernel_h * g.kernel_w)) continue;
          const auto place = static_cast<int32_t>(places[c]), kernel_w = static_cast<int32_t>(g.kernel_w);
          const int64_t x = sx * g.stride_w - g.pad_left + place % kernel_w;
          if (place / kernel_w == ky && x >= 0 && x < g.in_w) out[x * g.in_c + c] = in[c];
        }
      }
    }
  }
}
}  // namespace argmax_pool

ONEWEIGHT_INLINE Status MaxPoolingWithArgmax2D::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1, 2));
  argmax_pool::Options o;
  ONEWEIGHT_RETURN_IF_ERROR(argmax_pool::read_options(p, &o));
  ArgmaxPoolParams* params = p.make_params<ArgmaxPoolParams>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, static_cast<Activation>(o.activation), &params->activation));
  ConvGeometry& g = params->geometry;
  const WindowOptions window{static_cast<int8_t>(o.padding - 1), o.stride_h, o.stride_w, 1, 1};
  ONEWEIGHT_RETURN_IF_ERROR(make_geometry(p, p.input(0), SpatialPadding(), o.window_h, o.window_w, window, &g));
  for (int i = 0; i < 2; ++i) ONEWEIGHT_RETURN_IF_ERROR(p.set_output(i, {g.batch, g.out_h, g.out_w, g.in_c}));
  p.set_kernel(&argmax_pool::pool_kernel, g.rows(), &input_rows_of<ArgmaxPoolParams>);
  return {};
}

ONEWEIGHT_INLINE Status MaxUnpooling2D::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  argmax_pool::Options o;
  ONEWEIGHT_RETURN_IF_ERROR(argmax_pool::read_options(p, &o));
  const Operand &in = p.input(0), &places = p.input(1);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(in, 4, 4));
  if (!(in.shape == places.shape))
    return p.invalid("%s and %s do not have one shape", p.describe(in).c_str(), p.describe(places).c_str());
  ArgmaxPoolParams* params = p.make_params<ArgmaxPoolParams>();
  if (!params) return p.no_memory();
  ConvGeometry& g = params->geometry;
  constexpr int64_t kMax = int64_t{1} << 31;
  if (in.shape[1] >= kMax || in.shape[2] >= kMax) return p.invalid("%s is too large", p.describe(in).c_str());
  g.batch = in.shape[0], g.out_h = in.shape[1], g.out_w = in.shape[2], g.in_c = in.shape[3];
  g.kernel_h = o.window_h, g.kernel_w = o.window_w, g.stride_h = o.stride_h, g.stride_w = o.stride_w;
  g.in_h = g.out_h * g.kernel_h, g.in_w = g.out_w * g.kernel_w;
  g.pad_top = std::max<int64_t>(((g.out_h - 1) * g.stride_h + g.kernel_h - g.in_h) / 2, 0);
  g.pad_left = std::max<int64_t>(((g.out_w - 1) * g.stride_w + g.kernel_w - g.in_w) / 2, 0);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, {g.batch, g.in_h, g.in_w, g.in_c}));
  p.set_kernel(&argmax_pool::unpool_kernel, g.batch * g.in_h);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_MAX_UNPOOLING_2D_H
