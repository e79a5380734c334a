// Float products on every processor target: all tails, nothing read or written outside, the same bits however rows
// are divided, NaN and infinities kept, windows of convolutions without an im2col matrix.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/product_float_test.cc"
#include "oneweight/simd/config.h"
#if !ONEWEIGHT_STATIC_DISPATCH
#include "hwy/foreach_target.h"
#endif

#include "oneweight/ops/window_rows-inl.h"
#include "oneweight/simd/product_float-inl.h"

#ifndef PRODUCT_FLOAT_TEST_CASES
#define PRODUCT_FLOAT_TEST_CASES
// Which way a product goes.
enum class Way { dots, panels };
struct Product {
  Way way;
  int64_t rows, channels, terms;  // of the whole
  int64_t begin, end;             // rows to compute
  const float* input;
  float* out;
  const oneweight::ConvGeometry* windows;  // null: rows are dense
};
#endif

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

// Scratch a product asks for; then the product.
template <class W>
int64_t test_scratch(const Product& p) {
  const int64_t segment = p.windows ? WindowRows(*p.windows, nullptr, 0, p.windows->in_c).segment_length() : p.terms;
  const bool patches = p.windows != nullptr;
  return p.way == Way::dots ? dots_scratch_bytes(p.terms, segment, patches)
                            : panels_scratch_bytes(plan_panels(p.rows, p.channels, p.terms, patches), segment, patches);
}
template <class W>
void test_product(const Product& p, const W* w, const Epilogue& e, std::byte* scratch) {
  const auto run = [&](const auto& source) HWY_ATTR {
    if (p.way == Way::dots)
      product_dots(source, p.begin, p.end, w, p.channels, p.terms, p.out, p.channels, e, scratch);
    else
      product_panels(source, p.begin, p.end, w, p.channels, p.terms, p.out, p.channels, e,
                     plan_panels(p.rows, p.channels, p.terms, p.windows != nullptr), scratch);
  };
  if (p.windows) run(WindowRows(*p.windows, p.input, 0, p.windows->in_c));
  else run(DenseRows{p.input, p.terms, p.terms});
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "hwy/targets.h"
#include "oneweight/plan/builder.h"
#include "oneweight/simd/targets.h"
#include "tests/support/guarded_memory.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
template <class W>
auto scratch_function([[maybe_unused]] int64_t target) { return ONEWEIGHT_KERNEL(target, test_scratch<W>); }
template <class W>
auto product_function([[maybe_unused]] int64_t target) { return ONEWEIGHT_KERNEL(target, test_product<W>); }
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

namespace {

using oneweight::Epilogue;
using oneweight::half;

std::vector<int64_t> all_targets() {
  std::vector<int64_t> targets;
  for (int64_t left = oneweight::usable_targets(); left; left &= left - 1) targets.push_back(left & -left);
  return targets;
}

std::mt19937 generator(7);
float random_value() { return std::uniform_real_distribution<float>(-1, 1)(generator); }
float as_float(float f) { return f; }
float as_float(half h) { return oneweight::half_to_float(h); }
template <class W>
W random_weight() {
  if constexpr (sizeof(W) == 2) return oneweight::float_to_half(random_value());
  else return random_value();
}

template <class W>
void run(int64_t target, const Product& p, const W* w, const Epilogue& e) {
  const GuardedMemory scratch(static_cast<size_t>((oneweight::scratch_function<W>(target)(p) + 63) / 64 * 64));
  oneweight::product_function<W>(target)(p, w, e, scratch.data());
}

// Weights at the end of their pages, `odd` bytes before it: any alignment occurs in files.
template <class W>
struct Weights {
  Weights(int64_t count, size_t odd) : memory(static_cast<size_t>(count) * sizeof(W) + odd) {
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(random_weight<W>());
      std::memcpy(memory.data() + i * static_cast<int64_t>(sizeof(W)), &values.back(), sizeof(W));
    }
    memory.make_read_only();
  }
  const W* data() const { return reinterpret_cast<const W*>(memory.data()); }
  std::vector<W> values;
  GuardedMemory memory;
};

float activation(double x, const Epilogue& e) {
  if (x < e.low) x = e.low;
  if (x > e.high) x = e.high;
  if (e.after == oneweight::FusedActivation::hard_swish) x = x * std::fmin(std::fmax(x + 3, 0), 6) / 6;
  return static_cast<float>(x);
}

template <class W>
void check_dense(int64_t target, Way way, int64_t rows, int64_t channels, int64_t terms, Epilogue e, bool with_bias, size_t odd) {
  INFO(hwy::TargetName(target) << (way == Way::dots ? " dots " : " panels ") << rows << " x " << channels << " x " << terms
                               << (sizeof(W) == 2 ? " half" : " float"));
  const GuardedMemory input(static_cast<size_t>(rows * terms) * 4), out(static_cast<size_t>(rows * channels) * 4);
  const GuardedMemory bias(static_cast<size_t>(channels) * 4);
  auto* a = reinterpret_cast<float*>(input.data());
  auto* b = reinterpret_cast<float*>(bias.data());
  auto* c = reinterpret_cast<float*>(out.data());
  for (int64_t i = 0; i < rows * terms; ++i) a[i] = random_value();
  for (int64_t i = 0; i < channels; ++i) b[i] = random_value();
  const Weights<W> w(channels * terms, odd);
  e.bias = with_bias ? b : nullptr;
  const Product p{way, rows, channels, terms, 0, rows, a, c, nullptr};
  run(target, p, w.data(), e);
  double worst = 0;
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < channels; ++n) {
      double sum = with_bias ? b[n] : 0, size = 1;
      for (int64_t k = 0; k < terms; ++k) {
        const double product = static_cast<double>(a[m * terms + k]) * as_float(w.values[n * terms + k]);
        sum += product, size += std::fabs(product);
      }
      worst = std::fmax(worst, std::fabs(c[m * channels + n] - activation(sum, e)) / size);
    }
  CHECK(worst < 1e-6);

  // The same bits in two uneven parts.
  const std::vector<float> whole(c, c + rows * channels);
  const int64_t cut = rows / 3;
  for (int64_t i = 0; i < rows * channels; ++i) c[i] = -77;
  Product part = p;
  part.end = cut;
  run(target, part, w.data(), e);
  for (int64_t i = cut * channels; i < rows * channels; ++i) REQUIRE(c[i] == -77);  // no other row is written
  part.begin = cut, part.end = rows;
  run(target, part, w.data(), e);
  CHECK(std::memcmp(whole.data(), c, whole.size() * 4) == 0);
}

template <class W>
void check_tails(Way way) {
  Epilogue clamp;
  clamp.clamps = true, clamp.low = -0.5f, clamp.high = 0.75f;
  Epilogue swish;
  swish.after = oneweight::FusedActivation::hard_swish;
  for (int64_t target : all_targets()) {
    size_t round = 0;
    const auto check = [&](int64_t m, int64_t n, int64_t k) {
      ++round;
      check_dense<W>(target, way, m, n, k, round % 3 == 0 ? clamp : round % 3 == 1 ? swish : Epilogue(), round % 5 != 0, round % 4);
    };
    for (int64_t m = 1; m <= 30; ++m) check(m, 1 + m * 7 % 35, 1 + m * 5 % 23);
    for (int64_t n = 1; n <= 40; ++n) check(1 + n * 3 % 16, n, 1 + n * 5 % 19);
    for (int64_t k = 1; k <= 40; ++k) check(1 + k * 3 % 16, 1 + k * 7 % 35, k);
    check(3, 2, 0);
    check(15, 33, 0);
    check(15, 37, 1031);   // several parts of the reduction
    check(5, 300, 515);    // several groups of channels
    check(70, 40, 1500);
  }
}

TEST_CASE("float products are right for every tail and touch nothing else", "[simd][product]") {
  check_tails<float>(Way::dots);
  check_tails<float>(Way::panels);
}
TEST_CASE("products with half weights are right for every tail and touch nothing else", "[simd][product]") {
  check_tails<half>(Way::dots);
  check_tails<half>(Way::panels);
}

TEST_CASE("products keep NaN and infinities, and half weights of every size", "[simd][product]") {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<half> w = {{0x3c00}, {0x0001}, {0x8001}, {0x7bff}, {0xfbff}, {0x0400}, {0x7c00}, {0xfc00}, {0x7e00}};  // 1, smallest, largest, normal, not finite
  for (int64_t target : all_targets())
    for (Way way : {Way::dots, Way::panels}) {
      INFO(hwy::TargetName(target));
      const float input[] = {1, 2, nan, infinity, -infinity, -0.5f, 3, -4, 5};
      const int64_t rows = 9, channels = 9;
      float out[rows * channels];
      Epilogue e;
      run(target, Product{way, rows, channels, 1, 0, rows, input, out, nullptr}, w.data(), e);
      for (int64_t m = 0; m < rows; ++m)
        for (int64_t n = 0; n < channels; ++n) {
          const float want = input[m] * as_float(w[n]), got = out[m * channels + n];
          INFO(m << " " << n << " " << got << " " << want);
          CHECK((std::isnan(want) ? std::isnan(got) : got == want));
        }
      e.clamps = true, e.low = 0, e.high = 6;
      run(target, Product{way, rows, channels, 1, 0, rows, input, out, nullptr}, w.data(), e);
      for (int64_t n = 0; n < channels; ++n) CHECK(std::isnan(out[2 * channels + n]));
      CHECK(out[3 * channels] == 6);
      CHECK(out[4 * channels] == 0);
    }
}

// A convolution of groups == 1 by its definition.
template <class W>
void check_windows(int64_t target, Way way, const oneweight::ConvGeometry& g, int64_t channels) {
  INFO(hwy::TargetName(target) << (way == Way::dots ? " dots " : " panels ") << g.in_h << "x" << g.in_w << "x" << g.in_c << " * "
                               << g.kernel_h << "x" << g.kernel_w << " -> " << channels);
  const int64_t terms = g.kernel_h * g.kernel_w * g.in_c, rows = g.output_pixels(), inputs = g.batch * g.in_h * g.in_w * g.in_c;
  const GuardedMemory input(static_cast<size_t>(inputs) * 4), out(static_cast<size_t>(rows * channels) * 4);
  auto* a = reinterpret_cast<float*>(input.data());
  auto* c = reinterpret_cast<float*>(out.data());
  for (int64_t i = 0; i < inputs; ++i) a[i] = random_value();
  const Weights<W> w(channels * terms, 0);
  const Product p{way, rows, channels, terms, 0, rows, a, c, &g};
  run(target, p, w.data(), Epilogue());
  double worst = 0;
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < channels; ++n) {
      const int64_t image = m / (g.out_h * g.out_w), oy = m / g.out_w % g.out_h, ox = m % g.out_w;
      double sum = 0;
      const W* weight = w.values.data() + n * terms;
      for (int64_t ky = 0; ky < g.kernel_h; ++ky)
        for (int64_t kx = 0; kx < g.kernel_w; ++kx)
          for (int64_t k = 0; k < g.in_c; ++k, ++weight) {
            const int64_t y = oy * g.stride_h - g.pad_top + ky * g.dilation_h, x = ox * g.stride_w - g.pad_left + kx * g.dilation_w;
            if (y < 0 || y >= g.in_h || x < 0 || x >= g.in_w) continue;
            sum += static_cast<double>(a[((image * g.in_h + y) * g.in_w + x) * g.in_c + k]) * as_float(*weight);
          }
      worst = std::fmax(worst, std::fabs(c[m * channels + n] - sum) / (1 + std::sqrt(static_cast<double>(terms))));
    }
  CHECK(worst < 2e-6);

  const std::vector<float> whole(c, c + rows * channels);
  for (int64_t y = 0; y < g.rows(); ++y) {  // one row of the map at a time
    Product part = p;
    part.begin = y * g.out_w, part.end = (y + 1) * g.out_w;
    run(target, part, w.data(), Epilogue());
  }
  CHECK(std::memcmp(whole.data(), c, whole.size() * 4) == 0);
}

TEST_CASE("windows are read where they lie, and gathered at the border", "[simd][product]") {
  struct Row {
    int64_t batch, h, w, c, kh, kw, stride_h, stride_w, dilation_h, dilation_w, top, bottom, left, right, channels;
  };
  const Row table[] = {
      {1, 5, 6, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 5},     {2, 7, 5, 3, 3, 3, 2, 2, 1, 1, 0, 1, 0, 1, 33},
      {1, 9, 9, 4, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2, 17},    {1, 9, 8, 20, 3, 2, 2, 1, 1, 3, 1, 1, 1, 2, 3},
      {1, 6, 6, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2},    {1, 4, 4, 130, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2, 9},
      {1, 3, 3, 7, 7, 7, 1, 1, 1, 1, 3, 3, 3, 3, 4},     {1, 12, 1, 6, 4, 1, 1, 1, 1, 1, 1, 2, 0, 0, 10},
      {3, 4, 4, 5, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0, 6},     {1, 4, 4, 5, 2, 2, 1, 1, 1, 1, 5, 5, 5, 5, 6},
      {1, 8, 8, 1, 9, 9, 1, 1, 1, 1, 4, 4, 4, 4, 12},    {1, 5, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
  };
  for (int64_t target : all_targets())
    for (const Row& r : table)
      for (Way way : {Way::dots, Way::panels}) {
        oneweight::ConvGeometry g;
        g.batch = r.batch, g.in_h = r.h, g.in_w = r.w, g.in_c = r.c;
        g.kernel_h = r.kh, g.kernel_w = r.kw, g.stride_h = r.stride_h, g.stride_w = r.stride_w;
        g.dilation_h = r.dilation_h, g.dilation_w = r.dilation_w, g.pad_top = r.top, g.pad_left = r.left;
        g.out_h = (r.h + r.top + r.bottom - (r.kh - 1) * r.dilation_h - 1) / r.stride_h + 1;
        g.out_w = (r.w + r.left + r.right - (r.kw - 1) * r.dilation_w - 1) / r.stride_w + 1;
        check_windows<float>(target, way, g, r.channels);
        check_windows<half>(target, way, g, r.channels);
      }
}

}  // namespace
#endif  // HWY_ONCE
