// RESIZE_BILINEAR on NHWC to the constant size [height, width] of input 1, with aligned corners, half pixel centres or
// neither. int8 and int16 interpolate in the 10-bit fixed point of TFLite's reference kernel, uint8 in its float.
// Each output row blends two input rows into scratch and then their neighbours. Rows: batch * output height + y.
#ifndef ONEWEIGHT_OPS_RESIZE_BILINEAR_H
#define ONEWEIGHT_OPS_RESIZE_BILINEAR_H

#include <algorithm>
#include <cmath>

#include "oneweight/ops/resize.h"
#include "oneweight/ops/rounded.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// Between which two cells of an axis an output cell lies: weight of `second` as float, or in 1/1024.
struct BilinearTap {
  int64_t first = 0, second = 0;
  float weight = 0;
  int32_t weight_10 = 0;
};

inline BilinearTap float_tap(const ResizeAxis& axis, int64_t at) {
  const float x = axis.half_pixel ? rounded((static_cast<float>(at) + 0.5f) * axis.scale) - 0.5f
                                  : static_cast<float>(at) * axis.scale;
  const float floor = std::floor(x);
  BilinearTap tap;
  tap.first = std::clamp<int64_t>(static_cast<int64_t>(floor), 0, axis.in - 1);
  tap.second = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(x)), 0, axis.in - 1);
  tap.weight = x - static_cast<float>(tap.first);  // of no effect where first is second
  return tap;
}

inline BilinearTap fixed_tap(const ResizeAxis& axis, int64_t at) {
  const int64_t x = at * axis.scale_10 + (axis.half_pixel ? axis.scale_10 / 2 - 512 : 0);
  BilinearTap tap;
  tap.first = std::clamp<int64_t>(x / 1024, 0, axis.in - 1);
  tap.second = std::clamp<int64_t>((x + 1023) / 1024, 0, axis.in - 1);
  tap.weight_10 = static_cast<int32_t>(x - 1024 * tap.first);
  return tap;
}

struct ResizeBilinearParams {
  ResizeGeometry geometry;
  const BilinearTap* taps = nullptr;  // of each output column
};

struct ResizeBilinear {
  static bool accepts(const NodeTypes& t) {
    if (t.input_count != 2 || !t.has_input[0] || !t.out(0, t.inputs[0])) return false;
    return t.inputs[0] == TensorType::float32 || t.inputs[0] == TensorType::int8 || t.inputs[0] == TensorType::uint8 ||
           t.inputs[0] == TensorType::int16;
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::resize_bilinear,
                                .types = "float, int8, uint8, int16",
                                .accepts = &accepts,
                                .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
// int16: exact sums of products of 11-bit weights, rounded once, halves away from zero.
inline void resize_bilinear_int16(const KernelArgs& args) {
  const auto& p = args.params<ResizeBilinearParams>();
  const ResizeGeometry& g = p.geometry;
  auto* line = reinterpret_cast<int32_t*>(args.scratch);
  const int64_t c = g.channels;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const BilinearTap y = fixed_tap(g.y, row % g.y.out);
    const int16_t* image = args.in<int16_t>(0) + row / g.y.out * g.y.in * g.x.in * c;
    const int16_t *above = image + y.first * g.x.in * c, *below = image + y.second * g.x.in * c;
    for (int64_t i = 0; i < g.x.in * c; ++i) line[i] = above[i] * (1024 - y.weight_10) + below[i] * y.weight_10;
    int16_t* to = args.out<int16_t>(0) + row * g.x.out * c;
    for (int64_t x = 0; x < g.x.out; ++x, to += c) {
      const BilinearTap& tap = p.taps[x];
      const int32_t *left = line + tap.first * c, *right = line + tap.second * c;
      for (int64_t i = 0; i < c; ++i) {
        const int64_t sum =
            static_cast<int64_t>(left[i]) * (1024 - tap.weight_10) + static_cast<int64_t>(right[i]) * tap.weight_10;
        to[i] = static_cast<int16_t>((sum + (sum > 0 ? 1 << 19 : -(1 << 19))) / (1 << 20));
      }
    }
  }
}

inline RowRange resize_bilinear_rows(const void* params, RowRange rows) {
  const ResizeGeometry& g = static_cast<const ResizeBilinearParams*>(params)->geometry;
  return resize_rows(g, rows, [&](int64_t y) {
    // The fixed-point taps may differ from these by one row.
    const BilinearTap tap = float_tap(g.y, y), fixed = fixed_tap(g.y, y);
    return RowRange{std::min(tap.first, fixed.first), std::max(tap.second, fixed.second) + 1};
  });
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_RESIZE_BILINEAR_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_RESIZE_BILINEAR_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_RESIZE_BILINEAR_KERNELS
#undef ONEWEIGHT_OPS_RESIZE_BILINEAR_KERNELS
#else
#define ONEWEIGHT_OPS_RESIZE_BILINEAR_KERNELS
#endif
#include "oneweight/simd/targets.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// to = a + (b - a) * weight; exactly a where the weight is 0.
HWY_INLINE void blend_floats(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float weight,
                             float* HWY_RESTRICT to, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  const auto w = hn::Set(d, weight);
  int64_t i = 0;
  for (; i + n <= count; i += n) {
    const auto first = hn::LoadU(d, a + i);
    hn::StoreU(hn::MulAdd(hn::Sub(hn::LoadU(d, b + i), first), w, first), d, to + i);
  }
  if (i < count) {
    const auto left = static_cast<size_t>(count - i);
    const auto first = hn::LoadN(d, a + i, left);
    hn::StoreN(hn::MulAdd(hn::Sub(hn::LoadN(d, b + i, left), first), w, first), d, to + i, left);
  }
}

// int8: products of 11-bit weights fit 32 bits; rounded once, halves away from zero.
HWY_INLINE void blend_fixed(const int32_t* HWY_RESTRICT left, const int32_t* HWY_RESTRICT right, int32_t weight,
                            int8_t* HWY_RESTRICT to, int64_t count) {
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<int8_t, decltype(d)> d8;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  const auto wl = hn::Set(d, 1024 - weight), wr = hn::Set(d, weight), half = hn::Set(d, 1 << 19);
  for (int64_t i = 0; i < count; i += n) {
    const auto left_over = static_cast<size_t>(std::min(n, count - i));
    const auto sum =
        hn::Add(hn::Mul(hn::LoadN(d, left + i, left_over), wl), hn::Mul(hn::LoadN(d, right + i, left_over), wr));
    const auto magnitude = hn::ShiftRight<20>(hn::Add(hn::Abs(sum), half));
    const auto value = hn::IfThenElse(hn::Lt(sum, hn::Zero(d)), hn::Neg(magnitude), magnitude);
    hn::StoreN(hn::DemoteTo(d8, value), d8, to + i, left_over);
  }
}
inline void resize_bilinear_int8(const KernelArgs& args) {
  const auto& p = args.params<ResizeBilinearParams>();
  const ResizeGeometry& g = p.geometry;
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<int8_t, decltype(d)> d8;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  auto* line = reinterpret_cast<int32_t*>(args.scratch);
  const int64_t c = g.channels, in_line = g.x.in * c;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const BilinearTap y = fixed_tap(g.y, row % g.y.out);
    const int8_t* image = args.in<int8_t>(0) + row / g.y.out * g.y.in * in_line;
    const int8_t *above = image + y.first * in_line, *below = image + y.second * in_line;
    const auto wa = hn::Set(d, 1024 - y.weight_10), wb = hn::Set(d, y.weight_10);
    for (int64_t i = 0; i < in_line; i += n) {
      const auto left = static_cast<size_t>(std::min(n, in_line - i));
      const auto a = hn::PromoteTo(d, hn::LoadN(d8, above + i, left)),
                 b = hn::PromoteTo(d, hn::LoadN(d8, below + i, left));
      hn::StoreN(hn::Add(hn::Mul(a, wa), hn::Mul(b, wb)), d, line + i, left);
    }
    int8_t* to = args.out<int8_t>(0) + row * g.x.out * c;
    for (int64_t x = 0; x < g.x.out; ++x, to += c) {
      const BilinearTap& tap = p.taps[x];
      blend_fixed(line + tap.first * c, line + tap.second * c, tap.weight_10, to, c);
    }
  }
}

// uint8: sums of four products, each rounded to float. Products and sums are computed by functions of their own, which
// the compiler must not merge: fused, they would round elsewhere.
HWY_NOINLINE inline void scale_bytes(const uint8_t* from, float weight, float* to, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  const auto w = hn::Set(d, weight);
  for (int64_t i = 0; i < count; i += n) {
    const auto left = static_cast<size_t>(std::min(n, count - i));
    hn::StoreN(hn::Mul(hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadN(d8, from + i, left))), w), d, to + i, left);
  }
}
HWY_NOINLINE inline void scale_neighbours(const float* line, const BilinearTap* taps, int64_t width, int64_t c,
                                          float* left, float* right) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t x = 0; x < width; ++x) {
    const float *first = line + taps[x].first * c, *second = line + taps[x].second * c;
    const auto wl = hn::Set(d, 1 - taps[x].weight), wr = hn::Set(d, taps[x].weight);
    for (int64_t i = 0; i < c; i += n) {
      const auto some = static_cast<size_t>(std::min(n, c - i));
      hn::StoreN(hn::Mul(hn::LoadN(d, first + i, some), wl), d, left + x * c + i, some);
      hn::StoreN(hn::Mul(hn::LoadN(d, second + i, some), wr), d, right + x * c + i, some);
    }
  }
}
HWY_NOINLINE inline void sum_to_bytes(const float* products, int64_t stride, uint8_t* to, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  const auto half = hn::Set(d, 0.5f);
  for (int64_t i = 0; i < count; i += n) {
    const auto left = static_cast<size_t>(std::min(n, count - i));
    auto sum = hn::Add(hn::LoadN(d, products + i, left), hn::LoadN(d, products + stride + i, left));
    sum = hn::Add(hn::Add(sum, hn::LoadN(d, products + 2 * stride + i, left)),
                  hn::LoadN(d, products + 3 * stride + i, left));
    hn::StoreN(hn::DemoteTo(d8, hn::ConvertTo(d32, hn::Add(sum, half))), d8, to + i, left);
  }
}
inline void resize_bilinear_bytes(const KernelArgs& args) {
  const auto& p = args.params<ResizeBilinearParams>();
  const ResizeGeometry& g = p.geometry;
  const int64_t in_line = g.x.in * g.channels, out_line = g.x.out * g.channels;
  auto* above = reinterpret_cast<float*>(args.scratch);
  float *below = above + in_line, *products = below + in_line;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const BilinearTap y = float_tap(g.y, row % g.y.out);
    const uint8_t* image = args.in<uint8_t>(0) + row / g.y.out * g.y.in * in_line;
    scale_bytes(image + y.first * in_line, 1 - y.weight, above, in_line);
    scale_bytes(image + y.second * in_line, y.weight, below, in_line);
    scale_neighbours(above, p.taps, g.x.out, g.channels, products, products + 2 * out_line);
    scale_neighbours(below, p.taps, g.x.out, g.channels, products + out_line, products + 3 * out_line);
    sum_to_bytes(products, out_line, args.out<uint8_t>(0) + row * out_line, out_line);
  }
}

inline void resize_bilinear_floats(const KernelArgs& args) {
  const auto& p = args.params<ResizeBilinearParams>();
  const ResizeGeometry& g = p.geometry;
  const int64_t c = g.channels;
  auto* blended = reinterpret_cast<float*>(args.scratch);
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const BilinearTap y = float_tap(g.y, row % g.y.out);
    const float* image = args.in<float>(0) + row / g.y.out * g.y.in * g.x.in * c;
    const float* line = image + y.first * g.x.in * c;
    if (y.weight != 0.0f && y.first != y.second) {
      blend_floats(line, image + y.second * g.x.in * c, y.weight, blended, g.x.in * c);
      line = blended;
    }
    float* to = args.out<float>(0) + row * g.x.out * c;
    for (int64_t x = 0; x < g.x.out; ++x, to += c) {
      const BilinearTap& tap = p.taps[x];
      const float *left = line + tap.first * c, *right = line + tap.second * c;
      if (c >= 4) {
        blend_floats(left, right, tap.weight, to, c);
      } else {
        for (int64_t i = 0; i < c; ++i) to[i] = left[i] + (right[i] - left[i]) * tap.weight;
      }
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

ONEWEIGHT_INLINE Status ResizeBilinear::prepare(Preparation& p) {
  ResizeBilinearParams* params = p.make_params<ResizeBilinearParams>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(
      prepare_resize(p, p.options().get<bool>(2, false), p.options().get<bool>(3, false), &params->geometry));
  const ResizeGeometry& g = params->geometry;
  const TensorType type = p.input(0).type;
  const bool fixed = type == TensorType::int8 || type == TensorType::int16;
  BilinearTap* taps = p.derived<BilinearTap>(g.x.out);
  if (!taps) return p.no_memory();
  for (int64_t x = 0; x < g.x.out; ++x) taps[x] = fixed ? fixed_tap(g.x, x) : float_tap(g.x, x);
  params->taps = taps;
  KernelFn kernel = ONEWEIGHT_KERNEL(p.target(), resize_bilinear_floats);
  if (type == TensorType::int8) kernel = ONEWEIGHT_KERNEL(p.target(), resize_bilinear_int8);
  if (type == TensorType::int16) kernel = &resize_bilinear_int16;
  if (type == TensorType::uint8) kernel = ONEWEIGHT_KERNEL(p.target(), resize_bilinear_bytes);
  const int64_t floats = type == TensorType::uint8 ? (2 * g.x.in + 4 * g.x.out) * g.channels : g.x.in * g.channels;
  p.set_scratch(floats * static_cast<int64_t>(sizeof(float)));
  p.set_kernel(kernel, g.batch * g.y.out, &resize_bilinear_rows);
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // per target
#endif  // ONEWEIGHT_HAS_KERNELS
