// The logistic function and tanh on int16 vectors: every input, every number of integer bits, every processor target.
#include "oneweight/simd/config.h"

#if !ONEWEIGHT_STATIC_DISPATCH
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/int16_functions_test.cc"
#include "hwy/foreach_target.h"
#endif
#include "oneweight/simd/int16_functions-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

// out[i] = f(i - 32768); kind -1: logistic, else tanh with that many integer bits.
inline void all_values(int kind, int16_t* out) {
  const hn::ScalableTag<int16_t> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int i = 0; i < 65536; i += lanes) {
    const auto x = hn::Add(hn::Iota(d, 0), hn::Set(d, static_cast<int16_t>(i - 32768)));
    const auto y = kind < 0    ? logistic_int16(d, x)
                   : kind == 0 ? tanh_int16<0>(d, x)
                   : kind == 1 ? tanh_int16<1>(d, x)
                   : kind == 2 ? tanh_int16<2>(d, x)
                   : kind == 3 ? tanh_int16<3>(d, x)
                   : kind == 4 ? tanh_int16<4>(d, x)
                   : kind == 5 ? tanh_int16<5>(d, x)
                               : tanh_int16<6>(d, x);
    hn::StoreU(y, d, out + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "tests/support/int16_functions.h"

namespace oneweight {

TEST_CASE("the gates' functions on every int16", "[simd][int16_functions]") {
  for (int64_t left = usable_targets(); left != 0; left &= left - 1) {
    for (int kind = -1; kind <= 6; ++kind) {
      CAPTURE(left, kind);
      std::vector<int16_t> got(65536);
      ONEWEIGHT_KERNEL(left & -left, all_values)(kind, got.data());
      int differences = 0;
      double furthest = 0;
      for (int i = 0; i < 65536; ++i) {
        const int x = i - 32768, y = got[static_cast<size_t>(i)];
        differences += y != (kind < 0 ? testing::plain16::logistic(x) : testing::plain16::tanh(x, kind));
        const double real = x / std::pow(2.0, kind < 0 ? 12 : 15 - kind), want = kind < 0 ? 1 / (1 + std::exp(-real)) : std::tanh(real);
        furthest = std::max(furthest, std::fabs(y / 32768.0 - want));
      }
      CHECK(differences == 0);
      CHECK(furthest < 0.002);
    }
  }
}

}  // namespace oneweight
#endif  // HWY_ONCE
