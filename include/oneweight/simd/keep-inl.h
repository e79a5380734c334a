// A hint to the compiler. Included once per target.
#if defined(ONEWEIGHT_SIMD_KEEP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_KEEP_INL_H
#undef ONEWEIGHT_SIMD_KEEP_INL_H
#else
#define ONEWEIGHT_SIMD_KEEP_INL_H
#endif

#include "oneweight/simd/config.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

// Keeps g++ from reading a vector from memory again at each use, and from carrying a sum through a loop in two registers.
template <class V>
HWY_INLINE void keep_in_register([[maybe_unused]] V& v) {
#if HWY_COMPILER_GCC_ACTUAL && HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#if HWY_TARGET <= HWY_AVX3
  __asm__("" : "+v"(v.raw));
#else
  __asm__("" : "+x"(v.raw));
#endif
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif  // ONEWEIGHT_SIMD_KEEP_INL_H
