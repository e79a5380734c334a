// What CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED on 8-bit weights derive from scales, zero points and weights.
#ifndef ONEWEIGHT_OPS_QUANTIZED_WEIGHTS_H
#define ONEWEIGHT_OPS_QUANTIZED_WEIGHTS_H

#include <algorithm>
#include <cmath>

#include "oneweight/ops/conv_node.h"
#include "oneweight/simd/product_int8.h"

namespace oneweight {
inline namespace v1 {

// Stored as signed numbers of int8, int4 or int2, or as uint8.
inline int weight_bits(TensorType type) {
  return type == TensorType::int4 ? 4 : type == TensorType::int2 ? 2 : type == TensorType::int8 || type == TensorType::uint8 ? 8 : 0;
}

// Parts of a kernel's scratch, each at the start of a cache line: at most 63 bytes are lost to each.
struct ScratchParts {
  std::byte* next;
  template <class T>
  T* take(int64_t count) {
    std::byte* const from = next;
    next += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return reinterpret_cast<T*>(from);
  }
};

// The constant part of a channel's sum of (a' - a_zero) (w' - w_zero) + bias, when a' w' is summed; wraps.
inline int32_t folded_bias(int32_t bias, int32_t sum_of_weights, int64_t terms, int32_t a_zero, int32_t w_zero) {
  const uint32_t a = static_cast<uint32_t>(a_zero), zero = static_cast<uint32_t>(w_zero);
  return static_cast<int32_t>(static_cast<uint32_t>(bias) - a * static_cast<uint32_t>(sum_of_weights) + static_cast<uint32_t>(terms) * a * zero);
}

// Scales of the weights: one, or one for each channel along `axis`; all of them > 0 or 0.
inline Status check_weight_scales(const Preparation& p, const Operand& weights, int64_t channels, int axis) {
  const Quantization& q = *weights.quantization;
  const auto n = static_cast<int64_t>(q.scales.size());
  if (n == 0) return p.invalid("%s has no scale", p.describe(weights).c_str());
  if (q.block_size > 0) return p.error(ErrorCode::unsupported, "%s has block-wise scales", p.describe(weights).c_str());
  if (n != 1 && n != channels)
    return p.invalid("%s has %lld scales for %lld channels", p.describe(weights).c_str(), static_cast<long long>(n), static_cast<long long>(channels));
  if (n > 1 && q.axis != axis) return p.invalid("%s has its scales along axis %d, not %d", p.describe(weights).c_str(), q.axis, axis);
  for (int64_t i = 0; i < n; ++i) {
    if (!(q.scales[i] >= 0) || std::isinf(q.scales[i])) return p.invalid("%s has a scale that is not a number >= 0", p.describe(weights).c_str());
    if (q.zero_points.size() > static_cast<size_t>(i) && n > 1 && q.zero_points[i] != 0)
      return p.error(ErrorCode::unsupported, "%s has a scale for each channel and zero points other than 0", p.describe(weights).c_str());
  }
  return {};
}

// Multipliers, shifts, zero points and bounds of the output. Arrays are padded by kChannelPad.
inline Status make_scaling(Preparation& p, const Operand& input, const Operand& weights, const Operand& output, int64_t channels, int axis,
                           Activation activation, QuantizedScaling* q) {
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, input));
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, output));
  ONEWEIGHT_RETURN_IF_ERROR(check_weight_scales(p, weights, channels, axis));
  int32_t* multiplier = p.derived<int32_t>(channels + kChannelPad);
  int32_t* shift = p.derived<int32_t>(channels + kChannelPad);
  if (!multiplier || !shift) return p.no_memory();
  const std::vector<float>& scales = weights.quantization->scales;
  q->narrow = q->plain = true;
  // The reference kernels multiply the scales in float for uint8 and for FULLY_CONNECTED with one scale, else in double.
  const bool in_float = scales.size() == 1 && (output.type == TensorType::uint8 || q->once);
  for (int64_t n = 0; n < channels; ++n) {
    const float scale = scales[scales.size() > 1 ? static_cast<size_t>(n) : 0];
    const double product = in_float ? static_cast<double>(input.scale() * scale) : static_cast<double>(input.scale()) * static_cast<double>(scale);
    const FixedMultiplier f = quantize_multiplier(product / static_cast<double>(output.scale()));
    multiplier[n] = f.multiplier, shift[n] = f.shift;
    if (f.shift > 0) q->narrow = false;
    if (f.shift >= 0) q->plain = false;
  }
  q->multiplier = multiplier, q->shift = shift;
  q->zero = output.zero_point();
  FusedActivation bounds;
  ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, activation, &bounds));
  const bool wide = output.type == TensorType::int16, is_unsigned = output.type == TensorType::uint8;
  const int32_t type_low = wide ? -32768 : is_unsigned ? 0 : -128, type_high = wide ? 32767 : is_unsigned ? 255 : 127;
  const QuantizedRange range = quantized_range(bounds.low, bounds.high, output.scale(), q->zero, type_low, type_high);
  q->low = range.low, q->high = range.high;
  if (!q->once && q->low < q->zero) q->plain = false;
  return {};
}

// sums[n] = sum of w' over the terms of channel n.
using WeightSumsFn = void (*)(const ByteWeights& w, int64_t channels, int32_t* sums);

// Folded biases of constant weights and bias, padded; *folded stays null when one of them is computed while running.
// Clears q->narrow where sums could pass 2^30.
inline Status fold_biases(Preparation& p, const ByteWeights& w, const Operand& weights, int64_t channels, int32_t a_zero, WeightSumsFn weight_sums,
                          QuantizedScaling* q, const int32_t** folded) {
  *folded = nullptr;
  const bool has_bias = p.has_input(2);
  if (!weights.data || (has_bias && !p.input(2).data)) {
    q->narrow = false;
    return {};
  }
  int32_t* to = p.derived<int32_t>(channels + kChannelPad);
  if (!to) return p.no_memory();
  weight_sums(w, channels, to);
  int64_t largest = 0;
  for (int64_t n = 0; n < channels; ++n) {
    const int32_t bias = has_bias ? Preparation::load<int32_t>(p.input(2).data, n) : 0;
    largest = std::max<int64_t>(largest, bias < 0 ? -static_cast<int64_t>(bias) : bias);
    to[n] = folded_bias(bias, to[n], w.terms, a_zero, q->weight_zero);
  }
  if (largest >= (1 << 29) || w.terms >= 8192 || largest + w.terms * 65536 >= (1 << 30)) q->narrow = false;
  *folded = to;
  return {};
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_QUANTIZED_WEIGHTS_H
