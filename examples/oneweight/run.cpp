// npy, a picture or a sound in; npy, a summary, or what the answer means out.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <optional>

#include "audio.h"
#include "commands.h"
#include "compare.h"
#include "oneweight/context/eigen_executor.h"

namespace program {

using oneweight::ErrorCode;
using oneweight::make_error;

namespace {

// Range and mean in real numbers, then the largest elements.
void print_summary(const std::string& title, const Array& array, const oneweight::Quantization& quantization, int top) {
  const int64_t n = array.elements();
  std::printf("%s: %s %s", title.c_str(), numpy_name(array.type), array.shape_text().c_str());
  const bool quantized = quantization.scales.size() == 1 && array.type != oneweight::TensorType::float32;
  const double scale = quantized ? quantization.scales[0] : 1, zero = quantized ? static_cast<double>(quantization.zero_points[0]) : 0;
  const auto real = [&](int64_t i) { return scale * (element_value(array, i) - zero); };
  if (n == 0) {
    std::printf(", empty\n");
    return;
  }
  double low = real(0), high = low, sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    low = std::min(low, real(i));
    high = std::max(high, real(i));
    sum += real(i);
  }
  std::printf(", from %.6g to %.6g, mean %.6g%s\n", low, high, sum / static_cast<double>(n), quantized ? " (dequantised)" : "");
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const auto shown = std::min<int64_t>(n, top);
  const auto before = [&](int64_t a, int64_t b) {
    const double x = real(a), y = real(b);
    return std::isnan(y) ? !std::isnan(x) : x > y;  // NaN last
  };
  std::partial_sort(order.begin(), order.begin() + shown, order.end(), before);
  for (int64_t i = 0; i < shown; ++i)
    std::printf("  %s %s%s\n", index_text(array.shape, order[static_cast<size_t>(i)]).c_str(),
                element_text(array, order[static_cast<size_t>(i)]).c_str(),
                quantized ? oneweight::format_text(" = %.6g", real(order[static_cast<size_t>(i)])).c_str() : "");
}

template <class T> bool print_kept(const oneweight::ExecutionContext& context, const std::string& name, int top) {
  auto values = context.tensor<T>(name);
  if (!values.ok()) return false;
  const oneweight::PlanTensor& tensor = context.plan()->tensors()[static_cast<size_t>(context.plan()->find_tensor(name))];
  Array array;
  array.type = tensor.type;
  array.item_bytes = sizeof(T);
  for (int64_t e : tensor.shape) array.shape.push_back(e);
  const auto bytes = std::as_bytes(*values);
  array.data.assign(bytes.begin(), bytes.end());
  print_summary("tensor '" + name + "'", array, *tensor.quantization, top);
  return true;
}

// Runs a model that takes samples over a sound, one window behind the other, and prints the classes with the highest mean score.
// State is kept from window to window.
oneweight::Status run_audio(const RunArguments& arguments, const Planned& planned, oneweight::ExecutionContext& context, const oneweight::RunOptions& options) {
  const oneweight::PlanTensor& input = context.input_tensor(0);
  const int64_t window = input.shape.elements();
  bool is_row = input.shape.rank() >= 1;
  for (int i = 0; i + 1 < input.shape.rank(); ++i) is_row = is_row && input.shape[i] == 1;
  if (planned.plan->inputs().size() != 1 || !is_row || window < 2)
    return make_error(ErrorCode::unsupported, "the model does not take a row of samples as its only input");
  auto sound = read_wav(arguments.audio);
  if (!sound.ok()) return sound.status();
  const Audio audio = resample(*sound, arguments.rate);
  auto metadata = read_metadata(*planned.model);
  if (!metadata.ok()) return metadata.status();
  std::string file;
  for (const TensorMetadata& output : metadata->outputs)
    if (file.empty()) file = output.labels_file;
  std::vector<std::string> labels;
  if (!arguments.picture.labels.empty()) {
    auto lines = read_lines(arguments.picture.labels);
    if (!lines.ok()) return lines.status();
    labels = std::move(*lines);
  } else if (auto lines = packed_lines(*planned.model, file); lines.ok()) {
    labels = std::move(*lines);
  }
  std::vector<float> part(static_cast<size_t>(window)), scores(static_cast<size_t>(context.output_tensor(0).shape.elements()));
  std::vector<double> sums(scores.size());
  int64_t windows = 0;
  const auto samples = static_cast<int64_t>(audio.samples.size());
  for (int64_t at = 0; at == 0 || at + window <= samples; at += window, ++windows) {  // at least one, filled with silence
    std::fill(part.begin(), part.end(), 0.0f);
    std::copy_n(audio.samples.begin() + at, std::min(window, samples - at), part.begin());
    ONEWEIGHT_RETURN_IF_ERROR(oneweight::set_real_input(context, 0, part));
    ONEWEIGHT_RETURN_IF_ERROR(context.run(options));
    ONEWEIGHT_RETURN_IF_ERROR(oneweight::get_real_output(context, 0, scores));
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(scores[i]);
  }
  std::printf("sound: %.2f s at %d samples a second, taken at %d; %lld window%s of %lld samples\n",
              static_cast<double>(sound->samples.size()) / sound->rate, sound->rate, arguments.rate, static_cast<long long>(windows),
              windows == 1 ? "" : "s", static_cast<long long>(window));
  std::vector<size_t> order(sums.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sums[a] > sums[b]; });
  for (size_t i = 0; i < std::min(order.size(), static_cast<size_t>(arguments.top)); ++i)
    std::printf("  %.4f  %s\n", sums[order[i]] / static_cast<double>(windows),
                order[i] < labels.size() ? labels[order[i]].c_str() : ("class " + std::to_string(order[i])).c_str());
  return {};
}

}  // namespace

int run(const RunArguments& arguments) {
  oneweight::PlanOptions options;
  options.keep = arguments.keep;
  options.workers = arguments.threads;
  auto planned = open_and_plan(arguments.model, options);
  if (!planned.ok()) return report(planned.status());
  auto context = oneweight::ExecutionContext::create(planned->plan);
  if (!context.ok()) return report(context.status());
  std::optional<oneweight::EigenExecutor> pool;
  oneweight::RunOptions run_options;
  if (arguments.threads > 1) run_options.executor = &pool.emplace(arguments.threads);
  if (!arguments.audio.empty()) {
    const oneweight::Status status = run_audio(arguments, *planned, *context, run_options);
    return status.ok() ? static_cast<int>(kSuccess) : report(status);
  }
  std::optional<PictureRun> picture;
  if (!arguments.picture.image.empty()) {
    auto opened = PictureRun::open(arguments.picture, *planned);
    if (!opened.ok()) return report(opened.status());
    picture = std::move(*opened);
    if (oneweight::Status status = picture->fill(*context); !status.ok()) return report(status);
  } else if (oneweight::Status status = set_inputs(*context, arguments.inputs); !status.ok()) {
    return report(status);
  }
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < arguments.runs; ++i)
    if (oneweight::Status status = context->run(run_options); !status.ok()) return report(status);
  std::printf("%d run%s in %.3f ms on %s%s\n", arguments.runs, arguments.runs == 1 ? "" : "s", milliseconds(Clock::now() - start),
              highway_target(*planned->plan).c_str(), arguments.inputs.empty() && !picture ? ", on pseudo-random inputs" : "");
  bool understood = false;
  if (picture) {
    auto shown = picture->show(*context, arguments.top);
    if (!shown.ok()) return report(shown.status());
    understood = *shown;
  }
  for (size_t i = 0; i < planned->plan->outputs().size(); ++i) {
    auto output = get_output(*context, static_cast<int>(i));
    if (!output.ok()) return report(output.status());
    if (!understood)
      print_summary("output " + std::to_string(i) + " '" + planned->plan->output_names()[i] + "'", *output,
                    *context->output_tensor(static_cast<int>(i)).quantization, arguments.top);
    if (arguments.output_folder.empty()) continue;
    std::error_code error;
    std::filesystem::create_directories(arguments.output_folder, error);
    const std::string path = arguments.output_folder + "/out_" + std::to_string(i) + ".npy";
    if (oneweight::Status status = write_npy(path, *output); !status.ok()) return report(status);
  }
  for (const std::string& name : arguments.keep) {
    const bool printed = print_kept<float>(*context, name, arguments.top) || print_kept<int8_t>(*context, name, arguments.top) ||
                         print_kept<uint8_t>(*context, name, arguments.top) || print_kept<int16_t>(*context, name, arguments.top) ||
                         print_kept<int32_t>(*context, name, arguments.top) || print_kept<int64_t>(*context, name, arguments.top);
    if (!printed) return report(context->tensor<float>(name).status());
  }
  return kSuccess;
}

}  // namespace program
