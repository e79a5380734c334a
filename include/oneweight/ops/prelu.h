// PRELU: x where x >= 0, alpha * x elsewhere; alpha broadcasts against x (usually one slope a channel). Float; int8 and uint8
// bit-exact with TFLite's reference kernels (one factor for each sign). NaN passes.
#ifndef ONEWEIGHT_OPS_PRELU_H
#define ONEWEIGHT_OPS_PRELU_H

#include "oneweight/base/fixed_point.h"
#include "oneweight/ops/broadcast.h"
#include "oneweight/ops/elementwise.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct PreluParams {
  BroadcastPlan<2> broadcast;
  ElementRows elements;
  int32_t zero_point = 0, alpha_zero_point = 0, out_zero_point = 0;
  FixedMultiplier positive, negative;
};

struct Prelu {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 2 && t.inputs[0] == t.inputs[1] && t.out(0, t.inputs[0]) &&
           (t.inputs[0] == TensorType::float32 || t.inputs[0] == TensorType::int8 || t.inputs[0] == TensorType::uint8);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::prelu, .types = "float, int8, uint8", .accepts = &accepts, .prepare = &prepare};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_PRELU_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_PRELU_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_PRELU_TARGET
#undef ONEWEIGHT_OPS_PRELU_TARGET
#else
#define ONEWEIGHT_OPS_PRELU_TARGET
#endif

#include "oneweight/simd/elementwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline void prelu_float_kernel(const KernelArgs& args) {
  const auto& p = args.params<PreluParams>();
  const float *x = args.in<float>(0), *alpha = args.in<float>(1);
  map_broadcast(p.broadcast, p.elements.begin(args.rows), p.elements.end(args.rows), x, alpha, args.out<float>(0),
                [](auto d, auto v, auto a) HWY_ATTR { return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Mul(v, a), v); });
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <class T>
void prelu_quantized_kernel(const KernelArgs& args) {
  const auto& p = args.params<PreluParams>();
  const T *x = args.in<T>(0), *alpha = args.in<T>(1);
  for_each_run(p.broadcast, p.elements.begin(args.rows), p.elements.end(args.rows), [&](int64_t o, const int64_t* at, int64_t count, const int64_t* step) {
    for (int64_t i = 0; i < count; ++i) {
      const int32_t value = x[at[0] + i * step[0]] - p.zero_point;
      const int32_t scaled = value >= 0 ? multiply_by_quantized_multiplier(value, p.positive)
                                        : multiply_by_quantized_multiplier(value * (alpha[at[1] + i * step[1]] - p.alpha_zero_point), p.negative);
      const int32_t q = scaled + p.out_zero_point;
      args.out<T>(0)[o + i] = static_cast<T>(std::min<int32_t>(std::max<int32_t>(q, std::numeric_limits<T>::min()), std::numeric_limits<T>::max()));
    }
  });
}

ONEWEIGHT_INLINE Status Prelu::prepare(Preparation& p) {
  PreluParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_broadcast(p, &params));
  if (!(p.output(0).shape == p.input(0).shape))
    return p.invalid("%s is larger than %s", p.describe(p.input(1)).c_str(), p.describe(p.input(0)).c_str());
  params->elements = ElementRows(p.output(0).shape);
  if (p.input(0).type == TensorType::float32) {
    p.set_kernel(ONEWEIGHT_KERNEL(p.target(), prelu_float_kernel), params->elements.rows);
    p.set_same_rows();
    return {};
  }
  const Operand &in = p.input(0), &alpha = p.input(1), &out = p.output(0);
  for (const Operand* t : {&in, &alpha, &out}) ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, *t));
  params->zero_point = in.zero_point(), params->alpha_zero_point = alpha.zero_point(), params->out_zero_point = out.zero_point();
  params->positive = quantize_multiplier(static_cast<double>(in.scale() / out.scale()));
  params->negative = quantize_multiplier(static_cast<double>(in.scale() * alpha.scale() / out.scale()));
  p.set_kernel(in.type == TensorType::int8 ? &prelu_quantized_kernel<int8_t> : &prelu_quantized_kernel<uint8_t>, params->elements.rows);
  p.set_same_rows();
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // per target
#endif  // ONEWEIGHT_HAS_KERNELS
