// The counter-based generator Philox 4x32 with ten rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3).
#ifndef ONEWEIGHT_OPS_PHILOX_H
#define ONEWEIGHT_OPS_PHILOX_H

#include <cstdint>

#include "oneweight/base/config.h"

namespace oneweight {
inline namespace v1 {

// Four random words for a key and a counter of 128 bits.
inline void philox_4x32(uint64_t key, uint64_t counter_low, uint64_t counter_high, uint32_t* words) {
  uint32_t x[4] = {static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32), static_cast<uint32_t>(counter_high),
                   static_cast<uint32_t>(counter_high >> 32)};
  uint32_t k[2] = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * x[0], b = uint64_t{0xCD9E8D57u} * x[2];
    const uint32_t y0 = static_cast<uint32_t>(b >> 32) ^ x[1] ^ k[0], y2 = static_cast<uint32_t>(a >> 32) ^ x[3] ^ k[1];
    x[0] = y0, x[1] = static_cast<uint32_t>(b), x[2] = y2, x[3] = static_cast<uint32_t>(a);
    k[0] += 0x9E3779B9u, k[1] += 0xBB67AE85u;
  }
  for (int i = 0; i < 4; ++i) words[i] = x[i];
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_PHILOX_H
