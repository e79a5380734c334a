// A picture in, and what its answer means: classes, boxes, landmarks, masks.
#ifndef ONEWEIGHT_EXAMPLES_PICTURE_RUN_H
#define ONEWEIGHT_EXAMPLES_PICTURE_RUN_H

#include <string>
#include <vector>

#include "common.h"
#include "image.h"
#include "metadata.h"

namespace program {

struct PictureArguments {
  std::string image, out_image, labels;  // paths; empty: none
  std::string fit = "auto";              // stretch, letterbox, crop
  std::vector<float> range;              // what black and white become; empty: as the model says
  float score = 0.5f;                    // boxes below are left out
};

// Puts a picture into the model's first picture input (zeros into all others) and, after the run, says what the outputs are.
class PictureRun {
 public:
  // Errors: those of files; unsupported when the model takes no picture.
  static oneweight::Expected<PictureRun> open(const PictureArguments& arguments, const Planned& planned);
  oneweight::Status fill(oneweight::ExecutionContext& context);
  // Prints what is understood and writes the picture that was asked for. False where no output was understood.
  oneweight::Expected<bool> show(const oneweight::ExecutionContext& context, int top);

 private:
  struct Values {                        // of an output, as real numbers
    std::vector<int64_t> shape;
    std::vector<float> data;
    bool integer = false;
    int64_t last() const { return shape.empty() ? 1 : shape.back(); }
  };
  struct Box {
    float left, top, right, bottom, score;  // in pixels of the picture
    int label = -1;
    std::vector<std::pair<float, float>> points;
  };
  // Anchors of a detector whose raw boxes are offsets from them (MediaPipe's face, palm and pose detectors).
  struct Anchors {
    std::vector<std::pair<float, float>> centres;  // in [0, 1]
    float low = -1;                                // what black becomes; white is 1
  };

  static Anchors find_anchors(int64_t count, int64_t width, int64_t height);
  // Points and numbers a point of a landmark output, or 0.
  static int landmark_points(int64_t elements, int* numbers);
  int output_with(int64_t rows, int64_t last) const;  // [1, rows, last], or -1
  std::string name_of(int label) const;

  bool show_detections(const std::vector<Values>& outputs);
  bool show_anchored(const std::vector<Values>& outputs);
  bool show_landmarks(const std::vector<Values>& outputs);
  bool show_mask(const std::vector<Values>& outputs);
  bool show_classes(const std::vector<Values>& outputs, int top);
  void show_boxes(std::vector<Box> boxes);

  PictureArguments arguments_;
  std::shared_ptr<const oneweight::Plan> plan_;
  Metadata metadata_;
  std::vector<std::string> labels_;
  int input_ = 0, height_ = 0, width_ = 0, channels_ = 0;
  Anchors anchors_;
  Image picture_, drawing_;
  Placement placement_;
};

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_PICTURE_RUN_H
