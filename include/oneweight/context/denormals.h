// Flushes denormal floats to zero while a run lasts and restores the caller's mode.
#ifndef ONEWEIGHT_CONTEXT_DENORMALS_H
#define ONEWEIGHT_CONTEXT_DENORMALS_H

#include <cstdint>

#include "oneweight/base/config.h"

#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace oneweight {
inline namespace v1 {

class DenormalsFlushed {
 public:
  DenormalsFlushed() {
#if defined(__SSE2__) || defined(_M_X64)
    saved_ = _mm_getcsr();
    _mm_setcsr(static_cast<unsigned>(saved_) | 0x8040u);  // flush to zero, denormals are zero
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved_));
    __asm__ volatile("msr fpcr, %0" ::"r"(saved_ | (uint64_t{1} << 24)));
#endif
  }
  ~DenormalsFlushed() {
#if defined(__SSE2__) || defined(_M_X64)
    _mm_setcsr(static_cast<unsigned>(saved_));
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(saved_));
#endif
  }
  DenormalsFlushed(const DenormalsFlushed&) = delete;
  DenormalsFlushed& operator=(const DenormalsFlushed&) = delete;

 private:
  [[maybe_unused]] uint64_t saved_ = 0;
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_CONTEXT_DENORMALS_H
