// The custom operator TFLite_Detection_PostProcess: decodes boxes against anchors and keeps the best ones that do not
// overlap (non-maximum suppression), over the best score of each box (fast) or class by class (regular).
//
// Inputs: box encodings [1, boxes, 4 or more] (y, x, h, w), scores [1, boxes, classes, with or without a background
// class first], anchors [boxes, 4]; float, uint8 or int8 each. Outputs, float: boxes [1, n, 4] (ymin, xmin, ymax,
// xmax), classes [1, n], scores [1, n], count [1] with n = max_detections * max_classes_per_detection. In the fast form
// the count is the number of boxes, each of which fills max_classes_per_detection slots. Slots that are not used hold
// zeros. Equal scores: the earlier box, or class, first.
#ifndef ONEWEIGHT_OPS_DETECTION_POSTPROCESS_H
#define ONEWEIGHT_OPS_DETECTION_POSTPROCESS_H

#include <algorithm>
#include <cmath>

#include "oneweight/ops/op.h"
#include "oneweight/schema/flexbuffer.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// A float, uint8 or int8 tensor that is read element by element.
struct DetectionSource {
  TensorType type = TensorType::float32;
  float scale = 1, zero_point = 0;
};
struct DetectionPostProcessParams {
  int64_t boxes = 0, box_values = 4;
  int64_t classes = 0, score_values = 0;  // without and with the background
  int64_t max_detections = 0, classes_per_detection = 1, detections_per_class = 100;
  bool regular = false;
  float score_threshold = 0, overlap_threshold = 0;
  float y_scale = 1, x_scale = 1, h_scale = 1, w_scale = 1;
  DetectionSource sources[3];
};

struct DetectionPostProcess {
  static bool accepts(const NodeTypes& t) {
    for (int i = 0; i < 3; ++i)
      if (!t.in(i, TensorType::float32) && !t.in(i, TensorType::uint8) && !t.in(i, TensorType::int8)) return false;
    for (int i = 0; i < 4; ++i)
      if (!t.out(i, TensorType::float32)) return false;
    return t.input_count == 3;
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::custom,
                                .custom_code = "TFLite_Detection_PostProcess",
                                .types = "float, uint8, int8",
                                .accepts = &accepts,
                                .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
namespace detection {
struct Box {
  float ymin, xmin, ymax, xmax;
};
struct Candidate {
  float score;
  int32_t box;
  int32_t label;  // class without the background
  int32_t rank;   // order among equal scores
};
inline bool better(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.rank < b.rank;
}

inline float read(const DetectionSource& source, const std::byte* data, int64_t index) {
  if (source.type == TensorType::float32) return Preparation::load<float>(data, index);
  const auto stored = source.type == TensorType::uint8 ? static_cast<float>(Preparation::load<uint8_t>(data, index))
                                                       : static_cast<float>(Preparation::load<int8_t>(data, index));
  return (stored - source.zero_point) * source.scale;
}

inline float overlap(const Box& a, const Box& b) {
  const float area_a = (a.ymax - a.ymin) * (a.xmax - a.xmin), area_b = (b.ymax - b.ymin) * (b.xmax - b.xmin);
  if (!(area_a > 0) || !(area_b > 0)) return 0;
  const float height = std::max(std::min(a.ymax, b.ymax) - std::max(a.ymin, b.ymin), 0.0f);
  const float width = std::max(std::min(a.xmax, b.xmax) - std::max(a.xmin, b.xmin), 0.0f);
  const float common = height * width;
  return common / (area_a + area_b - common);
}

// Sorts the candidates, drops those that overlap a better one too much, and moves the first `most` left to the front.
inline int64_t suppress(const Box* boxes, Candidate* all, int64_t count, int64_t most, float threshold) {
  std::sort(all, all + count, better);
  int64_t kept = 0;
  for (int64_t i = 0; i < count && kept < most; ++i) {
    const Candidate next = all[i];
    const auto hides = [&](const Candidate& better) { return overlap(boxes[better.box], boxes[next.box]) > threshold; };
    if (std::none_of(all, all + kept, hides)) all[kept++] = next;
  }
  return kept;
}

// The largest of `count` values from `first` on; NaN is passed over unless it is the first.
inline float largest(const DetectionSource& source, const std::byte* data, int64_t first, int64_t count) {
  if (source.type == TensorType::float32 || !(source.scale > 0)) {
    float best = read(source, data, first);
    for (int64_t i = first + 1; i < first + count; ++i) best = std::max(best, read(source, data, i));
    return best;
  }
  const uint8_t* const bytes = reinterpret_cast<const uint8_t*>(data);
  const uint8_t flip = source.type == TensorType::int8 ? 0x80 : 0;  // bytes in the order of what they stand for
  uint8_t best = 0;
  for (int64_t i = first; i < first + count; ++i) best = std::max(best, static_cast<uint8_t>(bytes[i] ^ flip));
  const auto stored = static_cast<std::byte>(best ^ flip);
  return read(source, &stored, 0);
}

inline bool decode_boxes(const DetectionPostProcessParams& p, const KernelArgs& args, Box* boxes) {
  const std::byte *encodings = args.in<std::byte>(0), *anchors = args.in<std::byte>(2);
  for (int64_t i = 0; i < p.boxes; ++i) {
    double e[4], a[4];
    for (int k = 0; k < 4; ++k) {
      e[k] = static_cast<double>(read(p.sources[0], encodings, i * p.box_values + k));
      a[k] = static_cast<double>(read(p.sources[2], anchors, i * 4 + k));
    }
    const auto y = static_cast<float>(e[0] / static_cast<double>(p.y_scale) * a[2] + a[0]);
    const auto x = static_cast<float>(e[1] / static_cast<double>(p.x_scale) * a[3] + a[1]);
    const auto half_h = static_cast<float>(0.5 * std::exp(e[2] / static_cast<double>(p.h_scale)) * a[2]);
    const auto half_w = static_cast<float>(0.5 * std::exp(e[3] / static_cast<double>(p.w_scale)) * a[3]);
    boxes[i] = {y - half_h, x - half_w, y + half_h, x + half_w};
    if (boxes[i].ymin > boxes[i].ymax || boxes[i].xmin > boxes[i].xmax) {
      args.run->fail(ErrorCode::invalid_data, "box %lld has a negative size (anchor %g x %g)",
                     static_cast<long long>(i), a[2], a[3]);
      return false;
    }
  }
  return true;
}

inline void write(const KernelArgs& args, int64_t slot, const Box& box, int64_t label, float score) {
  std::memcpy(args.out<float>(0) + 4 * slot, &box, sizeof(box));
  args.out<float>(1)[slot] = static_cast<float>(label);
  args.out<float>(2)[slot] = score;
}

inline void kernel(const KernelArgs& args) {
  const auto& p = args.params<DetectionPostProcessParams>();
  auto* boxes = reinterpret_cast<Box*>(args.scratch);
  auto* candidates = reinterpret_cast<Candidate*>(boxes + p.boxes);
  auto* kept = candidates + p.boxes;  // regular only: max_detections + detections_per_class
  const std::byte* scores = args.in<std::byte>(1);
  const int64_t background = p.score_values - p.classes, slots = p.max_detections * p.classes_per_detection;
  std::memset(args.out<float>(0), 0, static_cast<size_t>(slots) * sizeof(Box));
  std::memset(args.out<float>(1), 0, static_cast<size_t>(slots) * sizeof(float));
  std::memset(args.out<float>(2), 0, static_cast<size_t>(slots) * sizeof(float));
  args.out<float>(3)[0] = 0;
  if (!decode_boxes(p, args, boxes)) return;
  const auto score = [&](int64_t box, int64_t label) {
    return read(p.sources[1], scores, box * p.score_values + background + label);
  };

  if (p.regular) {
    int64_t total = 0;
    for (int64_t label = 0; label < p.classes; ++label) {
      int64_t count = 0;
      for (int64_t i = 0; i < p.boxes; ++i)
        if (const float s = score(i, label); s >= p.score_threshold)
          candidates[count++] = {s, static_cast<int32_t>(i), static_cast<int32_t>(label), static_cast<int32_t>(i)};
      const int64_t fresh = suppress(boxes, candidates, count, p.detections_per_class, p.overlap_threshold);
      std::copy(candidates, candidates + fresh, kept + total);
      total += fresh;
      for (int64_t i = 0; i < total; ++i) kept[i].rank = static_cast<int32_t>(i);
      std::sort(kept, kept + total, better);
      total = std::min(total, p.max_detections);
    }
    for (int64_t i = 0; i < total; ++i) write(args, i, boxes[kept[i].box], kept[i].label, kept[i].score);
    args.out<float>(3)[0] = static_cast<float>(total);
    return;
  }

  int64_t count = 0;
  for (int64_t i = 0; i < p.boxes; ++i) {
    const float best = largest(p.sources[1], scores, i * p.score_values + background, p.classes);
    if (best >= p.score_threshold) candidates[count++] = {best, static_cast<int32_t>(i), 0, static_cast<int32_t>(i)};
  }
  count = suppress(boxes, candidates, count, p.max_detections, p.overlap_threshold);
  for (int64_t i = 0; i < count; ++i) {
    // The best classes of this box one after the other, by repeated search: there are few.
    float above = std::numeric_limits<float>::infinity();
    int64_t last = -1;
    for (int64_t k = 0; k < std::min(p.classes_per_detection, p.classes); ++k) {
      int64_t label = -1;
      float best = 0;
      for (int64_t c = 0; c < p.classes; ++c) {
        const float s = score(candidates[i].box, c);
        const bool follows = k == 0 || s < above || (s == above && c > last);
        if (follows && (label < 0 || s > best)) label = c, best = s;
      }
      if (label < 0) break;  // only NaN is left
      write(args, i * p.classes_per_detection + k, boxes[candidates[i].box], label, best);
      above = best, last = label;
    }
  }
  args.out<float>(3)[0] = static_cast<float>(count);
}
}  // namespace detection

ONEWEIGHT_INLINE Status DetectionPostProcess::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(3, 3, 4));
  const std::vector<std::byte>& bytes = p.op().custom_options;
  FlexMap options;
  if (!options.open(bytes)) return p.invalid("its %zu bytes of options are not a flexbuffer map", bytes.size());
  DetectionPostProcessParams* params = p.make_params<DetectionPostProcessParams>();
  if (!params) return p.no_memory();
  DetectionPostProcessParams& d = *params;
  const auto real = [&](const char* name) { return static_cast<float>(options.get_real(name, 0)); };
  d.max_detections = options.get_int("max_detections", 0);
  d.classes_per_detection = options.get_int("max_classes_per_detection", 0);
  d.detections_per_class = options.get_int("detections_per_class", 100);
  d.classes = options.get_int("num_classes", 0);
  d.regular = options.get_bool("use_regular_nms", false);
  d.score_threshold = real("nms_score_threshold");
  d.overlap_threshold = real("nms_iou_threshold");
  d.y_scale = real("y_scale"), d.x_scale = real("x_scale"), d.h_scale = real("h_scale"), d.w_scale = real("w_scale");
  constexpr int64_t kMost = 1 << 20;
  for (const int64_t n : {d.max_detections, d.classes_per_detection, d.detections_per_class, d.classes})
    if (n <= 0 || n > kMost)
      return p.invalid(
          "max_detections %lld, max_classes_per_detection %lld, detections_per_class %lld or num_classes %lld is not "
          "valid",
          static_cast<long long>(d.max_detections), static_cast<long long>(d.classes_per_detection),
          static_cast<long long>(d.detections_per_class), static_cast<long long>(d.classes));
  if (!(d.overlap_threshold > 0) || !(d.overlap_threshold <= 1))
    return p.invalid("nms_iou_threshold %g is not in (0, 1]", static_cast<double>(d.overlap_threshold));
  for (const float scale : {d.y_scale, d.x_scale, d.h_scale, d.w_scale})
    if (scale == 0 || !std::isfinite(scale))
      return p.invalid("the box scale %g is not valid", static_cast<double>(scale));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(p.input(0), 3, 3));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(p.input(1), 3, 3));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(p.input(2), 2, 2));
  const Shape &boxes = p.input(0).shape, &scores = p.input(1).shape, &anchors = p.input(2).shape;
  d.boxes = boxes[1], d.box_values = boxes[2], d.score_values = scores[2];
  if (boxes[0] != 1 || scores[0] != 1 || scores[1] != d.boxes || anchors[0] != d.boxes || anchors[1] != 4 ||
      d.box_values < 4 || d.boxes > INT32_MAX)
    return p.invalid("%s, %s and %s do not fit together", p.describe(p.input(0)).c_str(),
                     p.describe(p.input(1)).c_str(), p.describe(p.input(2)).c_str());
  if (d.score_values != d.classes && d.score_values != d.classes + 1)
    return p.invalid("num_classes is %lld, but there are %lld scores a box", static_cast<long long>(d.classes),
                     static_cast<long long>(d.score_values));
  for (int i = 0; i < 3; ++i) {
    const Operand& t = p.input(i);
    if (t.type != TensorType::float32 && !(t.scale() > 0)) return p.invalid("%s has no scale", p.describe(t).c_str());
    d.sources[i] = {t.type, t.scale(), static_cast<float>(t.zero_point())};
  }
  const int64_t slots = d.max_detections * d.classes_per_detection;
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, Shape{1, slots, 4}));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(1, Shape{1, slots}));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(2, Shape{1, slots}));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(3, Shape{1}));
  const int64_t kept = d.regular ? d.max_detections + std::min(d.detections_per_class, d.boxes) : 0;
  p.set_scratch(d.boxes * static_cast<int64_t>(sizeof(detection::Box)) +
                (d.boxes + kept) * static_cast<int64_t>(sizeof(detection::Candidate)));
  p.set_kernel(&detection::kernel);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_DETECTION_POSTPROCESS_H
