#include "picture_run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>

#include "compare.h"

namespace program {

using oneweight::ErrorCode;
using oneweight::make_error;
using oneweight::TensorType;

namespace {

float logistic(float x) { return 1 / (1 + std::exp(-std::clamp(x, -100.0f, 100.0f))); }

}  // namespace

PictureRun::Anchors PictureRun::find_anchors(int64_t count, int64_t width, int64_t height) {
  // Strides of the feature maps as in MediaPipe's graphs; equal neighbours share a map, each with `each` anchors a cell.
  struct Known {
    std::vector<int64_t> strides;
    int each;
    float low;
  };
  static const Known kKnown[] = {{{8, 16, 16, 16}, 2, -1}, {{16, 32, 32, 32}, 2, -1}, {{8, 16, 32, 32, 32}, 2, -1}, {{4}, 1, -1}};
  for (const Known& known : kKnown) {
    Anchors anchors;
    for (size_t i = 0; i < known.strides.size();) {
      size_t same = i;
      while (same < known.strides.size() && known.strides[same] == known.strides[i]) ++same;
      const int64_t rows = (height + known.strides[i] - 1) / known.strides[i], columns = (width + known.strides[i] - 1) / known.strides[i];
      if (rows * columns > 1 << 20) return {};
      for (int64_t y = 0; y < rows; ++y)
        for (int64_t x = 0; x < columns; ++x)
          for (size_t k = 0; k < known.each * (same - i); ++k)
            anchors.centres.push_back({(static_cast<float>(x) + 0.5f) / static_cast<float>(columns), (static_cast<float>(y) + 0.5f) / static_cast<float>(rows)});
      i = same;
    }
    anchors.low = count == 2016 && width == 192 ? 0.0f : known.low;  // the palm detector takes [0, 1]
    if (static_cast<int64_t>(anchors.centres.size()) == count) return anchors;
  }
  return {};
}

int PictureRun::landmark_points(int64_t elements, int* numbers) {
  struct Known {
    int points, numbers;
  };
  // Face (with and without irises), hand, body (x, y, z, visibility, presence), eye, iris.
  for (const Known& k : {Known{468, 3}, Known{478, 3}, Known{21, 3}, Known{39, 5}, Known{33, 5}, Known{71, 3}, Known{5, 3}})
    if (elements == k.points * k.numbers) {
      *numbers = k.numbers;
      return k.points;
    }
  return 0;
}

int PictureRun::output_with(int64_t rows, int64_t last) const {
  for (size_t i = 0; i < plan_->outputs().size(); ++i) {
    const oneweight::Shape& s = plan_->tensors()[static_cast<size_t>(plan_->outputs()[i])].shape;
    if (s.rank() == 3 && s[0] == 1 && (rows < 0 || s[1] == rows) && (last < 0 ? s[2] > 4 : s[2] == last)) return static_cast<int>(i);
  }
  return -1;
}

std::string PictureRun::name_of(int label) const {
  if (label >= 0 && static_cast<size_t>(label) < labels_.size() && !labels_[static_cast<size_t>(label)].empty()) return labels_[static_cast<size_t>(label)];
  return "class " + std::to_string(label);
}

oneweight::Expected<PictureRun> PictureRun::open(const PictureArguments& arguments, const Planned& planned) {
  PictureRun run;
  run.arguments_ = arguments;
  run.plan_ = planned.plan;
  const auto& tensors = planned.plan->tensors();
  const auto& inputs = planned.plan->inputs();
  run.input_ = -1;
  for (size_t i = 0; i < inputs.size() && run.input_ < 0; ++i) {
    const oneweight::PlanTensor& t = tensors[static_cast<size_t>(inputs[i])];
    const bool type_fits = t.type == TensorType::float32 || t.type == TensorType::int8 || t.type == TensorType::uint8;
    if (t.shape.rank() != 4 || t.shape[0] != 1 || !type_fits || (t.shape[3] != 1 && t.shape[3] != 3)) continue;
    run.input_ = static_cast<int>(i);
    run.height_ = static_cast<int>(t.shape[1]), run.width_ = static_cast<int>(t.shape[2]), run.channels_ = static_cast<int>(t.shape[3]);
  }
  if (run.input_ < 0) return make_error(ErrorCode::unsupported, "the model has no input of shape [1, height, width, 1 or 3] for a picture");
  auto metadata = read_metadata(*planned.model);
  if (!metadata.ok()) return metadata.status();
  run.metadata_ = std::move(*metadata);
  if (!arguments.labels.empty()) {
    auto lines = read_lines(arguments.labels);
    if (!lines.ok()) return lines.status();
    run.labels_ = std::move(*lines);
  } else {
    std::string file;
    for (const TensorMetadata& output : run.metadata_.outputs)
      if (file.empty()) file = output.labels_file;
    if (auto lines = packed_lines(*planned.model, file); lines.ok()) run.labels_ = std::move(*lines);
    else if (lines.status().code() != ErrorCode::not_found) return lines.status();
  }
  const int boxes = run.output_with(-1, -1);
  if (boxes >= 0) {
    const int64_t count = tensors[static_cast<size_t>(planned.plan->outputs()[static_cast<size_t>(boxes)])].shape[1];
    if (run.output_with(count, 1) >= 0) run.anchors_ = find_anchors(count, run.width_, run.height_);
  }
  auto image = read_image(arguments.image);
  if (!image.ok()) return image.status();
  run.picture_ = std::move(*image);
  run.drawing_ = run.picture_;
  return run;
}

oneweight::Status PictureRun::fill(oneweight::ExecutionContext& context) {
  for (int i = 0; i < static_cast<int>(plan_->inputs().size()); ++i) {
    const oneweight::PlanTensor& t = context.input_tensor(i);
    if (i == input_ || t.bytes == 0) continue;
    const bool zero_is_byte = oneweight::tensor_type_bits(t.type) == 8 && !t.quantization->zero_points.empty();
    auto bytes = context.input_bytes(i);
    std::memset(bytes.data(), zero_is_byte ? static_cast<int>(t.quantization->zero_points[0]) : 0, bytes.size());
    std::printf("input %d '%s': zeros\n", i, std::string(t.name).c_str());
  }
  const oneweight::PlanTensor& tensor = context.input_tensor(input_);
  bool has_landmarks = false;
  for (size_t i = 0; i < plan_->outputs().size(); ++i) {
    int numbers = 0;
    has_landmarks |= landmark_points(plan_->tensors()[static_cast<size_t>(plan_->outputs()[i])].shape.elements(), &numbers) > 0;
  }
  // Detectors and landmark models are trained on whole pictures with margins, others on stretched ones.
  Fit fit = !anchors_.centres.empty() || has_landmarks ? Fit::letterbox : Fit::stretch;
  if (arguments_.fit == "stretch") fit = Fit::stretch;
  if (arguments_.fit == "letterbox") fit = Fit::letterbox;
  if (arguments_.fit == "crop") fit = Fit::crop;
  auto fitted = fit_image(picture_, width_, height_, fit, &placement_);
  if (!fitted.ok()) return fitted.status();

  // The real number that a channel of the pixel value v becomes: factor * v + shift.
  float factor[3], shift[3];
  std::string why;
  const bool quantized = tensor.type != TensorType::float32;
  const int low = tensor.type == TensorType::int8 ? -128 : 0;
  const float scale = tensor.quantization->scales.empty() ? 1.0f : tensor.quantization->scales[0];
  const float zero = tensor.quantization->zero_points.empty() ? 0.0f : static_cast<float>(tensor.quantization->zero_points[0]);
  const TensorMetadata* about = static_cast<size_t>(input_) < metadata_.inputs.size() ? &metadata_.inputs[static_cast<size_t>(input_)] : nullptr;
  float black = anchors_.centres.empty() ? (has_landmarks ? 0.0f : -1.0f) : anchors_.low, white = 1.0f;
  if (arguments_.range.size() == 2) {
    black = arguments_.range[0], white = arguments_.range[1];
    why = "as asked for";
  } else if (quantized) {  // metadata speaks of the float model that this one was made from
    black = scale * (static_cast<float>(low) - zero), white = scale * (static_cast<float>(low) + 255 - zero);
    why = "the range of the input's quantisation";
  } else if (about && !about->mean.empty() && (about->mean.size() == 1 || about->mean.size() == 3)) {
    for (size_t c = 0; c < 3; ++c) {
      const size_t k = about->mean.size() == 1 ? 0 : c;
      if (!(about->std[k] != 0)) return make_error(ErrorCode::invalid_data, "the model's metadata divides by a deviation of 0");
      factor[c] = 1 / about->std[k], shift[c] = 0 - about->mean[k] / about->std[k];
    }
    why = "from the model's metadata";
  } else {
    why = "assumed; --range LOW,HIGH says otherwise";
  }
  if (why != "from the model's metadata")
    for (int c = 0; c < 3; ++c) factor[c] = (white - black) / 255, shift[c] = black;
  std::printf("picture: %d x %d, %s to %d x %d; black is %g and white %g (%s)\n", picture_.width, picture_.height,
              fit == Fit::stretch ? "stretched" : fit == Fit::crop ? "cropped" : "fitted with margins", width_, height_,
              static_cast<double>(shift[0]), static_cast<double>(255 * factor[0] + shift[0]), why.c_str());

  Array array;
  array.type = tensor.type;
  array.item_bytes = quantized ? 1 : 4;
  array.shape = {1, height_, width_, channels_};
  array.data.resize(static_cast<size_t>(array.elements()) * array.item_bytes);
  size_t at = 0;
  for (size_t i = 0; i + 2 < fitted->rgb.size(); i += 3)
    for (int c = 0; c < channels_; ++c, ++at) {
      const uint8_t* rgb = fitted->rgb.data() + i;
      const float v = channels_ == 3 ? rgb[c] : 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
      const float real = factor[c] * v + shift[c];
      if (quantized) {
        const float stored = std::clamp(std::round(real / scale + zero), static_cast<float>(low), static_cast<float>(low + 255));
        array.data[at] = static_cast<std::byte>(static_cast<int>(stored) & 0xff);
      } else {
        std::memcpy(array.data.data() + 4 * at, &real, 4);
      }
    }
  return set_input(context, input_, array);
}

oneweight::Expected<bool> PictureRun::show(const oneweight::ExecutionContext& context, int top) {
  std::vector<Values> outputs;
  for (size_t i = 0; i < plan_->outputs().size(); ++i) {
    auto array = get_output(context, static_cast<int>(i));
    if (!array.ok()) return array.status();
    const oneweight::Quantization& q = *context.output_tensor(static_cast<int>(i)).quantization;
    const bool scaled = q.scales.size() == 1 && array->type != TensorType::float32;
    Values values;
    values.shape = array->shape;
    values.integer = !scaled && (array->type == TensorType::int32 || array->type == TensorType::int64 || array->type == TensorType::uint8);
    for (int64_t k = 0; k < array->elements(); ++k) {
      const double v = element_value(*array, k);
      values.data.push_back(static_cast<float>(scaled ? q.scales[0] * (v - static_cast<double>(q.zero_points[0])) : v));
    }
    outputs.push_back(std::move(values));
  }
  const bool understood = show_detections(outputs) || show_anchored(outputs) || show_landmarks(outputs) || show_mask(outputs) || show_classes(outputs, top);
  if (!arguments_.out_image.empty()) {
    ONEWEIGHT_RETURN_IF_ERROR(write_png(arguments_.out_image, drawing_));
    std::printf("drawn into %s\n", arguments_.out_image.c_str());
  }
  return understood;
}

void PictureRun::show_boxes(std::vector<Box> boxes) {
  // Of boxes of one class that overlap, the best stays.
  std::stable_sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) { return a.score > b.score; });
  std::vector<Box> kept;
  const auto area = [](const Box& b) { return std::max(0.0f, b.right - b.left) * std::max(0.0f, b.bottom - b.top); };
  for (Box& box : boxes) {
    bool covered = false;
    for (const Box& other : kept) {
      const float w = std::min(box.right, other.right) - std::max(box.left, other.left), h = std::min(box.bottom, other.bottom) - std::max(box.top, other.top);
      const float common = std::max(0.0f, w) * std::max(0.0f, h);
      covered |= box.label == other.label && common > 0.4f * (area(box) + area(other) - common);
    }
    if (!covered) kept.push_back(std::move(box));
  }
  std::printf("%zu box%s with a score of at least %g:\n", kept.size(), kept.size() == 1 ? "" : "es", static_cast<double>(arguments_.score));
  for (const Box& box : kept) {
    const std::string name = box.label < 0 ? "" : name_of(box.label) + " ";
    std::printf("  %s%.3f: (%.0f, %.0f) to (%.0f, %.0f)\n", name.c_str(), static_cast<double>(box.score), static_cast<double>(box.left),
                static_cast<double>(box.top), static_cast<double>(box.right), static_cast<double>(box.bottom));
    const Colour colour = colour_of(std::max(box.label, 0));
    draw_box(&drawing_, box.left, box.top, box.right, box.bottom, colour);
    for (const auto& [x, y] : box.points) draw_point(&drawing_, x, y, colour_of(std::max(box.label, 0) + 1));
    draw_text(&drawing_, box.left, box.top - 12, name + oneweight::format_text("%.2f", static_cast<double>(box.score)), colour);
  }
}

bool PictureRun::show_detections(const std::vector<Values>& outputs) {
  // TFLite_Detection_PostProcess: boxes [1, n, 4], classes [1, n], scores [1, n], count [1], perhaps in another order.
  if (outputs.size() < 4) return false;
  const Values *boxes = nullptr, *first = nullptr, *second = nullptr, *count = nullptr;
  for (size_t i = 0; i < 4; ++i) {
    const Values& v = outputs[i];
    if (v.shape.size() == 3 && v.shape[0] == 1 && v.shape[2] == 4) boxes = &v;
    else if (v.data.size() == 1 && v.shape.size() <= 1) count = &v;
    else if (v.shape.size() == 2 && v.shape[0] == 1) (first ? second : first) = &v;
  }
  if (!boxes || !first || !second || !count || first->data.size() != second->data.size() || boxes->data.size() != 4 * first->data.size()) return false;
  const auto whole = [](const Values& v) { return std::all_of(v.data.begin(), v.data.end(), [](float x) { return x == std::floor(x); }); };
  const bool classes_first = whole(*first) || !whole(*second);
  const Values &classes = classes_first ? *first : *second, &scores = classes_first ? *second : *first;
  std::vector<Box> found;
  const size_t n = std::min(scores.data.size(), static_cast<size_t>(std::clamp(count->data[0], 0.0f, 1e6f)));
  const float w = static_cast<float>(width_), h = static_cast<float>(height_);
  for (size_t i = 0; i < n; ++i) {
    if (!(scores.data[i] >= arguments_.score)) continue;
    const float* b = boxes->data.data() + 4 * i;  // top, left, bottom, right
    found.push_back({placement_.picture_x(b[1] * w), placement_.picture_y(b[0] * h), placement_.picture_x(b[3] * w), placement_.picture_y(b[2] * h),
                     scores.data[i], static_cast<int>(std::clamp(classes.data[i], -1.0f, 1e6f)), {}});
  }
  show_boxes(std::move(found));
  return true;
}

bool PictureRun::show_anchored(const std::vector<Values>& outputs) {
  if (anchors_.centres.empty()) return false;
  const auto count = static_cast<int64_t>(anchors_.centres.size());
  const Values &raw = outputs[static_cast<size_t>(output_with(count, -1))], &scores = outputs[static_cast<size_t>(output_with(count, 1))];
  std::vector<Box> found;
  const float w = static_cast<float>(width_), h = static_cast<float>(height_);
  for (size_t i = 0; i < anchors_.centres.size(); ++i) {
    const float score = logistic(scores.data[i]);
    if (!(score >= arguments_.score)) continue;
    const float* r = raw.data.data() + i * static_cast<size_t>(raw.last());
    // Offsets and sizes in pixels of the input, from the anchor.
    const auto at_x = [&](float v) { return placement_.picture_x(v + anchors_.centres[i].first * w); };
    const auto at_y = [&](float v) { return placement_.picture_y(v + anchors_.centres[i].second * h); };
    Box box{at_x(r[0] - r[2] / 2), at_y(r[1] - r[3] / 2), at_x(r[0] + r[2] / 2), at_y(r[1] + r[3] / 2), score, -1, {}};
    for (int64_t k = 4; k + 1 < raw.last(); k += 2) box.points.push_back({at_x(r[k]), at_y(r[k + 1])});
    found.push_back(std::move(box));
  }
  show_boxes(std::move(found));
  return true;
}

bool PictureRun::show_landmarks(const std::vector<Values>& outputs) {
  for (const Values& v : outputs) {
    int numbers = 0;
    const int points = landmark_points(static_cast<int64_t>(v.data.size()), &numbers);
    if (points == 0 || v.data.size() == labels_.size()) continue;
    const auto [least, most] = std::minmax_element(v.data.begin(), v.data.end());
    if (!(*most - *least > 4)) continue;  // not pixels
    std::printf("%d landmarks, in pixels of the picture:\n", points);
    for (int i = 0; i < points; ++i) {
      const float* p = v.data.data() + i * numbers;
      const float x = placement_.picture_x(p[0]), y = placement_.picture_y(p[1]);
      draw_point(&drawing_, x, y, colour_of(1));
      if (i < 8) std::printf("  %d: (%.1f, %.1f)\n", i, static_cast<double>(x), static_cast<double>(y));
      if (i == 8) std::printf("  ...\n");
    }
    for (size_t o = 0; o < outputs.size(); ++o)
      if (outputs[o].data.size() == 1) std::printf("  output %zu: %.4g\n", o, static_cast<double>(outputs[o].data[0]));
    return true;
  }
  return false;
}

bool PictureRun::show_mask(const std::vector<Values>& outputs) {
  for (const Values& v : outputs) {
    const bool classes_given = v.integer && v.shape.size() >= 3 && (v.shape.size() == 3 || v.shape[3] == 1);
    if (!classes_given && (v.shape.size() != 4 || v.integer)) continue;
    const int64_t rows = v.shape[1], columns = v.shape[2], depth = classes_given ? 1 : v.shape[3];
    if (v.shape[0] != 1 || rows < 16 || columns < 16 || depth < 1 || depth > 1000) continue;
    const auto [least, most] = std::minmax_element(v.data.begin(), v.data.end());
    const bool logits = depth == 1 && (*least < -0.01f || *most > 1.01f);
    const auto class_at = [&](int64_t y, int64_t x) {
      const float* p = v.data.data() + (y * columns + x) * depth;
      if (classes_given) return static_cast<int>(*p);
      if (depth == 1) return (logits ? logistic(*p) : *p) >= arguments_.score ? 1 : 0;
      return static_cast<int>(std::max_element(p, p + depth) - p);
    };
    std::map<int, int64_t> area;
    for (int64_t y = 0; y < rows; ++y)
      for (int64_t x = 0; x < columns; ++x) ++area[class_at(y, x)];
    std::printf("mask of %lld x %lld:\n", static_cast<long long>(columns), static_cast<long long>(rows));
    std::vector<std::pair<int, int64_t>> sorted(area.begin(), area.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    const bool one_thing = depth == 1 && !classes_given;  // it, or the background
    for (const auto& [label, cells] : sorted)
      std::printf("  %s: %.1f %%\n", one_thing && label == 0 ? "background" : name_of(one_thing ? 0 : label).c_str(), 100.0 * static_cast<double>(cells) / static_cast<double>(rows * columns));
    for (int y = 0; y < drawing_.height; ++y)
      for (int x = 0; x < drawing_.width; ++x) {
        const float input_x = placement_.factor_x * (static_cast<float>(x) + 0.5f) + placement_.offset_x, input_y = placement_.factor_y * (static_cast<float>(y) + 0.5f) + placement_.offset_y;
        const auto mx = static_cast<int64_t>(input_x / static_cast<float>(width_) * static_cast<float>(columns));
        const auto my = static_cast<int64_t>(input_y / static_cast<float>(height_) * static_cast<float>(rows));
        if (input_x < 0 || input_y < 0 || mx >= columns || my >= rows) continue;
        if (const int label = class_at(my, mx); label > 0) blend_pixel(&drawing_, x, y, colour_of(label - 1));
      }
    return true;
  }
  return false;
}

bool PictureRun::show_classes(const std::vector<Values>& outputs, int top) {
  for (const Values& v : outputs) {
    if (v.data.size() < 2 || static_cast<int64_t>(v.data.size()) != v.last()) continue;
    std::vector<int> order(v.data.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return v.data[static_cast<size_t>(a)] > v.data[static_cast<size_t>(b)]; });
    float y = 4;
    for (int i = 0; i < top && static_cast<size_t>(i) < order.size(); ++i) {
      const int label = order[static_cast<size_t>(i)];
      const std::string line = oneweight::format_text("%.4f  %s", static_cast<double>(v.data[static_cast<size_t>(label)]), name_of(label).c_str());
      std::printf("  %s\n", line.c_str());
      draw_text(&drawing_, 4, y, line, colour_of(i));
      y += 12 * static_cast<float>(1 + std::min(drawing_.width, drawing_.height) / 400);
    }
    return true;
  }
  return false;
}

}  // namespace program
