#include "tests/support/flexbuffer_map.h"
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

struct Detection {
  double max_detections = 2, classes_per_detection = 1, num_classes = 2, regular = 0, overlap = 0.5, score = 0.1,
         scale = 1;
};
std::vector<uint8_t> options_of(const Detection& d) {
  return flexbuffer_map({{"detections_per_class", 10},
                         {"h_scale", d.scale},
                         {"max_classes_per_detection", d.classes_per_detection},
                         {"max_detections", d.max_detections},
                         {"nms_iou_threshold", d.overlap},
                         {"nms_score_threshold", d.score},
                         {"num_classes", d.num_classes},
                         {"use_regular_nms", d.regular},
                         {"w_scale", 1},
                         {"x_scale", 1},
                         {"y_scale", 1}});
}

// Four anchors of 2 x 2 at y 0, 0, 10, 20 and x 0; boxes 0 and 1 nearly coincide.
std::vector<RunResult> detect(const std::vector<uint8_t>& options, const std::vector<float>& scores, int32_t columns) {
  ModelBuilder m;
  const int boxes = m.tensor(TensorType::float32, {1, 4, 4}, "boxes"),
            s = m.tensor(TensorType::float32, {1, 4, columns}, "scores");
  const int anchors = m.tensor(TensorType::float32, {4, 4}, "anchors")
                          .values<float>({0, 0, 2, 2, 0, 0, 2, 2, 10, 0, 2, 2, 20, 0, 2, 2});
  std::vector<int32_t> out;
  for (int i = 0; i < 4; ++i) out.push_back(m.tensor(TensorType::float32, {}));
  m.custom_op("TFLite_Detection_PostProcess", {boxes, s, anchors}, out).custom_options(options);
  m.inputs({boxes, s}).outputs(out);
  const std::vector<float> encodings = {0, 0, 0, 0, 0.05f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  return run_on_targets(m, {bytes_of(encodings), bytes_of(scores)});
}

}  // namespace

TEST_CASE("the best boxes that do not overlap, over all classes", "[ops][detection_postprocess]") {
  // With a background column first.
  const auto r = detect(options_of({}), {0, 0.2f, 0.6f, 0, 0.9f, 0.3f, 0, 0.05f, 0.02f, 0, 0.7f, 0.8f}, 3);
  check_values<float>(r, {1, 2, 4}, {-0.9f, -1, 1.1f, 1, 19, -1, 21, 1}, 1e-6, 0);
  check_values<float>(r, {1, 2}, {0, 1}, 0, 1);
  check_values<float>(r, {1, 2}, {0.9f, 0.8f}, 0, 2);
  check_values<float>(r, {1}, {2}, 0, 3);
}

TEST_CASE("several classes for each box, unused slots are zero", "[ops][detection_postprocess]") {
  Detection d;
  d.max_detections = 4, d.classes_per_detection = 3;
  const auto r = detect(options_of(d), {0.2f, 0.6f, 0, 0, 0, 0, 0.5f, 0.5f}, 2);
  check_values<float>(r, {1, 12}, {1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, 0, 1);
  check_values<float>(r, {1, 12}, {0.6f, 0.2f, 0, 0.5f, 0.5f, 0, 0, 0, 0, 0, 0, 0}, 0, 2);
  check_values<float>(r, {1}, {2}, 0, 3);
}

TEST_CASE("class by class", "[ops][detection_postprocess]") {
  Detection d;
  d.max_detections = 4, d.regular = 1;
  const auto r = detect(options_of(d), {0.2f, 0.6f, 0.9f, 0.3f, 0.05f, 0.02f, 0.7f, 0.8f}, 2);
  check_values<float>(r, {1, 4}, {0, 1, 0, 1}, 0, 1);
  check_values<float>(r, {1, 4}, {0.9f, 0.8f, 0.7f, 0.6f}, 0, 2);
  check_values<float>(r, {1}, {4}, 0, 3);
}

TEST_CASE("damaged or senseless options are refused", "[ops][detection_postprocess]") {
  const std::vector<float> scores(8, 0.5f);
  const auto refused = [&](const std::vector<uint8_t>& options, const char* words) {
    check_refused(detect(options, scores, 2), ErrorCode::invalid_model, words);
  };
  refused({}, "are not a flexbuffer map");
  refused({1, 2, 3, 4, 5}, "are not a flexbuffer map");
  const std::vector<uint8_t> good = options_of({});
  for (size_t cut = 0; cut < good.size(); ++cut) {  // must not read outside; most of these are no map
    std::vector<uint8_t> part(good.begin() + static_cast<long>(cut), good.end());
    (void)detect(part, scores, 2);
  }
  Detection d;
  d.max_detections = 0;
  refused(options_of(d), "max_detections 0");
  d = {}, d.overlap = 0;
  refused(options_of(d), "nms_iou_threshold 0");
  d = {}, d.scale = 0;
  refused(options_of(d), "the box scale 0 is not valid");
  d = {}, d.num_classes = 4;
  refused(options_of(d), "num_classes is 4, but there are 2 scores a box");
}
