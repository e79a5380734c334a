// Fetching memory that will be read soon.
#ifndef ONEWEIGHT_SIMD_PREFETCH_H
#define ONEWEIGHT_SIMD_PREFETCH_H

#include "hwy/base.h"
#include "hwy/cache_control.h"

namespace oneweight {
inline namespace v1 {

// Bytes of weights that are used for many rows before others are read: about half of a second-level cache.
inline constexpr int64_t kCacheBytes = 256 * 1024;

// Fetches a line into the second-level cache. Any address: nothing is read.
HWY_INLINE void prefetch_later(const void* p) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  __builtin_prefetch(p, 0, 2);
#else
  hwy::Prefetch(p);
#endif
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_SIMD_PREFETCH_H
