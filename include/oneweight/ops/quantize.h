// QUANTIZE: float to int8, uint8, int16 (round(x / scale) + zero point, halves away from zero, saturating; NaN gives the zero
// point), and between quantised types, int32 among them, bit-exactly as the reference kernels of TFLite and TFLite Micro.
// DEQUANTIZE: scale * (stored - zero point) in float for int8, uint8, int16, int4 (one scale, or one for each index of an
// axis), and half to float.
#ifndef ONEWEIGHT_OPS_QUANTIZE_H
#define ONEWEIGHT_OPS_QUANTIZE_H

#include "oneweight/base/fixed_point.h"
#include "oneweight/ops/elementwise.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct QuantizeParams {
  ElementRows elements;
  float scale = 1;
  int32_t in_zero_point = 0, out_zero_point = 0;
  FixedMultiplier factor;
};

struct Quantize {
  static bool is_quantized_type(TensorType t) { return t == TensorType::int8 || t == TensorType::uint8 || t == TensorType::int16; }
  static bool accepts(const NodeTypes& t) {
    if (t.input_count != 1 || t.output_count != 1) return false;
    const TensorType in = t.inputs[0], out = t.outputs[0];
    return is_quantized_type(out) ? in == TensorType::float32 || in == TensorType::int32 || is_quantized_type(in)
                                  : out == TensorType::int32 && is_quantized_type(in);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::quantize, .types = "float, int8, uint8, int16, int32", .accepts = &accepts, .prepare = &prepare};
};

struct DequantizeParams {
  ElementRows elements;
  const float* scales = nullptr;
  const int32_t* zero_points = nullptr;
  int64_t channels = 1, inner = 1;   // element i belongs to scale i / inner % channels
};

struct Dequantize {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 1 && t.out(0, TensorType::float32) && (Quantize::is_quantized_type(t.inputs[0]) || t.inputs[0] == TensorType::int4);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::dequantize, .types = "int8, uint8, int16, int4", .accepts = &accepts, .prepare = &prepare};
};

// The DEQUANTIZE that stands behind half weights: where its input is constant, consumers read the halves themselves.
struct WidenHalf {
  static bool accepts(const NodeTypes& t) { return t.in(0, TensorType::float16) && t.out(0, TensorType::float32); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::dequantize, .types = "half", .accepts = &accepts, .prepare = &prepare, .widens = true};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_QUANTIZE_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_QUANTIZE_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_QUANTIZE_TARGET
#undef ONEWEIGHT_OPS_QUANTIZE_TARGET
#else
#define ONEWEIGHT_OPS_QUANTIZE_TARGET
#endif

#include "oneweight/simd/math-inl.h"
#include "oneweight/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void quantize_float_kernel(const KernelArgs& args) {
  const auto& p = args.params<QuantizeParams>();
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<T, decltype(d)> dt;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(d, p.scale), half_step = hn::Set(d, 0.5f);
  const auto zero = hn::Set(d, static_cast<float>(p.out_zero_point));
  const auto low = hn::Set(d, static_cast<float>(std::numeric_limits<T>::min())), high = hn::Set(d, static_cast<float>(std::numeric_limits<T>::max()));
  const float* in = args.in<float>(0);
  T* out = args.out<T>(0);
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; i += n) {
    const int64_t left = end - i < n ? end - i : n;
    const auto x = hn::Div(hn::LoadN(d, in + i, static_cast<size_t>(left)), scale);
    // Halves away from zero: truncate, and step on where the rest is at least a half (exact in float).
    const auto whole = hn::Trunc(x), rest = hn::Abs(hn::Sub(x, whole));
    const auto rounded = hn::Add(whole, hn::IfThenElseZero(hn::Ge(rest, half_step), hn::CopySign(hn::Set(d, 1.0f), x)));
    auto q = hn::Add(rounded, zero);
    q = hn::IfThenElse(hn::IsNaN(x), zero, hn::Min(hn::Max(q, low), high));
    const auto inf = hn::Set(d, std::numeric_limits<float>::infinity());
    q = hn::IfThenElse(hn::Eq(x, inf), high, hn::IfThenElse(hn::Eq(x, hn::Neg(inf)), low, q));
    const auto narrow = hn::DemoteTo(dt, hn::ConvertTo(di, q));
    if (left == n) hn::StoreU(narrow, dt, out + i);
    else hn::StoreN(narrow, dt, out + i, static_cast<size_t>(left));
  }
}

inline void widen_half_kernel(const KernelArgs& args) {
  const auto& p = args.params<DequantizeParams>();
  const hn::ScalableTag<float> d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  const half* in = args.in<half>(0);
  int64_t i = p.elements.begin(args.rows);
  const int64_t end = p.elements.end(args.rows);
  for (; i + n <= end; i += n) hn::StoreU(row_load(d, in + i), d, args.out<float>(0) + i);
  if (i < end) hn::StoreN(row_load_n(d, in + i, static_cast<size_t>(end - i)), d, args.out<float>(0) + i, static_cast<size_t>(end - i));
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <class In, class Out>
void requantize_kernel(const KernelArgs& args) {
  const auto& p = args.params<QuantizeParams>();
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i) {
    const int32_t scaled = multiply_by_quantized_multiplier(static_cast<int32_t>(args.in<In>(0)[i]) - p.in_zero_point, p.factor);
    const int64_t q = int64_t{scaled} + p.out_zero_point;
    constexpr int64_t kLow = std::numeric_limits<Out>::min(), kHigh = std::numeric_limits<Out>::max();
    args.out<Out>(0)[i] = static_cast<Out>(std::min(std::max(q, kLow), kHigh));
  }
}
template <class Out>
KernelFn requantize_from(TensorType in) {
  switch (in) {
    case TensorType::int8: return &requantize_kernel<int8_t, Out>;
    case TensorType::uint8: return &requantize_kernel<uint8_t, Out>;
    case TensorType::int16: return &requantize_kernel<int16_t, Out>;
    default: return &requantize_kernel<int32_t, Out>;
  }
}

ONEWEIGHT_INLINE Status Quantize::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const Operand &in = p.input(0), &out = p.output(0);
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, out));
  KernelFn kernel;
  if (in.type == TensorType::float32) {
    kernel = out.type == TensorType::int8    ? ONEWEIGHT_KERNEL(p.target(), quantize_float_kernel<int8_t>)
             : out.type == TensorType::uint8 ? ONEWEIGHT_KERNEL(p.target(), quantize_float_kernel<uint8_t>)
                                             : ONEWEIGHT_KERNEL(p.target(), quantize_float_kernel<int16_t>);
  } else {
    ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, in));
    kernel = out.type == TensorType::int8 ? requantize_from<int8_t>(in.type) : out.type == TensorType::uint8 ? requantize_from<uint8_t>(in.type)
             : out.type == TensorType::int16 ? requantize_from<int16_t>(in.type) : requantize_from<int32_t>(in.type);
  }
  QuantizeParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_unary(p, kernel, &params));
  params->scale = out.scale();
  params->in_zero_point = in.zero_point(), params->out_zero_point = out.zero_point();
  if (in.quantized()) params->factor = quantize_multiplier(static_cast<double>(in.scale()) / static_cast<double>(out.scale()));
  return {};
}

template <class T>
void dequantize_kernel(const KernelArgs& args) {
  const auto& p = args.params<DequantizeParams>();
  const T* in = args.in<T>(0);
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i) {
    const int64_t c = p.channels == 1 ? 0 : i / p.inner % p.channels;
    args.out<float>(0)[i] = p.scales[c] * static_cast<float>(in[i] - p.zero_points[c]);
  }
}
// Two values a byte, the low half first.
inline void dequantize_int4_kernel(const KernelArgs& args) {
  const auto& p = args.params<DequantizeParams>();
  const uint8_t* in = args.in<uint8_t>(0);
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i) {
    const int64_t c = p.channels == 1 ? 0 : i / p.inner % p.channels;
    const int32_t nibble = (i & 1 ? in[i / 2] >> 4 : in[i / 2]) & 15;
    args.out<float>(0)[i] = p.scales[c] * static_cast<float>((nibble >= 8 ? nibble - 16 : nibble) - p.zero_points[c]);
  }
}
ONEWEIGHT_INLINE Status Dequantize::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const Operand& in = p.input(0);
  const auto& scales = in.quantization->scales;
  if (scales.empty()) return p.invalid("%s is not quantised", p.describe(in).c_str());
  DequantizeParams* params;
  const KernelFn kernel = in.type == TensorType::int8 ? &dequantize_kernel<int8_t> : in.type == TensorType::uint8 ? &dequantize_kernel<uint8_t>
                          : in.type == TensorType::int16 ? &dequantize_kernel<int16_t> : &dequantize_int4_kernel;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_unary(p, kernel, &params));
  const auto n = static_cast<int64_t>(scales.size());
  float* kept_scales = p.derived<float>(n);
  int32_t* zero_points = p.derived<int32_t>(n);
  if (!kept_scales || !zero_points) return p.no_memory();
  for (int64_t i = 0; i < n; ++i) kept_scales[i] = scales[i], zero_points[i] = static_cast<int32_t>(in.quantization->zero_points[i]);
  params->scales = kept_scales, params->zero_points = zero_points;
  params->channels = n;
  if (n > 1) params->inner = in.shape.elements(in.quantization->axis + 1, in.shape.rank());
  return {};
}

ONEWEIGHT_INLINE Status WidenHalf::prepare(Preparation& p) {
  DequantizeParams* params;
  return prepare_unary(p, ONEWEIGHT_KERNEL(p.target(), widen_half_kernel), &params);
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // per target
#endif  // ONEWEIGHT_HAS_KERNELS
