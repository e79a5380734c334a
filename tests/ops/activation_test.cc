// RELU and its kin, PRELU, LEAKY_RELU, SOFTMAX, LOG_SOFTMAX, QUANTIZE, DEQUANTIZE.
#include <catch2/generators/catch_generators.hpp>

#include "oneweight/base/fixed_point.h"
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

// x -> code -> y, with scales where they are positive.
template <class In, class Out>
ModelBuilder one_input(BuiltinOperator code, const Shape& shape, float in_scale = 0, int64_t in_zero = 0, float out_scale = 0, int64_t out_zero = 0, uint8_t tag = 0, float option = 0) {
  ModelBuilder m;
  auto x = m.tensor(tensor_type_of<In>, dims(shape), "x");
  auto y = m.tensor(tensor_type_of<Out>, {}, "y");
  if (in_scale > 0) x.quantized(in_scale, in_zero);
  if (out_scale > 0) y.quantized(out_scale, out_zero);
  const int ix = x, iy = y;
  auto op = m.op(code, {ix}, {iy});
  if (tag) op.options(tag).field<float>(0, option);
  m.inputs({ix}).outputs({iy});
  return m;
}

std::vector<int8_t> all_int8() {
  std::vector<int8_t> all;
  for (int i = -128; i < 128; ++i) all.push_back(static_cast<int8_t>(i));
  return all;
}
int8_t saturate(int32_t q) { return static_cast<int8_t>(std::min(std::max(q, -128), 127)); }

}  // namespace

TEST_CASE("clamps of floats let NaN through", "[ops][relu]") {
  const std::vector<float> x = {-kInf, -2, -0.5f, 0, 0.5f, 2, 7, kInf, kNan};
  const struct { BuiltinOperator code; float low, high; } rows[] = {{BuiltinOperator::relu, 0, kInf}, {BuiltinOperator::relu6, 0, 6}, {BuiltinOperator::relu_n1_to_1, -1, 1}, {BuiltinOperator::relu_0_to_1, 0, 1}};
  for (const auto& r : rows) {
    std::vector<float> want;
    for (const float v : x) want.push_back(v != v ? v : std::min(std::max(v, r.low), r.high));
    check_values(run_on_targets(one_input<float, float>(r.code, {9}), {bytes_of(x)}), {9}, want);
  }
}

size_t steps_of(const ModelBuilder& m, bool fuse = true) {
  auto owner = std::make_shared<FileBytes>(m.build());
  PlanOptions options;
  options.fuse = fuse;
  auto plan = make_plan<opset::All>(*ModelView::from_bytes(*owner, owner), options);
  REQUIRE(plan.ok());
  return (*plan)->steps().size();
}

TEST_CASE("an activation behind a sum is taken over by it, with the same answer", "[ops][relu][fuse]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {4}, "x"), s = m.tensor(TensorType::float32, {4}, "s"), y = m.tensor(TensorType::float32, {4}, "y");
  m.op(BuiltinOperator::add, {x, x}, {s});
  SECTION("relu6") {
    m.op(BuiltinOperator::relu6, {s}, {y});
    m.inputs({x}).outputs({y});
    check_values(run_on_targets(m, {bytes_of(std::vector<float>{-1, 2, 5, kNan})}), {4}, std::vector<float>{0, 4, 6, kNan});
  }
  SECTION("hard swish") {
    m.op(BuiltinOperator::hard_swish, {s}, {y});
    m.inputs({x}).outputs({y});
    check_values(run_on_targets(m, {bytes_of(std::vector<float>{-2, -0.5f, 0.5f, 5})}), {4}, std::vector<float>{0, -1.0f / 3, 2.0f / 3, 10}, 1e-6);
  }
  CHECK(steps_of(m) == 1);
}

TEST_CASE("a product with the own logistic function is one activation", "[ops][add][fuse]") {
  const auto swish = [](double v) { return static_cast<float>(v / (1 + std::exp(-v))); };
  ModelBuilder m;
  const auto tensor = [&](const char* name, const Shape& shape) -> int { return m.tensor(TensorType::float32, dims(shape), name); };
  const Shape shape{1, 9, 7, 37};
  const auto x = Random(3).values<float>(shape.elements());
  const int in = tensor("x", shape), g = tensor("g", shape), y = tensor("y", shape);
  const bool gate_first = GENERATE(false, true);
  const auto mul = [&](int a, int of, int to) { gate_first ? m.op(BuiltinOperator::mul, {a, of}, {to}) : m.op(BuiltinOperator::mul, {of, a}, {to}); };
  SECTION("of an input") {
    m.op(BuiltinOperator::logistic, {in}, {g});
    mul(g, in, y);
    m.inputs({in}).outputs({y});
    std::vector<float> want;
    for (const float v : x) want.push_back(swish(static_cast<double>(v)));
    check_values(run_on_targets(m, {bytes_of(x)}), shape, want, 1e-6);
    CHECK(steps_of(m) == 1);
    CHECK(steps_of(m, false) == 2);
  }
  SECTION("of a sum, whose activation it becomes") {
    const int s = tensor("s", shape);
    m.op(BuiltinOperator::add, {in, in}, {s});
    m.op(BuiltinOperator::logistic, {s}, {g});
    mul(g, s, y);
    m.inputs({in}).outputs({y});
    std::vector<float> want;
    for (const float v : x) want.push_back(swish(2 * static_cast<double>(v)));
    check_values(run_on_targets(m, {bytes_of(x)}), shape, want, 1e-6);
    CHECK(steps_of(m) == 1);
  }
  SECTION("of convolutions") {
    // Depthwise with a window of one and unit weights, then pointwise by twice the identity.
    std::vector<float> unit(37, 1.0f), twice(37 * 37);
    for (size_t i = 0; i < 37; ++i) twice[i * 37 + i] = 2;
    const int w = m.tensor(TensorType::float32, {1, 1, 1, 37}, "w").values(unit), v = m.tensor(TensorType::float32, {37, 1, 1, 37}, "v").values(twice);
    const int a = tensor("a", shape), b = tensor("b", shape), c = tensor("c", shape), e = tensor("e", shape);
    m.op(BuiltinOperator::depthwise_conv_2d, {in, w}, {a}).options(2).field<int32_t>(1, 1).field<int32_t>(2, 1).field<int32_t>(3, 1);
    m.op(BuiltinOperator::logistic, {a}, {b});
    mul(b, a, c);
    m.op(BuiltinOperator::conv_2d, {c, v}, {e}).options(1).field<int32_t>(1, 1).field<int32_t>(2, 1);
    m.op(BuiltinOperator::logistic, {e}, {g});
    mul(g, e, y);
    m.inputs({in}).outputs({y});
    std::vector<float> want;
    for (const float f : x) want.push_back(swish(2 * static_cast<double>(swish(static_cast<double>(f)))));
    check_values(run_on_targets(m, {bytes_of(x)}), shape, want, 2e-6);
    CHECK(steps_of(m) == 2);
  }
}

TEST_CASE("a product of bytes with a function of theirs is a table, with the same bits", "[ops][add][int8][fuse]") {
  const bool is_signed = GENERATE(true, false);
  const int8_t activation = GENERATE(int8_t{0}, int8_t{1}, int8_t{3});
  const BuiltinOperator code = GENERATE(BuiltinOperator::logistic, BuiltinOperator::tanh);
  const TensorType type = is_signed ? TensorType::int8 : TensorType::uint8;
  const int low = is_signed ? -128 : 0;
  const auto model = [&](bool shows_gate, bool gate_first) {
    ModelBuilder m;
    const int x = m.tensor(type, {300}, "x").quantized(0.05f, low + 100), g = m.tensor(type, {300}, "g").quantized(1.0f / 128, low + 20);
    const int y = m.tensor(type, {300}, "y").quantized(0.03f, low + 90);
    m.op(code, {x}, {g});
    m.op(BuiltinOperator::mul, {gate_first ? g : x, gate_first ? x : g}, {y}).options(21).field<int8_t>(0, activation);
    m.inputs({x});
    if (shows_gate) m.outputs({y, g});  // somebody else reads it: two steps
    else m.outputs({y});
    return m;
  };
  std::vector<uint8_t> x;
  for (int i = 0; i < 300; ++i) x.push_back(static_cast<uint8_t>(i));
  CHECK(steps_of(model(true, true)) == 2);
  for (const bool gate_first : {true, false}) {
    CHECK(steps_of(model(false, gate_first)) == 1);
    const auto together = run_on_targets(model(false, gate_first), {x}), apart = run_on_targets(model(true, gate_first), {x});
    REQUIRE(together.size() == apart.size());
    for (size_t i = 0; i < together.size(); ++i) {
      INFO(together[i].target << together[i].status.message() << apart[i].status.message());
      REQUIRE(together[i].status.ok());
      REQUIRE(apart[i].status.ok());
      CHECK(together[i].outputs[0] == apart[i].outputs[0]);
    }
  }
}

TEST_CASE("products of floats with weights of bytes take an activation", "[ops][add][relu][fuse]") {
  const Shape shape{1, 9, 7, 37};
  const auto x = Random(3).values<float>(shape.elements());
  std::vector<int8_t> unit(37, 127), diagonal(37 * 37);
  for (size_t i = 0; i < 37; ++i) diagonal[i * 37 + i] = 127;
  const int of = GENERATE(0, 1, 2);          // convolution, depthwise, fully connected
  const int behind = GENERATE(0, 1, 2);      // relu6, hard swish, swish
  const auto model = [&](bool apart) {
    ModelBuilder m;
    const auto tensor = [&](const char* name) -> int { return m.tensor(TensorType::float32, dims(shape), name); };
    const auto weights = [&](const Shape& of_shape, const std::vector<int8_t>& v) -> int {
      return m.tensor(TensorType::int8, dims(of_shape), "w").quantized(0.05f, 0).values(v);
    };
    const int in = tensor("x"), a = tensor("a"), g = tensor("g"), y = tensor("y");
    if (of == 0) m.op(BuiltinOperator::conv_2d, {in, weights({37, 1, 1, 37}, diagonal)}, {a}).options(1).field<int32_t>(1, 1).field<int32_t>(2, 1);
    if (of == 1)
      m.op(BuiltinOperator::depthwise_conv_2d, {in, weights({1, 1, 1, 37}, unit)}, {a}).options(2).field<int32_t>(1, 1).field<int32_t>(2, 1).field<int32_t>(3, 1);
    if (of == 2) m.op(BuiltinOperator::fully_connected, {in, weights({37, 37}, diagonal)}, {a}).options(8).field<bool>(2, true);
    if (behind == 0) m.op(BuiltinOperator::relu6, {a}, {y});
    if (behind == 1) m.op(BuiltinOperator::hard_swish, {a}, {y});
    if (behind == 2) m.op(BuiltinOperator::logistic, {a}, {g}), m.op(BuiltinOperator::mul, {a, g}, {y});
    m.inputs({in});
    if (apart) m.outputs({y, a});  // somebody else reads the sums
    else m.outputs({y});
    return m;
  };
  INFO("operator " << of << ", activation " << behind);
  CHECK(steps_of(model(false)) == 1);
  CHECK(steps_of(model(true)) == 2);
  const auto together = run_on_targets(model(false), {bytes_of(x)}), apart = run_on_targets(model(true), {bytes_of(x)});
  REQUIRE(together.size() == apart.size());
  for (size_t i = 0; i < together.size(); ++i) {
    INFO(together[i].target << together[i].status.message() << apart[i].status.message());
    REQUIRE(apart[i].status.ok());
    check_values({together[i]}, shape, apart[i].values<float>(), 1e-6);
  }
}

TEST_CASE("products with other logistic functions stay", "[ops][add][fuse]") {
  const auto steps = [](auto build) {
    ModelBuilder m;
    const auto tensor = [&](const char* name) -> int { return m.tensor(TensorType::float32, {4}, name); };
    const int x = tensor("x"), z = tensor("z"), s = tensor("s"), g = tensor("g"), y = tensor("y");
    m.op(BuiltinOperator::add, {x, z}, {s});
    m.op(BuiltinOperator::logistic, {s}, {g});
    build(m, x, z, s, g, y);
    m.inputs({x, z});
    return steps_of(m);
  };
  // Of another tensor, read twice, an output itself, with an activation of its own; the last one's sum is read by others.
  CHECK(steps([](ModelBuilder& m, int x, int, int, int g, int y) { m.op(BuiltinOperator::mul, {x, g}, {y}); m.outputs({y}); }) == 3);
  CHECK(steps([](ModelBuilder& m, int, int, int, int g, int y) { m.op(BuiltinOperator::mul, {g, g}, {y}); m.outputs({y}); }) == 3);
  CHECK(steps([](ModelBuilder& m, int, int, int s, int g, int y) { m.op(BuiltinOperator::mul, {s, g}, {y}); m.outputs({y, g}); }) == 3);
  CHECK(steps([](ModelBuilder& m, int, int, int s, int g, int y) { m.op(BuiltinOperator::mul, {s, g}, {y}).options(21).field<int8_t>(0, 1); m.outputs({y}); }) == 3);
  CHECK(steps([](ModelBuilder& m, int, int, int s, int g, int y) { m.op(BuiltinOperator::mul, {s, g}, {y}); m.outputs({y, s}); }) == 2);
}

TEST_CASE("quantised clamps rescale with the bits of the reference kernel", "[ops][relu][int8]") {
  const auto x = all_int8();
  std::vector<int8_t> want, leaky;
  const FixedMultiplier factor = quantize_multiplier(static_cast<double>(0.05f / 0.03f));
  const FixedMultiplier slope = quantize_multiplier(static_cast<double>(0.05f * 0.3f / 0.03f));
  const int32_t six = static_cast<int32_t>(std::round(6 / 0.03f)) - 100;
  for (const int8_t v : x) {
    const int32_t q = v - 4;
    want.push_back(static_cast<int8_t>(std::min(std::max(multiply_by_quantized_multiplier(q, factor) - 100, -100), six)));
    leaky.push_back(saturate(multiply_by_quantized_multiplier(q, q >= 0 ? factor : slope) - 100));
  }
  check_values(run_on_targets(one_input<int8_t, int8_t>(BuiltinOperator::relu6, {256}, 0.05f, 4, 0.03f, -100), {bytes_of(x)}), {256}, want);
  check_values(run_on_targets(one_input<int8_t, int8_t>(BuiltinOperator::leaky_relu, {256}, 0.05f, 4, 0.03f, -100, 75, 0.3f), {bytes_of(x)}), {256}, leaky);
}

TEST_CASE("LEAKY_RELU takes slopes above one", "[ops][relu]") {
  const std::vector<float> x = {-2, 3, kNan};
  check_values(run_on_targets(one_input<float, float>(BuiltinOperator::leaky_relu, {3}, 0, 0, 0, 0, 75, 2.0f), {bytes_of(x)}), {3}, std::vector<float>{-4, 3, kNan});
}

TEST_CASE("PRELU has a slope for each channel", "[ops][prelu]") {
  for (const int channels : {1, 2, 3, 4, 8, 16, 21, 33}) {
    ModelBuilder m;
    const int x = m.tensor(TensorType::float32, {1, 5, 9, channels}, "x"), a = m.tensor(TensorType::float32, {1, 1, channels}, "alpha"), y = m.tensor(TensorType::float32, {}, "y");
    m.op(BuiltinOperator::prelu, {x, a}, {y});
    m.inputs({x, a}).outputs({y});
    const auto values = Random(2).values<float>(45 * channels), slopes = Random(3).values<float>(channels);
    std::vector<float> want;
    for (size_t i = 0; i < values.size(); ++i) want.push_back(values[i] < 0 ? values[i] * slopes[i % static_cast<size_t>(channels)] : values[i]);
    check_values(run_on_targets(m, {bytes_of(values), bytes_of(slopes)}), {1, 5, 9, channels}, want);
  }
}

TEST_CASE("SOFTMAX sums to one without overflow; a NaN fills its own row only", "[ops][softmax]") {
  for (const int64_t depth : {1, 2, 7, 16, 17, 33, 100}) {
    const Shape shape = {3, depth};
    auto x = Random(8).values<float>(shape.elements());
    x[0] = 1e30f;
    if (depth > 1) x[static_cast<size_t>(2 * depth) + 1] = kNan;
    std::vector<float> soft, log_soft;
    for (int64_t r = 0; r < 3; ++r) {
      double most = -1e300, sum = 0;
      bool nan = false;
      for (int64_t i = 0; i < depth; ++i) most = std::max(most, static_cast<double>(x[r * depth + i])), nan |= x[r * depth + i] != x[r * depth + i];
      for (int64_t i = 0; i < depth; ++i) sum += std::exp(x[r * depth + i] - most);
      for (int64_t i = 0; i < depth; ++i) {
        const double v = x[r * depth + i] - most;
        soft.push_back(nan ? kNan : static_cast<float>(std::exp(v) / sum));
        log_soft.push_back(nan ? kNan : static_cast<float>(v - std::log(sum)));
      }
    }
    check_values(run_on_targets(one_input<float, float>(BuiltinOperator::softmax, shape, 0, 0, 0, 0, 9, 1.0f), {bytes_of(x)}), shape, soft, 1e-6);
    check_values(run_on_targets(one_input<float, float>(BuiltinOperator::log_softmax, shape), {bytes_of(x)}), shape, log_soft, 1e-6);
  }
}

template <class In, class Out>
void check_quantized_softmax(int64_t depth, float beta, float out_scale, int64_t out_zero) {
  INFO("depth " << depth << ", beta " << beta);
  const Shape shape{5, depth};
  const auto x = Random(4).values<In>(shape.elements());
  const double scale = 0.07 * beta, most = std::numeric_limits<Out>::max(), least = std::numeric_limits<Out>::min();
  std::vector<Out> want;
  for (int64_t r = 0; r < 5; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < depth; ++i) sum += std::exp(scale * x[static_cast<size_t>(r * depth + i)]);
    for (int64_t i = 0; i < depth; ++i) {
      const double q = std::round(std::exp(scale * x[static_cast<size_t>(r * depth + i)]) / sum / static_cast<double>(out_scale)) + static_cast<double>(out_zero);
      want.push_back(static_cast<Out>(std::min(std::max(q, least), most)));
    }
  }
  check_values(run_on_targets(one_input<In, Out>(BuiltinOperator::softmax, shape, 0.07f, 3, out_scale, out_zero, 9, beta), {bytes_of(x)}), shape, want, 1);
}
TEST_CASE("quantised SOFTMAX is within a step of double", "[ops][softmax][int8]") {
  for (const int64_t depth : {1, 2, 3, 15, 16, 17, 37, 64, 131, 300})
    for (const float beta : {1.0f, 0.3f}) {
      check_quantized_softmax<int8_t, int8_t>(depth, beta, 1.0f / 256, -128);
      check_quantized_softmax<uint8_t, uint8_t>(depth, beta, 1.0f / 256, 0);
      check_quantized_softmax<int8_t, int16_t>(depth, beta, 1.0f / 65536, -32768);
    }
}

TEST_CASE("QUANTIZE rounds halves away from zero and saturates", "[ops][quantize]") {
  const std::vector<float> x = {0, 0.25f, -0.25f, 0.2499f, 1e9f, -1e9f, kInf, -kInf, kNan, 3.75f, -3.75f, 63.3f, 0.49999997f, 8388609, 1, 2, 3};
  check_values(run_on_targets(one_input<float, int8_t>(BuiltinOperator::quantize, {17}, 0, 0, 0.5f, 3), {bytes_of(x)}), {17},
               std::vector<int8_t>{3, 4, 2, 3, 127, -128, 127, -128, 3, 11, -5, 127, 4, 127, 5, 7, 9});
  check_values(run_on_targets(one_input<float, int16_t>(BuiltinOperator::quantize, {3}, 0, 0, 0.5f, 0), {bytes_of(std::vector<float>{1e9f, -1e9f, 100.25f})}), {3},
               std::vector<int16_t>{32767, -32768, 201});
}

TEST_CASE("QUANTIZE between types rescales; DEQUANTIZE is exact", "[ops][quantize]") {
  const auto x = all_int8();
  std::vector<uint8_t> shifted;
  std::vector<float> real;
  for (const int8_t v : x) shifted.push_back(static_cast<uint8_t>(v + 128)), real.push_back(0.1f * static_cast<float>(v - 3));
  check_values(run_on_targets(one_input<int8_t, uint8_t>(BuiltinOperator::quantize, {256}, 0.1f, -1, 0.1f, 127), {bytes_of(x)}), {256}, shifted);
  check_values(run_on_targets(one_input<int8_t, float>(BuiltinOperator::dequantize, {256}, 0.1f, 3), {bytes_of(x)}), {256}, real);
  check_refused(run_on_targets(one_input<float, int8_t>(BuiltinOperator::quantize, {256}), {bytes_of(std::vector<float>(256))}), ErrorCode::invalid_model, "0 scales");
}

TEST_CASE("DEQUANTIZE has a scale for each index of an axis, and widens half", "[ops][quantize]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::int8, {2, 3}, "x").quantized({0.5f, 1, 2}, {0, 1, 2}, 1), y = m.tensor(TensorType::float32, {2, 3}, "y");
  m.op(BuiltinOperator::dequantize, {x}, {y});
  m.inputs({x}).outputs({y});
  check_values(run_on_targets(m, {bytes_of(std::vector<int8_t>{2, 2, 2, -4, -4, -4})}), {2, 3}, std::vector<float>{1, 1, 0, -2, -5, -12});
  std::vector<uint16_t> halves;
  std::vector<float> floats;
  for (int i = 0; i < 65536; i += 7) halves.push_back(static_cast<uint16_t>(i)), floats.push_back(half_to_float({static_cast<uint16_t>(i)}));
  const Shape shape = {static_cast<int64_t>(halves.size())};
  ModelBuilder h;
  const int hx = h.tensor(TensorType::float16, dims(shape), "x"), hy = h.tensor(TensorType::float32, dims(shape), "y");
  h.op(BuiltinOperator::dequantize, {hx}, {hy});
  h.inputs({hx}).outputs({hy});
  check_values(run_on_targets(h, {bytes_of(halves)}), shape, floats);
}
