// CONV_3D and CONV_3D_TRANSPOSE on float with float weights, or with half weights that are widened in registers.
// CONV_3D: input [N, D, H, W, C], filter [d, h, w, C, O], bias O (optional); SAME or VALID, strides, dilations.
// CONV_3D_TRANSPOSE: the constant shape of the output, filter [d, h, w, O, C], input, bias (optional). Filters may be
// computed. Fused none, relu, relu6, relu_n1_to_1. Sums in float behind the bias, the taps in order: one multiply-add after the
// other, or (transposed) in vector lanes over the channels that are added at the end.
// Scratch: a pixel of zeros. Rows: lines (batch * depth + z) * height + y of the output.
#ifndef ONEWEIGHT_OPS_CONV_3D_H
#define ONEWEIGHT_OPS_CONV_3D_H

#include <algorithm>

#include "oneweight/ops/conv_node.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// One axis of the windows, as in ConvGeometry.
struct Conv3DAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
};
struct Conv3DParams {
  Conv3DAxis axes[3];  // depth, height, width
  int64_t in_channels = 1, channels = 1;
  int64_t lines = 0;       // rows
  int data = 0, bias = 2;  // input numbers; -1: no bias
  FusedActivation activation;
};

template <bool kTranspose, class W>
struct Conv3DBy {
  static bool accepts(const NodeTypes& t) {
    constexpr int kData = kTranspose ? 2 : 0;
    const bool shape = !kTranspose || t.in(0, TensorType::int32) || t.in(0, TensorType::int64);
    return shape && t.in(kData, TensorType::float32) && t.in(1, tensor_type_of<W>) && t.out(0, TensorType::float32) &&
           (!t.has_input[kTranspose ? 3 : 2] || t.in(kTranspose ? 3 : 2, TensorType::float32));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kTranspose ? BuiltinOperator::conv_3d_transpose : BuiltinOperator::conv_3d,
                                .types = sizeof(W) == 2 ? "float, half weights" : "float",
                                .accepts = &accepts,
                                .prepare = &prepare,
                                .stored_inputs = sizeof(W) == 2 ? 1u << 1 : 0u};
};
template <class W>
using Conv3D = Conv3DBy<false, W>;
template <class W>
using Conv3DTranspose = Conv3DBy<true, W>;

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_CONV_3D_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_CONV_3D_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_CONV_3D_TARGET
#undef ONEWEIGHT_OPS_CONV_3D_TARGET
#else
#define ONEWEIGHT_OPS_CONV_3D_TARGET
#endif

#include "hwy/highway.h"
#include "oneweight/simd/half-inl.h"
#include "oneweight/simd/math-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> load_weights_3d(D d, const float* from, size_t count) {
  return count == hn::Lanes(d) ? hn::LoadU(d, from) : hn::LoadN(d, from, count);
}
template <class D>
HWY_INLINE hn::Vec<D> load_weights_3d(D d, const half* from, size_t count) {
  const hn::Rebind<uint16_t, D> dh;
  const auto* bits = reinterpret_cast<const uint16_t*>(from);
  return widen_half(d, count == hn::Lanes(d) ? hn::LoadU(dh, bits) : hn::LoadN(dh, bits, count));
}

// The pixels of a tile.
#define ONEWEIGHT_CONV_3D_PIXELS(X) X(0) X(1) X(2) X(3)

// kPixels pixels of one line by one or two vectors of output channels from `channel` on, the last one `left` lanes wide.
template <int kPixels, bool kTwo, class W>
HWY_INLINE void conv_3d_tile(const KernelArgs& args, const Conv3DParams& p, int64_t batch, int64_t z, int64_t y, int64_t x, int64_t channel,
                             size_t left, float* out) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t n = hn::Lanes(d), width0 = kTwo ? n : left;
  const Conv3DAxis &az = p.axes[0], &ay = p.axes[1], &ax = p.axes[2];
  const float *in = args.in<float>(0), *zeros = reinterpret_cast<const float*>(args.scratch);
  const W* filter = args.in<W>(1) + channel;
  V b0 = hn::Zero(d), b1 = hn::Zero(d);
  if (p.bias >= 0) {
    const float* bias = args.in<float>(p.bias) + channel;
    b0 = load_weights_3d(d, bias, width0);
    if constexpr (kTwo) b1 = load_weights_3d(d, bias + n, left);
  }
#define ONEWEIGHT_CONV_3D_DECLARE(i) [[maybe_unused]] V s##i = b0, t##i = b1;
  ONEWEIGHT_CONV_3D_PIXELS(ONEWEIGHT_CONV_3D_DECLARE)
#undef ONEWEIGHT_CONV_3D_DECLARE
  for (int64_t kz = 0; kz < az.kernel; ++kz) {
    const int64_t iz = z * az.stride - az.pad + kz * az.dilation;
    if (iz < 0 || iz >= az.in) continue;
    for (int64_t ky = 0; ky < ay.kernel; ++ky) {
      const int64_t iy = y * ay.stride - ay.pad + ky * ay.dilation;
      if (iy < 0 || iy >= ay.in) continue;
      const float* line = in + ((batch * az.in + iz) * ay.in + iy) * ax.in * p.in_channels;
      for (int64_t kx = 0; kx < ax.kernel; ++kx) {
        bool any = false;
        const auto pixel = [&](int64_t i) {
          const int64_t ix = (x + i) * ax.stride - ax.pad + kx * ax.dilation;
          const bool inside = ix >= 0 && ix < ax.in;
          any |= inside;
          return reinterpret_cast<const std::byte*>(inside ? line + ix * p.in_channels : zeros);
        };
#define ONEWEIGHT_CONV_3D_POINTER(i) [[maybe_unused]] const std::byte* from##i = i < kPixels ? pixel(i) : nullptr;
        ONEWEIGHT_CONV_3D_PIXELS(ONEWEIGHT_CONV_3D_POINTER)
#undef ONEWEIGHT_CONV_3D_POINTER
        if (!any) continue;
        const W* weights = filter + ((kz * ay.kernel + ky) * ax.kernel + kx) * p.in_channels * p.channels;
        for (int64_t c = 0; c < p.in_channels; ++c, weights += p.channels) {
          const V w0 = load_weights_3d(d, weights, width0);
          [[maybe_unused]] V w1 = w0;
          if constexpr (kTwo) w1 = load_weights_3d(d, weights + n, left);
#define ONEWEIGHT_CONV_3D_STEP(i)                                 \
  if constexpr (i < kPixels) {                                    \
    const V a = hn::Set(d, Preparation::load<float>(from##i, c)); \
    s##i = hn::MulAdd(a, w0, s##i);                               \
    if constexpr (kTwo) t##i = hn::MulAdd(a, w1, t##i);           \
  }
          ONEWEIGHT_CONV_3D_PIXELS(ONEWEIGHT_CONV_3D_STEP)
#undef ONEWEIGHT_CONV_3D_STEP
        }
      }
    }
  }
  const V low = hn::Set(d, p.activation.low), high = hn::Set(d, p.activation.high);
  out += channel;
#define ONEWEIGHT_CONV_3D_STORE(i)                                                                         \
  if constexpr (i < kPixels) {                                                                             \
    hn::StoreN(clamp_keep_nan(d, s##i, low, high), d, out + i * p.channels, width0);                       \
    if constexpr (kTwo) hn::StoreN(clamp_keep_nan(d, t##i, low, high), d, out + i * p.channels + n, left); \
  }
  ONEWEIGHT_CONV_3D_PIXELS(ONEWEIGHT_CONV_3D_STORE)
#undef ONEWEIGHT_CONV_3D_STORE
}
#undef ONEWEIGHT_CONV_3D_PIXELS

template <class W>
void conv_3d_float(const KernelArgs& args) {
  const auto& p = args.params<Conv3DParams>();
  const auto n = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  std::fill_n(reinterpret_cast<float*>(args.scratch), p.in_channels, 0.0f);
  const int64_t width = p.axes[2].out;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int64_t y = row % p.axes[1].out, z = row / p.axes[1].out % p.axes[0].out, batch = row / p.axes[1].out / p.axes[0].out;
    float* line = args.out<float>(0) + row * width * p.channels;
    for (int64_t x = 0; x < width;) {
      const int64_t pixels = width - x >= 4 ? 4 : 1;
      float* out = line + x * p.channels;
      for (int64_t c = 0; c < p.channels;) {
        const int64_t rest = p.channels - c;
        const bool two = rest > n;
        const auto left = static_cast<size_t>(std::min(two ? rest - n : rest, n));
        if (pixels == 4 && two)
          conv_3d_tile<4, true, W>(args, p, batch, z, y, x, c, left, out);
        else if (pixels == 4)
          conv_3d_tile<4, false, W>(args, p, batch, z, y, x, c, left, out);
        else if (two)
          conv_3d_tile<1, true, W>(args, p, batch, z, y, x, c, left, out);
        else
          conv_3d_tile<1, false, W>(args, p, batch, z, y, x, c, left, out);
        c += two ? 2 * n : n;
      }
      x += pixels;
    }
  }
}

// Four output channels, or one, of one pixel of a transposed convolution: the taps that reach it, gathered.
template <bool kFour, class W>
HWY_INLINE void conv_3d_transpose_pixel(const KernelArgs& args, const Conv3DParams& p, int64_t batch, int64_t z, int64_t y, int64_t x,
                                        int64_t channel, float* out) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  const Conv3DAxis &az = p.axes[0], &ay = p.axes[1], &ax = p.axes[2];
  V s0 = hn::Zero(d);
  [[maybe_unused]] V s1 = s0, s2 = s0, s3 = s0;
  // Input position of tap k at output position o, or -1.
  const auto source = [](const Conv3DAxis& a, int64_t o, int64_t k) {
    const int64_t at = o + a.pad - k * a.dilation;
    return at >= 0 && at % a.stride == 0 && at / a.stride < a.in ? at / a.stride : int64_t{-1};
  };
  for (int64_t kz = 0; kz < az.kernel; ++kz) {
    const int64_t iz = source(az, z, kz);
    if (iz < 0) continue;
    for (int64_t ky = 0; ky < ay.kernel; ++ky) {
      const int64_t iy = source(ay, y, ky);
      if (iy < 0) continue;
      for (int64_t kx = 0; kx < ax.kernel; ++kx) {
        const int64_t ix = source(ax, x, kx);
        if (ix < 0) continue;
        const float* from = args.in<float>(2) + (((batch * az.in + iz) * ay.in + iy) * ax.in + ix) * p.in_channels;
        const W* weights = args.in<W>(1) + (((kz * ay.kernel + ky) * ax.kernel + kx) * p.channels + channel) * p.in_channels;
        for (int64_t c = 0; c < p.in_channels; c += n) {
          const auto left = static_cast<size_t>(std::min(n, p.in_channels - c));
          const V value = load_weights_3d(d, from + c, left);
          s0 = hn::MulAdd(value, load_weights_3d(d, weights + c, left), s0);
          if constexpr (kFour) {
            s1 = hn::MulAdd(value, load_weights_3d(d, weights + p.in_channels + c, left), s1);
            s2 = hn::MulAdd(value, load_weights_3d(d, weights + 2 * p.in_channels + c, left), s2);
            s3 = hn::MulAdd(value, load_weights_3d(d, weights + 3 * p.in_channels + c, left), s3);
          }
        }
      }
    }
  }
  const auto finish = [&](V sums, int64_t c) HWY_ATTR {
    float sum = hn::ReduceSum(d, sums);
    if (p.bias >= 0) sum += Preparation::load<float>(args.in<std::byte>(p.bias), c);
    if (sum < p.activation.low) sum = p.activation.low;
    out[c] = sum > p.activation.high ? p.activation.high : sum;
  };
  finish(s0, channel);
  if constexpr (kFour) finish(s1, channel + 1), finish(s2, channel + 2), finish(s3, channel + 3);
}

template <class W>
void conv_3d_transpose_float(const KernelArgs& args) {
  const auto& p = args.params<Conv3DParams>();
  const int64_t width = p.axes[2].out;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int64_t y = row % p.axes[1].out, z = row / p.axes[1].out % p.axes[0].out, batch = row / p.axes[1].out / p.axes[0].out;
    for (int64_t x = 0; x < width; ++x) {
      float* out = args.out<float>(0) + (row * width + x) * p.channels;
      int64_t c = 0;
      for (; c + 4 <= p.channels; c += 4) conv_3d_transpose_pixel<true, W>(args, p, batch, z, y, x, c, out);
      for (; c < p.channels; ++c) conv_3d_transpose_pixel<false, W>(args, p, batch, z, y, x, c, out);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <bool kTranspose, class W>
Status Conv3DBy<kTranspose, W>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(kTranspose ? 3 : 2, kTranspose ? 4 : 3));
  const Operand &filter = p.input(1), &input = p.input(kTranspose ? 2 : 0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(input, 5, 5));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(filter, 5, 5));
  Conv3DParams* params = p.make_params<Conv3DParams>();
  if (!params) return p.no_memory();
  params->data = kTranspose ? 2 : 0,
  params->bias = p.has_input(params->data + (kTranspose ? 1 : 2)) ? params->data + (kTranspose ? 1 : 2) : -1;
  params->in_channels = filter.shape[kTranspose ? 4 : 3], params->channels = filter.shape[kTranspose ? 3 : 4];
  if (params->in_channels != input.shape[4] || params->channels <= 0 || params->in_channels <= 0)
    return p.invalid("filter %s does not fit input %s", p.describe(filter).c_str(), p.describe(input).c_str());
  if (params->bias >= 0) ONEWEIGHT_RETURN_IF_ERROR(check_bias(p, params->bias, params->channels));
  ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, static_cast<Activation>(p.options().get<int8_t>(4, 0)), &params->activation));
  std::vector<int64_t> wanted;
  if (kTranspose) {
    ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(0, &wanted));
    if (wanted.size() != 5 || wanted[0] != input.shape[0] || wanted[4] != params->channels)
      return p.invalid("the shape of its output has %zu numbers that do not fit input %s and filter %s", wanted.size(),
                       p.describe(input).c_str(), p.describe(filter).c_str());
  }
  const auto padding = p.options().get<int8_t>(0, 0);
  constexpr const char* names[3] = {"depth", "height", "width"};
  constexpr int strides[3] = {1, 3, 2}, dilations[3] = {5, 7, 6};  // fields of the options
  Shape shape{input.shape[0]};
  for (int i = 0; i < 3; ++i) {
    Conv3DAxis& a = params->axes[i];
    a.in = input.shape[1 + i], a.kernel = filter.shape[i];
    a.stride = p.options().get<int32_t>(strides[i], 0), a.dilation = p.options().get<int32_t>(dilations[i], 1);
    // The transposed form has the margins of the convolution from its output to its input.
    const int64_t from = kTranspose ? wanted[1 + i] : a.in;
    ONEWEIGHT_RETURN_IF_ERROR(place_windows(p, names[i], padding, from, a.kernel, a.stride, a.dilation, &a.out, &a.pad));
    if (kTranspose) {
      if (a.out != a.in)
        return p.invalid("%s %lld of its output does not fit the %lld of its input", names[i], static_cast<long long>(from),
                         static_cast<long long>(a.in));
      a.out = from;
    }
    shape.push_back(a.out);
  }
  shape.push_back(params->channels);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  params->lines = shape.elements(0, 3);
  p.set_work(kShortWork * (kTranspose ? input.shape : shape).elements(0, 4) * filter.shape.elements());
  if (kTranspose) {
    p.set_kernel(ONEWEIGHT_KERNEL(p.target(), conv_3d_transpose_float<W>), params->lines);
  } else {
    p.set_scratch(params->in_channels * static_cast<int64_t>(sizeof(float)));
    p.set_kernel(ONEWEIGHT_KERNEL(p.target(), conv_3d_float<W>), params->lines);
  }
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // per target
#endif  // ONEWEIGHT_HAS_KERNELS
