// Which pixels belong to what: the mask of a segmentation model as a grey picture, one shade a class.
//   segmentation_mask MODEL.tflite PICTURE MASK.png     (float pictures from 0 to 1, or quantised ones)
#include <oneweight/oneweight.h>

#include <algorithm>
#include <cstdio>
#include <map>
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
  if (count != 4) return std::fprintf(stderr, "usage: segmentation_mask MODEL.tflite PICTURE MASK.png\n"), 2;
  auto model = oneweight::ModelView::open(arguments[1]);
  if (!model.ok()) return report(model.status());
  auto plan = oneweight::make_plan<oneweight::opset::All>(*model);
  if (!plan.ok()) return report(plan.status());
  auto context = oneweight::ExecutionContext::create(*plan);
  if (!context.ok()) return report(context.status());
  const oneweight::PlanTensor &input = context->input_tensor(0), &output = context->output_tensor(0);
  if (input.shape.rank() != 4 || input.shape[3] != 3 || output.shape.rank() < 3 || output.shape[0] != 1)
    return std::fprintf(stderr, "the model gives no mask\n"), 1;

  int w = 0, h = 0, channels = 0;
  unsigned char* pixels = stbi_load(arguments[2], &w, &h, &channels, 3);
  if (!pixels) return std::fprintf(stderr, "%s: %s\n", arguments[2], stbi_failure_reason()), 1;
  // Black and white: the ends of what a quantised input can hold, else 0 and 1.
  const bool quantized = input.type != oneweight::TensorType::float32 && !input.quantization->scales.empty();
  const float lowest = input.type == oneweight::TensorType::int8 ? -128.0f : 0.0f, scale = quantized ? input.quantization->scales[0] : 1.0f / 255;
  const float black = quantized ? scale * (lowest - static_cast<float>(input.quantization->zero_points[0])) : 0;
  std::vector<float> values;
  const int64_t height = input.shape[1], width = input.shape[2];
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < 3; ++c) values.push_back(black + scale * static_cast<float>(pixels[(y * h / height * w + x * w / width) * 3 + c]));
  stbi_image_free(pixels);
  if (auto status = oneweight::set_real_input(*context, 0, values); !status.ok()) return report(status);
  if (auto status = context->run(); !status.ok()) return report(status);

  // Numbers of classes, or a score for each class: [1, rows, columns] or [1, rows, columns, classes].
  const int64_t rows = output.shape[1], columns = output.shape[2], classes = output.shape.rank() == 4 ? output.shape[3] : 1;
  std::vector<float> scores(static_cast<size_t>(output.shape.elements()));
  if (output.type == oneweight::TensorType::int64) {
    auto numbers = context->output<int64_t>(0);
    std::transform(numbers->begin(), numbers->end(), scores.begin(), [](int64_t n) { return static_cast<float>(n); });
  } else if (auto status = oneweight::get_real_output(*context, 0, scores); !status.ok()) {
    return report(status);
  }
  const bool numbered = classes == 1 && output.type != oneweight::TensorType::float32;
  std::vector<unsigned char> mask;
  std::map<int, int> area;
  for (int64_t i = 0; i < rows * columns; ++i) {
    const float* at = scores.data() + i * classes;
    const int label = numbered ? static_cast<int>(*at) : classes == 1 ? *at > 0.5f : static_cast<int>(std::max_element(at, at + classes) - at);
    mask.push_back(static_cast<unsigned char>(classes == 1 && !numbered ? 255 * label : 12 * label));
    ++area[label];
  }
  for (const auto& [label, cells] : area)
    std::printf("class %d: %.1f %%\n", label, 100.0 * cells / static_cast<double>(rows * columns));
  const int mask_width = static_cast<int>(columns), mask_height = static_cast<int>(rows);
  if (stbi_write_png(arguments[3], mask_width, mask_height, 1, mask.data(), mask_width)) return 0;
  return std::fprintf(stderr, "cannot write %s\n", arguments[3]), 1;
}
