// CONV_3D and CONV_3D_TRANSPOSE against sums in double.
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

struct Conv {
  Shape in, filter;  // filter as in the file
  int8_t padding = 0, activation = 0;
  int32_t strides[3] = {1, 1, 1}, dilations[3] = {1, 1, 1};  // depth, height, width
  bool bias = true;
};

OptionsSpec options_of(const Conv& c) {
  ModelBuilder m;
  auto op = m.op(BuiltinOperator::conv_3d, {}, {});
  op.options(98)
      .field<int8_t>(0, c.padding)
      .field(1, c.strides[0])
      .field(2, c.strides[2])
      .field(3, c.strides[1])
      .field<int8_t>(4, c.activation);
  op.field(5, c.dilations[0]).field(6, c.dilations[2]).field(7, c.dilations[1]);
  return op.spec().options;
}
void place(const Conv& c, int axis, int64_t in, int64_t* out, int64_t* pad) {
  const int64_t reach = (c.filter[axis] - 1) * c.dilations[axis] + 1, stride = c.strides[axis];
  *out = c.padding == 0 ? (in + stride - 1) / stride : (in - reach) / stride + 1;
  *pad = c.padding == 0 ? std::max<int64_t>((*out - 1) * stride + reach - in, 0) / 2 : 0;
}
double activate(int8_t activation, double x) {
  return activation == 1 ? std::max(x, 0.0) : activation == 3 ? std::min(std::max(x, 0.0), 6.0) : x;
}

void check_conv(const Conv& c, bool half_weights) {
  Random random(3);
  const int64_t channels = c.filter[4];
  const auto x = random.values<float>(c.in.elements());
  std::vector<float> w = random.values<float>(c.filter.elements()), b = random.values<float>(channels);
  std::vector<half> stored;
  for (float& v : w) stored.push_back(float_to_half(v)), v = half_weights ? half_to_float(stored.back()) : v;
  Shape out{c.in[0], 0, 0, 0, channels};
  int64_t pad[3];
  for (int i = 0; i < 3; ++i) place(c, i, c.in[1 + i], &out[1 + i], &pad[i]);
  std::vector<float> want;
  for (int64_t o = 0; o < out.elements(); ++o) {
    const auto at = unravel(out, o);
    double sum = c.bias ? static_cast<double>(b[static_cast<size_t>(at[4])]) : 0;
    for (int64_t f = 0; f < c.filter.elements() / channels; ++f) {
      const auto k = unravel({c.filter[0], c.filter[1], c.filter[2], c.filter[3]}, f);
      std::vector<int64_t> from{at[0], 0, 0, 0, k[3]};
      bool inside = true;
      for (size_t i = 0; i < 3; ++i) {
        from[i + 1] = at[i + 1] * c.strides[i] - pad[i] + k[i] * c.dilations[i];
        inside = inside && from[i + 1] >= 0 && from[i + 1] < c.in[static_cast<int>(i) + 1];
      }
      if (inside)
        sum += static_cast<double>(x[static_cast<size_t>(ravel(c.in, from))]) *
               static_cast<double>(w[static_cast<size_t>(f * channels + at[4])]);
    }
    want.push_back(static_cast<float>(activate(c.activation, sum)));
  }
  ModelBuilder m;
  const int input = m.tensor(TensorType::float32, dims(c.in), "x"), y = m.tensor(TensorType::float32, {}, "y");
  int filter = m.tensor(TensorType::float32, dims(c.filter), "w");
  if (half_weights) {
    const int narrow = m.tensor(TensorType::float16, dims(c.filter), "narrow").values(stored);
    m.op(BuiltinOperator::dequantize, {narrow}, {filter});
  } else {
    filter = m.tensor(TensorType::float32, dims(c.filter), "w").values(w);
  }
  const int bias = c.bias ? int(m.tensor(TensorType::float32, {static_cast<int32_t>(channels)}, "b").values(b)) : -1;
  m.op(BuiltinOperator::conv_3d, {input, filter, bias}, {y}).spec().options = options_of(c);
  m.inputs({input}).outputs({y});
  check_values(run_on_targets(m, {bytes_of(x)}), out, want, 1e-5);
}

std::vector<RunResult> transpose(const Conv& c, const std::vector<int32_t>& shape, const std::vector<float>& x, const std::vector<float>& w,
                                 const std::vector<float>& b) {
  ModelBuilder m;
  const int s = m.tensor(TensorType::int32, {5}, "shape").values(shape), input = m.tensor(TensorType::float32, dims(c.in), "x");
  const int filter = m.tensor(TensorType::float32, dims(c.filter), "w"), y = m.tensor(TensorType::float32, {}, "y");
  const int bias = c.bias ? int(m.tensor(TensorType::float32, {static_cast<int32_t>(b.size())}, "b").values(b)) : -1;
  m.op(BuiltinOperator::conv_3d_transpose, {s, filter, input, bias}, {y}).spec().options = options_of(c);
  m.inputs({input, filter}).outputs({y});
  return run_on_targets(m, {bytes_of(x), bytes_of(w)});
}
// The filter is an input of the graph here. Scatters every input pixel.
void check_transpose(const Conv& c, const Shape& out) {
  Random random(5);
  const int64_t channels = c.filter[3];
  const auto x = random.values<float>(c.in.elements()), w = random.values<float>(c.filter.elements()), b = random.values<float>(channels);
  int64_t pad[3], in[3];
  for (int i = 0; i < 3; ++i) place(c, i, out[1 + i], &in[i], &pad[i]);
  std::vector<double> sums(static_cast<size_t>(out.elements()));
  for (int64_t i = 0; i < c.in.elements(); ++i) {
    const auto from = unravel(c.in, i);
    for (int64_t f = 0; f < c.filter.elements(); ++f) {
      const auto k = unravel(c.filter, f);
      if (k[4] != from[4]) continue;
      std::vector<int64_t> to{from[0], 0, 0, 0, k[3]};
      bool inside = true;
      for (size_t a = 0; a < 3; ++a) {
        to[a + 1] = from[a + 1] * c.strides[a] - pad[a] + k[a] * c.dilations[a];
        inside = inside && to[a + 1] >= 0 && to[a + 1] < out[static_cast<int>(a) + 1];
      }
      if (inside)
        sums[static_cast<size_t>(ravel(out, to))] +=
            static_cast<double>(x[static_cast<size_t>(i)]) * static_cast<double>(w[static_cast<size_t>(f)]);
    }
  }
  std::vector<float> want;
  for (size_t i = 0; i < sums.size(); ++i)
    want.push_back(
        static_cast<float>(activate(c.activation, sums[i] + (c.bias ? static_cast<double>(b[i % static_cast<size_t>(channels)]) : 0))));
  check_values(transpose(c, dims(out), x, w, b), out, want, 1e-5);
}

}  // namespace

TEST_CASE("windows in three dimensions", "[ops][conv_3d]") {
  for (const bool half_weights : {false, true}) {
    for (const int64_t channels : {1, 3, 8, 17, 35}) {
      check_conv({.in = {1, 3, 4, 5, 2}, .filter = {2, 2, 2, 2, channels}}, half_weights);
      check_conv({.in = {2, 3, 3, 9, 3}, .filter = {1, 2, 3, 3, channels}, .padding = 1, .activation = 1}, half_weights);
    }
    check_conv({.in = {2, 5, 6, 7, 3}, .filter = {2, 3, 2, 3, 5}, .activation = 3, .strides = {2, 1, 3}, .dilations = {1, 2, 1}},
               half_weights);
    check_conv(
        {.in = {1, 5, 6, 11, 1}, .filter = {2, 2, 3, 1, 4}, .padding = 1, .strides = {1, 2, 1}, .dilations = {2, 1, 3}, .bias = false},
        half_weights);
  }
}

TEST_CASE("transposed windows in three dimensions", "[ops][conv_3d_transpose]") {
  for (const int64_t channels : {1, 2, 9, 33}) {
    check_transpose({.in = {1, 2, 3, 3, channels}, .filter = {2, 2, 2, 3, channels}, .padding = 1, .strides = {2, 2, 2}}, {1, 4, 6, 6, 3});
    check_transpose({.in = {2, 2, 2, 3, channels}, .filter = {3, 3, 2, 9, channels}, .activation = 1, .strides = {2, 1, 3}, .bias = false},
                    {2, 4, 2, 8, 9});
  }
  check_transpose({.in = {1, 3, 3, 2, 2}, .filter = {2, 2, 1, 4, 2}, .padding = 1, .dilations = {2, 1, 1}}, {1, 5, 4, 2, 4});
}

TEST_CASE("filters, shapes and options that do not fit", "[ops][conv_3d]") {
  const auto conv = [](const Shape& in, const Shape& filter, int32_t stride, int32_t biases) {
    Conv c{.in = in, .filter = filter};
    c.strides[1] = stride;
    ModelBuilder m;
    const int x = m.tensor(TensorType::float32, dims(in), "x"), y = m.tensor(TensorType::float32, {}, "y");
    const int w = m.tensor(TensorType::float32, dims(filter), "w").values(std::vector<float>(static_cast<size_t>(filter.elements())));
    const int b = m.tensor(TensorType::float32, {biases}, "b").values(std::vector<float>(static_cast<size_t>(biases)));
    m.op(BuiltinOperator::conv_3d, {x, w, b}, {y}).spec().options = options_of(c);
    m.inputs({x}).outputs({y});
    return run_on_targets(m, {bytes_of(std::vector<float>(static_cast<size_t>(in.elements())))});
  };
  check_refused(conv({1, 2, 2, 2, 3}, {1, 1, 1, 2, 4}, 1, 4), ErrorCode::invalid_model,
                "filter tensor 'w' float32 [1, 1, 1, 2, 4] does not fit input");
  check_refused(conv({1, 2, 2, 2, 2}, {1, 1, 1, 2, 4}, 0, 4), ErrorCode::invalid_model, "stride 0 along the height is not valid");
  check_refused(conv({1, 2, 2, 2, 2}, {1, 1, 1, 2, 4}, 1, 3), ErrorCode::invalid_model, "must have 4 elements");
  check_refused(conv({1, 2, 2, 2}, {1, 1, 1, 2, 4}, 1, 4), ErrorCode::invalid_model, "has rank 4, not 5 to 5");
  const Conv c{.in = {1, 1, 1, 1, 1}, .filter = {1, 1, 1, 1, 1}, .bias = false};
  check_refused(transpose(c, {1, 3, 1, 1, 1}, {1}, {1}, {}), ErrorCode::invalid_model,
                "depth 3 of its output does not fit the 1 of its input");
  check_refused(transpose(c, {1, 1, 1, 1, 2}, {1}, {1}, {}), ErrorCode::invalid_model, "do not fit input tensor 'x'");
}
