// Boxes around what a detector finds, drawn into the picture. For models that end in TFLite_Detection_PostProcess.
//   object_boxes MODEL.tflite PICTURE OUT.png
#include <oneweight/oneweight.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>

static int report(const oneweight::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

int main(int count, char** arguments) {
  if (count != 4) return std::fprintf(stderr, "usage: object_boxes MODEL.tflite PICTURE OUT.png\n"), 2;
  auto model = oneweight::ModelView::open(arguments[1]);
  if (!model.ok()) return report(model.status());
  auto plan = oneweight::make_plan<oneweight::opset::All>(*model);
  if (!plan.ok()) return report(plan.status());
  auto context = oneweight::ExecutionContext::create(*plan);
  if (!context.ok()) return report(context.status());
  const oneweight::PlanTensor& input = context->input_tensor(0);
  if (input.shape.rank() != 4 || input.shape[3] != 3 || (*plan)->outputs().size() < 4)
    return std::fprintf(stderr, "the model is no detector of this kind\n"), 1;

  int w = 0, h = 0, channels = 0;
  unsigned char* pixels = stbi_load(arguments[2], &w, &h, &channels, 3);
  if (!pixels) return std::fprintf(stderr, "%s: %s\n", arguments[2], stbi_failure_reason()), 1;
  std::vector<float> values;  // the picture stretched to the model's size, from -1 to 1
  const int64_t height = input.shape[1], width = input.shape[2];
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < 3; ++c) values.push_back(static_cast<float>(pixels[(y * h / height * w + x * w / width) * 3 + c]) / 127.5f - 1);
  if (auto status = oneweight::set_real_input(*context, 0, values); !status.ok()) return report(status);
  for (int i = 1; i < static_cast<int>((*plan)->inputs().size()); ++i) {  // the state of a detector for video: nothing seen yet
    const std::vector<float> zeros(static_cast<size_t>(context->input_tensor(i).shape.elements()));
    if (auto status = oneweight::set_real_input(*context, i, zeros); !status.ok()) return report(status);
  }
  if (auto status = context->run(); !status.ok()) return report(status);

  auto boxes = context->output<float>(0), classes = context->output<float>(1), scores = context->output<float>(2), found = context->output<float>(3);
  if (!boxes.ok() || !classes.ok() || !scores.ok() || !found.ok() || found->empty()) return std::fprintf(stderr, "the model is no detector of this kind\n"), 1;
  const auto paint = [&](int64_t x, int64_t y) {
    if (x >= 0 && y >= 0 && x < w && y < h) pixels[(y * w + x) * 3] = 255, pixels[(y * w + x) * 3 + 1] = pixels[(y * w + x) * 3 + 2] = 0;
  };
  const auto pixel = [](float part, int size) { return static_cast<int64_t>(std::clamp(part, 0.0f, 1.0f) * static_cast<float>(size - 1)); };
  for (size_t i = 0; i < std::min(scores->size(), static_cast<size_t>(std::max(0.0f, (*found)[0]))); ++i) {
    if (!((*scores)[i] >= 0.3f) || boxes->size() < 4 * (i + 1) || classes->size() <= i) continue;
    const float* box = boxes->data() + 4 * i;
    const int64_t top = pixel(box[0], h), left = pixel(box[1], w), bottom = pixel(box[2], h), right = pixel(box[3], w);
    std::printf("class %.0f, score %.2f: (%lld, %lld) to (%lld, %lld)\n", static_cast<double>((*classes)[i]), static_cast<double>((*scores)[i]),
                static_cast<long long>(left), static_cast<long long>(top), static_cast<long long>(right), static_cast<long long>(bottom));
    for (int64_t x = left; x <= right; ++x) paint(x, top), paint(x, bottom);
    for (int64_t y = top; y <= bottom; ++y) paint(left, y), paint(right, y);
  }
  const bool written = stbi_write_png(arguments[3], w, h, 3, pixels, 3 * w) != 0;
  stbi_image_free(pixels);
  return written ? 0 : (std::fprintf(stderr, "cannot write %s\n", arguments[3]), 1);
}
