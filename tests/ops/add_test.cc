#include "oneweight/base/fixed_point.h"
#include <array>

#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

struct Quantized {
  float scale;
  int64_t zero_point;
};

// Union tags of AddOptions, SubOptions and MulOptions; field 0 is the activation.
uint8_t options_tag(BuiltinOperator code) { return code == BuiltinOperator::add ? 11 : code == BuiltinOperator::sub ? 28 : 21; }

template <class T>
ModelBuilder binary_model(BuiltinOperator code, const Shape& a, const Shape& b, int8_t activation = 0, const Quantized* q = nullptr) {
  ModelBuilder m;
  auto x = m.tensor(tensor_type_of<T>, dims(a), "x");
  auto y = m.tensor(tensor_type_of<T>, dims(b), "y");
  auto z = m.tensor(tensor_type_of<T>, {}, "z");
  if (q) x.quantized(q[0].scale, q[0].zero_point), y.quantized(q[1].scale, q[1].zero_point), z.quantized(q[2].scale, q[2].zero_point);
  const int ix = x, iy = y, iz = z;
  m.op(code, {ix, iy}, {iz}).options(options_tag(code)).field<int8_t>(0, activation);
  m.inputs({ix, iy}).outputs({iz});
  return m;
}

// Value of operand `v` of shape `s` that belongs to output index `at`.
template <class T>
T broadcast_at(const std::vector<T>& v, const Shape& s, const std::vector<int64_t>& at) {
  std::vector<int64_t> own(at.end() - s.rank(), at.end());
  for (int k = 0; k < s.rank(); ++k)
    if (s[k] == 1) own[static_cast<size_t>(k)] = 0;
  return v[static_cast<size_t>(ravel(s, own))];
}

template <class T, class F>
void check_binary(BuiltinOperator code, const Shape& a, const Shape& b, const Shape& out, F f, int8_t activation = 0, double tolerance = 0,
                  const Quantized* q = nullptr) {
  Random random(11);
  const auto x = random.values<T>(a.elements()), y = random.values<T>(b.elements());
  std::vector<T> want;
  for (int64_t i = 0; i < out.elements(); ++i) {
    const auto at = unravel(out, i);
    want.push_back(f(broadcast_at(x, a, at), broadcast_at(y, b, at)));
  }
  check_values(run_on_targets(binary_model<T>(code, a, b, activation, q), {bytes_of(x), bytes_of(y)}), out, want, tolerance);
}

template <class T>
T stored_sum(BuiltinOperator code, T x, T y, const Quantized* q, int32_t low, int32_t high) {
  const int shift = sizeof(T) == 2 ? 15 : 20;
  const double twice = 2 * std::max<double>(q[0].scale, q[1].scale);
  const int32_t a = x - static_cast<int32_t>(q[0].zero_point), b = y - static_cast<int32_t>(q[1].zero_point);
  int32_t r;
  if (code == BuiltinOperator::mul) {
    r = multiply_by_quantized_multiplier(a * b, quantize_multiplier(static_cast<double>(q[0].scale * q[1].scale / q[2].scale)));
  } else {
    const int32_t sa = multiply_by_quantized_multiplier(a * (1 << shift), quantize_multiplier(q[0].scale / twice));
    const int32_t sb = multiply_by_quantized_multiplier(b * (1 << shift), quantize_multiplier(q[1].scale / twice));
    r = multiply_by_quantized_multiplier(code == BuiltinOperator::add ? sa + sb : sa - sb, quantize_multiplier(twice / ((1 << shift) * static_cast<double>(q[2].scale))));
  }
  r += static_cast<int32_t>(q[2].zero_point);
  return static_cast<T>(std::min(std::max(r, low), high));
}

constexpr BuiltinOperator kAll[] = {BuiltinOperator::add, BuiltinOperator::sub, BuiltinOperator::mul};

}  // namespace

TEST_CASE("sums and products of floats broadcast like numpy", "[ops][add]") {
  const struct { Shape a, b, out; } rows[] = {
      {{1}, {1}, {1}}, {{}, {}, {}}, {{7}, {7}, {7}}, {{17}, {}, {17}}, {{}, {33}, {33}}, {{2, 3, 5, 7}, {7}, {2, 3, 5, 7}},
      {{2, 3, 5, 16}, {2, 1, 1, 16}, {2, 3, 5, 16}}, {{2, 1, 5, 1}, {1, 3, 1, 4}, {2, 3, 5, 4}}, {{3, 1}, {1, 4}, {3, 4}},
      {{1, 2, 1, 2, 1, 2}, {2, 1, 2, 1, 2, 1}, {2, 2, 2, 2, 2, 2}}, {{2, 1, 2, 1, 2, 1, 2, 3}, {2, 1, 2, 1, 2, 1, 1}, {2, 2, 2, 2, 2, 2, 2, 3}},
      {{0, 3}, {3}, {0, 3}}, {{2, 0}, {1}, {2, 0}},
      {{3, 7, 8}, {8}, {3, 7, 8}}, {{5, 5, 4}, {4}, {5, 5, 4}}, {{9, 16}, {16}, {9, 16}}, {{40, 2}, {2}, {40, 2}}, {{2}, {41, 2}, {41, 2}}, {{200, 8}, {8}, {200, 8}}};
  for (const auto& r : rows) {
    INFO(r.a.to_string() << " " << r.b.to_string());
    check_binary<float>(BuiltinOperator::add, r.a, r.b, r.out, [](float x, float y) { return x + y; });
    check_binary<float>(BuiltinOperator::sub, r.a, r.b, r.out, [](float x, float y) { return x - y; });
    check_binary<float>(BuiltinOperator::mul, r.a, r.b, r.out, [](float x, float y) { return x * y; });
    check_binary<int32_t>(BuiltinOperator::sub, r.a, r.b, r.out, [](int32_t x, int32_t y) { return x - y; });
  }
}

TEST_CASE("every tail length of a float sum", "[ops][add]") {
  for (int64_t n = 1; n < 70; ++n) check_binary<float>(BuiltinOperator::add, {n}, {n}, {n}, [](float x, float y) { return x + y; });
}

TEST_CASE("fused activations clamp floats and integers, and let NaN through", "[ops][add]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {-3, 2, 9, nan, inf, -inf}, y = {1, 1, 1, 1, 1, 1};
  const Shape shape = {6};
  check_values(run_on_targets(binary_model<float>(BuiltinOperator::add, shape, shape, 1), {bytes_of(x), bytes_of(y)}), shape, std::vector<float>{0, 3, 10, nan, inf, 0});
  check_values(run_on_targets(binary_model<float>(BuiltinOperator::mul, shape, shape, 3), {bytes_of(x), bytes_of(y)}), shape, std::vector<float>{0, 2, 6, nan, 6, 0});
  check_values(run_on_targets(binary_model<float>(BuiltinOperator::sub, shape, shape, 2), {bytes_of(x), bytes_of(y)}), shape, std::vector<float>{-1, 1, 1, nan, 1, -1});
  check_binary<int32_t>(BuiltinOperator::add, {9}, {9}, {9}, [](int32_t a, int32_t b) { return std::min(std::max(a + b, 0), 6); }, 3);
  check_binary<int64_t>(BuiltinOperator::mul, {9}, {1}, {9}, [](int64_t a, int64_t b) { return std::max<int64_t>(a * b, 0); }, 1);
}

TEST_CASE("quantised sums and products have the bits of the reference kernels", "[ops][add][int8]") {
  const Quantized q[3] = {{0.02f, 3}, {0.007f, -20}, {0.05f, 5}}, tight[3] = {{0.9f, 0}, {0.3f, 1}, {0.001f, -4}};
  const Quantized u[3] = {{0.02f, 130}, {0.07f, 90}, {0.11f, 140}}, wide[3] = {{0.0003f, 0}, {0.0001f, 0}, {0.0005f, 0}};
  for (const BuiltinOperator code : kAll) {
    for (const Quantized* p : {q, tight}) {
      check_binary<int8_t>(code, {1, 3, 5, 19}, {1, 3, 5, 19}, {1, 3, 5, 19}, [&](int8_t x, int8_t y) { return stored_sum(code, x, y, p, -128, 127); }, 0, 0, p);
      check_binary<int8_t>(code, {2, 3, 19}, {19}, {2, 3, 19}, [&](int8_t x, int8_t y) { return stored_sum(code, x, y, p, -128, 127); }, 0, 0, p);
    }
    const int32_t low = static_cast<int32_t>(q[2].zero_point), six = static_cast<int32_t>(std::round(6 / q[2].scale)) + low;
    check_binary<int8_t>(code, {37}, {1}, {37}, [&](int8_t x, int8_t y) { return stored_sum(code, x, y, q, low, std::min(six, 127)); }, 3, 0, q);
    check_binary<uint8_t>(code, {2, 33}, {2, 1}, {2, 33}, [&](uint8_t x, uint8_t y) { return stored_sum(code, x, y, u, 0, 255); }, 0, 0, u);
    if (code != BuiltinOperator::mul)
      check_binary<int16_t>(code, {41}, {41}, {41}, [&](int16_t x, int16_t y) { return stored_sum(code, x, y, wide, -32768, 32767); }, 0, 0, wide);
  }
}

TEST_CASE("every pair of bytes has the sum of the reference kernel", "[ops][add][int8]") {
  const Shape shape{256, 256};
  std::vector<int8_t> x, y;
  for (int i = 0; i < 65536; ++i) x.push_back(static_cast<int8_t>(i / 256 - 128)), y.push_back(static_cast<int8_t>(i % 256 - 128));
  // Equal scales give halves of integers, far ones nearly none of an operand; the last ones saturate everywhere or overflow the linear form.
  std::vector<std::array<Quantized, 3>> scales = {{{{0.5f, 0}, {0.5f, 0}, {1.0f, 0}}},   {{{0.1f, -3}, {0.1f, 7}, {0.2f, 1}}},
                                                  {{{3.0f, 5}, {1e-5f, 0}, {3.0f, -5}}}, {{{1e-6f, 100}, {0.7f, -128}, {0.02f, 0}}},
                                                  {{{1.0f, 0}, {1.0f, 0}, {255.0f, 0}}}, {{{100.0f, 3}, {90.0f, 2}, {0.01f, 1}}},
                                                  {{{1.0f, 0}, {1.0f, 0}, {1e-4f, 0}}}};
  Random random(5);
  for (int k = 0; k < 12; ++k) {
    const auto scale = [&] { return static_cast<float>(random.between(1, 1 << 20)) / (1 << 24); };
    const auto zero = [&] { return random.between(-128, 127); };
    scales.push_back({{{scale(), zero()}, {scale(), zero()}, {scale(), zero()}}});
  }
  for (const auto& q : scales)
    for (const BuiltinOperator code : {BuiltinOperator::add, BuiltinOperator::sub}) {
      INFO("scales " << q[0].scale << " " << q[1].scale << " " << q[2].scale);
      std::vector<int8_t> want;
      for (size_t i = 0; i < x.size(); ++i) want.push_back(stored_sum(code, x[i], y[i], q.data(), -128, 127));
      check_values(run_on_targets(binary_model<int8_t>(code, shape, shape, 0, q.data()), {bytes_of(x), bytes_of(y)}), shape, want);
    }
}

TEST_CASE("operands that do not fit are refused with their shapes", "[ops][add][errors]") {
  const std::vector<float> x(6), y(4);
  check_refused(run_on_targets(binary_model<float>(BuiltinOperator::add, {2, 3}, {4}), {bytes_of(x), bytes_of(y)}), ErrorCode::invalid_model, "[2, 3] and [4]");
  check_refused(run_on_targets(binary_model<float>(BuiltinOperator::add, {4}, {4}, 4), {bytes_of(y), bytes_of(y)}), ErrorCode::unsupported, "activation 4");
  const std::vector<int8_t> b(4);
  check_refused(run_on_targets(binary_model<int8_t>(BuiltinOperator::mul, {4}, {4}), {bytes_of(b), bytes_of(b)}), ErrorCode::invalid_model, "0 scales");
}

TEST_CASE("int16 without scales is plain numbers", "[ops][add]") {
  const auto run = [](BuiltinOperator code, int8_t activation) {
    ModelBuilder m;
    const int a = m.tensor(TensorType::int16, {3}, "a"), b = m.tensor(TensorType::int16, {3}, "b"), y = m.tensor(TensorType::int16, {3}, "y");
    m.op(code, {a, b}, {y}).options(code == BuiltinOperator::add ? 11 : code == BuiltinOperator::sub ? 28 : 21).field<int8_t>(0, activation);
    m.inputs({a, b}).outputs({y});
    return run_on_targets(m, {bytes_of<int16_t>({30000, -7, 300}), bytes_of<int16_t>({30000, 5, 300})});
  };
  check_values<int16_t>(run(BuiltinOperator::add, 0), {3}, {-5536, -2, 600});
  check_values<int16_t>(run(BuiltinOperator::sub, 0), {3}, {0, -12, 0});
  check_values<int16_t>(run(BuiltinOperator::mul, 0), {3}, {-5888, -35, 24464});
  check_values<int16_t>(run(BuiltinOperator::mul, 3), {3}, {0, 0, 6});
}
