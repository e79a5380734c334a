// Half-precision bits as floats, NaN, infinities and subnormal values included. Included once per target.
#if defined(ONEWEIGHT_SIMD_HALF_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_HALF_INL_H
#undef ONEWEIGHT_SIMD_HALF_INL_H
#else
#define ONEWEIGHT_SIMD_HALF_INL_H
#endif

#include "oneweight/base/types.h"
#include "oneweight/simd/config.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Lanes(d) halves, given as bits.
template <class D>
HWY_INLINE hn::Vec<D> widen_half(D d, hn::Vec<hn::Rebind<uint16_t, D>> bits16) {
#if (HWY_ARCH_X86 && HWY_TARGET < HWY_SSE4 && !defined(HWY_DISABLE_F16C)) || HWY_ARCH_ARM_A64 || HWY_TARGET == HWY_SCALAR || \
    HWY_TARGET == HWY_EMU128
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits16));
#else
  // Where the processor cannot convert, Highway's emulation takes NaN and infinities for large values.
  const hn::RebindToSigned<D> di;
  const auto bits = hn::PromoteTo(di, bits16);
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(di, 0x7fff)));
  const auto rebias = hn::Set(di, (127 - 15) << 23);
  auto value = hn::Add(magnitude, rebias);
  value = hn::Add(value, hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(di, 0x0f7fffff)), rebias));
  // Subnormal: 2^-14 + value, less 2^-14: exact, and no operand that flush-to-zero touches.
  const auto subnormal = hn::Sub(hn::BitCast(d, hn::Add(value, hn::Set(di, 1 << 23))), hn::Set(d, 1.0f / 16384));
  const auto absolute = hn::IfThenElse(hn::RebindMask(d, hn::Lt(magnitude, hn::Set(di, 1 << 23))), subnormal, hn::BitCast(d, value));
  return hn::Or(absolute, hn::BitCast(d, hn::ShiftLeft<16>(hn::And(bits, hn::Set(di, 0x8000)))));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif
