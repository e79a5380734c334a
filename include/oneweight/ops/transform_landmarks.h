// MediaPipe's custom operators about landmarks, float:
// Landmarks2TransformMatrix: landmarks of three numbers -> the 4 x 4 matrix from pixels of a crop around some of them, turned
//   upright, to the landmarks' coordinates. Options: a map; with "subset" those of version 1, else of version 2.
// TransformLandmarks: applies the first two rows of a 4 x 4 matrix to x and y of landmarks of two or three numbers; z stays.
//   Version 2: landmarks [.., n, 2 or 3], no options. Version 1: [.., n * dimensions], a map of dimensions and scale (of the shift).
// TransformTensorBilinear: the crop that such a matrix describes, output_height x output_width, bilinear, pixel centres at
//   halves; 0 where a point lies outside of the pixels' centres. TransformTensor (its version 1, option output_size): centres at
//   whole numbers.
// One matrix, and one image of landmarks. Rows: 1; pixels' rows.
#ifndef ONEWEIGHT_OPS_TRANSFORM_LANDMARKS_H
#define ONEWEIGHT_OPS_TRANSFORM_LANDMARKS_H

#include <algorithm>
#include <cmath>

#include "oneweight/ops/op.h"
#include "oneweight/schema/flexbuffer.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct LandmarkMatrixParams {
  const int64_t* subset = nullptr;   // landmarks the crop holds
  int64_t subset_count = 0, left = 0, right = 0;
  bool first_version = false;
  double target_rotation = 0;        // version 2
  double scale_x = 1, scale_y = 1;   // version 1: one for both
  double output_h = 1, output_w = 1;
  double input_h = 1, input_w = 1, range = 1;  // version 1
};
struct TransformLandmarksParams {
  int64_t landmarks = 0, dimensions = 2;
  float scale = 1;
};
struct TransformTensorParams {
  int64_t in_h = 0, in_w = 0, channels = 0, out_h = 0, out_w = 0;
  bool halves = true;                // where pixels have their centres
};

struct Landmarks2TransformMatrix {
  static bool accepts(const NodeTypes& t) { return t.input_count == 1 && t.in(0, TensorType::float32) && t.out(0, TensorType::float32); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::custom, .custom_code = "Landmarks2TransformMatrix", .types = "float", .accepts = &accepts, .prepare = &prepare};
};
struct TransformLandmarks {
  static bool accepts(const NodeTypes& t) { return t.input_count == 2 && t.in(0, TensorType::float32) && t.in(1, TensorType::float32) && t.out(0, TensorType::float32); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::custom, .custom_code = "TransformLandmarks", .types = "float", .accepts = &accepts, .prepare = &prepare};
};
template <bool kHalves>
struct TransformTensorBy {
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::custom, .custom_code = kHalves ? "TransformTensorBilinear" : "TransformTensor", .types = "float", .accepts = &TransformLandmarks::accepts, .prepare = &prepare};
};
using TransformTensorBilinear = TransformTensorBy<true>;
using TransformTensor = TransformTensorBy<false>;

#if ONEWEIGHT_HAS_KERNELS
namespace landmarks {
struct Point {
  double x, y;
};
inline Point turned(Point p, double angle) {
  const double c = std::cos(angle), s = std::sin(angle);
  return {p.x * c - p.y * s, p.x * s + p.y * c};
}

inline void matrix_kernel(const KernelArgs& args) {
  const auto& p = args.params<LandmarkMatrixParams>();
  const float* in = args.in<float>(0);
  const auto point = [in](int64_t i) { return Point{static_cast<double>(in[3 * i]), static_cast<double>(in[3 * i + 1])}; };
  const Point left = point(p.left), right = point(p.right);
  const double dx = right.x - left.x, dy = right.y - left.y;
  const double angle = p.first_version ? -std::atan(dy / dx) : p.target_rotation - std::atan2(dy, dx);
  Point most = turned(point(p.subset[0]), angle), least = most;
  for (int64_t i = 1; i < p.subset_count; ++i) {
    const Point at = turned(point(p.subset[i]), angle);
    most = {std::max(most.x, at.x), std::max(most.y, at.y)}, least = {std::min(least.x, at.x), std::min(least.y, at.y)};
  }
  const Point centre = turned({(most.x + least.x) / 2, (most.y + least.y) / 2}, -angle);
  const double c = std::cos(-angle), s = std::sin(-angle);
  // Landmark coordinates of a pixel of the crop: centre + turn (pixel * scale + shift); version 1 goes on to input pixels.
  Point scale, shift, out_scale{1, 1}, middle = centre;
  if (p.first_version) {
    const double w = (most.x - least.x) * p.scale_x / p.range, h = (most.y - least.y) * p.scale_x / p.range;
    scale = {w * 2 / (p.output_w - 1), h * 2 / (p.output_h - 1)};
    shift = {-w, -h};
    out_scale = {(p.input_w - 1) / 2, (p.input_h - 1) / 2};
    // Relative to the range, from -1 to 1; then from 0 to the input's last pixel.
    middle = {centre.x / p.range * 2, centre.y / p.range * 2};
  } else {
    scale = {p.scale_x * (most.x - least.x) / p.output_w, p.scale_y * (most.y - least.y) / p.output_h};
    shift = {-scale.x * p.output_w / 2, -scale.y * p.output_h / 2};
  }
  const double m[16] = {out_scale.x * c * scale.x, -out_scale.x * s * scale.y, 0, out_scale.x * (c * shift.x - s * shift.y + middle.x),
                        out_scale.y * s * scale.x, out_scale.y * c * scale.y,  0, out_scale.y * (s * shift.x + c * shift.y + middle.y),
                        0, 0, 1, 0, 0, 0, 0, 1};
  for (int i = 0; i < 16; ++i) args.out<float>(0)[i] = static_cast<float>(m[i]);
}

inline void transform_kernel(const KernelArgs& args) {
  const auto& p = args.params<TransformLandmarksParams>();
  const float *in = args.in<float>(0), *m = args.in<float>(1);
  float* out = args.out<float>(0);
  for (int64_t i = 0; i < p.landmarks; ++i, in += p.dimensions, out += p.dimensions) {
    const float x = in[0], y = in[1];
    out[0] = x * m[0] + y * m[1] + m[3] * p.scale;
    out[1] = x * m[4] + y * m[5] + m[7] * p.scale;
    if (p.dimensions == 3) out[2] = in[2];
  }
}

inline void crop_kernel(const KernelArgs& args) {
  const auto& p = args.params<TransformTensorParams>();
  const float* m = args.in<float>(1);
  double row_x[3] = {static_cast<double>(m[0]), static_cast<double>(m[1]), static_cast<double>(m[3])};
  double row_y[3] = {static_cast<double>(m[4]), static_cast<double>(m[5]), static_cast<double>(m[7])};
  if (p.halves)
    for (double* r : {row_x, row_y}) r[2] += (r[0] + r[1] - 1) / 2;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const float* image = args.in<float>(0) + row / p.out_h * p.in_h * p.in_w * p.channels;
    float* out = args.out<float>(0) + row * p.out_w * p.channels;
    const auto y_out = static_cast<double>(row % p.out_h);
    for (int64_t i = 0; i < p.out_w; ++i, out += p.channels) {
      const double x_out = static_cast<double>(i);
      const float x = static_cast<float>(row_x[0] * x_out + row_x[1] * y_out + row_x[2]);
      const float y = static_cast<float>(row_y[0] * x_out + row_y[1] * y_out + row_y[2]);
      if (!(x >= 0 && x <= static_cast<float>(p.in_w - 1) && y >= 0 && y <= static_cast<float>(p.in_h - 1))) {
        std::fill(out, out + p.channels, 0.0f);
        continue;
      }
      const auto left = std::min(static_cast<int64_t>(x), p.in_w - 1), top = std::min(static_cast<int64_t>(y), p.in_h - 1);
      const float fx = x - static_cast<float>(left), fy = y - static_cast<float>(top);
      // Behind the last pixel the weight is 0: take the last again.
      const int64_t right = std::min(left + 1, p.in_w - 1), bottom = std::min(top + 1, p.in_h - 1);
      const auto at = [&](int64_t r, int64_t c) { return image + (r * p.in_w + c) * p.channels; };
      const float *a = at(top, left), *b = at(top, right), *c = at(bottom, left), *d = at(bottom, right);
      for (int64_t k = 0; k < p.channels; ++k) {
        const float upper = (1 - fx) * a[k] + fx * b[k], lower = (1 - fx) * c[k] + fx * d[k];
        out[k] = fy * lower + (1 - fy) * upper;
      }
    }
  }
}

// Input 1 is one 4 x 4 matrix.
inline Status check_matrix(const Preparation& p) {
  if (p.input(1).shape.elements() == 16) return {};
  return p.invalid("%s is not a 4 x 4 matrix", p.describe(p.input(1)).c_str());
}
}  // namespace landmarks

ONEWEIGHT_INLINE Status Landmarks2TransformMatrix::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const std::vector<std::byte>& bytes = p.op().custom_options;
  FlexMap options;
  if (!options.open(bytes)) return p.invalid("its %zu bytes of options are not a flexbuffer map", bytes.size());
  LandmarkMatrixParams* params = p.make_params<LandmarkMatrixParams>();
  if (!params) return p.no_memory();
  std::vector<int64_t> subset, in_size, out_size;
  params->first_version = options.get_ints("subset", &subset);
  if (params->first_version) {
    if (!options.get_ints("input_hw", &in_size) || !options.get_ints("output_hw", &out_size) || in_size.size() != 2 || out_size.size() != 2)
      return p.invalid("has no input_hw or output_hw of two numbers");
    if (const int64_t d = options.get_int("dimensions", 3); d != 3) return p.invalid("dimensions %lld is not 3", static_cast<long long>(d));
    params->scale_x = options.get_real("bbox_size_multiplier", 0);
    params->scale_y = params->scale_x;
    params->range = options.get_real("landmarks_range", 0);
    params->input_h = static_cast<double>(in_size[0]), params->input_w = static_cast<double>(in_size[1]);
    params->output_h = static_cast<double>(out_size[0]), params->output_w = static_cast<double>(out_size[1]);
  } else {
    options.get_ints("subset_idxs", &subset);
    params->target_rotation = options.get_real("target_rotation_radians", 0);
    params->scale_x = options.get_real("scale_x", 0), params->scale_y = options.get_real("scale_y", 0);
    params->output_h = options.get_real("output_height", 0), params->output_w = options.get_real("output_width", 0);
  }
  for (const double size : {params->scale_x, params->scale_y, params->range, params->input_h, params->input_w, params->output_h, params->output_w})
    if (!(size > 0)) return p.invalid("its scales and sizes must be more than 0, but one is %g", size);
  const Operand& in = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(in, 3, 4));
  const int64_t count = in.shape.elements() / 3;
  if (in.shape[0] != 1 || in.shape.elements() % 3 != 0) return p.invalid("%s is not one image's landmarks", p.describe(in).c_str());
  params->left = options.get_int("left_rotation_idx", -1), params->right = options.get_int("right_rotation_idx", -1);
  if (subset.empty()) return p.invalid("has no subset of landmarks");
  const auto inside = [&](int64_t i) { return i >= 0 && i < count; };
  for (int64_t i : subset)
    if (!inside(i)) return p.invalid("landmark %lld of its subset is not among %lld", static_cast<long long>(i), static_cast<long long>(count));
  if (!inside(params->left) || !inside(params->right))
    return p.invalid("landmarks %lld and %lld are not among %lld", static_cast<long long>(params->left), static_cast<long long>(params->right), static_cast<long long>(count));
  int64_t* kept = p.derived<int64_t>(static_cast<int64_t>(subset.size()));
  if (!kept) return p.no_memory();
  std::copy(subset.begin(), subset.end(), kept);
  params->subset = kept, params->subset_count = static_cast<int64_t>(subset.size());
  p.set_kernel(&landmarks::matrix_kernel);
  return p.set_output(0, {1, 4, 4});
}

ONEWEIGHT_INLINE Status TransformLandmarks::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand& in = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(in, 3, 4));
  ONEWEIGHT_RETURN_IF_ERROR(landmarks::check_matrix(p));
  TransformLandmarksParams* params = p.make_params<TransformLandmarksParams>();
  if (!params) return p.no_memory();
  const int64_t last = in.shape[in.shape.rank() - 1];
  params->dimensions = last;
  if (in.shape.rank() == 4) {
    const std::vector<std::byte>& bytes = p.op().custom_options;
    FlexMap options;
    if (!options.open(bytes)) return p.invalid("its %zu bytes of options are not a flexbuffer map", bytes.size());
    params->dimensions = options.get_int("dimensions", 0);
    params->scale = static_cast<float>(options.get_real("scale", 1));
    if (params->scale == 0) return p.invalid("its scale is 0");
  }
  if (params->dimensions != 2 && params->dimensions != 3)
    return p.invalid("landmarks of %lld numbers are neither flat (2) nor in space (3)", static_cast<long long>(params->dimensions));
  if (last % params->dimensions != 0) return p.invalid("%s does not hold landmarks of %lld numbers", p.describe(in).c_str(), static_cast<long long>(params->dimensions));
  params->landmarks = in.shape.elements() / params->dimensions;
  p.set_kernel(&landmarks::transform_kernel);
  p.allow_in_place(0);
  return p.set_output(0, in.shape);
}

template <bool kHalves>
Status TransformTensorBy<kHalves>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand& in = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(in, 4, 4));
  ONEWEIGHT_RETURN_IF_ERROR(landmarks::check_matrix(p));
  const std::vector<std::byte>& bytes = p.op().custom_options;
  FlexMap options;
  if (!options.open(bytes)) return p.invalid("its %zu bytes of options are not a flexbuffer map", bytes.size());
  TransformTensorParams* params = p.make_params<TransformTensorParams>();
  if (!params) return p.no_memory();
  std::vector<int64_t> size{options.get_int("output_height", 0), options.get_int("output_width", 0)};
  if constexpr (!kHalves) options.get_ints("output_size", &size);
  if (size.size() != 2 || size[0] <= 0 || size[1] <= 0 || size[0] >= int64_t{1} << 31 || size[1] >= int64_t{1} << 31)
    return p.invalid("the size of its output is not valid");
  *params = {in.shape[1], in.shape[2], in.shape[3], size[0], size[1], kHalves};
  p.set_kernel(&landmarks::crop_kernel, in.shape[0] * size[0]);
  return p.set_output(0, {in.shape[0], size[0], size[1], in.shape[3]});
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_TRANSFORM_LANDMARKS_H
