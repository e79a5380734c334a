// FAKE_QUANT: float values as they would come back from num_bits bits over [min, max], whose ends are moved so that 0 is
// exact. Halves away from zero; NaN passes.
#ifndef ONEWEIGHT_OPS_FAKE_QUANT_H
#define ONEWEIGHT_OPS_FAKE_QUANT_H

#include "oneweight/ops/elementwise.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct FakeQuantParams {
  ElementRows elements;
  float low = 0, high = 0, scale = 1;
};

struct FakeQuant {
  static bool accepts(const NodeTypes& t) { return t.input_count == 1 && t.in(0, TensorType::float32) && t.out(0, TensorType::float32); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::fake_quant, .types = "float", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void fake_quant_kernel(const KernelArgs& args) {
  const auto& p = args.params<FakeQuantParams>();
  const float inverse = 1.0f / p.scale;
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i) {
    const float x = args.in<float>(0)[i];
    const float clamped = x < p.low ? p.low : x > p.high ? p.high : x;
    args.out<float>(0)[i] = std::round((clamped - p.low) * inverse) * p.scale + p.low;
  }
}

ONEWEIGHT_INLINE Status FakeQuant::prepare(Preparation& p) {
  const float low = p.options().get<float>(0, 0.0f), high = p.options().get<float>(1, 0.0f);
  const int32_t bits = p.options().get<int32_t>(2, 0);
  const bool narrow = p.options().get<bool>(3, false);
  if (bits < 2 || bits > 16) return p.invalid("has %d bits, not 2 to 16", static_cast<int>(bits));
  if (!(low <= 0 && high >= 0 && low < high) || !std::isfinite(low) || !std::isfinite(high))
    return p.invalid("has the range %g to %g", static_cast<double>(low), static_cast<double>(high));
  FakeQuantParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_unary(p, &fake_quant_kernel, &params));
  const float least = narrow ? 1.0f : 0.0f, most = static_cast<float>((1 << bits) - 1);
  const float scale = (high - low) / (most - least);
  const float zero = std::round(least - low / scale);
  const float nudged = zero < least ? least : zero > most ? most : zero;
  params->scale = scale;
  params->low = (least - nudged) * scale;
  params->high = (most - nudged) * scale;
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_FAKE_QUANT_H
