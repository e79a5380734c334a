// Between real numbers and the quantised inputs and outputs of a model.
#ifndef ONEWEIGHT_CONTEXT_QUANTIZE_H
#define ONEWEIGHT_CONTEXT_QUANTIZE_H

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "oneweight/context/execution_context.h"

namespace oneweight {
inline namespace v1 {

// stored = clamp(round(real / scale) + zero_point), halves away from zero as TFLite's QUANTIZE does; NaN becomes
// zero_point. For tensors quantised as a whole (one scale), as inputs and outputs are.
// Errors: invalid_argument when sizes differ or the tensor has not exactly one scale.
template <class T>
Status quantize(std::span<const float> real, const Quantization& quantization, std::span<T> stored) {
  if (real.size() != stored.size())
    return make_error(ErrorCode::invalid_argument, "%zu real values for %zu stored ones", real.size(), stored.size());
  if (quantization.scales.size() != 1)
    return make_error(ErrorCode::invalid_argument, "a tensor with %zu scales cannot be quantised as a whole", quantization.scales.size());
  const float scale = quantization.scales[0];
  const auto zero_point = static_cast<float>(quantization.zero_points[0]);
  constexpr auto low = static_cast<float>(std::numeric_limits<T>::min()), high = static_cast<float>(std::numeric_limits<T>::max());
  for (size_t i = 0; i < real.size(); ++i) {
    float q = std::round(real[i] / scale) + zero_point;
    if (std::isnan(q)) q = zero_point;
    stored[i] = static_cast<T>(q < low ? low : q > high ? high : q);
  }
  return {};
}

// real = scale * (stored - zero_point). Errors as above.
template <class T>
Status dequantize(std::span<const T> stored, const Quantization& quantization, std::span<float> real) {
  if (real.size() != stored.size())
    return make_error(ErrorCode::invalid_argument, "%zu real values for %zu stored ones", real.size(), stored.size());
  if (quantization.scales.size() != 1)
    return make_error(ErrorCode::invalid_argument, "a tensor with %zu scales cannot be dequantised as a whole", quantization.scales.size());
  const float scale = quantization.scales[0];
  const int64_t zero_point = quantization.zero_points[0];
  for (size_t i = 0; i < real.size(); ++i) real[i] = scale * static_cast<float>(static_cast<int64_t>(stored[i]) - zero_point);
  return {};
}

// Real numbers into input `number`, and out of output `number`, whatever they store: float32, float16, int8, uint8 or int16
// (quantised where they have a scale, else as whole numbers). Errors: invalid_argument for other sizes and types.
inline Status set_real_input(ExecutionContext& context, int number, std::span<const float> real) {
  if (number < 0 || static_cast<size_t>(number) >= context.plan()->inputs().size())
    return make_error(ErrorCode::invalid_argument, "no input %d: the model has %zu", number, context.plan()->inputs().size());
  const PlanTensor& tensor = context.input_tensor(number);
  static const Quantization whole{.scales = {1.0f}, .zero_points = {0}};
  const Quantization& q = tensor.quantization->scales.empty() ? whole : *tensor.quantization;
  switch (tensor.type) {
    case TensorType::int8: return quantize<int8_t>(real, q, *context.input<int8_t>(number));
    case TensorType::uint8: return quantize<uint8_t>(real, q, *context.input<uint8_t>(number));
    case TensorType::int16: return quantize<int16_t>(real, q, *context.input<int16_t>(number));
    case TensorType::float32:
    case TensorType::float16: {
      const size_t count = static_cast<size_t>(tensor.shape.elements());
      if (real.size() != count) return make_error(ErrorCode::invalid_argument, "%zu real values for %zu stored ones", real.size(), count);
      for (size_t i = 0; i < count; ++i) {
        if (tensor.type == TensorType::float32) (*context.input<float>(number))[i] = real[i];
        else (*context.input<half>(number))[i] = float_to_half(real[i]);
      }
      return {};
    }
    default: return make_error(ErrorCode::invalid_argument, "input %d has type %s, which holds no real numbers", number, tensor_type_name(tensor.type));
  }
}
inline Status get_real_output(const ExecutionContext& context, int number, std::span<float> real) {
  if (number < 0 || static_cast<size_t>(number) >= context.plan()->outputs().size())
    return make_error(ErrorCode::invalid_argument, "no output %d: the model has %zu", number, context.plan()->outputs().size());
  const PlanTensor& tensor = context.output_tensor(number);
  static const Quantization whole{.scales = {1.0f}, .zero_points = {0}};
  const Quantization& q = tensor.quantization->scales.empty() ? whole : *tensor.quantization;
  switch (tensor.type) {
    case TensorType::int8: return dequantize<int8_t>(*context.output<int8_t>(number), q, real);
    case TensorType::uint8: return dequantize<uint8_t>(*context.output<uint8_t>(number), q, real);
    case TensorType::int16: return dequantize<int16_t>(*context.output<int16_t>(number), q, real);
    case TensorType::float32:
    case TensorType::float16: {
      const size_t count = static_cast<size_t>(tensor.shape.elements());
      if (real.size() != count) return make_error(ErrorCode::invalid_argument, "%zu real values for %zu stored ones", real.size(), count);
      for (size_t i = 0; i < count; ++i)
        real[i] = tensor.type == TensorType::float32 ? (*context.output<float>(number))[i] : half_to_float((*context.output<half>(number))[i]);
      return {};
    }
    default: return make_error(ErrorCode::invalid_argument, "output %d has type %s, which holds no real numbers", number, tensor_type_name(tensor.type));
  }
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_CONTEXT_QUANTIZE_H
