// CAST between float, half, bfloat16, double, bool, complex64 and all integer types, also from packed int4 and uint4.
// Floats become integers by cutting the fraction; out of range they saturate, NaN gives 0. Integers wrap. bool is
// "not zero". A complex number loses its imaginary part, a real one gets 0.
#ifndef ONEWEIGHT_OPS_CAST_H
#define ONEWEIGHT_OPS_CAST_H

#include <algorithm>
#include <complex>

#include "oneweight/ops/elementwise.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct CastParams {
  ElementRows elements;
  TensorType from = TensorType::float32, to = TensorType::float32;
};

struct Cast {
  static bool writes(TensorType t) {
    switch (t) {
      case TensorType::float32: case TensorType::float16: case TensorType::bfloat16: case TensorType::float64: case TensorType::boolean:
      case TensorType::int8: case TensorType::uint8: case TensorType::int16: case TensorType::uint16: case TensorType::int32:
      case TensorType::uint32: case TensorType::int64: case TensorType::uint64: case TensorType::complex64: return true;
      default: return false;
    }
  }
  static bool accepts(const NodeTypes& t) {
    if (t.input_count != 1 || t.output_count != 1) return false;
    return writes(t.outputs[0]) && (writes(t.inputs[0]) || t.inputs[0] == TensorType::int4 || t.inputs[0] == TensorType::uint4);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::cast, .types = "numbers, bool, complex64", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
// Values pass through one of three wide types, a block at a time, so that there is one loop for each type, not each pair.
inline constexpr int64_t kCastBlock = 128;

template <class T, class Wide>
void cast_read(const std::byte* from, int64_t first, int64_t count, Wide* to) {
  const T* in = reinterpret_cast<const T*>(from) + first;
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, half>) to[i] = static_cast<Wide>(half_to_float(in[i]));
    else if constexpr (std::is_same_v<T, std::complex<float>>) to[i] = static_cast<Wide>(in[i].real());
    else to[i] = static_cast<Wide>(in[i]);
  }
}
template <class T, class Wide>
void cast_write(const Wide* from, int64_t count, std::byte* to, int64_t first) {
  T* out = reinterpret_cast<T*>(to) + first;
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, half>) {
      out[i] = float_to_half(static_cast<float>(from[i]));
    } else if constexpr (std::is_same_v<T, bool>) {
      out[i] = from[i] != 0;
    } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<Wide>) {
      constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
      const Wide v = from[i];
      // The bounds as doubles: that of a 64-bit maximum is one above it.
      out[i] = v != v ? T{0} : v <= static_cast<Wide>(low) ? low : v >= static_cast<Wide>(high) ? high : static_cast<T>(v);
    } else {
      out[i] = static_cast<T>(from[i]);
    }
  }
}
template <class Wide>
void cast_write(const Wide* from, int64_t count, TensorType type, std::byte* to, int64_t first) {
  switch (type) {
    case TensorType::float32: return cast_write<float>(from, count, to, first);
    case TensorType::float16: return cast_write<half>(from, count, to, first);
    case TensorType::float64: return cast_write<double>(from, count, to, first);
    case TensorType::boolean: return cast_write<bool>(from, count, to, first);
    case TensorType::int8: return cast_write<int8_t>(from, count, to, first);
    case TensorType::uint8: return cast_write<uint8_t>(from, count, to, first);
    case TensorType::int16: return cast_write<int16_t>(from, count, to, first);
    case TensorType::uint16: return cast_write<uint16_t>(from, count, to, first);
    case TensorType::int32: return cast_write<int32_t>(from, count, to, first);
    case TensorType::uint32: return cast_write<uint32_t>(from, count, to, first);
    case TensorType::int64: return cast_write<int64_t>(from, count, to, first);
    case TensorType::uint64: return cast_write<uint64_t>(from, count, to, first);
    case TensorType::complex64: return cast_write<std::complex<float>>(from, count, to, first);
    default: {  // bfloat16: the upper half of a float, rounded to even; NaN stays NaN
      auto* out = reinterpret_cast<uint16_t*>(to) + first;
      for (int64_t i = 0; i < count; ++i) {
        const float value = static_cast<float>(from[i]);
        const auto bits = std::bit_cast<uint32_t>(value);
        out[i] = static_cast<uint16_t>(value != value ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
      }
    }
  }
}

inline void cast_kernel(const KernelArgs& args) {
  const auto& p = args.params<CastParams>();
  const std::byte* in = args.in<std::byte>(0);
  std::byte* out = args.out<std::byte>(0);
  const int64_t begin = p.elements.begin(args.rows), end = p.elements.end(args.rows);
  if (p.from == p.to) {
    const int64_t size = tensor_type_bits(p.to) / 8;
    if (end > begin && in != out) std::memcpy(out + begin * size, in + begin * size, static_cast<size_t>((end - begin) * size));
    return;
  }
  union {
    double floats[kCastBlock];
    int64_t integers[kCastBlock];
    uint64_t naturals[kCastBlock];
  } block;
  for (int64_t first = begin; first < end; first += kCastBlock) {
    const int64_t n = std::min(kCastBlock, end - first);
    const auto from_float = [&]<class T>(T) {
      cast_read<T>(in, first, n, block.floats);
      cast_write(block.floats, n, p.to, out, first);
    };
    const auto from_integer = [&]<class T>(T) {
      cast_read<T>(in, first, n, block.integers);
      cast_write(block.integers, n, p.to, out, first);
    };
    switch (p.from) {
      case TensorType::float32: from_float(float{}); break;
      case TensorType::float16: from_float(half{}); break;
      case TensorType::float64: from_float(double{}); break;
      case TensorType::complex64: from_float(std::complex<float>{}); break;
      case TensorType::bfloat16:
        for (int64_t i = 0; i < n; ++i)
          block.floats[i] = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(reinterpret_cast<const uint16_t*>(in)[first + i]) << 16));
        cast_write(block.floats, n, p.to, out, first);
        break;
      case TensorType::boolean:  // any byte but 0 is true
        for (int64_t i = 0; i < n; ++i) block.integers[i] = in[first + i] != std::byte{0};
        cast_write(block.integers, n, p.to, out, first);
        break;
      case TensorType::int8: from_integer(int8_t{}); break;
      case TensorType::uint8: from_integer(uint8_t{}); break;
      case TensorType::int16: from_integer(int16_t{}); break;
      case TensorType::uint16: from_integer(uint16_t{}); break;
      case TensorType::int32: from_integer(int32_t{}); break;
      case TensorType::uint32: from_integer(uint32_t{}); break;
      case TensorType::int64: from_integer(int64_t{}); break;
      case TensorType::uint64:
        cast_read<uint64_t>(in, first, n, block.naturals);
        cast_write(block.naturals, n, p.to, out, first);
        break;
      default:  // two values a byte, the low half first
        for (int64_t i = 0; i < n; ++i) {
          const auto pair = static_cast<uint8_t>(in[(first + i) / 2]);
          const int nibble = ((first + i) & 1 ? pair >> 4 : pair) & 15;
          block.integers[i] = p.from == TensorType::int4 && nibble >= 8 ? nibble - 16 : nibble;
        }
        cast_write(block.integers, n, p.to, out, first);
    }
  }
}

ONEWEIGHT_INLINE Status Cast::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, p.input(0).shape));
  CastParams* params = p.make_params<CastParams>();
  if (!params) return p.no_memory();
  params->elements = ElementRows(p.input(0).shape);
  params->from = p.input(0).type, params->to = p.output(0).type;
  p.set_kernel(&cast_kernel, params->elements.rows);
  p.set_same_rows();
  if (params->from == params->to) p.allow_alias(0);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_CAST_H
