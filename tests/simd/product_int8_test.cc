// Products of bytes against sums in plain loops, in all shapes of tails, on every target this processor has.
#include "oneweight/simd/config.h"

#if !ONEWEIGHT_STATIC_DISPATCH
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/product_int8_test.cc"
#include "hwy/foreach_target.h"
#endif
#include "oneweight/simd/product_int8-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

struct TestRows {
  const uint8_t* base;
  int64_t terms;
  TileLayout layout() const { return separate_rows(terms); }
  int64_t rows_together(int64_t) const { return int64_t{1} << 40; }
  void gather(int64_t row, int rows, TileTerm* to) const { gather_rows(row, rows, to, layout().row); }
  void gather_rows(int64_t row, int rows, TileTerm* to, int64_t stride) const {
    for (int r = 0; r < rows; ++r) copy_terms(base + (row + r) * terms, terms, 0, to + r * stride);
  }
};
struct TestStore {
  int32_t* out;
  int64_t channels;
  bool needs_row_sums() const { return true; }
  void store(const int32_t* sums, int64_t stride, int rows, const int32_t* row_sums, int64_t m, int64_t n, int64_t count) const {
    for (int r = 0; r < rows; ++r)
      for (int64_t i = 0; i < count; ++i) {
        const uint32_t sum = static_cast<uint32_t>(sums[r * stride + i]) + 3u * static_cast<uint32_t>(row_sums[r]);  // wraps
        out[(m + r) * channels + n + i] = static_cast<int32_t>(sum);
      }
  }
};
inline int64_t test_scratch(int64_t rows, int64_t channels, int64_t terms, int bits) { return byte_product_scratch(rows, channels, separate_rows(terms), bits); }
// Rows [begin, end) of `rows`.
inline void test_product(const uint8_t* a, int64_t rows, int64_t begin, int64_t end, const ByteWeights& w, int64_t channels,
                         const int32_t* bias, int32_t* out, std::byte* scratch) {
  product_bytes(TestRows{a, w.terms}, rows, begin, end, w, 0, channels, bias, TestStore{out, channels}, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <random>
#include <vector>

namespace oneweight {
namespace {

void check(int64_t target, int64_t rows, int64_t channels, int64_t terms, int bits, uint8_t flip) {
  CAPTURE(target, rows, channels, terms, bits, static_cast<int>(flip));
  std::mt19937 random(static_cast<unsigned>(rows * 31 + channels * 7 + terms));
  std::vector<uint8_t> a(static_cast<size_t>(rows * terms)), w(static_cast<size_t>((channels * terms * bits + 7) / 8));
  for (uint8_t& v : a) v = random() % 8 == 0 ? 255 : static_cast<uint8_t>(random());
  for (uint8_t& v : w) v = random() % 8 == 0 ? 128 : static_cast<uint8_t>(random());
  std::vector<int32_t> bias(static_cast<size_t>(channels + kChannelPad), 0), out(static_cast<size_t>(rows * channels), -1);
  for (int64_t n = 0; n < channels; ++n) bias[static_cast<size_t>(n)] = static_cast<int32_t>(random());
  const ByteWeights weights{w.data(), terms, bits, flip};
  const auto bytes = static_cast<size_t>(ONEWEIGHT_KERNEL(target, test_scratch)(rows, channels, terms, bits));
  const std::unique_ptr<std::byte[]> scratch(new std::byte[bytes + 64]);
  std::byte* aligned = scratch.get() + (64 - reinterpret_cast<uintptr_t>(scratch.get()) % 64) % 64;
  for (int64_t split : {int64_t{0}, rows / 2}) {  // whole, and in two parts
    ONEWEIGHT_KERNEL(target, test_product)(a.data(), rows, 0, split, weights, channels, bias.data(), out.data(), aligned);
    ONEWEIGHT_KERNEL(target, test_product)(a.data(), rows, split, rows, weights, channels, bias.data(), out.data(), aligned);
    int64_t wrong = 0;
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t n = 0; n < channels; ++n) {
        uint32_t want = static_cast<uint32_t>(bias[static_cast<size_t>(n)]);
        for (int64_t k = 0; k < terms; ++k) {
          const int64_t at = n * terms + k;
          int value;
          if (bits == 8) value = static_cast<int8_t>(w[static_cast<size_t>(at)] ^ flip);
          else if (bits == 4) value = static_cast<int>((w[static_cast<size_t>(at / 2)] >> (at % 2 * 4)) & 15);
          else value = static_cast<int>((w[static_cast<size_t>(at / 4)] >> (at % 4 * 2)) & 3);
          if (bits < 8 && value >= 1 << (bits - 1)) value -= 1 << bits;
          const int activation = a[static_cast<size_t>(m * terms + k)];
          want += static_cast<uint32_t>(activation * value + 3 * activation);
        }
        wrong += out[static_cast<size_t>(m * channels + n)] != static_cast<int32_t>(want);
      }
    CHECK(wrong == 0);
    std::fill(out.begin(), out.end(), -1);
  }
}

}  // namespace

TEST_CASE("byte products are exact in every shape", "[simd][product_int8]") {
  for (int64_t left = usable_targets(); left != 0; left &= left - 1) {
    const int64_t target = left & -left;
    for (int64_t rows : {1, 2, 3, 4, 5, 9, 17, 31})
      for (int64_t channels : {1, 3, 16, 17, 33, 70})
        for (int64_t terms : {1, 3, 4, 15, 16, 27, 31, 63, 64, 65, 129, 300}) check(target, rows, channels, terms, 8, 0);
    for (int64_t rows : {2, 20})
      for (int64_t terms : {5, 64, 77}) {
        check(target, rows, 37, terms, 8, 0x80);
        check(target, rows, 37, terms, 4, 0);
        check(target, rows, 37, terms, 2, 0);
      }
    check(target, 10, 5, 9001, 8, 0);     // too long for panels
    check(target, 16, 200, 2304, 8, 0);   // more panels than fit at once
  }
}

}  // namespace oneweight
#endif  // HWY_ONCE
