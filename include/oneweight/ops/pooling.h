// AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D on NHWC. Only cells inside the image count: means divide by their number,
// padding never wins a maximum. float; int8, uint8 and int16 (not L2) exactly as TFLite: integer means round halves
// away from zero, input and output share scale and zero point. Rows: batch * output height + y.
#ifndef ONEWEIGHT_OPS_POOLING_H
#define ONEWEIGHT_OPS_POOLING_H

#include "oneweight/base/fixed_point.h"
#include "oneweight/ops/conv_geometry.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

enum class Pooling { average, maximum, l2 };

struct PoolingParams {
  ConvGeometry geometry;
  float low = 0, high = 0;      // float activation
  int32_t least = 0, most = 0;  // stored values
};

template <Pooling kKind>
struct PoolBy {
  static bool accepts(const NodeTypes& t) {
    if (t.input_count != 1 || !t.has_input[0] || !t.out(0, t.inputs[0])) return false;
    const TensorType type = t.inputs[0];
    return type == TensorType::float32 ||
           (kKind != Pooling::l2 &&
            (type == TensorType::int8 || type == TensorType::uint8 || type == TensorType::int16));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kKind == Pooling::average   ? BuiltinOperator::average_pool_2d
                                        : kKind == Pooling::maximum ? BuiltinOperator::max_pool_2d
                                                                    : BuiltinOperator::l2_pool_2d,
                                .types = kKind == Pooling::l2 ? "float" : "float, int8, uint8, int16",
                                .accepts = &accepts,
                                .prepare = &prepare};
};
using AveragePool2D = PoolBy<Pooling::average>;
using MaxPool2D = PoolBy<Pooling::maximum>;
using L2Pool2D = PoolBy<Pooling::l2>;

// Calls pixel(first cell inside, rows of cells, cells a row, output pixel) for each output pixel of `rows`.
template <class T, class Pixel>
void for_each_pool(const ConvGeometry& g, RowRange rows, const T* in, T* out, Pixel pixel) {
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t n = row / g.out_h, y0 = row % g.out_h * g.stride_h - g.pad_top;
    const TapRange ys = taps_inside(y0, g.in_h, g.kernel_h, 1);
    for (int64_t x = 0; x < g.out_w; ++x) {
      const int64_t x0 = x * g.stride_w - g.pad_left;
      const TapRange xs = taps_inside(x0, g.in_w, g.kernel_w, 1);
      pixel(in + ((n * g.in_h + y0 + ys.first) * g.in_w + x0 + xs.first) * g.in_c, ys.last - ys.first,
            xs.last - xs.first, out + (row * g.out_w + x) * g.in_c);
    }
  }
}

#if ONEWEIGHT_HAS_KERNELS
// Means of integers, in blocks of channels.
template <class T>
void pool_means_in_blocks(const KernelArgs& args) {
  using Sum = std::conditional_t<sizeof(T) == 1, int32_t, int64_t>;
  constexpr int64_t kBlock = 64;
  const auto& p = args.params<PoolingParams>();
  const ConvGeometry& g = p.geometry;
  const int64_t stride = g.in_w * g.in_c;
  for_each_pool(g, args.rows, args.in<T>(0), args.out<T>(0), [&](const T* from, int64_t ny, int64_t nx, T* to) {
    const auto count = static_cast<Sum>(ny * nx);
    for (int64_t c = 0; c < g.in_c; c += kBlock) {
      const int64_t n = std::min(kBlock, g.in_c - c);
      Sum sums[kBlock] = {};
      for (int64_t y = 0; y < ny; ++y)
        for (int64_t x = 0; x < nx; ++x) {
          const T* cell = from + y * stride + x * g.in_c + c;
          if (n == kBlock) {
            for (int64_t i = 0; i < kBlock; ++i) sums[i] += cell[i];
          } else {
            for (int64_t i = 0; i < n; ++i) sums[i] += cell[i];
          }
        }
      for (int64_t i = 0; i < n; ++i) {
        const Sum mean = count == 0 ? 0 : (sums[i] > 0 ? sums[i] + count / 2 : sums[i] - count / 2) / count;
        to[c + i] = static_cast<T>(std::clamp<Sum>(mean, p.least, p.most));
      }
    }
  });
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_POOLING_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_POOLING_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_POOLING_KERNELS
#undef ONEWEIGHT_OPS_POOLING_KERNELS
#else
#define ONEWEIGHT_OPS_POOLING_KERNELS
#endif
#include "oneweight/simd/targets.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <Pooling kKind, class D, class V = hn::Vec<D>>
HWY_INLINE V pool_start(D d) {
  return kKind == Pooling::maximum ? hn::Set(d, -std::numeric_limits<float>::infinity()) : hn::Zero(d);
}
template <Pooling kKind, class V>
HWY_INLINE V pool_take(V state, V cell) {
  if constexpr (kKind == Pooling::maximum)
    return hn::IfThenElse(hn::Lt(state, cell), cell, state);
  else if constexpr (kKind == Pooling::l2)
    return hn::MulAdd(cell, cell, state);
  else
    return hn::Add(state, cell);
}
// Joins the states of two rows of cells: summing rows apart keeps large windows accurate.
template <Pooling kKind, class V>
HWY_INLINE V pool_join(V a, V b) {
  if constexpr (kKind == Pooling::maximum)
    return hn::IfThenElse(hn::Lt(a, b), b, a);
  else
    return hn::Add(a, b);
}
template <Pooling kKind, class D, class V>
HWY_INLINE V pool_finish(D d, V state, V count, const PoolingParams& p) {
  if constexpr (kKind != Pooling::maximum) state = hn::Div(state, count);
  if constexpr (kKind == Pooling::l2) state = hn::Sqrt(state);
  const V low = hn::Set(d, p.low), high = hn::Set(d, p.high);
  state = hn::IfThenElse(hn::Lt(state, low), low, state);  // NaN stays
  return hn::IfThenElse(hn::Gt(state, high), high, state);
}

// Maxima of integers.
template <class T>
void pool_maxima(const KernelArgs& args) {
  const auto& p = args.params<PoolingParams>();
  const ConvGeometry& g = p.geometry;
  const int64_t stride = g.in_w * g.in_c;
  for_each_pool(g, args.rows, args.in<T>(0), args.out<T>(0),
                [&](const T* from, int64_t ny, int64_t nx, T* to) HWY_ATTR {
                  const hn::ScalableTag<T> d;
                  const auto n = static_cast<int64_t>(hn::Lanes(d));
                  const auto least = hn::Set(d, static_cast<T>(p.least)), most = hn::Set(d, static_cast<T>(p.most));
                  for (int64_t c = 0; c < g.in_c; c += n) {
                    const auto left = static_cast<size_t>(std::min(n, g.in_c - c));
                    auto best = least;
                    for (int64_t y = 0; y < ny; ++y) {
                      const T* cell = from + y * stride + c;
                      if (static_cast<int64_t>(left) == n) {
                        for (int64_t x = 0; x < nx; ++x, cell += g.in_c) best = hn::Max(best, hn::LoadU(d, cell));
                      } else {
                        for (int64_t x = 0; x < nx; ++x, cell += g.in_c) best = hn::Max(best, hn::LoadN(d, cell, left));
                      }
                    }
                    hn::StoreN(hn::Min(best, most), d, to + c, left);
                  }
                });
}

// Means of bytes: sums of up to 256 cells in 16 bits, quotients by float divisions, whose integer part is exact for counts below 2^16
// (a fraction is at least 1 / count, the error at most 2^-16).
template <class T>
void pool_means(const KernelArgs& args) {
#if HWY_TARGET == HWY_SCALAR
  pool_means_in_blocks<T>(args);
#else
  const auto& p = args.params<PoolingParams>();
  const ConvGeometry& g = p.geometry;
  if (g.kernel_h * g.kernel_w >= (1 << 16)) return pool_means_in_blocks<T>(args);
  using Wide = std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>;
  const hn::ScalableTag<Wide> dw;
  const hn::Rebind<uint8_t, decltype(dw)> du8;
  const hn::Rebind<int8_t, decltype(dw)> ds8;
  const hn::ScalableTag<int16_t> d16;
  const hn::ScalableTag<int32_t> d32;
  const hn::ScalableTag<float> df;
  const auto n = static_cast<int64_t>(hn::Lanes(dw));
  const int64_t stride = g.in_w * g.in_c;
  const auto least = hn::Set(d16, static_cast<int16_t>(p.least)), most = hn::Set(d16, static_cast<int16_t>(p.most));
  for_each_pool(g, args.rows, args.in<T>(0), args.out<T>(0), [&](const T* from, int64_t ny, int64_t nx, T* to) HWY_ATTR {
    const auto count = static_cast<int32_t>(ny * nx);
    const auto divisor = hn::Set(df, static_cast<float>(std::max(count, 1)));
    const auto half = hn::Set(d32, count / 2), zero = hn::Zero(d32);
    const auto mean = [&](auto sum) HWY_ATTR {
      const auto up = hn::IfThenElse(hn::Gt(sum, zero), hn::Add(sum, half), hn::Sub(sum, half));
      return hn::ConvertTo(d32, hn::Div(hn::ConvertTo(df, up), divisor));
    };
    for (int64_t c = 0; c < g.in_c; c += n) {
      const auto left = static_cast<size_t>(std::min(n, g.in_c - c));
      const auto load = [&](const T* cell) HWY_ATTR {
        const auto* bytes = reinterpret_cast<const uint8_t*>(cell);
        const auto v = static_cast<int64_t>(left) == n ? hn::LoadU(du8, bytes) : hn::LoadN(du8, bytes, left);
        if constexpr (std::is_signed_v<T>) return hn::PromoteTo(dw, hn::BitCast(ds8, v));
        else return hn::PromoteTo(dw, v);
      };
      auto low = zero, high = zero;
      auto sum = hn::Zero(dw);
      int cells = 0;
      const auto widen = [&]() HWY_ATTR {
        low = hn::Add(low, hn::PromoteLowerTo(d32, sum)), high = hn::Add(high, hn::PromoteUpperTo(d32, sum));
        sum = hn::Zero(dw), cells = 0;
      };
      for (int64_t y = 0; y < ny; ++y) {
        const T* cell = from + y * stride + c;
        for (int64_t x = 0; x < nx; ++x, cell += g.in_c) {
          sum = hn::Add(sum, load(cell));
          if (++cells == 256) widen();
        }
      }
      widen();
      auto q = hn::OrderedDemote2To(d16, mean(low), mean(high));
      q = hn::Min(hn::Max(q, least), most);
      if constexpr (std::is_signed_v<T>) hn::StoreN(hn::DemoteTo(ds8, q), ds8, to + c, left);
      else hn::StoreN(hn::DemoteTo(du8, q), du8, to + c, left);
    }
  });
#endif
}

template <Pooling kKind>
void pool_floats(const KernelArgs& args) {
  const auto& p = args.params<PoolingParams>();
  const ConvGeometry& g = p.geometry;
  const int64_t stride = g.in_w * g.in_c;
  for_each_pool(g, args.rows, args.in<float>(0), args.out<float>(0),
                [&](const float* from, int64_t ny, int64_t nx, float* to) HWY_ATTR {
                  const hn::ScalableTag<float> d;
                  const auto n = static_cast<int64_t>(hn::Lanes(d));
                  const auto count = hn::Set(d, static_cast<float>(ny * nx));
                  int64_t c = 0;
                  for (; c + 2 * n <= g.in_c; c += 2 * n) {
                    auto total0 = pool_start<kKind>(d), total1 = total0;
                    for (int64_t y = 0; y < ny; ++y) {
                      auto s0 = pool_start<kKind>(d), s1 = s0;
                      const float* cell = from + y * stride + c;
                      for (int64_t x = 0; x < nx; ++x, cell += g.in_c) {
                        s0 = pool_take<kKind>(s0, hn::LoadU(d, cell));
                        s1 = pool_take<kKind>(s1, hn::LoadU(d, cell + n));
                      }
                      total0 = pool_join<kKind>(total0, s0);
                      total1 = pool_join<kKind>(total1, s1);
                    }
                    hn::StoreU(pool_finish<kKind>(d, total0, count, p), d, to + c);
                    hn::StoreU(pool_finish<kKind>(d, total1, count, p), d, to + c + n);
                  }
                  for (; c < g.in_c; c += n) {
                    const auto left = static_cast<size_t>(std::min(n, g.in_c - c));
                    auto total = pool_start<kKind>(d);
                    for (int64_t y = 0; y < ny; ++y) {
                      auto s = pool_start<kKind>(d);
                      const float* cell = from + y * stride + c;
                      for (int64_t x = 0; x < nx; ++x, cell += g.in_c)
                        s = pool_take<kKind>(s, hn::LoadN(d, cell, left));
                      total = pool_join<kKind>(total, s);
                    }
                    hn::StoreN(pool_finish<kKind>(d, total, count, p), d, to + c, left);
                  }
                });
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <Pooling kKind>
Status PoolBy<kKind>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const Operand &input = p.input(0), &output = p.output(0);
  WindowOptions window;
  window.padding = p.options().get<int8_t>(0, 0);
  window.stride_w = p.options().get<int32_t>(1, 0);
  window.stride_h = p.options().get<int32_t>(2, 0);
  const int32_t width = p.options().get<int32_t>(3, 0), height = p.options().get<int32_t>(4, 0);
  PoolingParams* params = p.make_params<PoolingParams>();
  if (!params) return p.no_memory();
  ConvGeometry& g = params->geometry;
  ONEWEIGHT_RETURN_IF_ERROR(make_geometry(p, input, SpatialPadding(), height, width, window, &g));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, Shape{g.batch, g.out_h, g.out_w, g.in_c}));
  const auto activation = static_cast<Activation>(p.options().get<int8_t>(5, 0));
  KernelFn kernel = nullptr;
  if (input.type == TensorType::float32) {
    FusedActivation bounds;
    ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, activation, &bounds));
    params->low = bounds.low, params->high = bounds.high;
    kernel = ONEWEIGHT_KERNEL(p.target(), pool_floats<kKind>);
  } else if constexpr (kKind != Pooling::l2) {
    if (input.scale() != output.scale() || input.zero_point() != output.zero_point())
      return p.invalid("%s and its output differ in scale (%g, %g) or zero point (%d, %d)", p.describe(input).c_str(),
                       static_cast<double>(input.scale()), static_cast<double>(output.scale()), input.zero_point(),
                       output.zero_point());
    FusedActivation bounds;
    ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, activation, &bounds));
    if (activation != Activation::none && !(output.scale() > 0))
      return p.invalid("%s has a fused activation but no scale", p.describe(output).c_str());
    const auto use = [&]<class T>(T) {
      if constexpr (kKind == Pooling::average && sizeof(T) == 1)
        kernel = ONEWEIGHT_KERNEL(p.target(), pool_means<T>);
      else if constexpr (kKind == Pooling::average)
        kernel = &pool_means_in_blocks<T>;
      else
        kernel = ONEWEIGHT_KERNEL(p.target(), pool_maxima<T>);
      const QuantizedRange range = quantized_range(bounds.low, bounds.high, output.scale(), output.zero_point(),
                                                   std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
      params->least = range.low, params->most = range.high;
    };
    if (input.type == TensorType::int8) use(int8_t{});
    if (input.type == TensorType::uint8) use(uint8_t{});
    if (input.type == TensorType::int16) use(int16_t{});
  }
  p.set_kernel(kernel, g.rows(), &input_rows_of<PoolingParams>);
  p.set_work(kShortWork * g.output_pixels() * g.in_c * g.kernel_h * g.kernel_w);
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // per target
#endif  // ONEWEIGHT_HAS_KERNELS
