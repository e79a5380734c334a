#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

struct Pool {
  BuiltinOperator code;
  Shape in;
  int32_t height, width, stride_h, stride_w;
  int8_t padding = 0, activation = 0;
};

template <class T>
ModelBuilder pool_model(const Pool& p, float scale = 0, int64_t zero_point = 0, float out_scale = -1) {
  ModelBuilder m;
  auto x = m.tensor(tensor_type_of<T>, dims(p.in), "x");
  if (scale > 0) x.quantized(scale, zero_point);
  const int in = x;
  auto y = m.tensor(tensor_type_of<T>, {}, "y");
  if (scale > 0) y.quantized(out_scale > 0 ? out_scale : scale, zero_point);
  const int out = y;
  m.op(p.code, {in}, {out})
      .options(5)
      .field<int8_t>(0, p.padding)
      .field(1, p.stride_w)
      .field(2, p.stride_h)
      .field(3, p.width)
      .field(4, p.height)
      .field(5, p.activation);
  m.inputs({in}).outputs({out});
  return m;
}

// Every cell of every window, one after the other, in double or exact integers.
template <class T>
void check_pool(const Pool& p, double low, double high, double tolerance = 0, float scale = 0, int64_t zero_point = 0) {
  Random random(11);
  const auto x = random.values<T>(p.in.elements());
  const auto extent = [&](int64_t in, int64_t k, int64_t s) {
    return p.padding == 0 ? (in + s - 1) / s : (in - k) / s + 1;
  };
  const Shape out{p.in[0], extent(p.in[1], p.height, p.stride_h), extent(p.in[2], p.width, p.stride_w), p.in[3]};
  const auto pad = [&](int64_t in, int64_t o, int64_t k, int64_t s) {
    return p.padding == 0 ? std::max<int64_t>((o - 1) * s + k - in, 0) / 2 : 0;
  };
  const int64_t top = pad(p.in[1], out[1], p.height, p.stride_h), left = pad(p.in[2], out[2], p.width, p.stride_w);
  std::vector<T> want;
  for (int64_t i = 0; i < out.elements(); ++i) {
    const auto at = unravel(out, i);
    double sum = 0, squares = 0, best = -std::numeric_limits<double>::infinity();
    int64_t count = 0;
    for (int64_t ky = 0; ky < p.height; ++ky)
      for (int64_t kx = 0; kx < p.width; ++kx) {
        const int64_t y = at[1] * p.stride_h - top + ky, xx = at[2] * p.stride_w - left + kx;
        if (y < 0 || xx < 0 || y >= p.in[1] || xx >= p.in[2]) continue;
        const double v = static_cast<double>(x[ravel(p.in, {at[0], y, xx, at[3]})]);
        sum += v, squares += v * v, best = std::max(best, v), ++count;
      }
    double value = p.code == BuiltinOperator::max_pool_2d  ? best
                   : p.code == BuiltinOperator::l2_pool_2d ? std::sqrt(squares / count)
                                                           : sum / count;
    if (!std::is_floating_point_v<T>) value = std::round(value);  // halves away from zero
    want.push_back(static_cast<T>(std::min(std::max(value, low), high)));
  }
  check_values(run_on_targets(pool_model<T>(p, scale, zero_point), {bytes_of(x)}), out, want, tolerance);
}

constexpr double kFar = 1e30;

}  // namespace

TEST_CASE("float pooling against windows cell by cell", "[ops][pooling]") {
  for (const auto code : {BuiltinOperator::average_pool_2d, BuiltinOperator::max_pool_2d, BuiltinOperator::l2_pool_2d})
    for (const int32_t c : {1, 3, 8, 17, 67}) {
      check_pool<float>({code, {2, 7, 5, c}, 3, 2, 2, 1, 0}, -kFar, kFar, 1e-6);
      check_pool<float>({code, {1, 6, 6, c}, 2, 3, 1, 2, 1}, -kFar, kFar, 1e-6);
      check_pool<float>({code, {2, 4, 4, c}, 4, 4, 4, 4, 1, 3}, 0, 6, 1e-6);
    }
  check_pool<float>({BuiltinOperator::average_pool_2d, {1, 5, 5, 4}, 9, 9, 3, 3, 0}, -kFar, kFar,
                    1e-6);  // windows larger than the image
  check_pool<float>({BuiltinOperator::average_pool_2d, {0, 5, 5, 4}, 2, 2, 2, 2, 0}, -kFar, kFar);  // no batch
}

TEST_CASE("integer pooling is exact", "[ops][pooling]") {
  for (const auto code : {BuiltinOperator::average_pool_2d, BuiltinOperator::max_pool_2d})
    for (const int32_t c : {1, 5, 64, 130}) {
      check_pool<int8_t>({code, {2, 7, 5, c}, 3, 2, 2, 1, 0}, -128, 127, 0, 0.5f, 3);
      check_pool<uint8_t>({code, {1, 6, 6, c}, 2, 3, 1, 2, 1, 1}, 10, 255, 0, 0.5f, 10);
      check_pool<int16_t>({code, {1, 6, 6, c}, 3, 3, 2, 2, 0, 3}, 0, 12, 0, 0.5f, 0);
    }
}

TEST_CASE("means of many bytes are exact", "[ops][pooling]") {
  const auto code = BuiltinOperator::average_pool_2d;
  for (const int32_t c : {3, 67}) {
    check_pool<int8_t>({code, {1, 40, 20, c}, 40, 20, 1, 1, 1}, -128, 127, 0, 0.5f, 3);
    check_pool<uint8_t>({code, {1, 30, 31, c}, 17, 16, 13, 15, 0}, 0, 255, 0, 0.5f, 3);
    check_pool<int8_t>({code, {1, 17, 17, c}, 1, 257, 4, 4, 0}, -128, 127, 0, 0.5f, 3);
  }
  check_pool<int8_t>({code, {1, 260, 260, 2}, 260, 260, 1, 1, 1}, -128, 127, 0, 0.5f, 3);  // more cells than 16 bits count
  // Sums that reach the ends of 16 bits, and means that are a half.
  for (const int low : {-128, 127, -127})
    for (const int32_t cells : {2, 256, 257, 1024}) {
      std::vector<int8_t> x(static_cast<size_t>(cells) * 3, static_cast<int8_t>(low));
      for (size_t i = 0; i < x.size() / 2; ++i) x[i] = static_cast<int8_t>(std::min(low + 1, 127));
      std::vector<int8_t> want;
      for (size_t c = 0; c < 3; ++c) {
        double sum = 0;
        for (size_t i = c; i < x.size(); i += 3) sum += x[i];
        want.push_back(static_cast<int8_t>(std::round(sum / cells)));
      }
      check_values(run_on_targets(pool_model<int8_t>({code, {1, 1, cells, 3}, 1, cells, 1, 1, 1}, 0.5f, 0), {bytes_of(x)}), {1, 1, 1, 3}, want);
    }
}

TEST_CASE("pooling lets NaN through means and never past numbers in maxima", "[ops][pooling]") {
  const std::vector<float> x = {1, std::nanf(""), 2, 3};
  check_values<float>(
      run_on_targets(pool_model<float>({BuiltinOperator::average_pool_2d, {1, 2, 2, 1}, 2, 2, 1, 1, 1, 1}),
                     {bytes_of(x)}),
      {1, 1, 1, 1}, {std::nanf("")});
  check_values<float>(
      run_on_targets(pool_model<float>({BuiltinOperator::max_pool_2d, {1, 2, 2, 1}, 2, 2, 1, 1, 1}), {bytes_of(x)}),
      {1, 1, 1, 1}, {3});
}

TEST_CASE("wrong windows are refused", "[ops][pooling]") {
  const auto refuse = [](const Pool& p, const char* words) {
    check_refused(
        run_on_targets(pool_model<float>(p), {bytes_of(std::vector<float>(static_cast<size_t>(p.in.elements())))}),
        ErrorCode::invalid_model, words);
  };
  const auto code = BuiltinOperator::max_pool_2d;
  refuse({code, {1, 4, 4, 1}, 2, 2, 0, 1}, "stride 0 along the height");
  refuse({code, {1, 4, 4, 1}, 0, 2, 1, 1}, "a window of 0 elements along the height");
  refuse({code, {1, 4, 4, 1}, 2, 5, 1, 1, 1}, "the width 4 of its input is less than its window's 5");
  refuse({code, {4, 4, 1}, 2, 2, 1, 1}, "has rank 3, not 4 to 4");
  refuse({code, {1, 4, 4, 1}, 2, 2, 1, 1, 7}, "padding 7");
  check_refused(run_on_targets(pool_model<int8_t>({code, {1, 2, 2, 1}, 2, 2, 1, 1}, 0.5f, 0, 0.25f),
                               {bytes_of(std::vector<int8_t>(4))}),
                ErrorCode::invalid_model, "differ in scale (0.5, 0.25)");
}
