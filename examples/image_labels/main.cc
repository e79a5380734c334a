// What is in a picture: the five likeliest classes.
//   image_labels MODEL.tflite LABELS.txt PICTURE     (float pictures from -1 to 1, or quantised ones)
#include <oneweight/oneweight.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>

static int report(const oneweight::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

// The picture stretched to width x height, channels from low to high.
static std::vector<float> load_picture(const char* path, int width, int height, float low, float high) {
  int w = 0, h = 0, channels = 0;
  unsigned char* pixels = stbi_load(path, &w, &h, &channels, 3);
  std::vector<float> values;
  for (int y = 0; pixels && y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        values.push_back(low + (high - low) / 255 * static_cast<float>(pixels[(static_cast<size_t>(y) * h / height * w + static_cast<size_t>(x) * w / width) * 3 + c]));
  stbi_image_free(pixels);
  return values;
}

int main(int count, char** arguments) {
  if (count != 4) return std::fprintf(stderr, "usage: image_labels MODEL.tflite LABELS.txt PICTURE\n"), 2;
  std::ifstream file(arguments[2]);
  std::vector<std::string> labels;
  for (std::string line; std::getline(file, line);) labels.push_back(line);

  auto model = oneweight::ModelView::open(arguments[1]);
  if (!model.ok()) return report(model.status());
  auto plan = oneweight::make_plan<oneweight::opset::All>(*model);
  if (!plan.ok()) return report(plan.status());
  auto context = oneweight::ExecutionContext::create(*plan);
  if (!context.ok()) return report(context.status());

  const oneweight::PlanTensor& input = context->input_tensor(0);
  if (input.shape.rank() != 4 || input.shape[3] != 3) return std::fprintf(stderr, "the model does not take a picture in colours\n"), 1;
  // Quantised models take bytes: what they stand for is the range of the quantisation.
  const bool quantized = input.type != oneweight::TensorType::float32;
  const float scale = quantized && !input.quantization->scales.empty() ? input.quantization->scales[0] : 1;
  const float zero = quantized && !input.quantization->zero_points.empty() ? static_cast<float>(input.quantization->zero_points[0]) : 0;
  const float lowest = input.type == oneweight::TensorType::int8 ? -128.0f : 0.0f;
  const float low = quantized ? scale * (lowest - zero) : -1.0f, high = quantized ? scale * (lowest + 255 - zero) : 1.0f;
  const auto picture = load_picture(arguments[3], static_cast<int>(input.shape[2]), static_cast<int>(input.shape[1]), low, high);
  if (picture.empty()) return std::fprintf(stderr, "%s: %s\n", arguments[3], stbi_failure_reason()), 1;
  if (auto status = oneweight::set_real_input(*context, 0, picture); !status.ok()) return report(status);
  if (auto status = context->run(); !status.ok()) return report(status);

  std::vector<float> scores(static_cast<size_t>(context->output_tensor(0).shape.elements()));
  if (auto status = oneweight::get_real_output(*context, 0, scores); !status.ok()) return report(status);
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  for (size_t i = 0; i < std::min<size_t>(5, order.size()); ++i)
    std::printf("%.3f  %s\n", static_cast<double>(scores[order[i]]), order[i] < labels.size() ? labels[order[i]].c_str() : std::to_string(order[i]).c_str());
  return 0;
}
