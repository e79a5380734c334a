// Comparisons, logic, selection and arithmetic on two operands.
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T, class Out>
ModelBuilder two_inputs(BuiltinOperator code, const Shape& a, const Shape& b) {
  ModelBuilder m;
  const int x = m.tensor(tensor_type_of<T>, dims(a), "x"), y = m.tensor(tensor_type_of<T>, dims(b), "y"), z = m.tensor(tensor_type_of<Out>, {}, "z");
  m.op(code, {x, y}, {z});
  m.inputs({x, y}).outputs({z});
  return m;
}
template <class T, class Out>
void check_two(BuiltinOperator code, const std::vector<T>& x, const std::vector<T>& y, const std::vector<Out>& want, double tolerance = 0) {
  INFO(builtin_operator_name(code));
  const Shape a = {static_cast<int64_t>(x.size())}, b = {static_cast<int64_t>(y.size())}, out = {static_cast<int64_t>(want.size())};
  if constexpr (std::is_same_v<Out, uint8_t>)
    check_values(run_on_targets(two_inputs<T, bool>(code, a, b), {bytes_of(x), bytes_of(y)}), out, want, tolerance);
  else
    check_values(run_on_targets(two_inputs<T, Out>(code, a, b), {bytes_of(x), bytes_of(y)}), out, want, tolerance);
}
using Flags = std::vector<uint8_t>;

}  // namespace

TEST_CASE("comparisons, with NaN unequal to everything", "[ops][comparison]") {
  const std::vector<float> x = {1, 2, 3, kNan}, y = {2, 2, 2, kNan};
  check_two(BuiltinOperator::equal, x, y, Flags{0, 1, 0, 0});
  check_two(BuiltinOperator::not_equal, x, y, Flags{1, 0, 1, 1});
  check_two(BuiltinOperator::less, x, y, Flags{1, 0, 0, 0});
  check_two(BuiltinOperator::less_equal, x, y, Flags{1, 1, 0, 0});
  check_two(BuiltinOperator::greater, x, y, Flags{0, 0, 1, 0});
  check_two(BuiltinOperator::greater_equal, x, y, Flags{0, 1, 1, 0});
  check_two(BuiltinOperator::less, std::vector<int64_t>{1, int64_t{1} << 60}, std::vector<int64_t>{(int64_t{1} << 60) + 1}, Flags{1, 1});
}

TEST_CASE("quantised operands compare by their real values", "[ops][comparison]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::int8, {3}, "x").quantized(0.5f, 0), y = m.tensor(TensorType::int8, {3}, "y").quantized(0.25f, 10), z = m.tensor(TensorType::boolean, {3}, "z");
  m.op(BuiltinOperator::less, {x, y}, {z});
  m.inputs({x, y}).outputs({z});
  // 1.0 < 1.25, 1.0 < 1.0, -1 < -0.75
  check_values(run_on_targets(m, {bytes_of(std::vector<int8_t>{2, 2, -2}), bytes_of(std::vector<int8_t>{15, 14, 7})}), {3}, Flags{1, 0, 1});
}

TEST_CASE("extremes let NaN through", "[ops][extremum]") {
  const std::vector<float> x = {1, kNan, 3}, y = {2, 2, kNan};
  check_two(BuiltinOperator::maximum, x, y, std::vector<float>{2, kNan, kNan});
  check_two(BuiltinOperator::minimum, x, y, std::vector<float>{1, kNan, kNan});
  check_two(BuiltinOperator::maximum, std::vector<int8_t>{-3, 4}, std::vector<int8_t>{0}, std::vector<int8_t>{0, 4});
}

TEST_CASE("integer division rounds as its operator says, and zero divisors are errors", "[ops][arithmetic]") {
  const std::vector<int32_t> x = {7, -7, 7, -7}, y = {2, 2, -2, -2};
  check_two(BuiltinOperator::div, x, y, std::vector<int32_t>{3, -3, -3, 3});
  check_two(BuiltinOperator::floor_div, x, y, std::vector<int32_t>{3, -4, -4, 3});
  check_two(BuiltinOperator::floor_mod, x, y, std::vector<int32_t>{1, 1, -1, -1});
  check_two(BuiltinOperator::floor_mod, std::vector<float>{7, -7, 7, -7}, std::vector<float>{2.5f}, std::vector<float>{2, 0.5f, 2, 0.5f}, 1e-6);
  const int32_t smallest = std::numeric_limits<int32_t>::min();
  check_two(BuiltinOperator::div, std::vector<int32_t>{smallest}, std::vector<int32_t>{-1}, std::vector<int32_t>{smallest});
  check_two(BuiltinOperator::floor_mod, std::vector<int32_t>{smallest}, std::vector<int32_t>{-1}, std::vector<int32_t>{0});
  for (const BuiltinOperator code : {BuiltinOperator::div, BuiltinOperator::floor_div, BuiltinOperator::floor_mod})
    check_refused(run_on_targets(two_inputs<int32_t, int32_t>(code, {1}, {1}), {bytes_of(std::vector<int32_t>{1}), bytes_of(std::vector<int32_t>{0})}),
                  ErrorCode::invalid_data, "division by zero");
}

TEST_CASE("powers, differences, angles, bits", "[ops][arithmetic]") {
  check_two(BuiltinOperator::pow, std::vector<float>{2, 9, -8}, std::vector<float>{3, 0.5f, 0.5f}, std::vector<float>{8, 3, kNan}, 1e-6);
  check_two(BuiltinOperator::pow, std::vector<int32_t>{-2, 3, 10}, std::vector<int32_t>{3, 0, 9}, std::vector<int32_t>{-8, 1, 1000000000});
  check_refused(run_on_targets(two_inputs<int32_t, int32_t>(BuiltinOperator::pow, {1}, {1}), {bytes_of(std::vector<int32_t>{2}), bytes_of(std::vector<int32_t>{-1})}),
                ErrorCode::invalid_data, "exponent -1");
  check_two(BuiltinOperator::squared_difference, std::vector<float>{1, -2}, std::vector<float>{3}, std::vector<float>{4, 25});
  check_two(BuiltinOperator::atan2, std::vector<float>{1, -1}, std::vector<float>{-1, -1}, std::vector<float>{2.3561945f, -2.3561945f}, 1e-6);
  check_two(BuiltinOperator::bitwise_xor, std::vector<int8_t>{5, -1}, std::vector<int8_t>{3}, std::vector<int8_t>{6, -4});
  check_two(BuiltinOperator::right_shift, std::vector<int32_t>{-9, -9, 8}, std::vector<int32_t>{1, 99, -3}, std::vector<int32_t>{-5, -1, 8});
}

TEST_CASE("every pair of bytes has the squared difference of the reference kernel", "[ops][arithmetic][int8]") {
  std::vector<int8_t> x, y;
  for (int i = 0; i < 65536; ++i) x.push_back(static_cast<int8_t>(i / 256 - 128)), y.push_back(static_cast<int8_t>(i % 256 - 128));
  struct Scales { float a, b, out; int za, zb, zout; };
  for (const Scales s : {Scales{0.5f, 0.5f, 1, 0, 0, 0}, Scales{0.1f, 0.03f, 0.2f, -3, 7, -128}, Scales{1e-5f, 3, 0.01f, 5, 0, -5}, Scales{0.7f, 0.6f, 90, 100, -128, 3}}) {
    INFO("scales " << s.a << " " << s.b << " " << s.out);
    ModelBuilder m;
    const int a = m.tensor(TensorType::int8, {256, 256}, "a").quantized(s.a, s.za), b = m.tensor(TensorType::int8, {256, 256}, "b").quantized(s.b, s.zb);
    const int z = m.tensor(TensorType::int8, {}, "z").quantized(s.out, s.zout);
    m.op(BuiltinOperator::squared_difference, {a, b}, {z});
    m.inputs({a, b}).outputs({z});
    // Operands to 2^7 over twice the larger scale, each rounded; the difference squared, and rounded to the output.
    const double twice = 2.0 * static_cast<double>(std::max(s.a, s.b));
    const FixedMultiplier fa = quantize_multiplier(static_cast<double>(s.a) / twice), fb = quantize_multiplier(static_cast<double>(s.b) / twice),
                          fo = quantize_multiplier(twice * twice / (16384.0 * static_cast<double>(s.out)));
    std::vector<int8_t> want;
    for (size_t i = 0; i < x.size(); ++i) {
      const int32_t d = multiply_by_quantized_multiplier((x[i] - s.za) * 128, fa) - multiply_by_quantized_multiplier((y[i] - s.zb) * 128, fb);
      want.push_back(static_cast<int8_t>(std::clamp(multiply_by_quantized_multiplier(d * d, fo) + s.zout, -128, 127)));
    }
    check_values(run_on_targets(m, {bytes_of(x), bytes_of(y)}), {256, 256}, want);
  }
}

TEST_CASE("logic on bool", "[ops][logical]") {
  const Shape shape = {4};
  const auto x = bytes_of(Flags{0, 0, 1, 1}), y = bytes_of(Flags{0, 1, 0, 1});
  check_values(run_on_targets(two_inputs<bool, bool>(BuiltinOperator::logical_and, shape, shape), {x, y}), shape, Flags{0, 0, 0, 1});
  check_values(run_on_targets(two_inputs<bool, bool>(BuiltinOperator::logical_or, shape, shape), {x, y}), shape, Flags{0, 1, 1, 1});
  ModelBuilder m;
  const int a = m.tensor(TensorType::boolean, {4}, "a"), b = m.tensor(TensorType::boolean, {4}, "b");
  m.op(BuiltinOperator::logical_not, {a}, {b});
  m.inputs({a}).outputs({b});
  check_values(run_on_targets(m, {x}), shape, Flags{1, 1, 0, 0});
}

TEST_CASE("selection by condition, broadcast or along the first axis", "[ops][select]") {
  const auto model = [](BuiltinOperator code, const Shape& condition, const Shape& x, const Shape& y) {
    ModelBuilder m;
    const int c = m.tensor(TensorType::boolean, dims(condition), "c"), a = m.tensor(TensorType::float32, dims(x), "x"), b = m.tensor(TensorType::float32, dims(y), "y"),
              z = m.tensor(TensorType::float32, {}, "z");
    m.op(code, {c, a, b}, {z});
    m.inputs({c, a, b}).outputs({z});
    return m;
  };
  const auto c = bytes_of(Flags{1, 0}), x = bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6}), y = bytes_of(std::vector<float>{10, 20, 30, 40, 50, 60});
  check_values(run_on_targets(model(BuiltinOperator::select, {2}, {2, 3}, {2, 3}), {c, x, y}), {2, 3}, std::vector<float>{1, 2, 3, 40, 50, 60});
  check_values(run_on_targets(model(BuiltinOperator::select_v2, {2, 1}, {2, 3}, {}), {c, x, bytes_of(std::vector<float>{-1})}), {2, 3}, std::vector<float>{1, 2, 3, -1, -1, -1});
  check_refused(run_on_targets(model(BuiltinOperator::select, {2}, {3, 2}, {3, 2}), {c, x, y}), ErrorCode::invalid_model, "condition [2]");
}
