// Fixed-point scaling on vectors against the scalar form, and the scalar form against arithmetic in wide integers, on every
// target this processor has.
#include <algorithm>

#include "oneweight/simd/config.h"

#if !ONEWEIGHT_STATIC_DISPATCH
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/requantize_test.cc"
#include "hwy/foreach_target.h"
#endif
#include "oneweight/simd/requantize-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

// How many of n results differ from the scalar form. kind: 0 general, 1 narrow, 2 rounding once, 3 narrow rounding once, 4 plain
// (negative results as 0), 5 plain rounding once.
inline int64_t count_differences(const int32_t* x, const int32_t* multiplier, const int32_t* shift, int64_t n, int kind) {
  const hn::CappedTag<int32_t, 16> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t wrong = 0;
  for (int64_t i = 0; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i), m = hn::LoadU(d, multiplier + i), s = hn::LoadU(d, shift + i);
    int32_t got[HWY_MAX_BYTES / 4];
    if (kind == 0) hn::StoreU(requantize(d, v, m, s), d, got);
    if (kind == 1) hn::StoreU(requantize_narrow(d, v, narrow_factors(d, m, s, false)), d, got);
    if (kind == 2) hn::StoreU(requantize_once(d, v, m, s), d, got);
    if (kind == 3) hn::StoreU(requantize_narrow(d, v, narrow_factors(d, m, s, true)), d, got);
    if (kind > 3) hn::StoreU(requantize_plain(d, v, plain_factors(d, m, s, kind == 5)), d, got);
    for (int64_t l = 0; l < lanes; ++l) {
      const FixedMultiplier f{multiplier[i + l], shift[i + l]};
      const bool twice = kind < 2 || kind == 4;
      const int64_t want = twice ? int64_t{multiply_by_quantized_multiplier(x[i + l], f)} : multiply_rounding_once(x[i + l], f);
      wrong += kind == 4 ? std::max(got[l], 0) != std::max<int64_t>(want, 0) : got[l] != want;
    }
  }
  return wrong;
}
inline int64_t count_differences_of_one_factor(const int32_t* x, FixedMultiplier f, int64_t n) {
  const hn::CappedTag<int32_t, 16> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t wrong = 0;
  for (int64_t i = 0; i + lanes <= n; i += lanes) {
    int32_t got[HWY_MAX_BYTES / 4];
    hn::StoreU(requantize(d, hn::LoadU(d, x + i), f), d, got);
    for (int64_t l = 0; l < lanes; ++l) wrong += got[l] != multiply_by_quantized_multiplier(x[i + l], f);
  }
  return wrong;
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

namespace oneweight {
namespace {

constexpr int64_t kCount = 1 << 14;

struct Row {
  std::vector<int32_t> x, multiplier, shift;
};
// Random, small, and border values; |x| < 2^bound, shifts in [least, most].
Row make_row(int bound, int least, int most) {
  std::mt19937 random(7);
  Row row;
  for (int64_t i = 0; i < kCount; ++i) {
    const int bits = static_cast<int>(random() % static_cast<unsigned>(bound + 1));
    const int64_t magnitude = bits == 0 ? 0 : static_cast<int64_t>(random()) & ((int64_t{1} << bits) - 1);
    row.x.push_back(static_cast<int32_t>(random() % 2 ? -magnitude : magnitude));
    row.multiplier.push_back(i % 5 == 0 ? 1 << 30 : i % 5 == 1 ? 2147483647 : static_cast<int32_t>((1u << 30) + random() % (1u << 30)));
    row.shift.push_back(least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1)));
  }
  for (int i = 0; i < 64; ++i) row.x[static_cast<size_t>(i)] = i % 7 - 3;
  return row;
}

template <class F>
void for_each_target(F f) {
  for (int64_t left = usable_targets(); left != 0; left &= left - 1) f(left & -left);
}

}  // namespace

TEST_CASE("vectors scale as the scalar form does", "[simd][requantize]") {
  for_each_target([](int64_t target) {
    CAPTURE(target);
    const Row all = make_row(31, -31, 0), left = make_row(20, 0, 10), narrow = make_row(30, -31, 0), plain = make_row(30, -31, -1), wide = make_row(31, -31, 12);
    const auto count = ONEWEIGHT_KERNEL(target, count_differences);
    CHECK(count(all.x.data(), all.multiplier.data(), all.shift.data(), kCount, 0) == 0);
    CHECK(count(left.x.data(), left.multiplier.data(), left.shift.data(), kCount, 0) == 0);
    CHECK(count(narrow.x.data(), narrow.multiplier.data(), narrow.shift.data(), kCount, 1) == 0);
    CHECK(count(narrow.x.data(), narrow.multiplier.data(), narrow.shift.data(), kCount, 3) == 0);
    CHECK(count(plain.x.data(), plain.multiplier.data(), plain.shift.data(), kCount, 4) == 0);
    CHECK(count(plain.x.data(), plain.multiplier.data(), plain.shift.data(), kCount, 5) == 0);
    CHECK(count(all.x.data(), all.multiplier.data(), all.shift.data(), kCount, 2) == 0);
    const Row small = make_row(20, -31, 10);
    CHECK(count(small.x.data(), small.multiplier.data(), small.shift.data(), kCount, 2) == 0);
    for (int shift = -31; shift <= 8; ++shift)
      CHECK(ONEWEIGHT_KERNEL(target, count_differences_of_one_factor)(small.x.data(), {1518500250, shift}, 1024) == 0);
  });
}

TEST_CASE("a factor becomes the nearest 31-bit multiplier", "[simd][requantize]") {
  CHECK(quantize_multiplier(0.5).multiplier == 1 << 30);
  CHECK(quantize_multiplier(0.5).shift == 0);
  CHECK(quantize_multiplier(1.0).shift == 1);
  CHECK(quantize_multiplier(0.0).multiplier == 0);
  CHECK(quantize_multiplier(1e-11).multiplier == 0);
  const FixedMultiplier almost_one = quantize_multiplier(1.0 - 1e-12);  // the mantissa rounds up to 2^31
  CHECK(almost_one.multiplier == 1 << 30);
  CHECK(almost_one.shift == 1);
}

TEST_CASE("halves are rounded away from zero, or up", "[simd][requantize]") {
  const FixedMultiplier quarter = quantize_multiplier(0.25);  // 2^30, shift -1
  CHECK(multiply_by_quantized_multiplier(2, quarter) == 1);
  CHECK(multiply_by_quantized_multiplier(-2, quarter) == -1);
  CHECK(multiply_by_quantized_multiplier(1, quarter) == 1);  // 0.5 rounds to 1, and 1 / 2 once more
  CHECK(multiply_rounding_once(int64_t{1}, quarter) == 0);
  CHECK(multiply_rounding_once(int64_t{2}, quarter) == 1);
  CHECK(multiply_rounding_once(int64_t{-2}, quarter) == 0);
  CHECK(multiply_rounding_once((int64_t{1} << 40) + 3, quarter) == (int64_t{1} << 38) + 1);
}

}  // namespace oneweight
#endif  // HWY_ONCE
