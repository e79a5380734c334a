#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

struct Conv {
  Shape in, filter;
  int8_t padding = 0;
  int32_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int8_t activation = 0;
  bool half_weights = false;
  int64_t bias = -1;  // elements; -1: as many as channels, 0: none
  double tolerance = 2e-5;
};

ModelBuilder conv_model(const Conv& c, const std::vector<float>& filter, const std::vector<float>& bias) {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, dims(c.in), "x");
  int w = -1;
  if (c.half_weights) {
    std::vector<half> stored;
    for (float f : filter) stored.push_back(float_to_half(f));
    const int h = m.tensor(TensorType::float16, dims(c.filter), "half_w").values(stored);
    w = m.tensor(TensorType::float32, dims(c.filter), "w");
    m.op(BuiltinOperator::dequantize, {h}, {w});
  } else {
    w = m.tensor(TensorType::float32, dims(c.filter), "w").values(filter);
  }
  std::vector<int32_t> inputs = {x, w};
  if (!bias.empty()) inputs.push_back(m.tensor(TensorType::float32, {static_cast<int32_t>(bias.size())}, "b").values(bias));
  const int y = m.tensor(TensorType::float32, {}, "y");
  m.op(BuiltinOperator::conv_2d, inputs, {y}).options(1).field<int8_t>(0, c.padding).field(1, c.stride_w).field(2, c.stride_h)
      .field(3, c.activation).field(4, c.dilation_w).field(5, c.dilation_h);
  m.inputs({x}).outputs({y});
  return m;
}

// A convolution by its definition, in double.
void check_conv(const Conv& c) {
  INFO("input " << c.in.to_string() << ", filter " << c.filter.to_string());
  Random random(5);
  const auto x = random.values<float>(c.in.elements());
  std::vector<float> w = random.values<float>(c.filter.elements());
  for (float& f : w) f = half_to_float(float_to_half(f));
  const auto b = random.values<float>(c.bias < 0 ? c.filter[0] : c.bias);
  const auto extent = [&](int64_t in, int64_t k, int64_t s) { return c.padding == 0 ? (in + s - 1) / s : (in - k) / s + 1; };
  const int64_t high = (c.filter[1] - 1) * c.dilation_h + 1, wide = (c.filter[2] - 1) * c.dilation_w + 1;
  const Shape out{c.in[0], extent(c.in[1], high, c.stride_h), extent(c.in[2], wide, c.stride_w), c.filter[0]};
  const auto pad = [&](int64_t in, int64_t o, int64_t k, int64_t s) { return c.padding == 0 ? std::max<int64_t>((o - 1) * s + k - in, 0) / 2 : 0; };
  const int64_t top = pad(c.in[1], out[1], high, c.stride_h), left = pad(c.in[2], out[2], wide, c.stride_w);
  const int64_t groups = c.in[3] / c.filter[3], channels = c.filter[0] / groups;
  std::vector<float> want;
  for (int64_t i = 0; i < out.elements(); ++i) {
    const auto at = unravel(out, i);
    double sum = b.empty() ? 0 : b[static_cast<size_t>(at[3])];
    for (int64_t k = 0; k < c.filter.elements(1, 4); ++k) {
      const int64_t channel = k % c.filter[3], kx = k / c.filter[3] % c.filter[2], ky = k / c.filter[3] / c.filter[2];
      const int64_t iy = at[1] * c.stride_h - top + ky * c.dilation_h, ix = at[2] * c.stride_w - left + kx * c.dilation_w;
      if (iy < 0 || ix < 0 || iy >= c.in[1] || ix >= c.in[2]) continue;
      sum += static_cast<double>(x[static_cast<size_t>(ravel(c.in, {at[0], iy, ix, at[3] / channels * c.filter[3] + channel}))]) *
             w[static_cast<size_t>(at[3] * c.filter.elements(1, 4) + k)];
    }
    if (c.activation == 1 || c.activation == 3) sum = std::max(sum, 0.0);
    if (c.activation == 2) sum = std::max(sum, -1.0);
    if (c.activation == 2 || c.activation == 3) sum = std::min(sum, c.activation == 2 ? 1.0 : 6.0);
    want.push_back(static_cast<float>(sum));
  }
  check_values(run_on_targets(conv_model(c, w, b), {bytes_of(x)}), out, want, c.tolerance);
}

void refuse(const Conv& c, ErrorCode code, const char* words) {
  const std::vector<float> x(static_cast<size_t>(c.in.elements()));
  const std::vector<float> w(static_cast<size_t>(c.filter.elements())), b(static_cast<size_t>(c.bias < 0 ? c.filter[0] : c.bias));
  check_refused(run_on_targets(conv_model(c, w, b), {bytes_of(x)}), code, words);
}

}  // namespace

TEST_CASE("float convolution by its definition, with float and half weights", "[ops][conv_2d]") {
  for (bool half_weights : {false, true}) {
    check_conv({.in = {1, 6, 7, 3}, .filter = {5, 3, 3, 3}, .activation = 1, .half_weights = half_weights});
    check_conv({.in = {2, 9, 8, 16}, .filter = {24, 1, 1, 16}, .activation = 3, .half_weights = half_weights});
    check_conv({.in = {1, 9, 9, 4}, .filter = {3, 5, 2, 4}, .padding = 1, .stride_h = 2, .stride_w = 3, .half_weights = half_weights});
    check_conv({.in = {1, 9, 9, 4}, .filter = {33, 3, 3, 4}, .dilation_h = 2, .dilation_w = 3, .activation = 2, .half_weights = half_weights});
    check_conv({.in = {1, 5, 5, 8}, .filter = {12, 3, 3, 2}, .half_weights = half_weights});   // groups
    check_conv({.in = {1, 4, 4, 6}, .filter = {6, 1, 1, 2}, .half_weights = half_weights});
    check_conv({.in = {1, 2, 3, 40}, .filter = {70, 2, 2, 40}, .half_weights = half_weights});  // few pixels
    check_conv({.in = {1, 8, 8, 64}, .filter = {1, 3, 3, 64}, .half_weights = half_weights});   // one channel
    check_conv({.in = {1, 4, 4, 70}, .filter = {9, 3, 3, 70}, .half_weights = half_weights, .bias = 0});
    check_conv({.in = {1, 3, 3, 2}, .filter = {4, 7, 7, 2}, .half_weights = half_weights});     // window larger than the image
    check_conv({.in = {0, 3, 3, 2}, .filter = {4, 1, 1, 2}, .half_weights = half_weights});
  }
}

TEST_CASE("float convolution of few pixels into many channels", "[ops][conv_2d]") {
  for (bool half_weights : {false, true}) {
    check_conv({.in = {1, 7, 7, 96}, .filter = {72, 1, 1, 96}, .activation = 3, .half_weights = half_weights});
    check_conv({.in = {1, 7, 7, 24}, .filter = {70, 3, 3, 24}, .half_weights = half_weights, .tolerance = 5e-5});
    check_conv({.in = {1, 7, 7, 160}, .filter = {66, 3, 3, 160}, .half_weights = half_weights, .tolerance = 4e-4});  // terms in parts
    check_conv({.in = {2, 9, 9, 80}, .filter = {64, 1, 1, 80}, .padding = 1, .stride_h = 2, .stride_w = 2, .half_weights = half_weights});  // two images
    check_conv({.in = {1, 4, 9, 64}, .filter = {65, 1, 1, 64}, .activation = 1, .half_weights = half_weights, .bias = 0});
    check_conv({.in = {1, 14, 14, 72}, .filter = {200, 1, 1, 72}, .half_weights = half_weights});
    check_conv({.in = {1, 5, 13, 32}, .filter = {128, 2, 2, 16}, .half_weights = half_weights});                        // groups
  }
}

TEST_CASE("float convolution of pixels a power of two apart", "[ops][conv_2d]") {
  check_conv({.in = {1, 9, 9, 1024}, .filter = {33, 1, 1, 1024}, .tolerance = 4e-4});
  check_conv({.in = {1, 17, 16, 512}, .filter = {17, 1, 1, 512}, .stride_h = 2, .stride_w = 2, .tolerance = 4e-4});
}

TEST_CASE("convolutions that contradict themselves are refused", "[ops][conv_2d]") {
  const auto wrong = ErrorCode::invalid_model;
  refuse({.in = {1, 4, 4, 3}, .filter = {2, 1, 1, 2}}, wrong, "does not fit input");
  refuse({.in = {1, 4, 4, 4}, .filter = {3, 1, 1, 2}}, wrong, "3 output channels cannot be divided into 2 groups");
  refuse({.in = {4, 4, 4}, .filter = {3, 1, 1, 4}}, wrong, "has rank 3");
  refuse({.in = {1, 4, 4, 4}, .filter = {3, 1, 4}}, wrong, "has rank 3");
  refuse({.in = {1, 4, 4, 4}, .filter = {3, 1, 1, 4}, .stride_w = 0}, wrong, "stride 0 along the width");
  refuse({.in = {1, 4, 4, 4}, .filter = {3, 1, 1, 4}, .stride_h = -1}, wrong, "stride -1 along the height");
  refuse({.in = {1, 4, 4, 4}, .filter = {3, 1, 1, 4}, .dilation_h = 0}, wrong, "dilation 0 along the height");
  refuse({.in = {1, 4, 4, 4}, .filter = {3, 5, 1, 4}, .padding = 1}, wrong, "the height 4 of its input is less than its window's 5");
  refuse({.in = {1, 4, 4, 4}, .filter = {3, 1, 1, 4}, .padding = 2}, wrong, "padding 2");
  refuse({.in = {1, 4, 4, 4}, .filter = {3, 1, 1, 4}, .bias = 2}, wrong, "must have 3 elements");
  refuse({.in = {1, 4, 4, 4}, .filter = {3, 1, 1, 4}, .activation = 4}, ErrorCode::unsupported, "fused activation 4");
}
