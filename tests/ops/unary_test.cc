#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

template <class T>
ModelBuilder unary_model(BuiltinOperator code, const Shape& shape, float in_scale = 0, int64_t in_zero = 0, float out_scale = 0, int64_t out_zero = 0) {
  ModelBuilder m;
  auto x = m.tensor(tensor_type_of<T>, dims(shape), "x");
  auto y = m.tensor(tensor_type_of<T>, {}, "y");
  if (in_scale > 0) x.quantized(in_scale, in_zero);
  if (out_scale > 0) y.quantized(out_scale, out_zero);
  const int ix = x, iy = y;
  m.op(code, {ix}, {iy});
  m.inputs({ix}).outputs({iy});
  return m;
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double hard_swish(double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }
double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double rsqrt(double x) { return 1 / std::sqrt(x); }
double square(double x) { return x * x; }
double elu(double x) { return x < 0 ? std::expm1(x) : x; }

const struct { BuiltinOperator code; double (*f)(double); double tolerance; } kFunctions[] = {
    {BuiltinOperator::logistic, logistic, 4e-7}, {BuiltinOperator::tanh, [](double x) { return std::tanh(x); }, 4e-7},
    {BuiltinOperator::hard_swish, hard_swish, 3e-7}, {BuiltinOperator::exp, [](double x) { return std::exp(x); }, 3e-7},
    {BuiltinOperator::log, [](double x) { return std::log(x); }, 3e-7}, {BuiltinOperator::sqrt, [](double x) { return std::sqrt(x); }, 1e-7},
    {BuiltinOperator::rsqrt, rsqrt, 2e-7}, {BuiltinOperator::square, square, 1e-7}, {BuiltinOperator::abs, [](double x) { return std::fabs(x); }, 0},
    {BuiltinOperator::neg, [](double x) { return -x; }, 0}, {BuiltinOperator::sin, [](double x) { return std::sin(x); }, 2e-7},
    {BuiltinOperator::cos, [](double x) { return std::cos(x); }, 2e-7}, {BuiltinOperator::floor, [](double x) { return std::floor(x); }, 0},
    {BuiltinOperator::ceil, [](double x) { return std::ceil(x); }, 0}, {BuiltinOperator::round, [](double x) { return std::nearbyint(x); }, 0},
    {BuiltinOperator::elu, elu, 4e-7}, {BuiltinOperator::gelu, gelu, 3e-7}};

}  // namespace

TEST_CASE("functions of one float are close to double, for all magnitudes", "[ops][unary]") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x = {0, 1, -1, 0.5f, -0.5f, 1.5f, 2.5f, 88, -88, 90, -104, 1e30f, -1e30f, 1e-30f, inf, -inf, nan};
  Random random(5);
  for (int i = 0; i < 500; ++i) x.push_back(static_cast<float>(random.between(-100000, 100000)) / 5000);
  for (const auto& row : kFunctions) {
    INFO(builtin_operator_name(row.code));
    std::vector<float> want, asked;
    for (const float v : x) {
      // What 0 * inf is, is left to each function.
      if (std::isinf(v) && (row.code == BuiltinOperator::hard_swish || row.code == BuiltinOperator::gelu)) continue;
      asked.push_back(v);
      want.push_back(static_cast<float>(row.f(static_cast<double>(v))));
    }
    const Shape asked_shape = {static_cast<int64_t>(asked.size())};
    check_values(run_on_targets(unary_model<float>(row.code, asked_shape), {bytes_of(asked)}), asked_shape, want, row.tolerance);
  }
}

TEST_CASE("every tail length and shape of a function", "[ops][unary]") {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{3}, Shape{15}, Shape{16}, Shape{17}, Shape{31}, Shape{65}, Shape{2, 3, 5, 7}, Shape{0}, Shape{2, 0, 3}}) {
    const auto x = Random(3).values<float>(shape.elements());
    std::vector<float> want;
    for (const float v : x) want.push_back(static_cast<float>(std::tanh(static_cast<double>(v))));
    check_values(run_on_targets(unary_model<float>(BuiltinOperator::tanh, shape), {bytes_of(x)}), shape, want, 4e-7);
  }
}

TEST_CASE("quantised functions are the rounded values of double", "[ops][unary][int8]") {
  std::vector<int8_t> all;
  std::vector<uint8_t> all_unsigned;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<int8_t>(i - 128)), all_unsigned.push_back(static_cast<uint8_t>(i));
  const auto stored = [](double real, float scale, int zero, int low, int high) {
    const double q = std::round(real / static_cast<double>(scale)) + zero;
    return std::min(std::max(q, static_cast<double>(low)), static_cast<double>(high));
  };
  for (const auto& row : kFunctions) {
    if (row.code == BuiltinOperator::log || row.code == BuiltinOperator::rsqrt || row.code == BuiltinOperator::sqrt || row.code == BuiltinOperator::neg) continue;
    INFO(builtin_operator_name(row.code));
    std::vector<int8_t> want;
    std::vector<uint8_t> want_unsigned;
    for (int i = 0; i < 256; ++i) {
      want.push_back(static_cast<int8_t>(stored(row.f(static_cast<double>(0.04f * static_cast<float>(i - 128 - 7))), 0.03f, -5, -128, 127)));
      want_unsigned.push_back(static_cast<uint8_t>(stored(row.f(static_cast<double>(0.04f * static_cast<float>(i - 120))), 0.03f, 100, 0, 255)));
    }
    check_values(run_on_targets(unary_model<int8_t>(row.code, {256}, 0.04f, 7, 0.03f, -5), {bytes_of(all)}), {256}, want);
    check_values(run_on_targets(unary_model<uint8_t>(row.code, {256}, 0.04f, 120, 0.03f, 100), {bytes_of(all_unsigned)}), {256}, want_unsigned);
  }
}

TEST_CASE("many bytes have the function's value at each", "[ops][unary][int8]") {
  for (const int64_t count : {255, 256, 300, 1000}) {
    std::vector<int8_t> x, want;
    for (int64_t i = 0; i < count; ++i) {
      x.push_back(static_cast<int8_t>(i * 7));
      want.push_back(static_cast<int8_t>(std::clamp(std::round(logistic(0.05 * (x.back() - 4)) * 256) - 128, -128.0, 127.0)));
    }
    check_values(run_on_targets(unary_model<int8_t>(BuiltinOperator::logistic, {count}, 0.05f, 4, 1.0f / 256, -128), {bytes_of(x)}), {count}, want);
  }
}

TEST_CASE("integers negate, square and take absolute values by wrapping", "[ops][unary]") {
  const std::vector<int32_t> x = {0, 5, -7, std::numeric_limits<int32_t>::min()};
  check_values(run_on_targets(unary_model<int32_t>(BuiltinOperator::neg, {4}), {bytes_of(x)}), {4}, std::vector<int32_t>{0, -5, 7, x[3]});
  check_values(run_on_targets(unary_model<int32_t>(BuiltinOperator::abs, {4}), {bytes_of(x)}), {4}, std::vector<int32_t>{0, 5, 7, x[3]});
  check_values(run_on_targets(unary_model<int32_t>(BuiltinOperator::sign, {4}), {bytes_of(x)}), {4}, std::vector<int32_t>{0, 1, -1, -1});
}

TEST_CASE("a quantised function needs scales", "[ops][unary][errors]") {
  const std::vector<int8_t> x(4);
  check_refused(run_on_targets(unary_model<int8_t>(BuiltinOperator::tanh, {4}), {bytes_of(x)}), ErrorCode::invalid_model, "0 scales");
  check_refused(run_on_targets(unary_model<int8_t>(BuiltinOperator::tanh, {4}, 0.1f), {bytes_of(x)}), ErrorCode::invalid_model, "'y'");
}
