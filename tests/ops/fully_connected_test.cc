#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

struct Layer {
  Shape in, weights;
  int8_t activation = 0, format = 0;
  bool keep_rank = false, half_weights = false, weights_computed = false;
  int64_t bias = -1;  // elements; -1: as many as channels, 0: none
};

ModelBuilder layer_model(const Layer& l, const std::vector<float>& weights, const std::vector<float>& bias) {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, dims(l.in), "x");
  int w = -1;
  if (l.half_weights) {
    std::vector<half> stored;
    for (float f : weights) stored.push_back(float_to_half(f));
    const int h = m.tensor(TensorType::float16, dims(l.weights), "half_w").values(stored);
    w = m.tensor(TensorType::float32, dims(l.weights), "w");
    m.op(BuiltinOperator::dequantize, {h}, {w});
  } else if (l.weights_computed) {
    w = m.tensor(TensorType::float32, dims(l.weights), "w");
  } else {
    w = m.tensor(TensorType::float32, dims(l.weights), "w").values(weights);
  }
  const int b = bias.empty() ? -1 : m.tensor(TensorType::float32, {static_cast<int32_t>(bias.size())}, "b").values(bias);
  const int y = m.tensor(TensorType::float32, {}, "y");
  m.op(BuiltinOperator::fully_connected, {x, w, b}, {y}).options(8).field<int8_t>(0, l.activation).field<int8_t>(1, l.format)
      .field<uint8_t>(2, l.keep_rank);
  m.inputs(l.weights_computed ? std::vector<int32_t>{x, w} : std::vector<int32_t>{x}).outputs({y});
  return m;
}

void check_layer(const Layer& l, const Shape& out) {
  INFO("input " << l.in.to_string() << ", weights " << l.weights.to_string());
  Random random(3);
  const auto x = random.values<float>(l.in.elements());
  std::vector<float> w = random.values<float>(l.weights.elements());
  for (float& f : w) f = half_to_float(float_to_half(f));
  const auto b = random.values<float>(l.bias < 0 ? l.weights[0] : l.bias);
  const int64_t channels = l.weights[0], terms = l.weights[1];
  std::vector<float> want;
  for (int64_t i = 0; i < out.elements(); ++i) {
    double sum = b.empty() ? 0 : b[static_cast<size_t>(i % channels)];
    for (int64_t k = 0; k < terms; ++k)
      sum += static_cast<double>(x[static_cast<size_t>(i / channels * terms + k)]) * w[static_cast<size_t>(i % channels * terms + k)];
    want.push_back(static_cast<float>(l.activation == 1 ? std::max(sum, 0.0) : sum));
  }
  std::vector<std::vector<uint8_t>> inputs = {bytes_of(x)};
  if (l.weights_computed) inputs.push_back(bytes_of(w));
  check_values(run_on_targets(layer_model(l, w, b), inputs), out, want, 1e-4);
}

void refuse(const Layer& l, ErrorCode code, const char* words) {
  const std::vector<float> x(static_cast<size_t>(l.in.elements())), w(static_cast<size_t>(l.weights.elements()));
  const std::vector<float> b(static_cast<size_t>(l.bias < 0 ? l.weights[0] : l.bias));
  check_refused(run_on_targets(layer_model(l, w, b), {bytes_of(x)}), code, words);
}

}  // namespace

TEST_CASE("fully connected layers on float, with float, half and computed weights", "[ops][fully_connected]") {
  for (bool half_weights : {false, true}) {
    for (int64_t rows : {1, 2, 3, 4, 7, 8, 17, 100})
      check_layer({.in = {rows, 37}, .weights = {70, 37}, .activation = 1, .half_weights = half_weights}, {rows, 70});
    for (int64_t rows : {16, 17, 33, 49, 63, 128})
      check_layer({.in = {rows, 65}, .weights = {131, 65}, .activation = 1, .half_weights = half_weights}, {rows, 131});
    check_layer({.in = {30, 600}, .weights = {29, 600}, .half_weights = half_weights}, {30, 29});
    check_layer({.in = {2, 3, 4}, .weights = {5, 12}, .half_weights = half_weights, .bias = 0}, {2, 5});  // flattened
    check_layer({.in = {12}, .weights = {5, 12}, .half_weights = half_weights}, {1, 5});
    check_layer({.in = {2, 3, 4}, .weights = {5, 4}, .keep_rank = true, .half_weights = half_weights}, {2, 3, 5});
    check_layer({.in = {0, 4}, .weights = {5, 4}, .half_weights = half_weights}, {0, 5});
  }
  check_layer({.in = {3, 8}, .weights = {5, 8}, .weights_computed = true}, {3, 5});
  check_layer({.in = {3, 0}, .weights = {5, 0}, .weights_computed = true}, {3, 5});  // sums of nothing
}

TEST_CASE("fully connected layers that contradict themselves are refused", "[ops][fully_connected]") {
  const auto wrong = ErrorCode::invalid_model;
  refuse({.in = {2, 7}, .weights = {5, 4}}, wrong, "do not fit input");
  refuse({.in = {2, 8}, .weights = {5, 4}, .keep_rank = true}, wrong, "do not fit the last axis");
  refuse({.in = {2, 4}, .weights = {5, 2, 2}}, wrong, "has rank 3");
  refuse({.in = {2, 4}, .weights = {5, 4}, .bias = 4}, wrong, "must have 5 elements");
  refuse({.in = {2, 4}, .weights = {5, 4}, .format = 1}, ErrorCode::unsupported, "shuffled format 1");
  refuse({.in = {2, 4}, .weights = {5, 4}, .activation = 5}, ErrorCode::unsupported, "fused activation 5");
}
