// Functions on quantised int16 as TFLite's reference kernels compute them: by interpolation in small tables.
#ifndef ONEWEIGHT_OPS_INT16_TABLES_H
#define ONEWEIGHT_OPS_INT16_TABLES_H

#include "oneweight/ops/elementwise.h"
#include "oneweight/ops/rounded.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// 513 samples over the range of int16, with half the error in the middle of a segment taken off.
inline constexpr int kInt16TableSize = 513;

// transform maps float to float.
template <class F>
void fill_int16_table(float in_scale, int32_t in_zero_point, float out_scale, int32_t out_zero_point, F transform, int16_t* table) {
  const float in_low = in_scale * static_cast<float>(-32768 - in_zero_point), in_high = in_scale * static_cast<float>(32767 - in_zero_point);
  const float out_low = out_scale * static_cast<float>(-32768 - out_zero_point), out_high = out_scale * static_cast<float>(32767 - out_zero_point);
  const float step = (in_high - in_low) / 512, half_step = step / 2, inverse = 65536 / (out_high - out_low);
  const auto clamp = [](float v) { return static_cast<int16_t>(v > -32768.0f ? (v < 32767.0f ? v : 32767.0f) : -32768.0f); };
  const auto at = [&](float from_low) { return rounded(transform(rounded(in_low + from_low)) * inverse); };
  for (int i = 0; i < 512; ++i) {
    const float offset = rounded(static_cast<float>(i) * step);
    const float next = at(rounded(static_cast<float>(i + 1) * step));
    const float middle = rounded(transform(rounded(rounded(in_low + offset) + half_step)) * inverse);
    const float sample = std::round(at(offset));
    const float error = std::round((next + sample) / 2) - std::round(middle);
    table[i] = clamp(sample - std::round(error / 2));
  }
  table[512] = clamp(std::round(transform(in_high) * inverse));
}
inline int16_t look_up(const int16_t* table, int16_t value) {
  const int index = 256 + (value >> 7), offset = value & 127;
  return static_cast<int16_t>(table[index] + (((table[index + 1] - table[index]) * offset + 64) >> 7));
}

struct Int16TableParams {
  ElementRows elements;
  const int16_t* table = nullptr;
};
inline void int16_table_kernel(const KernelArgs& args) {
  const auto& p = args.params<Int16TableParams>();
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i)
    args.out<int16_t>(0)[i] = look_up(p.table, args.in<int16_t>(0)[i]);
}
template <class F>
Status prepare_int16_table(Preparation& p, F transform) {
  const Operand &in = p.input(0), &out = p.output(0);
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, in));
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, out));
  Int16TableParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_unary(p, &int16_table_kernel, &params));
  int16_t* table = p.derived<int16_t>(kInt16TableSize);
  if (!table) return p.no_memory();
  fill_int16_table(in.scale(), in.zero_point(), out.scale(), out.zero_point(), transform, table);
  params->table = table;
  return {};
}

// LOGISTIC and TANH to the fixed output scale 2^-15: the logistic function at multiples of 1/24, interpolated;
// tanh(x) = 2 logistic(2 x) - 1.
struct Int16SigmoidParams {
  ElementRows elements;
  int32_t multiplier = 0, shift = 0;
  uint16_t table[256] = {};
};
template <bool kTanh>
void int16_sigmoid_kernel(const KernelArgs& args) {
  const auto& p = args.params<Int16SigmoidParams>();
  const int32_t round = p.shift > 0 ? 1 << (p.shift - 1) : 0;
  constexpr int kBits = kTanh ? 8 : 9;  // of the fraction between two entries
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i) {
    const int32_t x = (args.in<int16_t>(0)[i] * p.multiplier + round) >> p.shift;
    const auto magnitude = static_cast<uint32_t>(x < 0 ? -x : x);
    const uint32_t index = magnitude >> kBits, fraction = magnitude & ((1u << kBits) - 1);
    if constexpr (kTanh) {
      int32_t y = 0xffff << 8;
      if (index < 255) y = static_cast<int32_t>((uint32_t{p.table[index]} << 8) + fraction * (uint32_t{p.table[index + 1]} - p.table[index]));
      y = x >= 0 ? y - (1 << 23) + (1 << 7) : -y + (1 << 23) + (1 << 7) - 1;
      args.out<int16_t>(0)[i] = static_cast<int16_t>(y >> 8);
    } else {
      uint32_t y = 0x7fffu << 10;
      if (index < 255) y = (uint32_t{p.table[index]} << 9) + fraction * (uint32_t{p.table[index + 1]} - p.table[index]);
      y = x >= 0 ? y + (1u << 9) : (1u << 25) - y + (1u << 9) - 1;
      args.out<int16_t>(0)[i] = static_cast<int16_t>(y >> 10);
    }
  }
}
template <bool kTanh>
Status prepare_int16_sigmoid(Preparation& p) {
  const Operand &in = p.input(0), &out = p.output(0);
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, in));
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, out));
  if (in.zero_point() != 0 || out.zero_point() != 0 || out.scale() != 1.0f / 32768)
    return p.invalid("%s to %s: zero points must be 0 and the output scale 2^-15, not %g", p.describe(in).c_str(), p.describe(out).c_str(),
                     static_cast<double>(out.scale()));
  Int16SigmoidParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_unary(p, &int16_sigmoid_kernel<kTanh>, &params));
  for (int i = 0; i < 256; ++i) {
    const double q = std::round(65536 / (1 + std::exp(-i / 24.0)));
    params->table[i] = static_cast<uint16_t>(q > 65535 ? 65535 : q);
  }
  // Stored inputs become multiples of 1 / (3 * 4096), exactly for the scale 2^-12 (TANH: and 2^-11).
  int exponent = 0;
  const bool is_power = std::frexp(in.scale(), &exponent) == 0.5f;
  const int left = 12 + exponent - 1;
  if (is_power && (left == 0 || (kTanh && left == 1))) {
    params->multiplier = 3 << left;
    return {};
  }
  double multiplier = static_cast<double>(in.scale()) * 4096.0 * 3.0;
  if (multiplier > 32767) return p.error(ErrorCode::unsupported, "the scale %g of %s is too large", static_cast<double>(in.scale()), p.describe(in).c_str());
  for (; multiplier <= 32767.0 / 2.0 && params->shift <= 30; multiplier *= 2) ++params->shift;
  params->multiplier = static_cast<int16_t>(multiplier);
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_INT16_TABLES_H
