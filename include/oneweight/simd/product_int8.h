// What the kernels of 8-bit matrix products are told; plain data, the same for every target.
#ifndef ONEWEIGHT_SIMD_PRODUCT_INT8_H
#define ONEWEIGHT_SIMD_PRODUCT_INT8_H

#include "oneweight/base/fixed_point.h"

namespace oneweight {
inline namespace v1 {

// Weights of `terms` elements an output channel, one channel after another, where they lie. Sub-byte weights are signed and
// packed, low bits first, channels not padded to bytes.
struct ByteWeights {
  const uint8_t* data = nullptr;
  int64_t terms = 0;
  int bits = 8;              // 8, 4 or 2
  uint8_t flip = 0;          // 0x80 for uint8: makes them signed
};

// Element number i of packed or byte weights, as the signed w'.
inline int32_t signed_weight(const ByteWeights& w, int64_t i) {
  if (w.bits == 8) return static_cast<int8_t>(w.data[i] ^ w.flip);
  const int per_byte = 8 / w.bits;
  const int left = 8 - w.bits - static_cast<int>(i % per_byte) * w.bits;
  return static_cast<int8_t>(static_cast<uint8_t>(w.data[i / per_byte] << left)) >> (8 - w.bits);
}

// From sums to stored outputs. The arrays may be read 32 elements behind the last channel.
struct QuantizedScaling {
  const int32_t* multiplier = nullptr;
  const int32_t* shift = nullptr;
  int32_t weight_zero = 0;   // of the weights as signed bytes
  int32_t zero = 0;          // of the output
  int32_t low = 0, high = 0;
  bool once = false;         // one rounding, as FULLY_CONNECTED
  bool narrow = false;       // no shift to the left, sums below 2^30
  bool plain = false;        // where narrow: all shifts are to the right, and halves of negative results are rounded up or clamped
};
inline constexpr int64_t kChannelPad = 32;

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_SIMD_PRODUCT_INT8_H
