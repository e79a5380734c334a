// Depthwise convolutions against their definition: of bytes in exact integers, of floats in double.
#include "oneweight/base/fixed_point.h"
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

struct Depthwise {
  Shape in, filter;  // filter: 1, h, w, channels
  int8_t padding = 0;
  int32_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int8_t activation = 0;
  int64_t in_zero = 3, out_zero = -5;
};

// The places of windows.
struct Windows {
  Shape out;
  int64_t top, left;
};
Windows windows(const Depthwise& c) {
  const auto extent = [&](int64_t in, int64_t k, int64_t s) { return c.padding == 0 ? (in + s - 1) / s : (in - k) / s + 1; };
  const int64_t high = (c.filter[1] - 1) * c.dilation_h + 1, wide = (c.filter[2] - 1) * c.dilation_w + 1;
  const Shape out{c.in[0], extent(c.in[1], high, c.stride_h), extent(c.in[2], wide, c.stride_w), c.filter[3]};
  const auto pad = [&](int64_t in, int64_t o, int64_t k, int64_t s) { return c.padding == 0 ? std::max<int64_t>((o - 1) * s + k - in, 0) / 2 : 0; };
  return {out, pad(c.in[1], out[1], high, c.stride_h), pad(c.in[2], out[2], wide, c.stride_w)};
}
// f(index of the activation, index of the weight) for each tap inside the image of the output at `at`.
template <class F>
void for_each_tap(const Depthwise& c, const Windows& p, const std::vector<int64_t>& at, F f) {
  for (int64_t k = 0; k < c.filter[1] * c.filter[2]; ++k) {
    const int64_t iy = at[1] * c.stride_h - p.top + k / c.filter[2] * c.dilation_h, ix = at[2] * c.stride_w - p.left + k % c.filter[2] * c.dilation_w;
    if (iy < 0 || ix < 0 || iy >= c.in[1] || ix >= c.in[2]) continue;
    f(static_cast<size_t>(ravel(c.in, {at[0], iy, ix, at[3] / (c.filter[3] / c.in[3])})), static_cast<size_t>(k * c.filter[3] + at[3]));
  }
}
void set_options(ModelBuilder& m, const Depthwise& c, const std::vector<int32_t>& inputs, int y) {
  m.op(BuiltinOperator::depthwise_conv_2d, inputs, {y}).options(2).field<int8_t>(0, c.padding).field(1, c.stride_w).field(2, c.stride_h)
      .field<int32_t>(3, static_cast<int32_t>(c.filter[3] / c.in[3])).field(4, c.activation).field(5, c.dilation_w).field(6, c.dilation_h);
  m.inputs({inputs[0]}).outputs({y});
}

template <class T>
void check(const Depthwise& c) {
  INFO("input " << c.in.to_string() << ", filter " << c.filter.to_string() << ", strides " << c.stride_h << " " << c.stride_w << ", dilation "
                << c.dilation_h << " " << c.dilation_w << ", padding " << +c.padding);
  constexpr bool is_signed = std::is_signed_v<T>;
  constexpr int64_t lowest = is_signed ? -128 : 0, offset = is_signed ? 0 : 128;
  const int64_t w_zero = is_signed ? 0 : 119;
  Random random(17);
  const auto x = random.values<T>(c.in.elements()), w = random.values<T>(c.filter.elements());
  const auto b = random.values<int32_t>(c.filter[3]);
  const float in_scale = 0.04f, w_scale = 0.013f, out_scale = 0.23f;
  ModelBuilder m;
  const int input = m.tensor(tensor_type_of<T>, dims(c.in), "x").quantized(in_scale, c.in_zero + offset);
  const int weights = m.tensor(tensor_type_of<T>, dims(c.filter), "w").quantized(w_scale, w_zero).values(w);
  const int bias = m.tensor(TensorType::int32, {static_cast<int32_t>(c.filter[3])}, "b").values(b);
  const int y = m.tensor(tensor_type_of<T>, {}, "y").quantized(out_scale, c.out_zero + offset);
  set_options(m, c, {input, weights, bias}, y);
  const Windows place = windows(c);
  const double product = is_signed ? static_cast<double>(in_scale) * static_cast<double>(w_scale) : static_cast<double>(in_scale * w_scale);
  const FixedMultiplier factor = quantize_multiplier(product / static_cast<double>(out_scale));
  const int64_t zero = c.out_zero + offset, six = static_cast<int64_t>(std::lround(6 / out_scale)) + zero;
  const int64_t least = c.activation ? std::max(lowest, zero) : lowest, most = c.activation == 3 ? std::min(lowest + 255, six) : lowest + 255;
  std::vector<T> want;
  for (int64_t i = 0; i < place.out.elements(); ++i) {
    const auto at = unravel(place.out, i);
    int64_t sum = b[static_cast<size_t>(at[3])];
    for_each_tap(c, place, at, [&](size_t a, size_t k) { sum += (x[a] - (c.in_zero + offset)) * (w[k] - w_zero); });
    const int64_t scaled = multiply_by_quantized_multiplier(static_cast<int32_t>(sum), factor) + zero;
    want.push_back(static_cast<T>(std::min(std::max(scaled, least), most)));
  }
  check_values(run_on_targets(m, {bytes_of(x)}), place.out, want);
}

void check_both(const Depthwise& c) {
  check<int8_t>(c);
  check<uint8_t>(c);
}

void check_float(const Depthwise& c) {
  for (const bool half_weights : {false, true}) {
    INFO("input " << c.in.to_string() << ", filter " << c.filter.to_string() << ", strides " << c.stride_h << " " << c.stride_w);
    Random random(23);
    const auto x = random.values<float>(c.in.elements()), b = random.values<float>(c.filter[3]);
    std::vector<float> w = random.values<float>(c.filter.elements());
    std::vector<half> stored;
    for (float& f : w) stored.push_back(float_to_half(f)), f = half_to_float(stored.back());
    ModelBuilder m;
    const int input = m.tensor(TensorType::float32, dims(c.in), "x");
    int weights = -1;
    if (half_weights) {
      const int h = m.tensor(TensorType::float16, dims(c.filter), "half_w").values(stored);
      weights = m.tensor(TensorType::float32, dims(c.filter), "w");
      m.op(BuiltinOperator::dequantize, {h}, {weights});
    } else {
      weights = m.tensor(TensorType::float32, dims(c.filter), "w").values(w);
    }
    const int bias = m.tensor(TensorType::float32, {static_cast<int32_t>(c.filter[3])}, "b").values(b), y = m.tensor(TensorType::float32, {}, "y");
    set_options(m, c, {input, weights, bias}, y);
    const Windows place = windows(c);
    std::vector<float> want;
    for (int64_t i = 0; i < place.out.elements(); ++i) {
      const auto at = unravel(place.out, i);
      double sum = b[static_cast<size_t>(at[3])];
      for_each_tap(c, place, at, [&](size_t a, size_t k) { sum += static_cast<double>(x[a]) * static_cast<double>(w[k]); });
      want.push_back(static_cast<float>(c.activation ? std::max(sum, 0.0) : sum));
    }
    check_values(run_on_targets(m, {bytes_of(x)}), place.out, want, 1e-5);
  }
}

}  // namespace

TEST_CASE("depthwise convolutions of bytes with any number of channels", "[ops][depthwise_conv_2d][int8]") {
  for (const int64_t channels : {1, 2, 3, 4, 5, 8, 12, 16, 17, 24, 32, 33, 48, 64, 65, 100, 130})
    for (const int32_t stride : {1, 2})
      for (const int8_t activation : {int8_t{0}, int8_t{1}, int8_t{3}})
        check_both({.in = {1, 7, 19, channels}, .filter = {1, 3, 3, channels}, .stride_h = stride, .stride_w = stride, .activation = activation});
}

TEST_CASE("depthwise convolutions of bytes with any window", "[ops][depthwise_conv_2d][int8]") {
  for (const int64_t channels : {4, 40, 70}) {
    check_both({.in = {2, 6, 5, channels}, .filter = {1, 5, 5, channels}});                                    // two images
    check_both({.in = {1, 9, 11, channels}, .filter = {1, 3, 2, channels}, .padding = 1, .stride_h = 3, .stride_w = 2});
    check_both({.in = {1, 9, 11, channels}, .filter = {1, 3, 3, channels}, .dilation_h = 2, .dilation_w = 3});
    check_both({.in = {1, 4, 5, channels}, .filter = {1, 3, 3, channels}, .dilation_h = 9, .dilation_w = 7});  // most taps outside
    check_both({.in = {1, 2, 3, channels}, .filter = {1, 3, 4, channels}, .dilation_h = 1 << 30, .dilation_w = 1 << 30});
    check_both({.in = {1, 3, 3, channels}, .filter = {1, 7, 7, channels}, .stride_h = 2, .stride_w = 2});      // larger than the image
    check_both({.in = {1, 1, 700, channels}, .filter = {1, 1, 9, channels}});                                  // rows in segments
    check_both({.in = {1, 5, 700, channels}, .filter = {1, 3, 3, channels}, .stride_w = 5, .dilation_w = 40});
    check_both({.in = {1, 21, 1, channels}, .filter = {1, 21, 1, channels}, .padding = 1, .activation = 1});   // one pixel
    check_both({.in = {3, 4, 3, channels}, .filter = {1, 2, 3, channels}, .stride_h = 2, .stride_w = 2});
    check_both({.in = {1, 4, 300, channels}, .filter = {1, 1, 1, channels}});
    check_both({.in = {1, 6, 6, channels}, .filter = {1, 3, 3, 3 * channels}});                                // channel multiplier
    check_both({.in = {0, 6, 6, channels}, .filter = {1, 3, 3, channels}});
  }
  check_both({.in = {1, 20, 70, 300}, .filter = {1, 3, 3, 300}, .activation = 1});
}

TEST_CASE("float depthwise convolutions", "[ops][depthwise_conv_2d]") {
  for (const int64_t channels : {1, 2, 3, 4, 8, 12, 16, 17, 33, 64, 70})
    for (const int32_t stride : {1, 2})
      for (const int64_t width : {3, 5}) {
        check_float({.in = {1, 6, 17, channels}, .filter = {1, 3, width, channels}, .stride_h = stride, .stride_w = stride});
        check_float({.in = {2, 5, 5, channels}, .filter = {1, 2, width, channels}, .stride_w = stride, .activation = 1});
      }
  check_float({.in = {1, 9, 40, 8}, .filter = {1, 3, 3, 8}, .dilation_h = 2, .dilation_w = 3});
  check_float({.in = {1, 9, 40, 20}, .filter = {1, 4, 4, 20}, .padding = 1, .stride_w = 3});
  check_float({.in = {1, 6, 7, 5}, .filter = {1, 3, 3, 15}});
}
