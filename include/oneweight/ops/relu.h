// RELU, RELU6, RELU_N1_TO_1, RELU_0_TO_1 and LEAKY_RELU. On float the clamps are taken over by the operator before, where it
// can; NaN passes. Quantised forms (int8, uint8, int16) rescale to the output bit-exactly as TFLite's reference kernels.
#ifndef ONEWEIGHT_OPS_RELU_H
#define ONEWEIGHT_OPS_RELU_H

#include "oneweight/base/fixed_point.h"
#include "oneweight/ops/elementwise.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct ReluParams {
  ElementRows elements;
  float low = 0, high = 0;
  float alpha = 0;                   // LEAKY_RELU
  int32_t in_zero_point = 0, out_zero_point = 0;
  int32_t stored_low = 0, stored_high = 0;
  FixedMultiplier positive, negative;
};

template <BuiltinOperator kCode>
struct Clamp {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 1 && t.out(0, t.inputs[0]) &&
           (t.inputs[0] == TensorType::float32 || t.inputs[0] == TensorType::int8 || t.inputs[0] == TensorType::uint8 || t.inputs[0] == TensorType::int16);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kCode, .types = "float, int8, uint8, int16", .accepts = &accepts, .prepare = &prepare};
};
using Relu = Clamp<BuiltinOperator::relu>;
using Relu6 = Clamp<BuiltinOperator::relu6>;
using ReluN1To1 = Clamp<BuiltinOperator::relu_n1_to_1>;
using Relu0To1 = Clamp<BuiltinOperator::relu_0_to_1>;

struct LeakyRelu {
  static bool accepts(const NodeTypes& t) { return Relu::accepts(t); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::leaky_relu, .types = "float, int8, uint8, int16", .accepts = &accepts, .prepare = &prepare};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_RELU_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_RELU_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_RELU_TARGET
#undef ONEWEIGHT_OPS_RELU_TARGET
#else
#define ONEWEIGHT_OPS_RELU_TARGET
#endif

#include "oneweight/ops/table-inl.h"
#include "oneweight/simd/elementwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline void clamp_float_kernel(const KernelArgs& args) {
  const auto& p = args.params<ReluParams>();
  const int64_t begin = p.elements.begin(args.rows);
  map_floats(args.in<float>(0) + begin, args.out<float>(0) + begin, static_cast<size_t>(p.elements.end(args.rows) - begin),
             [&p](auto d, auto x) HWY_ATTR { return clamp_keep_nan(d, x, hn::Set(d, p.low), hn::Set(d, p.high)); });
}
inline void leaky_float_kernel(const KernelArgs& args) {
  const auto& p = args.params<ReluParams>();
  const int64_t begin = p.elements.begin(args.rows);
  map_floats(args.in<float>(0) + begin, args.out<float>(0) + begin, static_cast<size_t>(p.elements.end(args.rows) - begin),
             [&p](auto d, auto x) HWY_ATTR { return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, p.alpha)), x); });
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

inline int32_t clamp_stored(const ReluParams& p, int32_t scaled) {
  return std::min(std::max(scaled + p.out_zero_point, p.stored_low), p.stored_high);
}
// `f`: stored input to stored output. 8-bit types go through a table made with the plan.
template <class F>
Status prepare_quantized_relu(Preparation& p, const ReluParams& values, F f, KernelFn int16_kernel) {
  if (p.input(0).type == TensorType::int16) {
    ReluParams* params;
    ONEWEIGHT_RETURN_IF_ERROR(prepare_unary(p, int16_kernel, &params));
    const ElementRows elements = params->elements;
    *params = values;
    params->elements = elements;
    return {};
  }
  TableParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_unary(p, ONEWEIGHT_KERNEL(p.target(), table_kernel), &params));
  uint8_t* table = p.derived<uint8_t>(256);
  if (!table) return p.no_memory();
  params->table = table;
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(f(values, p.input(0).type == TensorType::int8 ? static_cast<int8_t>(i) : i));
  return {};
}
inline int32_t clamp_value(const ReluParams& p, int32_t q) {
  return clamp_stored(p, multiply_by_quantized_multiplier(q - p.in_zero_point, p.positive));
}
inline int32_t leaky_value(const ReluParams& p, int32_t q) {
  const int32_t x = q - p.in_zero_point;
  return clamp_stored(p, multiply_by_quantized_multiplier(x, x >= 0 ? p.positive : p.negative));
}
template <int32_t (*kValue)(const ReluParams&, int32_t)>
void relu_int16_kernel(const KernelArgs& args) {
  const auto& p = args.params<ReluParams>();
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i)
    args.out<int16_t>(0)[i] = static_cast<int16_t>(kValue(p, args.in<int16_t>(0)[i]));
}
// Scales, zero points and the type's bounds.
inline Status quantized_relu_values(const Preparation& p, float low, float high, ReluParams* values) {
  const Operand &in = p.input(0), &out = p.output(0);
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, in));
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, out));
  values->in_zero_point = in.zero_point(), values->out_zero_point = out.zero_point();
  values->positive = quantize_multiplier(static_cast<double>(in.scale() / out.scale()));
  const int32_t type_low = out.type == TensorType::int8 ? -128 : out.type == TensorType::uint8 ? 0 : -32768;
  const int32_t type_high = out.type == TensorType::int8 ? 127 : out.type == TensorType::uint8 ? 255 : 32767;
  const QuantizedRange range = quantized_range(low, high, out.scale(), out.zero_point(), type_low, type_high);
  values->stored_low = range.low, values->stored_high = range.high;
  return {};
}

template <BuiltinOperator kCode>
Status Clamp<kCode>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  FusedActivation bounds;
  bounds.low = kCode == BuiltinOperator::relu_n1_to_1 ? -1.0f : 0.0f;
  if constexpr (kCode != BuiltinOperator::relu) bounds.high = kCode == BuiltinOperator::relu6 ? 6.0f : 1.0f;
  if (p.input(0).type == TensorType::float32) {
    if (p.fuse_activation(bounds)) return {};
    ReluParams* params;
    ONEWEIGHT_RETURN_IF_ERROR(prepare_unary(p, ONEWEIGHT_KERNEL(p.target(), clamp_float_kernel), &params));
    params->low = bounds.low, params->high = bounds.high;
    return {};
  }
  ReluParams values;
  ONEWEIGHT_RETURN_IF_ERROR(quantized_relu_values(p, bounds.low, bounds.high, &values));
  return prepare_quantized_relu(p, values, &clamp_value, &relu_int16_kernel<&clamp_value>);
}

ONEWEIGHT_INLINE Status LeakyRelu::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const float alpha = p.options().get<float>(0, 0.0f);
  if (p.input(0).type == TensorType::float32) {
    ReluParams* params;
    ONEWEIGHT_RETURN_IF_ERROR(prepare_unary(p, ONEWEIGHT_KERNEL(p.target(), leaky_float_kernel), &params));
    params->alpha = alpha;
    return {};
  }
  ReluParams values;
  const float inf = std::numeric_limits<float>::infinity();
  ONEWEIGHT_RETURN_IF_ERROR(quantized_relu_values(p, -inf, inf, &values));
  const auto factor = static_cast<double>(p.input(0).scale() * alpha / p.output(0).scale());
  values.negative = quantize_multiplier(std::fabs(factor));
  values.negative.multiplier = factor < 0 ? -values.negative.multiplier : values.negative.multiplier;
  return prepare_quantized_relu(p, values, &leaky_value, &relu_int16_kernel<&leaky_value>);
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // per target
#endif  // ONEWEIGHT_HAS_KERNELS
