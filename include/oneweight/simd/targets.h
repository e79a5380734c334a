// Which Highway targets this processor can run, and how a kernel for one of them is named.
// Highway's own detection lives in its library; this is header-only.
#ifndef ONEWEIGHT_SIMD_TARGETS_H
#define ONEWEIGHT_SIMD_TARGETS_H

#include "oneweight/simd/config.h"

#include <initializer_list>

#if !ONEWEIGHT_STATIC_DISPATCH && ONEWEIGHT_HAS_KERNELS
#if HWY_ARCH_X86
#include <cpuid.h>
#elif HWY_ARCH_ARM || HWY_ARCH_RISCV
#include <sys/auxv.h>
#endif
#endif

#if ONEWEIGHT_HAS_KERNELS
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// Bits (Highway's target constants) that were compiled into this file.
#if ONEWEIGHT_STATIC_DISPATCH
inline constexpr int64_t kCompiledTargets = HWY_STATIC_TARGET;
#else
inline constexpr int64_t kCompiledTargets = HWY_TARGETS;
#endif

namespace detail {

#if !ONEWEIGHT_STATIC_DISPATCH && HWY_ARCH_X86
inline int64_t detect_x86_targets() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
  const unsigned c1 = c, d1 = d;
  unsigned b7 = 0, c7 = 0, c8 = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) b7 = b, c7 = c;
  if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) c8 = c;
  const auto all = [](unsigned bits, std::initializer_list<int> wanted) {
    for (int i : wanted)
      if (!((bits >> i) & 1u)) return false;
    return true;
  };
  uint64_t saved_state = 0;  // which registers the operating system saves
  if (all(c1, {27})) {
    unsigned low = 0, high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    saved_state = low;
  }
  int64_t targets = 0;
  if (!all(d1, {25, 26})) return targets;  // SSE, SSE2
  targets |= HWY_SSE2;
  if (!all(c1, {0, 9})) return targets;  // SSE3, SSSE3
  targets |= HWY_SSSE3;
  if (!all(c1, {19, 20})) return targets;  // SSE4.1, SSE4.2
  targets |= HWY_SSE4;
  const bool avx = (saved_state & 0x6) == 0x6 && all(c1, {12, 28, 29});  // FMA, AVX, F16C
  if (!avx || !all(b7, {3, 5, 8}) || !all(c8, {5})) return targets;      // BMI, AVX2, BMI2, LZCNT
  targets |= HWY_AVX2;
  if ((saved_state & 0xe6) != 0xe6 || !all(b7, {16, 17, 28, 30, 31})) return targets;  // F, DQ, CD, BW, VL
  targets |= HWY_AVX3;
  // VBMI, VBMI2, GFNI, VAES, VPCLMULQDQ, VNNI, BITALG, VPOPCNTDQ
  if (all(c7, {1, 6, 8, 9, 10, 11, 12, 14})) targets |= HWY_AVX3_DL;
  return targets;
}
#endif

inline int64_t detect_targets() {
#if ONEWEIGHT_STATIC_DISPATCH
  return HWY_STATIC_TARGET;
#else
  int64_t targets = 0;
#if HWY_ARCH_X86
  targets = detect_x86_targets();
#elif HWY_ARCH_ARM_A64
  const unsigned long h = getauxval(16 /* AT_HWCAP */), h2 = getauxval(26 /* AT_HWCAP2 */);
  targets = HWY_NEON_WITHOUT_AES;
  if (h & (1ul << 3)) targets |= HWY_NEON;
#ifdef HWY_NEON_BF16
  if ((h & (1ul << 3)) && (h & (1ul << 10)) && (h & (1ul << 20)) && (h2 & (1ul << 14))) targets |= HWY_NEON_BF16;
#endif
  if (h & (1ul << 22)) targets |= HWY_SVE;
  if ((h2 & (1ul << 1)) && (h2 & (1ul << 2))) targets |= HWY_SVE2;
#elif HWY_ARCH_RISCV
  if (getauxval(16) & (1ul << ('v' - 'a'))) targets |= HWY_RVV;
#endif
  return (targets | HWY_STATIC_TARGET | HWY_EMU128 | HWY_SCALAR) & HWY_TARGETS;
#endif
}

}  // namespace detail

// The compiled targets this processor can run. Thread-safe; the processor is asked once.
inline int64_t usable_targets() {
  static const int64_t targets = detail::detect_targets();
  return targets;
}

// The best of usable_targets() within mask (0 = no restriction), as one bit; 0 when none is left.
// Highway numbers better targets lower.
inline int64_t best_target(int64_t mask = 0) {
  const int64_t usable = mask ? usable_targets() & mask : usable_targets();
  return usable & -usable;
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_HAS_KERNELS

// ONEWEIGHT_KERNEL(target, name): pointer to the function `name` (templates allowed, in namespace
// oneweight::<target's namespace>) compiled for `target`, one bit of usable_targets(). All of them have
// one type. Usable only where all targets have been included: in an `#if HWY_ONCE` section.
#if !ONEWEIGHT_STATIC_DISPATCH && (HWY_TARGETS & HWY_SSE2)
#define ONEWEIGHT_IF_SSE2(t, ...) (t) == HWY_SSE2 ? &N_SSE2::__VA_ARGS__ :
#else
#define ONEWEIGHT_IF_SSE2(t, ...)
#endif
#if !ONEWEIGHT_STATIC_DISPATCH && (HWY_TARGETS & HWY_SSSE3)
#define ONEWEIGHT_IF_SSSE3(t, ...) (t) == HWY_SSSE3 ? &N_SSSE3::__VA_ARGS__ :
#else
#define ONEWEIGHT_IF_SSSE3(t, ...)
#endif
#if !ONEWEIGHT_STATIC_DISPATCH && (HWY_TARGETS & HWY_SSE4)
#define ONEWEIGHT_IF_SSE4(t, ...) (t) == HWY_SSE4 ? &N_SSE4::__VA_ARGS__ :
#else
#define ONEWEIGHT_IF_SSE4(t, ...)
#endif
#if !ONEWEIGHT_STATIC_DISPATCH && (HWY_TARGETS & HWY_AVX2)
#define ONEWEIGHT_IF_AVX2(t, ...) (t) == HWY_AVX2 ? &N_AVX2::__VA_ARGS__ :
#else
#define ONEWEIGHT_IF_AVX2(t, ...)
#endif
#if !ONEWEIGHT_STATIC_DISPATCH && (HWY_TARGETS & HWY_AVX3)
#define ONEWEIGHT_IF_AVX3(t, ...) (t) == HWY_AVX3 ? &N_AVX3::__VA_ARGS__ :
#else
#define ONEWEIGHT_IF_AVX3(t, ...)
#endif
#if !ONEWEIGHT_STATIC_DISPATCH && (HWY_TARGETS & HWY_AVX3_DL)
#define ONEWEIGHT_IF_AVX3_DL(t, ...) (t) == HWY_AVX3_DL ? &N_AVX3_DL::__VA_ARGS__ :
#else
#define ONEWEIGHT_IF_AVX3_DL(t, ...)
#endif
#if !ONEWEIGHT_STATIC_DISPATCH && (HWY_TARGETS & HWY_NEON_WITHOUT_AES)
#define ONEWEIGHT_IF_NEON_WITHOUT_AES(t, ...) (t) == HWY_NEON_WITHOUT_AES ? &N_NEON_WITHOUT_AES::__VA_ARGS__ :
#else
#define ONEWEIGHT_IF_NEON_WITHOUT_AES(t, ...)
#endif
#if !ONEWEIGHT_STATIC_DISPATCH && (HWY_TARGETS & HWY_NEON)
#define ONEWEIGHT_IF_NEON(t, ...) (t) == HWY_NEON ? &N_NEON::__VA_ARGS__ :
#else
#define ONEWEIGHT_IF_NEON(t, ...)
#endif
#if !ONEWEIGHT_STATIC_DISPATCH && defined(HWY_NEON_BF16) && (HWY_TARGETS & HWY_NEON_BF16)
#define ONEWEIGHT_IF_NEON_BF16(t, ...) (t) == HWY_NEON_BF16 ? &N_NEON_BF16::__VA_ARGS__ :
#else
#define ONEWEIGHT_IF_NEON_BF16(t, ...)
#endif
#if !ONEWEIGHT_STATIC_DISPATCH && (HWY_TARGETS & HWY_SVE)
#define ONEWEIGHT_IF_SVE(t, ...) (t) == HWY_SVE ? &N_SVE::__VA_ARGS__ :
#else
#define ONEWEIGHT_IF_SVE(t, ...)
#endif
#if !ONEWEIGHT_STATIC_DISPATCH && (HWY_TARGETS & HWY_SVE2)
#define ONEWEIGHT_IF_SVE2(t, ...) (t) == HWY_SVE2 ? &N_SVE2::__VA_ARGS__ :
#else
#define ONEWEIGHT_IF_SVE2(t, ...)
#endif
#if !ONEWEIGHT_STATIC_DISPATCH && (HWY_TARGETS & HWY_RVV)
#define ONEWEIGHT_IF_RVV(t, ...) (t) == HWY_RVV ? &N_RVV::__VA_ARGS__ :
#else
#define ONEWEIGHT_IF_RVV(t, ...)
#endif
#define ONEWEIGHT_KERNEL(t, ...)                                                       \
  (ONEWEIGHT_IF_AVX3_DL(t, __VA_ARGS__) ONEWEIGHT_IF_AVX3(t, __VA_ARGS__)              \
   ONEWEIGHT_IF_AVX2(t, __VA_ARGS__) ONEWEIGHT_IF_SSE4(t, __VA_ARGS__)                 \
   ONEWEIGHT_IF_SSSE3(t, __VA_ARGS__) ONEWEIGHT_IF_SSE2(t, __VA_ARGS__)                \
   ONEWEIGHT_IF_SVE2(t, __VA_ARGS__) ONEWEIGHT_IF_SVE(t, __VA_ARGS__)                  \
   ONEWEIGHT_IF_NEON_BF16(t, __VA_ARGS__) ONEWEIGHT_IF_NEON(t, __VA_ARGS__)            \
   ONEWEIGHT_IF_NEON_WITHOUT_AES(t, __VA_ARGS__) ONEWEIGHT_IF_RVV(t, __VA_ARGS__)      \
   &ONEWEIGHT_STATIC_NS::__VA_ARGS__)

#endif  // ONEWEIGHT_SIMD_TARGETS_H
