// Storage types of the format and the C++ types that hold them.
#ifndef ONEWEIGHT_BASE_TYPES_H
#define ONEWEIGHT_BASE_TYPES_H

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "oneweight/base/config.h"

namespace Eigen {
struct half;  // accepted wherever a half is read or written; Eigen itself is not needed here
}

namespace oneweight {
inline namespace v1 {

// Numbers are those of TensorType in the TFLite schema.
enum class TensorType : uint8_t {
  float32 = 0, float16 = 1, int32 = 2, uint8 = 3, int64 = 4, string = 5, boolean = 6, int16 = 7,
  complex64 = 8, int8 = 9, float64 = 10, complex128 = 11, uint64 = 12, resource = 13, variant = 14,
  uint32 = 15, uint16 = 16, int4 = 17, bfloat16 = 18, int2 = 19, uint4 = 20,
};
inline constexpr int kTensorTypeCount = 21;

constexpr const char* tensor_type_name(TensorType type) {
  constexpr const char* names[kTensorTypeCount] = {
      "float32", "float16", "int32", "uint8", "int64", "string", "bool", "int16", "complex64",
      "int8", "float64", "complex128", "uint64", "resource", "variant", "uint32", "uint16", "int4",
      "bfloat16", "int2", "uint4"};
  const int i = static_cast<int>(type);
  return i < kTensorTypeCount ? names[i] : "unknown type";
}

// Bits of one element; 0 for types without a fixed size (string, variant). A resource is a 32-bit handle.
constexpr int tensor_type_bits(TensorType type) {
  constexpr int bits[kTensorTypeCount] = {32, 16, 32, 8, 64, 0, 8, 16, 64, 8, 64,
                                          128, 64, 32, 0, 32, 16, 4, 16, 2, 4};
  const int i = static_cast<int>(type);
  return i < kTensorTypeCount ? bits[i] : 0;
}

// IEEE binary16 as stored in the file. Arithmetic is done in float; conversion rounds to nearest even.
struct half {
  uint16_t bits;
  friend bool operator==(const half&, const half&) = default;
};

constexpr float half_to_float(half h) {
  const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000u) << 16;
  const uint32_t exponent = (h.bits >> 10) & 31u;
  const uint32_t mantissa = h.bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float subnormal = static_cast<float>(mantissa) * 5.9604644775390625e-8f;  // 2^-24
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(subnormal));
}

constexpr half float_to_half(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu))};
  if (magnitude >= 0x47800000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // 65536 and above
  if (magnitude < 0x38800000u) {  // subnormal half: round(|f| * 2^24), exact in float
    const float scaled = std::bit_cast<float>(magnitude) * 16777216.0f;
    uint32_t n = static_cast<uint32_t>(scaled);
    const float rest = scaled - static_cast<float>(n);
    if (rest > 0.5f || (rest == 0.5f && (n & 1u))) ++n;
    return {static_cast<uint16_t>(sign | n)};
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return {static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

// The TensorType of a C++ element type: tensor_type_of<float> == TensorType::float32.
template <class T> struct TensorTypeOf;
template <> struct TensorTypeOf<float> { static constexpr TensorType value = TensorType::float32; };
template <> struct TensorTypeOf<half> { static constexpr TensorType value = TensorType::float16; };
template <> struct TensorTypeOf<Eigen::half> { static constexpr TensorType value = TensorType::float16; };
template <> struct TensorTypeOf<double> { static constexpr TensorType value = TensorType::float64; };
template <> struct TensorTypeOf<int8_t> { static constexpr TensorType value = TensorType::int8; };
template <> struct TensorTypeOf<uint8_t> { static constexpr TensorType value = TensorType::uint8; };
template <> struct TensorTypeOf<int16_t> { static constexpr TensorType value = TensorType::int16; };
template <> struct TensorTypeOf<uint16_t> { static constexpr TensorType value = TensorType::uint16; };
template <> struct TensorTypeOf<int32_t> { static constexpr TensorType value = TensorType::int32; };
template <> struct TensorTypeOf<uint32_t> { static constexpr TensorType value = TensorType::uint32; };
template <> struct TensorTypeOf<int64_t> { static constexpr TensorType value = TensorType::int64; };
template <> struct TensorTypeOf<uint64_t> { static constexpr TensorType value = TensorType::uint64; };
template <> struct TensorTypeOf<bool> { static constexpr TensorType value = TensorType::boolean; };
template <> struct TensorTypeOf<std::complex<float>> { static constexpr TensorType value = TensorType::complex64; };
template <class T> inline constexpr TensorType tensor_type_of = TensorTypeOf<T>::value;

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_BASE_TYPES_H
