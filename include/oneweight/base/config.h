// Every macro a user may set, in one place. Set them for the whole program or before the first
// oneweight header of a file; files with different settings may be linked together: what depends
// on them lives in the inline namespace ONEWEIGHT_ABI, and the handles that may cross files
// (ModelView, Plan, ExecutionContext, Status) live in oneweight::v1 and depend on none.
//
//   ONEWEIGHT_EXTERN_KERNELS=1   this file compiles no kernels; link oneweight::kernels (or one file
//                                of the program that includes <oneweight/kernels.h>).
//   ONEWEIGHT_STATIC_DISPATCH=1  kernels for the compiler's -m flags only (embedded, WebAssembly,
//                                quick builds); default: every target, chosen when a plan is made.
//   ONEWEIGHT_DISABLED_TARGETS   Highway target bits to leave out besides the default selection.
#ifndef ONEWEIGHT_BASE_CONFIG_H
#define ONEWEIGHT_BASE_CONFIG_H

#if defined(__FAST_MATH__)
#error "oneweight keeps NaN, infinities and the order of additions: build without -ffast-math"
#endif

#if !defined(__cplusplus) || (__cplusplus < 202002L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 202002L))
#error "oneweight needs C++20"
#endif

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "oneweight reads little-endian files in place and does not support big-endian processors"
#endif

#ifndef ONEWEIGHT_EXTERN_KERNELS
#define ONEWEIGHT_EXTERN_KERNELS 0
#endif

// True where this file compiles kernels and the operators' prepare functions.
#if ONEWEIGHT_EXTERN_KERNELS && !defined(ONEWEIGHT_BUILD_KERNELS)
#define ONEWEIGHT_HAS_KERNELS 0
#else
#define ONEWEIGHT_HAS_KERNELS 1
#endif

// Functions that are not templates: inline where every file compiles them, ordinary ones where one file does.
#if defined(ONEWEIGHT_BUILD_KERNELS)
#define ONEWEIGHT_INLINE
#else
#define ONEWEIGHT_INLINE inline
#endif

// Versions: the library's, and the layout of the handles in namespace v1.
#define ONEWEIGHT_VERSION_MAJOR 0
#define ONEWEIGHT_VERSION_MINOR 1
#define ONEWEIGHT_VERSION_PATCH 0
#define ONEWEIGHT_VERSION "0.1.0"

#endif  // ONEWEIGHT_BASE_CONFIG_H
