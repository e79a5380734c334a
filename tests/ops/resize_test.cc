#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

enum class Corners { plain, aligned, half_pixel };

template <class T>
ModelBuilder resize_model(bool bilinear, const Shape& in, int32_t height, int32_t width, Corners corners,
                          bool both = false) {
  ModelBuilder m;
  const int x = m.tensor(tensor_type_of<T>, dims(in), "x");
  const int size = m.tensor(TensorType::int32, {2}, "size").values<int32_t>({height, width}),
            y = m.tensor(tensor_type_of<T>, {}, "y");
  const int first = bilinear ? 2 : 0;
  m.op(bilinear ? BuiltinOperator::resize_bilinear : BuiltinOperator::resize_nearest_neighbor, {x, size}, {y})
      .options(bilinear ? 15 : 74)
      .field(first, both || corners == Corners::aligned)
      .field(first + 1, both || corners == Corners::half_pixel);
  m.inputs({x}).outputs({y});
  return m;
}

double place(Corners corners, int64_t at, int64_t in, int64_t out) {
  if (corners == Corners::aligned && out > 1)
    return static_cast<double>(at) * static_cast<double>(in - 1) / static_cast<double>(out - 1);
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  return corners == Corners::half_pixel ? (static_cast<double>(at) + 0.5) * scale - 0.5
                                        : static_cast<double>(at) * scale;
}

template <class T>
void check_bilinear(const Shape& in, int32_t height, int32_t width, Corners corners, double tolerance) {
  Random random(2);
  const auto x = random.values<T>(in.elements());
  const Shape out{in[0], height, width, in[3]};
  std::vector<T> want;
  for (int64_t i = 0; i < out.elements(); ++i) {
    const auto at = unravel(out, i);
    const auto tap = [&](int axis, int64_t* first, int64_t* second) {
      const double p = std::max(place(corners, at[axis], in[axis], out[axis]), 0.0);
      *first = std::min(static_cast<int64_t>(p), in[axis] - 1);
      *second = std::min(*first + 1, in[axis] - 1);
      return p - static_cast<double>(*first);
    };
    int64_t y0, y1, x0, x1;
    const double wy = tap(1, &y0, &y1), wx = tap(2, &x0, &x1);
    const auto value = [&](int64_t yy, int64_t xx) {
      return static_cast<double>(x[ravel(in, {at[0], yy, xx, at[3]})]);
    };
    const double result = (value(y0, x0) * (1 - wx) + value(y0, x1) * wx) * (1 - wy) +
                          (value(y1, x0) * (1 - wx) + value(y1, x1) * wx) * wy;
    want.push_back(static_cast<T>(std::is_floating_point_v<T> ? result : std::round(result)));
  }
  check_values(run_on_targets(resize_model<T>(true, in, height, width, corners), {bytes_of(x)}), out, want, tolerance);
}

}  // namespace

TEST_CASE("bilinear resizing in its three conventions", "[ops][resize]") {
  for (const Corners corners : {Corners::plain, Corners::aligned, Corners::half_pixel})
    for (const int32_t c : {1, 3, 4, 19}) {
      check_bilinear<float>({2, 5, 7, c}, 8, 4, corners, 1e-5);
      check_bilinear<float>({1, 3, 4, c}, 9, 11, corners, 1e-5);
      check_bilinear<float>({1, 6, 5, c}, 1, 1, corners, 1e-5);
      check_bilinear<float>({1, 1, 1, c}, 3, 2, corners, 1e-5);
      // The reference rounds weights to 1/1024 (uint8: to float).
      check_bilinear<int8_t>({2, 5, 7, c}, 8, 4, corners, 2);
      check_bilinear<uint8_t>({2, 5, 7, c}, 8, 4, corners, 1);
      check_bilinear<int16_t>({1, 5, 7, c}, 8, 4, corners, 400);
    }
}

TEST_CASE("nearest neighbours of every element size", "[ops][resize]") {
  const auto check = [](auto type, Corners corners, const std::vector<int64_t>& from) {
    using T = decltype(type);
    const std::vector<T> x = {T(1), T(2), T(3)};
    std::vector<T> want;
    for (int64_t i : from) want.push_back(x[static_cast<size_t>(i)]);
    check_values(run_on_targets(resize_model<T>(false, {1, 1, 3, 1}, 1, static_cast<int32_t>(from.size()), corners),
                                {bytes_of(x)}),
                 {1, 1, static_cast<int64_t>(from.size()), 1}, want);
  };
  check(float{}, Corners::plain, {0, 0, 1, 1, 2});
  check(int8_t{}, Corners::aligned, {0, 1, 1, 2, 2});  // 0, 0.5, 1, 1.5, 2: halves away from zero
  check(int16_t{}, Corners::half_pixel, {0, 2});
  check(int64_t{}, Corners::plain, {0, 0, 1, 1, 2, 2});
  // Whole pixels and repeated rows.
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  check_values<float>(run_on_targets(resize_model<float>(false, {1, 2, 1, 3}, 4, 1, Corners::plain), {bytes_of(x)}),
                      {1, 4, 1, 3}, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
}

TEST_CASE("resizes that contradict themselves are refused", "[ops][resize]") {
  for (const bool bilinear : {false, true}) {
    const std::vector<std::vector<uint8_t>> input = {bytes_of(std::vector<float>(4))};
    check_refused(run_on_targets(resize_model<float>(bilinear, {1, 2, 2, 1}, 2, 2, Corners::plain, true), input),
                  ErrorCode::invalid_model, "asks for aligned corners and half pixel centres at once");
    check_refused(run_on_targets(resize_model<float>(bilinear, {1, 2, 2, 1}, 0, 2, Corners::plain), input),
                  ErrorCode::invalid_model, "to 0 x 2");
    check_refused(run_on_targets(resize_model<float>(bilinear, {2, 2, 1}, 2, 2, Corners::plain), input),
                  ErrorCode::invalid_model, "has rank 3");
  }
}
