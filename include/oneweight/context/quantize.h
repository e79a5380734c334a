// Between real numbers and the quantised inputs and outputs of a model.
#ifndef ONEWEIGHT_CONTEXT_QUANTIZE_H
#define ONEWEIGHT_CONTEXT_QUANTIZE_H

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "oneweight/model/model_view.h"

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

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_CONTEXT_QUANTIZE_H
