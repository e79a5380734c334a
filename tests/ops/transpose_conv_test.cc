// TRANSPOSE_CONV and Convolution2DTransposeBias against sums scattered pixel by pixel.
#include "oneweight/base/fixed_point.h"
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

struct Case {
  int64_t n, h, w, c, channels, kh, kw, sh, sw;
  bool same;
  bool bias = true;
  int activation = 0;
  int64_t extra_h = 0, extra_w = 0;  // more output than the input fills

  int64_t out_h() const { return (same ? h * sh : (h - 1) * sh + kh) + extra_h; }
  int64_t out_w() const { return (same ? w * sw : (w - 1) * sw + kw) + extra_w; }
  Shape out() const { return {n, out_h(), out_w(), channels}; }
  int64_t inputs() const { return n * h * w * c; }
  int64_t filter() const { return channels * kh * kw * c; }
  static int64_t pad(bool same, int64_t out, int64_t k, int64_t s) {
    return same ? std::max<int64_t>(((out + s - 1) / s - 1) * s + k - out, 0) / 2 : 0;
  }
  // product(input element, filter element) summed into each output element.
  template <class T, class Product>
  std::vector<T> sums(const Product& product) const {
    std::vector<T> all(static_cast<size_t>(out().elements()));
    const int64_t top = pad(same, out_h(), kh, sh), left = pad(same, out_w(), kw, sw);
    for (int64_t b = 0; b < n; ++b)
      for (int64_t y = 0; y < h; ++y)
        for (int64_t x = 0; x < w; ++x)
          for (int64_t ky = 0; ky < kh; ++ky)
            for (int64_t kx = 0; kx < kw; ++kx) {
              const int64_t oy = y * sh - top + ky, ox = x * sw - left + kx;
              if (oy < 0 || ox < 0 || oy >= out_h() || ox >= out_w()) continue;
              for (int64_t o = 0; o < channels; ++o)
                for (int64_t i = 0; i < c; ++i)
                  all[size_t(((b * out_h() + oy) * out_w() + ox) * channels + o)] +=
                      product(size_t(((b * h + y) * w + x) * c + i), size_t(((o * kh + ky) * kw + kx) * c + i));
            }
    return all;
  }
};

std::vector<Case> cases() {
  return {
      {1, 3, 4, 5, 7, 3, 3, 2, 2, true},         {1, 3, 4, 5, 7, 3, 3, 2, 2, false, false},
      {2, 5, 3, 4, 2, 2, 2, 2, 2, true, true, 1}, {1, 4, 4, 16, 33, 4, 4, 2, 2, true, true, 3},
      {1, 5, 6, 20, 70, 3, 5, 1, 1, true},       {2, 3, 3, 3, 1, 5, 2, 2, 3, true},
      {1, 2, 2, 40, 3, 2, 2, 3, 3, false},       // pixels that no tap reaches
      {1, 2, 3, 4, 5, 3, 3, 2, 2, false, true, 0, 2, 3},
      {1, 1, 1, 9, 17, 1, 1, 1, 1, true},        {1, 20, 30, 8, 18, 2, 2, 2, 2, true},
      {1, 7, 2, 300, 20, 4, 3, 3, 1, false},     {1, 1, 8, 2, 4, 1, 9, 1, 4, true},
      {2, 4, 4, 16, 1, 2, 2, 2, 2, false, false},
  };
}

int add_op(ModelBuilder& m, const Case& g, int filter, int input, int bias, TensorType out) {
  const std::vector<int32_t> shape = dims(g.out());
  const int s = m.tensor(TensorType::int32, {4}, "shape").values(shape), y = m.tensor(out, {}, "y");
  std::vector<int32_t> inputs{s, filter, input};
  if (bias >= 0) inputs.push_back(bias);
  m.op(BuiltinOperator::transpose_conv, inputs, {y})
      .options(49)
      .field<int8_t>(0, g.same ? 0 : 1)
      .field<int32_t>(1, int32_t(g.sw))
      .field<int32_t>(2, int32_t(g.sh))
      .field<int8_t>(3, int8_t(g.activation));
  m.inputs({input}).outputs({y});
  return y;
}
std::vector<int32_t> filter_shape(const Case& g) { return {int32_t(g.channels), int32_t(g.kh), int32_t(g.kw), int32_t(g.c)}; }
std::vector<int32_t> input_shape(const Case& g) { return {int32_t(g.n), int32_t(g.h), int32_t(g.w), int32_t(g.c)}; }
double low_of(int activation) { return activation == 0 ? -1e300 : 0; }
double high_of(int activation) { return activation == 3 ? 6 : 1e300; }

std::vector<float> finished(const Case& g, std::vector<double> sums, const std::vector<float>& bias) {
  std::vector<float> want;
  for (size_t i = 0; i < sums.size(); ++i) {
    const double v = sums[i] + (g.bias ? double(bias[i % size_t(g.channels)]) : 0);
    want.push_back(float(std::clamp(v, low_of(g.activation), high_of(g.activation))));
  }
  return want;
}

template <class T, class W, class B>
void check_integers(const Case& g, TensorType type, TensorType weight_type, TensorType bias_type, int x_zero, int w_zero, int out_zero,
                    bool per_channel, uint32_t seed) {
  INFO(g.h << "x" << g.w << "x" << g.c << " to " << g.channels << ", window " << g.kh << "x" << g.kw << ", strides " << g.sh << "x" << g.sw);
  Random random(seed);
  const auto x = random.values<T>(g.inputs());
  const auto w = random.values<W>(g.filter());
  std::vector<B> bias;
  for (int64_t o = 0; o < g.channels; ++o) bias.push_back(static_cast<B>(random.between(-2000, 2000)));
  const float sx = 0.02f, so = sizeof(T) == 2 ? 3.0f : 0.7f;
  std::vector<float> sw;
  for (int64_t o = 0; o < (per_channel ? g.channels : 1); ++o) sw.push_back(0.01f + 0.002f * float(o % 5));
  const auto sums = g.sums<int64_t>([&](size_t i, size_t k) { return int64_t{x[i] - x_zero} * (w[k] - w_zero); });
  std::vector<T> want;
  for (size_t i = 0; i < sums.size(); ++i) {
    const size_t o = i % size_t(g.channels);
    const float scale = sw[per_channel ? o : 0];
    const double product = std::is_same_v<T, uint8_t> ? double(sx * scale) : double(sx) * double(scale);
    const FixedMultiplier f = quantize_multiplier(product / double(so));
    const int64_t sum = sums[i] + (g.bias ? int64_t{bias[o]} : 0);
    const int64_t q = out_zero + (sizeof(B) == 8 ? multiply_by_quantized_multiplier(sum, f)
                                                 : multiply_by_quantized_multiplier(static_cast<int32_t>(sum), f));
    const int64_t least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    const int64_t low = g.activation ? out_zero : least;
    const int64_t high = g.activation == 3 ? std::min<int64_t>(most, out_zero + std::lround(6.0f / so)) : most;
    want.push_back(static_cast<T>(std::clamp(q, low, high)));
  }
  ModelBuilder m;
  const int wt = m.tensor(weight_type, filter_shape(g)).values(w).quantized(sw, std::vector<int64_t>(sw.size(), w_zero), 0);
  const int xt = m.tensor(type, input_shape(g)).quantized(sx, x_zero);
  const int bt = g.bias ? int(m.tensor(bias_type, {int32_t(g.channels)}).values(bias)) : -1;
  const int y = add_op(m, g, wt, xt, bt, type);
  m.spec.subgraphs[0].tensors[size_t(y)].scales = {so}, m.spec.subgraphs[0].tensors[size_t(y)].zero_points = {out_zero};
  check_values(run_on_targets(m, {bytes_of(x)}), g.out(), want);
}

}  // namespace

TEST_CASE("float transposed convolutions", "[ops][transpose_conv]") {
  Random random(1);
  for (const Case& g : cases()) {
    INFO(g.h << "x" << g.w << "x" << g.c << " to " << g.channels << ", window " << g.kh << "x" << g.kw << ", strides " << g.sh << "x" << g.sw);
    const auto x = random.values<float>(g.inputs()), bias = random.values<float>(g.channels);
    for (const bool halves : {false, true}) {
      auto w = random.values<float>(g.filter());
      std::vector<half> stored;
      for (float& v : w) stored.push_back(float_to_half(v));
      if (halves)
        for (size_t i = 0; i < w.size(); ++i) w[i] = half_to_float(stored[i]);
      const auto want = finished(g, g.sums<double>([&](size_t i, size_t k) { return double(x[i]) * double(w[k]); }), bias);
      for (const bool custom : {false, true}) {
        if (custom && (g.activation || g.extra_h || g.extra_w)) continue;
        ModelBuilder m;
        int wt;
        if (halves) {
          const int h = m.tensor(TensorType::float16, filter_shape(g)).values(stored);
          wt = m.tensor(TensorType::float32, filter_shape(g));
          m.op(BuiltinOperator::dequantize, {h}, {wt});
        } else {
          wt = m.tensor(TensorType::float32, filter_shape(g)).values(w);
        }
        const int xt = m.tensor(TensorType::float32, input_shape(g));
        const int bt = g.bias ? int(m.tensor(TensorType::float32, {int32_t(g.channels)}).values(bias)) : -1;
        if (custom) {
          const int y = m.tensor(TensorType::float32, {}, "y");
          m.custom_op("Convolution2DTransposeBias", {xt, wt, bt}, {y})
              .custom_options(bytes_of<int32_t>({g.same ? 1 : 2, int32_t(g.sw), int32_t(g.sh)}));
          m.inputs({xt}).outputs({y});
        } else {
          add_op(m, g, wt, xt, bt, TensorType::float32);
        }
        check_values(run_on_targets(m, {bytes_of(x)}), g.out(), want, 1e-4);
      }
    }
  }
}

TEST_CASE("transposed convolutions of integers are exact", "[ops][transpose_conv]") {
  uint32_t seed = 2;
  for (const Case& g : cases()) {
    check_integers<int8_t, int8_t, int32_t>(g, TensorType::int8, TensorType::int8, TensorType::int32, -9, 0, 4, true, ++seed);
    check_integers<int8_t, int8_t, int32_t>(g, TensorType::int8, TensorType::int8, TensorType::int32, 3, 0, -20, false, ++seed);
    check_integers<uint8_t, uint8_t, int32_t>(g, TensorType::uint8, TensorType::uint8, TensorType::int32, 100, 131, 90, false, ++seed);
    check_integers<int16_t, int8_t, int64_t>(g, TensorType::int16, TensorType::int8, TensorType::int64, 0, 0, 0, true, ++seed);
    if (g.bias) check_integers<int16_t, int8_t, int32_t>(g, TensorType::int16, TensorType::int8, TensorType::int32, 0, 0, 0, true, ++seed);
  }
}

TEST_CASE("transposed convolutions of float with int8 weights", "[ops][transpose_conv]") {
  Random random(3);
  for (const Case& g : cases()) {
    const auto x = random.values<float>(g.inputs()), bias = random.values<float>(g.channels);
    const auto w = random.values<int8_t>(g.filter());
    std::vector<double> near(x.size());
    const size_t image = x.size() / size_t(g.n);
    for (size_t b = 0; b < size_t(g.n); ++b) {
      float range = 0;
      for (size_t i = 0; i < image; ++i) range = std::max(range, std::fabs(x[b * image + i]));
      const float inverse = 127.0f / range;
      for (size_t i = 0; i < image; ++i) near[b * image + i] = double(std::round(x[b * image + i] * inverse)) * double(range / 127.0f);
    }
    const auto want = finished(g, g.sums<double>([&](size_t i, size_t k) { return near[i] * w[k] * double(0.02f); }), bias);
    ModelBuilder m;
    const int wt = m.tensor(TensorType::int8, filter_shape(g)).values(w).quantized(0.02f, 0);
    const int xt = m.tensor(TensorType::float32, input_shape(g));
    const int bt = g.bias ? int(m.tensor(TensorType::float32, {int32_t(g.channels)}).values(bias)) : -1;
    add_op(m, g, wt, xt, bt, TensorType::float32);
    check_values(run_on_targets(m, {bytes_of(x)}), g.out(), want, 1e-4);
  }
}

TEST_CASE("transposed convolutions that do not fit are refused", "[ops][transpose_conv]") {
  const auto refused = [](Case g, std::vector<int32_t> filter, const char* words) {
    ModelBuilder m;
    int64_t elements = 1;
    for (int32_t e : filter) elements *= e;
    const int wt = m.tensor(TensorType::float32, filter).values(std::vector<float>(size_t(elements))), xt = m.tensor(TensorType::float32, input_shape(g));
    add_op(m, g, wt, xt, -1, TensorType::float32);
    check_refused(run_on_targets(m, {std::vector<uint8_t>(size_t(g.inputs()) * 4)}), ErrorCode::invalid_model, words);
  };
  const Case g{1, 3, 3, 4, 5, 2, 2, 2, 2, true, false};
  refused(g, {5, 2, 2, 3}, "does not fit input");
  refused(g, {6, 2, 2, 4}, "does not fit input");
  refused(g, {5, 2, 4}, "has rank 3");
  Case still = g;
  still.sh = 0;
  refused(still, {5, 2, 2, 4}, "strides 0 x 2 are not valid");
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {1, 2, 2, 1}), w = m.tensor(TensorType::float32, {1, 1, 1, 1}).values<float>({1}), y = m.tensor(TensorType::float32, {});
  m.custom_op("Convolution2DTransposeBias", {x, w}, {y}).custom_options(bytes_of<int32_t>({0, 1, 1}));
  m.inputs({x}).outputs({y});
  check_refused(run_on_targets(m, {std::vector<uint8_t>(16)}), ErrorCode::invalid_model, "padding 0 is neither SAME (1) nor VALID (2)");
}
