#include "common.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace program {

using oneweight::ErrorCode;
using oneweight::make_error;
using oneweight::TensorType;

int report(const oneweight::Status& status) {
  std::fflush(stdout);
  std::fprintf(stderr, "oneweight: %s\n", status.message().c_str());
  return kError;
}

std::vector<std::string> input_names(const oneweight::ModelView& model, const std::string& signature) {
  std::vector<std::string> names;
  if (!signature.empty()) {
    if (const oneweight::SignatureDef* found = model.find_signature(signature))
      for (const auto& [name, tensor] : found->inputs) names.push_back(name);
    return names;
  }
  const oneweight::SubgraphDef& main = model.subgraphs()[0];
  for (int32_t tensor : main.inputs) names.push_back(main.tensors[static_cast<size_t>(tensor)].name);
  return names;
}

namespace {

// "1000", "64KiB", "1.5 MiB"; at least one byte.
bool parse_bytes(const std::string& text, int64_t* bytes) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return false;
  while (*end == ' ') ++end;
  const std::string unit = end;
  const double scale = unit.empty() || unit == "B" ? 1 : unit == "KiB" ? 1 << 10 : unit == "MiB" ? 1 << 20 : unit == "GiB" ? 1 << 30 : 0;
  if (!(number * scale >= 1 && number * scale < 1e18)) return false;
  *bytes = static_cast<int64_t>(number * scale);
  return true;
}

}  // namespace

oneweight::Status apply(const ModelArguments& arguments, const oneweight::ModelView& model, oneweight::PlanOptions* options) {
  options->signature = arguments.signature;
  options->tile_rows = arguments.tile_rows;
  options->extra_work = arguments.extra_work;
  if (!arguments.memory_limit.empty() && !parse_bytes(arguments.memory_limit, &options->memory_limit))
    return make_error(ErrorCode::invalid_argument, "--memory-limit %s: expected a number of bytes, or of KiB, MiB or GiB", arguments.memory_limit.c_str());
  const std::vector<std::string> names = input_names(model, arguments.signature);
  for (const std::string& text : arguments.resize) {
    const size_t equals = text.rfind('=');
    if (equals == text.npos || equals + 1 == text.size())
      return make_error(ErrorCode::invalid_argument, "--resize %s: expected INPUT=EXTENT,EXTENT,...", text.c_str());
    const std::string input = text.substr(0, equals);
    int number = -1;
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == input || std::to_string(i) == input) number = static_cast<int>(i);
    if (number < 0) return make_error(ErrorCode::not_found, "--resize %s: no input '%s'", text.c_str(), input.c_str());
    oneweight::Shape shape;
    const char* at = text.c_str() + equals + 1;
    while (true) {
      char* end = nullptr;
      const int64_t extent = std::strtoll(at, &end, 10);
      if (end == at || (*end != ',' && *end != '\0') || extent < 0 || shape.rank() == oneweight::kMaxRank)
        return make_error(ErrorCode::invalid_argument, "--resize %s: '%s' is not a list of extents", text.c_str(), at);
      shape.push_back(extent);
      if (*end == '\0') break;
      at = end + 1;
    }
    options->input_shapes.emplace_back(number, shape);
  }
  return {};
}

oneweight::Expected<Planned> open_and_plan(const ModelArguments& arguments, const oneweight::PlanOptions& options) {
  auto model = oneweight::ModelView::open(arguments.model.c_str());
  if (!model.ok()) return model.status();
  if (arguments.lock_weights)
    if (oneweight::Status status = (*model)->lock(); !status.ok()) return make_error(status.code(), "%s: %s", arguments.model.c_str(), status.message().c_str());
  oneweight::PlanOptions all = options;
  ONEWEIGHT_RETURN_IF_ERROR(apply(arguments, **model, &all));
  auto plan = oneweight::make_plan<oneweight::opset::All>(*model, all);
  if (!plan.ok()) return make_error(plan.status().code(), "%s: %s", arguments.model.c_str(), plan.status().message().c_str());
  return Planned{*model, *plan};
}

void fill_inputs(oneweight::ExecutionContext& context) {
  unsigned state = 2654435761u;
  const auto next = [&state] { return (state = state * 1664525u + 1013904223u) >> 8; };
  for (int i = 0; i < static_cast<int>(context.plan()->inputs().size()); ++i) {
    const TensorType type = context.input_tensor(i).type;
    const auto bytes = context.input_bytes(i);
    const size_t size = static_cast<size_t>(std::max(8, oneweight::tensor_type_bits(type))) / 8;
    for (size_t k = 0; k + size <= bytes.size(); k += size) {
      if (type == TensorType::float32 || type == TensorType::float16) {
        const float value = static_cast<float>(next() % 2001) / 1000.0f - 1.0f;
        const oneweight::half narrow = oneweight::float_to_half(value);
        std::memcpy(&bytes[k], type == TensorType::float32 ? static_cast<const void*>(&value) : &narrow, size);
      } else if (type == TensorType::boolean) {
        bytes[k] = static_cast<std::byte>(next() % 2);
      } else if (size == 1) {
        bytes[k] = static_cast<std::byte>(next());
      } else {
        std::memset(&bytes[k], 0, size);
        bytes[k] = static_cast<std::byte>(next() % 4);
      }
    }
  }
}

oneweight::Status set_input(oneweight::ExecutionContext& context, int number, const Array& array) {
  const oneweight::PlanTensor& tensor = context.input_tensor(number);
  const std::string name(tensor.name);
  if (array.type != tensor.type && std::strcmp(numpy_name(tensor.type), numpy_name(array.type)) != 0)
    return make_error(ErrorCode::invalid_argument, "input '%s' has type %s, the array %s", name.c_str(),
                      tensor_type_name(tensor.type), tensor_type_name(array.type));
  const std::string shape = tensor.shape.to_string();
  if (shape != array.shape_text())
    return make_error(ErrorCode::invalid_argument, "input '%s' has shape %s, the array %s", name.c_str(), shape.c_str(),
                      array.shape_text().c_str());
  const auto bytes = context.input_bytes(number);
  const int bits = oneweight::tensor_type_bits(tensor.type);
  if (bits == 0)
    return make_error(ErrorCode::unsupported, "input '%s' has type %s", name.c_str(), tensor_type_name(tensor.type));
  if (bits < 8) {
    std::memset(bytes.data(), 0, bytes.size());
    const size_t per_byte = 8 / static_cast<size_t>(bits);
    for (size_t i = 0; i < array.data.size(); ++i) {
      const auto value = static_cast<unsigned>(array.data[i]) & ((1u << bits) - 1);
      bytes[i / per_byte] |= static_cast<std::byte>(value << (i % per_byte * static_cast<size_t>(bits)));
    }
    return {};
  }
  if (bytes.size() != array.data.size())
    return make_error(ErrorCode::invalid_argument, "input '%s' has %zu bytes, the array %zu", name.c_str(), bytes.size(),
                      array.data.size());
  if (!bytes.empty()) std::memcpy(bytes.data(), array.data.data(), bytes.size());
  return {};
}

oneweight::Expected<Array> get_output(const oneweight::ExecutionContext& context, int number) {
  const oneweight::PlanTensor& tensor = context.output_tensor(number);
  const auto bytes = context.output_bytes(number);
  const int bits = oneweight::tensor_type_bits(tensor.type);
  Array array;
  array.type = tensor.type;
  for (int64_t extent : tensor.shape) array.shape.push_back(extent);
  if (bits == 0)
    return make_error(ErrorCode::unsupported, "output '%s' has type %s", std::string(tensor.name).c_str(),
                      tensor_type_name(tensor.type));
  array.item_bytes = static_cast<size_t>(std::max(8, bits)) / 8;
  if (bits >= 8) {
    array.data.assign(bytes.begin(), bytes.end());
    return array;
  }
  array.data.resize(static_cast<size_t>(array.elements()));
  const bool is_signed = tensor.type != TensorType::uint4;
  array.type = is_signed ? TensorType::int8 : TensorType::uint8;
  const size_t per_byte = 8 / static_cast<size_t>(bits);
  for (size_t i = 0; i < array.data.size(); ++i) {
    unsigned value = static_cast<unsigned>(bytes[i / per_byte]) >> (i % per_byte * static_cast<size_t>(bits));
    value &= (1u << bits) - 1;
    if (is_signed && value >> (bits - 1)) value |= ~0u << bits;
    array.data[i] = static_cast<std::byte>(value);
  }
  return array;
}

oneweight::Status set_inputs(oneweight::ExecutionContext& context, const std::vector<std::string>& files) {
  const int count = static_cast<int>(context.plan()->inputs().size());
  if (files.empty()) {
    fill_inputs(context);
    return {};
  }
  std::vector<bool> set(static_cast<size_t>(count));
  int next = 0;
  for (const std::string& text : files) {
    // "NAME=FILE", unless the whole text is a file.
    const size_t equals = std::filesystem::exists(text) ? text.npos : text.find('=');
    const std::string name = equals == text.npos ? "" : text.substr(0, equals);
    const int number = equals == text.npos ? next++ : context.plan()->find_input(name);
    if (number < 0) return make_error(ErrorCode::not_found, "no input '%s'", name.c_str());
    if (number >= count) return make_error(ErrorCode::invalid_argument, "more files than the %d inputs of the model", count);
    auto array = read_npy(equals == text.npos ? text : text.substr(equals + 1));
    if (!array.ok()) return array.status();
    ONEWEIGHT_RETURN_IF_ERROR(set_input(context, number, *array));
    set[static_cast<size_t>(number)] = true;
  }
  for (int i = 0; i < count; ++i)
    if (!set[static_cast<size_t>(i)])
      return make_error(ErrorCode::invalid_argument, "no file for input %d '%s'", i, std::string(context.input_tensor(i).name).c_str());
  return {};
}

std::string megabytes(double bytes) {
  if (bytes < 1024 * 100) return oneweight::format_text("%.1f KiB", bytes / 1024);
  return oneweight::format_text("%.2f MiB", bytes / (1024 * 1024));
}

std::string highway_target(const oneweight::Plan& plan) { return oneweight::target_name(plan.target()); }

Progress::Progress(std::string label) : label_(std::move(label)), terminal_(isatty(STDERR_FILENO) != 0) {}
Progress::~Progress() { clear(); }

void Progress::show(int64_t done, int64_t total) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ || (done != total && now - last_ < std::chrono::milliseconds(100))) return;
  last_ = now;
  std::string line = oneweight::format_text("%s %lld/%lld", label_.c_str(), static_cast<long long>(done), static_cast<long long>(total));
  const size_t width = line.size();
  line.append(width_ > width ? width_ - width : 0, ' ');
  width_ = width;
  std::fprintf(stderr, "\r%s", line.c_str());
}

void Progress::clear() {
  if (!terminal_ || width_ == 0) return;
  std::fprintf(stderr, "\r%*s\r", static_cast<int>(width_), "");
  width_ = 0;
}

namespace {

// Kilobytes behind `field` in a file of /proc, as bytes; 0 when there is none.
int64_t proc_field(const char* text, const char* field) {
  const char* at = std::strstr(text, field);
  return at ? std::strtoll(at + std::strlen(field), nullptr, 10) * 1024 : 0;
}

bool read_proc(const char* path, char* text, size_t size) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t n = ::read(file, text, size - 1);
  ::close(file);
  text[n > 0 ? n : 0] = '\0';
  return n > 0;
}

}  // namespace

ProcessMemory process_memory() {
  char text[4096];
  ProcessMemory memory;
  if (read_proc("/proc/self/smaps_rollup", text, sizeof text)) {
    memory.rss = proc_field(text, "\nRss:");
    memory.anonymous = proc_field(text, "\nAnonymous:");
  } else if (read_proc("/proc/self/status", text, sizeof text)) {
    memory.rss = proc_field(text, "\nVmRSS:");
    memory.anonymous = proc_field(text, "\nRssAnon:");
  }
  return memory;
}

int64_t locked_bytes() {
  char text[4096];
  return read_proc("/proc/self/status", text, sizeof text) ? proc_field(text, "\nVmLck:") : 0;
}

int64_t peak_rss() {
  char text[4096];
  return read_proc("/proc/self/status", text, sizeof text) ? proc_field(text, "\nVmHWM:") : 0;
}

void reset_peak_rss() {
  const int file = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t ignored = ::write(file, "5", 1);
  static_cast<void>(ignored);
  ::close(file);
}

}  // namespace program
