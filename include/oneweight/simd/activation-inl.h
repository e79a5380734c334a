// What follows a clamp in a fused activation. Included once per target.
#if defined(ONEWEIGHT_SIMD_ACTIVATION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_ACTIVATION_INL_H
#undef ONEWEIGHT_SIMD_ACTIVATION_INL_H
#else
#define ONEWEIGHT_SIMD_ACTIVATION_INL_H
#endif

#include <type_traits>

#include "oneweight/plan/preparation.h"
#include "oneweight/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <FusedActivation::After kAfter, class D>
HWY_INLINE hn::Vec<D> activate_after(D d, hn::Vec<D> v) {
  if constexpr (kAfter == FusedActivation::hard_swish) {
    const auto gate = clamp_keep_nan(d, hn::Add(v, hn::Set(d, 3.0f)), hn::Zero(d), hn::Set(d, 6.0f));
    return hn::Mul(hn::Mul(v, gate), hn::Set(d, 1.0f / 6));
  } else if constexpr (kAfter == FusedActivation::swish) {
    return hn::Mul(v, logistic_number(d, v));
  } else {
    return v;
  }
}

// Calls run(x) where decltype(x)::value is `after`: the choice is made once, not for each vector.
template <class Run>
HWY_INLINE void with_activation(FusedActivation::After after, Run run) {
  using After = FusedActivation::After;
  switch (after) {
    case After::none: return run(std::integral_constant<After, After::none>());
    case After::hard_swish: return run(std::integral_constant<After, After::hard_swish>());
    case After::swish: return run(std::integral_constant<After, After::swish>());
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif  // ONEWEIGHT_SIMD_ACTIVATION_INL_H
