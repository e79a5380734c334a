// L2_NORMALIZATION along the last axis: x / max(sqrt(sum of squares), 1e-6). Float (sums in double); int8 and uint8 with the
// fixed output scale 1/128 around 0 (uint8: 128), halves away from zero: within one step of TFLite's fixed-point kernel.
#ifndef ONEWEIGHT_OPS_L2_NORMALIZATION_H
#define ONEWEIGHT_OPS_L2_NORMALIZATION_H

#include "oneweight/ops/elementwise.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct L2NormalizationParams {
  int64_t depth = 0;                 // extent of the last axis
  int32_t zero_point = 0;
  Activation activation = Activation::none;
  FusedActivation bounds;
};

struct L2Normalization {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 1 && t.out(0, t.inputs[0]) &&
           (t.inputs[0] == TensorType::float32 || t.inputs[0] == TensorType::int8 || t.inputs[0] == TensorType::uint8);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::l2_normalization, .types = "float, int8, uint8", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void l2_normalization_float(const KernelArgs& args) {
  const auto& p = args.params<L2NormalizationParams>();
  for (int64_t r = args.rows.begin; r < args.rows.end; ++r) {
    const float* in = args.in<float>(0) + r * p.depth;
    float* out = args.out<float>(0) + r * p.depth;
    double squares = 0;
    for (int64_t i = 0; i < p.depth; ++i) squares += static_cast<double>(in[i]) * static_cast<double>(in[i]);
    const double norm = std::sqrt(squares);
    const double length = norm < 1e-6 ? 1e-6 : norm;  // NaN stays
    for (int64_t i = 0; i < p.depth; ++i) {
      const float y = static_cast<float>(static_cast<double>(in[i]) / length);
      out[i] = y < p.bounds.low ? p.bounds.low : y > p.bounds.high ? p.bounds.high : y;
    }
  }
}
template <class T>
void l2_normalization_quantized(const KernelArgs& args) {
  const auto& p = args.params<L2NormalizationParams>();
  constexpr int32_t kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max(), kZero = std::is_signed_v<T> ? 0 : 128;
  for (int64_t r = args.rows.begin; r < args.rows.end; ++r) {
    const T* in = args.in<T>(0) + r * p.depth;
    T* out = args.out<T>(0) + r * p.depth;
    int64_t squares = 0;
    for (int64_t i = 0; i < p.depth; ++i) squares += (in[i] - p.zero_point) * (in[i] - p.zero_point);
    const double factor = squares > 0 ? 128 / std::sqrt(static_cast<double>(squares)) : 0;
    for (int64_t i = 0; i < p.depth; ++i) {
      const int32_t q = static_cast<int32_t>(std::round((in[i] - p.zero_point) * factor)) + kZero;
      out[i] = static_cast<T>(q < kLow ? kLow : q > kHigh ? kHigh : q);
    }
  }
}

ONEWEIGHT_INLINE Status L2Normalization::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const Operand& in = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(in, 1, kMaxRank));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, in.shape));
  L2NormalizationParams* params = p.make_params<L2NormalizationParams>();
  if (!params) return p.no_memory();
  params->depth = in.shape[in.shape.rank() - 1];
  const int64_t rows = in.shape.elements(0, in.shape.rank() - 1);
  const auto activation = static_cast<Activation>(p.options().get<int8_t>(0, 0));
  ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, activation, &params->bounds));
  p.allow_in_place(0);
  if (in.type == TensorType::float32) {
    p.set_kernel(&l2_normalization_float, rows);
    p.set_same_rows();
    return {};
  }
  const Operand& out = p.output(0);
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, in));
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, out));
  if (activation != Activation::none)
    return p.error(ErrorCode::unsupported, "a fused activation on %s is not supported", tensor_type_name(in.type));
  const int32_t zero = in.type == TensorType::int8 ? 0 : 128;
  if (out.scale() != 1.0f / 128 || out.zero_point() != zero)
    return p.invalid("%s has scale %g and zero point %d, not 1/128 and %d", p.describe(out).c_str(), static_cast<double>(out.scale()),
                     static_cast<int>(out.zero_point()), static_cast<int>(zero));
  params->zero_point = in.zero_point();
  p.set_kernel(in.type == TensorType::int8 ? &l2_normalization_quantized<int8_t> : &l2_normalization_quantized<uint8_t>, rows);
  p.set_same_rows();
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_L2_NORMALIZATION_H
