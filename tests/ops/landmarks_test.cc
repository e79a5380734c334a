// MediaPipe's custom operators: landmarks, crops, pooled places.
#include <flatbuffers/flexbuffers.h>

#include <functional>

#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

std::vector<uint8_t> map_of(const std::function<void(flexbuffers::Builder&)>& fill) {
  flexbuffers::Builder b;
  b.Map([&] { fill(b); });
  b.Finish();
  return b.GetBuffer();
}

ModelBuilder custom_model(const char* name, const std::vector<Shape>& shapes, int outputs, const std::vector<uint8_t>& options) {
  ModelBuilder m;
  std::vector<int32_t> in, out;
  for (const Shape& s : shapes) in.push_back(m.tensor(TensorType::float32, dims(s)));
  for (int i = 0; i < outputs; ++i) out.push_back(m.tensor(TensorType::float32, {}));
  m.custom_op(name, in, out).custom_options(options);
  m.inputs(in).outputs(out);
  return m;
}

// A 3 x 3 matrix of plane coordinates.
using Matrix = std::vector<double>;
Matrix times(const Matrix& a, const Matrix& b) {
  Matrix c(9, 0.0);
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 3; ++j)
      for (size_t k = 0; k < 3; ++k) c[3 * i + j] += a[3 * i + k] * b[3 * k + j];
  return c;
}
Matrix shift(double x, double y) { return {1, 0, x, 0, 1, y, 0, 0, 1}; }
Matrix scale(double x, double y) { return {x, 0, 0, 0, y, 0, 0, 0, 1}; }
Matrix turn(double a) { return {std::cos(a), -std::sin(a), 0, std::sin(a), std::cos(a), 0, 0, 0, 1}; }
std::vector<float> matrix_output(const Matrix& m) {
  std::vector<float> all;
  for (double v : {m[0], m[1], 0.0, m[2], m[3], m[4], 0.0, m[5], 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0}) all.push_back(float(v));
  return all;
}

}  // namespace

TEST_CASE("the matrix of a crop around landmarks", "[ops][landmarks]") {
  Random random(1);
  const auto points = random.values<float>(3 * 12);
  const std::vector<size_t> subset{1, 4, 5, 9, 11};
  const auto box = [&](double angle) {
    double least[2] = {1e9, 1e9}, most[2] = {-1e9, -1e9};
    for (size_t i : subset) {
      const double x = double(points[3 * i]), y = double(points[3 * i + 1]);
      const double at[2] = {x * std::cos(angle) - y * std::sin(angle), x * std::sin(angle) + y * std::cos(angle)};
      for (int k = 0; k < 2; ++k) least[k] = std::min(least[k], at[k]), most[k] = std::max(most[k], at[k]);
    }
    return std::vector<double>{(least[0] + most[0]) / 2, (least[1] + most[1]) / 2, most[0] - least[0], most[1] - least[1]};
  };
  const double dx = double(points[3 * 7] - points[3 * 2]), dy = double(points[3 * 7 + 1] - points[3 * 2 + 1]);
  const auto indices = [&](flexbuffers::Builder& b, const char* name) {
    b.TypedVector(name, [&] { for (size_t i : subset) b.Int(int64_t(i)); });
    b.Int("left_rotation_idx", 2);
    b.Int("right_rotation_idx", 7);
  };
  {
    const double angle = 0.25 - std::atan2(dy, dx);
    const auto b = box(angle);
    const Matrix m = times(turn(-angle), times(shift(b[0], b[1]), times(scale(1.5 * b[2] / 16, 1.25 * b[3] / 12), shift(-8, -6))));
    const auto options = map_of([&](flexbuffers::Builder& f) {
      indices(f, "subset_idxs");
      f.Int("output_width", 16), f.Int("output_height", 12);
      f.Float("scale_x", 1.5f), f.Float("scale_y", 1.25f), f.Float("target_rotation_radians", 0.25f);
    });
    check_values(run_on_targets(custom_model("Landmarks2TransformMatrix", {{1, 12, 3}}, 1, options), {bytes_of(points)}), {1, 4, 4}, matrix_output(m), 1e-5);
  }
  {
    const double angle = -std::atan(dy / dx);
    const auto b = box(angle);
    // Crop pixels to -1 .. 1, to the box relative to the range, turned, moved to its centre, to input pixels.
    const Matrix centre = times(turn(-angle), shift(b[0], b[1]));
    const Matrix relative = times(shift(-1, -1), scale(2.0 / 15, 2.0 / 11));
    const Matrix inner = times(turn(-angle), times(scale(2 * b[2] / 10, 2 * b[3] / 10), relative));
    const Matrix m = times(scale(19.0 / 2, 29.0 / 2), times(shift(1, 1), times(shift(centre[2] / 10 * 2 - 1, centre[5] / 10 * 2 - 1), inner)));
    const auto options = map_of([&](flexbuffers::Builder& f) {
      indices(f, "subset");
      f.TypedVector("input_hw", [&] { f.Int(30), f.Int(20); });
      f.TypedVector("output_hw", [&] { f.Int(12), f.Int(16); });
      f.Int("dimensions", 3), f.Int("landmarks_range", 10);
      f.Float("bbox_size_multiplier", 2);
    });
    check_values(run_on_targets(custom_model("Landmarks2TransformMatrix", {{1, 1, 1, 36}}, 1, options), {bytes_of(points)}), {1, 4, 4}, matrix_output(m), 1e-5);
  }
  const auto refused = [&](const std::vector<uint8_t>& options, const char* words) {
    check_refused(run_on_targets(custom_model("Landmarks2TransformMatrix", {{1, 12, 3}}, 1, options), {bytes_of(points)}), ErrorCode::invalid_model, words);
  };
  refused({}, "are not a flexbuffer map");
  const auto with = [&](int64_t landmark, int64_t width) {
    return map_of([&](flexbuffers::Builder& f) {
      f.TypedVector("subset_idxs", [&] { f.Int(3), f.Int(landmark); });
      f.Int("left_rotation_idx", 2), f.Int("right_rotation_idx", 7), f.Int("output_width", width), f.Int("output_height", 12);
      f.Float("scale_x", 1.5f), f.Float("scale_y", 1.5f);
    });
  };
  refused(with(12, 16), "landmark 12 of its subset is not among 12");
  refused(with(-1, 16), "landmark -1 of its subset is not among 12");
  refused(with(1, 0), "must be more than 0, but one is 0");
  refused(map_of([](flexbuffers::Builder& f) {
            f.Int("output_width", 1), f.Int("output_height", 1), f.Int("scale_x", 1), f.Int("scale_y", 1);
          }), "has no subset of landmarks");
}

TEST_CASE("landmarks are transformed", "[ops][landmarks]") {
  const std::vector<float> m{1, 2, 9, 10, 3, 4, 9, 20, 9, 9, 9, 9, 9, 9, 9, 9};
  const std::vector<float> flat{1, 1, 2, 0, 0, 3}, space{1, 1, 7, 2, 0, 8};
  check_values<float>(run_on_targets(custom_model("TransformLandmarks", {{1, 3, 2}, {1, 4, 4}}, 1, {}), {bytes_of(flat), bytes_of(m)}), {1, 3, 2}, {13, 27, 12, 26, 16, 32});
  check_values<float>(run_on_targets(custom_model("TransformLandmarks", {{1, 2, 3}, {1, 4, 4}}, 1, {}), {bytes_of(space), bytes_of(m)}), {1, 2, 3}, {13, 27, 7, 12, 26, 8});
  const auto first = map_of([](flexbuffers::Builder& f) { f.Int("dimensions", 3), f.Float("scale", 0.5f); });
  check_values<float>(run_on_targets(custom_model("TransformLandmarks", {{1, 1, 1, 6}, {1, 4, 4}}, 1, first), {bytes_of(space), bytes_of(m)}), {1, 1, 1, 6}, {8, 17, 7, 7, 16, 8});
  check_refused(run_on_targets(custom_model("TransformLandmarks", {{1, 1, 6}, {1, 4, 4}}, 1, {}), {bytes_of(space), bytes_of(m)}), ErrorCode::invalid_model, "landmarks of 6 numbers");
  check_refused(run_on_targets(custom_model("TransformLandmarks", {{1, 3, 2}, {3, 4}}, 1, {}), {bytes_of(flat), std::vector<uint8_t>(48)}), ErrorCode::invalid_model, "is not a 4 x 4 matrix");
}

TEST_CASE("crops of maps", "[ops][landmarks]") {
  Random random(2);
  const auto image = random.values<float>(7 * 9 * 3);
  const std::vector<float> m{0.8f, -0.3f, 0, 2.5f, 0.25f, 0.9f, 0, -0.7f, 0, 0, 1, 0, 0, 0, 0, 1};
  for (const bool halves : {false, true}) {
    std::vector<float> want;
    for (int64_t y = 0; y < 6; ++y)
      for (int64_t x = 0; x < 5; ++x) {
        const double h = halves ? 0.5 : 0, px = double(x) + h, py = double(y) + h;
        const double u = double(m[0]) * px + double(m[1]) * py + double(m[3]) - h, v = double(m[4]) * px + double(m[5]) * py + double(m[7]) - h;
        for (int64_t c = 0; c < 3; ++c) {
          double sum = 0;
          if (u >= 0 && v >= 0 && u <= 8 && v <= 6)
            for (int64_t r = 0; r < 7; ++r)
              for (int64_t k = 0; k < 9; ++k)
                sum += std::max(0.0, 1 - std::fabs(u - double(k))) * std::max(0.0, 1 - std::fabs(v - double(r))) * double(image[size_t((r * 9 + k) * 3 + c)]);
          want.push_back(float(sum));
        }
      }
    const auto options = map_of([&](flexbuffers::Builder& f) {
      if (halves) f.Int("output_height", 6), f.Int("output_width", 5);
      else f.TypedVector("output_size", [&] { f.Int(6), f.Int(5); });
    });
    const char* name = halves ? "TransformTensorBilinear" : "TransformTensor";
    check_values(run_on_targets(custom_model(name, {{1, 7, 9, 3}, {1, 4, 4}}, 1, options), {bytes_of(image), bytes_of(m)}), {1, 6, 5, 3}, want, 1e-5);
  }
  // Nothing of a map, and not a number, is outside.
  auto nowhere = m;
  nowhere[3] = std::numeric_limits<float>::quiet_NaN();
  const auto options = map_of([](flexbuffers::Builder& f) { f.Int("output_height", 1), f.Int("output_width", 2); });
  check_values<float>(run_on_targets(custom_model("TransformTensorBilinear", {{1, 7, 9, 3}, {1, 4, 4}}, 1, options), {bytes_of(image), bytes_of(nowhere)}), {1, 1, 2, 3}, {0, 0, 0, 0, 0, 0});
  check_refused(run_on_targets(custom_model("TransformTensorBilinear", {{1, 7, 9, 3}, {1, 4, 4}}, 1, map_of([](flexbuffers::Builder& f) { f.Int("output_height", 1); })), {bytes_of(image), bytes_of(m)}),
                ErrorCode::invalid_model, "the size of its output is not valid");
}

TEST_CASE("maxima with their places, and back", "[ops][max_unpooling]") {
  struct Pool {
    int64_t h, w, c;
    int32_t kh, kw, sh, sw;
    bool same;
  };
  Random random(3);
  for (const Pool& g : {Pool{6, 8, 5, 2, 2, 2, 2, true}, Pool{7, 5, 3, 3, 2, 2, 3, true}, Pool{7, 9, 17, 3, 3, 1, 2, false}, Pool{1, 1, 1, 2, 2, 2, 2, true}}) {
    const auto x = random.values<float>(2 * g.h * g.w * g.c);
    const auto size = [&](int64_t n, int64_t k, int64_t s) { return g.same ? (n + s - 1) / s : (n - k) / s + 1; };
    const int64_t oh = size(g.h, g.kh, g.sh), ow = size(g.w, g.kw, g.sw);
    const auto pad = [&](int64_t o, int64_t n, int64_t k, int64_t s) { return std::max<int64_t>((o - 1) * s + k - n, 0) / 2; };
    const int64_t top = pad(oh, g.h, g.kh, g.sh), left = pad(ow, g.w, g.kw, g.sw);
    std::vector<float> most, place;
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t y = 0; y < oh; ++y)
        for (int64_t q = 0; q < ow; ++q)
          for (int64_t c = 0; c < g.c; ++c) {
            float best = std::numeric_limits<float>::lowest(), where = 0;
            for (int64_t k = 0; k < g.kh * g.kw; ++k) {
              const int64_t iy = y * g.sh - top + k / g.kw, ix = q * g.sw - left + k % g.kw;
              if (iy < 0 || ix < 0 || iy >= g.h || ix >= g.w) continue;
              const float v = x[size_t(((b * g.h + iy) * g.w + ix) * g.c + c)];
              if (v > best) best = v, where = float(k);
            }
            most.push_back(best), place.push_back(where + 0.1f);
          }
    const auto options = bytes_of<int32_t>({g.same ? 1 : 2, g.sw, g.sh, g.kw, g.kh, 0});
    const auto pooled = run_on_targets(custom_model("MaxPoolingWithArgmax2D", {{2, g.h, g.w, g.c}}, 2, options), {bytes_of(x)});
    check_values(pooled, {2, oh, ow, g.c}, most, 0, 0);
    check_values(pooled, {2, oh, ow, g.c}, place, 0, 1);
    // Back, as if the output were window times as large.
    const int64_t bh = oh * g.kh, bw = ow * g.kw, btop = pad(oh, bh, g.kh, g.sh), bleft = pad(ow, bw, g.kw, g.sw);
    auto places = place;
    places[0] = -1;
    places.back() = std::numeric_limits<float>::quiet_NaN();
    if (places.size() > 3) places[2] = 1e9f;
    std::vector<float> back(size_t(2 * bh * bw * g.c), 0.0f);
    for (size_t i = 0; i < most.size(); ++i) {
      if (!(places[i] >= 0) || places[i] > 1000) continue;
      const int64_t c = int64_t(i) % g.c, q = int64_t(i) / g.c % ow, y = int64_t(i) / g.c / ow % oh, b = int64_t(i) / g.c / ow / oh;
      const int64_t k = int64_t(places[i]), iy = y * g.sh - btop + k / g.kw, ix = q * g.sw - bleft + k % g.kw;
      if (iy >= 0 && ix >= 0 && iy < bh && ix < bw) back[size_t(((b * bh + iy) * bw + ix) * g.c + c)] = most[i];
    }
    check_values(run_on_targets(custom_model("MaxUnpooling2D", {{2, oh, ow, g.c}, {2, oh, ow, g.c}}, 1, options), {bytes_of(most), bytes_of(places)}), {2, bh, bw, g.c}, back);
  }
  const auto refused = [](const char* name, const std::vector<Shape>& shapes, const std::vector<uint8_t>& options, int outputs, const char* words) {
    std::vector<std::vector<uint8_t>> in;
    for (const Shape& s : shapes) in.emplace_back(size_t(s.elements()) * 4);
    check_refused(run_on_targets(custom_model(name, shapes, outputs, options), in), ErrorCode::invalid_model, words);
  };
  refused("MaxPoolingWithArgmax2D", {{1, 2, 2, 1}}, std::vector<uint8_t>(8), 2, "has 8 bytes of options");
  refused("MaxPoolingWithArgmax2D", {{1, 2, 2, 1}}, bytes_of<int32_t>({0, 1, 1, 1, 1, 0}), 2, "padding 0 is neither");
  refused("MaxPoolingWithArgmax2D", {{1, 2, 2, 1}}, bytes_of<int32_t>({2, 1, 1, 3, 1, 0}), 2, "less than its window's 3");
  refused("MaxUnpooling2D", {{1, 2, 2, 1}, {1, 2, 1, 1}}, bytes_of<int32_t>({1, 1, 1, 2, 2, 0}), 1, "do not have one shape");
  refused("MaxUnpooling2D", {{1, 2, 2, 1}, {1, 2, 2, 1}}, bytes_of<int32_t>({1, 0, 1, 2, 2, 0}), 1, "strides 1 x 0 are not valid");
}
