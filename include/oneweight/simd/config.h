// Prepares Highway for use from headers alone: selects targets, names the static one, opens the
// ABI namespace. Included before any Highway header; compiles no kernels.
#ifndef ONEWEIGHT_SIMD_CONFIG_H
#define ONEWEIGHT_SIMD_CONFIG_H

#include <cstdint>
#include <cstdlib>  // abort, which some releases of hwy/base.h use without including it

#include "oneweight/base/config.h"

#if defined(HIGHWAY_HWY_BASE_H_) && ONEWEIGHT_HAS_KERNELS
#error "include oneweight before Highway, or define ONEWEIGHT_EXTERN_KERNELS=1 in this file"
#endif

#if !defined(HIGHWAY_HWY_BASE_H_)
#ifndef HWY_HEADER_ONLY
#define HWY_HEADER_ONLY
#endif
// No kernel uses AES or carry-less products; without this, -march=x86-64-v3 (which does not imply
// AES) would give a static target of SSSE3 only.
#ifndef HWY_DISABLE_PCLMUL_AES
#define HWY_DISABLE_PCLMUL_AES
#endif
// One AVX-512 target with VNNI serves Ice Lake, Zen 4 and Sapphire Rapids alike: what distinguishes
// the latter two (bfloat16 and half arithmetic) is used by no kernel.
#define HWY_WANT_AVX3_DL
#ifndef ONEWEIGHT_DISABLED_TARGETS
#define ONEWEIGHT_DISABLED_TARGETS 0
#endif
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | (1LL << 3) /* AVX10_2 */ | (ONEWEIGHT_DISABLED_TARGETS))
#endif
#endif

#include "hwy/base.h"
#if HWY_MAJOR < 1 || (HWY_MAJOR == 1 && HWY_MINOR < 2)
#error "oneweight needs Highway 1.2 or newer"
#endif
#if HWY_MAJOR == 1 && HWY_MINOR < 3 && ONEWEIGHT_HAS_KERNELS
// Highway 1.2 declares Abort in its headers and defines it in its library only.
namespace hwy {
HWY_NORETURN inline void HWY_FORMAT(3, 4) Abort(const char*, int, const char*, ...) { abort(); }
}  // namespace hwy
#endif
#include "hwy/detect_targets.h"

#ifndef ONEWEIGHT_STATIC_DISPATCH
#if defined(HWY_COMPILE_ONLY_STATIC) || defined(HWY_COMPILE_ONLY_SCALAR) || \
    defined(HWY_COMPILE_ONLY_EMU128) || !HWY_HAVE_RUNTIME_DISPATCH
#define ONEWEIGHT_STATIC_DISPATCH 1
#else
#define ONEWEIGHT_STATIC_DISPATCH 0
#endif
#endif

// The namespace Highway gives the static target (Highway 1.2 has no macro for it).
#if HWY_STATIC_TARGET == HWY_SCALAR
#define ONEWEIGHT_STATIC_NS N_SCALAR
#elif HWY_STATIC_TARGET == HWY_EMU128
#define ONEWEIGHT_STATIC_NS N_EMU128
#elif HWY_STATIC_TARGET == HWY_SSE2
#define ONEWEIGHT_STATIC_NS N_SSE2
#elif HWY_STATIC_TARGET == HWY_SSSE3
#define ONEWEIGHT_STATIC_NS N_SSSE3
#elif HWY_STATIC_TARGET == HWY_SSE4
#define ONEWEIGHT_STATIC_NS N_SSE4
#elif HWY_STATIC_TARGET == HWY_AVX2
#define ONEWEIGHT_STATIC_NS N_AVX2
#elif HWY_STATIC_TARGET == HWY_AVX3
#define ONEWEIGHT_STATIC_NS N_AVX3
#elif HWY_STATIC_TARGET == HWY_AVX3_DL
#define ONEWEIGHT_STATIC_NS N_AVX3_DL
#elif HWY_STATIC_TARGET == HWY_AVX3_ZEN4
#define ONEWEIGHT_STATIC_NS N_AVX3_ZEN4
#elif HWY_STATIC_TARGET == HWY_AVX3_SPR
#define ONEWEIGHT_STATIC_NS N_AVX3_SPR
#elif HWY_STATIC_TARGET == HWY_NEON_WITHOUT_AES
#define ONEWEIGHT_STATIC_NS N_NEON_WITHOUT_AES
#elif HWY_STATIC_TARGET == HWY_NEON
#define ONEWEIGHT_STATIC_NS N_NEON
#elif defined(HWY_NEON_BF16) && HWY_STATIC_TARGET == HWY_NEON_BF16
#define ONEWEIGHT_STATIC_NS N_NEON_BF16
#elif HWY_STATIC_TARGET == HWY_SVE
#define ONEWEIGHT_STATIC_NS N_SVE
#elif HWY_STATIC_TARGET == HWY_SVE2
#define ONEWEIGHT_STATIC_NS N_SVE2
#elif HWY_STATIC_TARGET == HWY_SVE_256
#define ONEWEIGHT_STATIC_NS N_SVE_256
#elif HWY_STATIC_TARGET == HWY_SVE2_128
#define ONEWEIGHT_STATIC_NS N_SVE2_128
#elif HWY_STATIC_TARGET == HWY_RVV
#define ONEWEIGHT_STATIC_NS N_RVV
#elif HWY_STATIC_TARGET == HWY_WASM
#define ONEWEIGHT_STATIC_NS N_WASM
#elif HWY_STATIC_TARGET == HWY_WASM_EMU256
#define ONEWEIGHT_STATIC_NS N_WASM_EMU256
#else
#error "oneweight does not know this Highway target"
#endif

// What is compiled for the flags of this file is tagged with them, so that files with different -m
// flags or modes never merge each other's inline functions: a mismatch is a link error, not a crash.
#define ONEWEIGHT_CONCAT_(a, b) a##b
#define ONEWEIGHT_CONCAT(a, b) ONEWEIGHT_CONCAT_(a, b)
#if ONEWEIGHT_EXTERN_KERNELS
#define ONEWEIGHT_ABI abi_extern
#elif ONEWEIGHT_STATIC_DISPATCH
#define ONEWEIGHT_ABI ONEWEIGHT_CONCAT(abi_static_, ONEWEIGHT_STATIC_NS)
#else
#define ONEWEIGHT_ABI ONEWEIGHT_CONCAT(abi_dynamic_, ONEWEIGHT_STATIC_NS)
#endif

#endif  // ONEWEIGHT_SIMD_CONFIG_H
