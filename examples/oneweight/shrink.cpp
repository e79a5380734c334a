// A model's file with half or int8 weights, and what that does to its answers.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

#include "commands.h"
#include "compare.h"
#include "shown_text.h"
#include "shrink_model.h"

namespace program {

using oneweight::ErrorCode;
using oneweight::make_error;
using oneweight::Status;
using oneweight::TensorType;

namespace {

// Of the file that is being written, for signals: it shall not stay behind.
char unfinished_path[4096];
extern "C" void remove_unfinished(int signal) {
  if (unfinished_path[0]) ::unlink(unfinished_path);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// A file that gets its name when it is complete. Until then it is another one in the same folder, which goes when this does.
class NewFile {
 public:
  explicit NewFile(std::string path) : path_(std::move(path)) {}
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    unfinished_path[0] = '\0';
  }

  Status write(std::span<const std::byte> bytes) {
    ONEWEIGHT_RETURN_IF_ERROR(open());
    std::signal(SIGXFSZ, SIG_IGN);  // a limit on sizes of files is an error like others
    constexpr size_t kMost = size_t{1} << 26;
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t n = ::write(descriptor_, bytes.data() + done, std::min(bytes.size() - done, kMost));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed("cannot be written");
      done += static_cast<size_t>(n);
    }
    return ::fsync(descriptor_) == 0 || errno == EINVAL || errno == ENOTSUP ? Status() : failed("cannot be written");
  }
  Status finish() {
    const int closed = ::close(std::exchange(descriptor_, -1));
    if (closed != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("cannot be written");
    temporary_.clear();
    // The new name is on the disk, too. (Some file systems cannot do that for folders; the file is complete anyway.)
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    if (const int d = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); d >= 0) {
      static_cast<void>(::fsync(d));
      ::close(d);
    }
    return {};
  }

 private:
  Status open() {
    // What a link leads to is replaced, not the link.
    std::error_code none;
    if (std::filesystem::is_symlink(path_, none))
      if (auto target = std::filesystem::canonical(path_, none); !none) path_ = target.string();
    struct stat old = {};
    const bool exists = ::stat(path_.c_str(), &old) == 0;
    if (exists && !S_ISREG(old.st_mode)) return make_error(ErrorCode::io_error, "%s is not a regular file", path_.c_str());
    if (exists && ::access(path_.c_str(), W_OK) != 0) return failed("cannot be written");
    std::string name = (std::filesystem::path(path_).parent_path() / ".oneweight-XXXXXX").string();
    descriptor_ = ::mkstemp(name.data());
    if (descriptor_ < 0) return failed("cannot be written");
    temporary_ = name;
    if (name.size() < sizeof unfinished_path) std::memcpy(unfinished_path, name.c_str(), name.size() + 1);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
      if (std::signal(signal, &remove_unfinished) == SIG_IGN) std::signal(signal, SIG_IGN);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(descriptor_, exists ? old.st_mode & 07777 : 0666 & ~mask) != 0) return failed("cannot be written");
    return {};
  }
  Status failed(const char* what) const { return make_error(ErrorCode::io_error, "%s %s: %s", path_.c_str(), what, std::strerror(errno)); }

  std::string path_, temporary_;
  int descriptor_ = -1;
};

// How far an output is from what the float model says.
void print_difference(const std::string& name, const Array& got, const Array& want) {
  std::printf("  %s: ", name.c_str());
  if (got.shape != want.shape || got.type != want.type) {
    std::printf("%s %s instead of %s %s\n", numpy_name(got.type), got.shape_text().c_str(), numpy_name(want.type), want.shape_text().c_str());
    return;
  }
  double largest = 0, squares = 0, low = std::numeric_limits<double>::infinity(), high = -low;
  int64_t finite = 0, special = 0, differ = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double a = element_value(got, i), b = element_value(want, i);
    differ += !(a == b || (std::isnan(a) && std::isnan(b)));
    if (!std::isfinite(a) || !std::isfinite(b)) {
      special += !(a == b || (std::isnan(a) && std::isnan(b)));
      continue;
    }
    ++finite;
    largest = std::max(largest, std::fabs(a - b));
    squares += (a - b) * (a - b);
    low = std::min(low, b);
    high = std::max(high, b);
  }
  const bool is_float = want.type == TensorType::float32 || want.type == TensorType::float16 || want.type == TensorType::float64;
  if (finite == 0) {
    std::printf("no finite values");
  } else {
    std::printf("largest error %.3g, RMS error %.3g; the float model's values go from %.6g to %.6g", largest, std::sqrt(squares / static_cast<double>(finite)), low, high);
  }
  if (!is_float) std::printf("; %lld of %lld values differ", static_cast<long long>(differ), static_cast<long long>(want.elements()));
  if (special > 0) std::printf("; %lld values are finite in one model only", static_cast<long long>(special));
  std::printf("\n");
}

// One model ready to run, with its inputs.
struct Run {
  std::shared_ptr<const oneweight::Plan> plan;
  std::optional<oneweight::ExecutionContext> context;
};
oneweight::Expected<Run> prepare(const std::shared_ptr<const oneweight::ModelView>& model, const ModelArguments& arguments, const std::vector<std::string>& inputs) {
  oneweight::PlanOptions options;
  ONEWEIGHT_RETURN_IF_ERROR(apply(arguments, *model, &options));
  auto plan = oneweight::make_plan<oneweight::opset::All>(model, options);
  if (!plan.ok()) return plan.status();
  auto context = oneweight::ExecutionContext::create(*plan);
  if (!context.ok()) return context.status();
  Run run{*plan, std::move(*context)};
  ONEWEIGHT_RETURN_IF_ERROR(set_inputs(*run.context, inputs));
  return run;
}
// Whether the user said how the models shall be run.
bool is_asked_for(const ShrinkArguments& a) { return !a.inputs.empty() || !a.model.signature.empty() || !a.model.resize.empty(); }

// "'a', 'b' and 3 more"
std::string some_names(const std::vector<std::string>& names) {
  constexpr size_t kMost = 4, kLongest = 60;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) text += (i ? ", '" : "'") + beginning(printable(names[i]), kLongest) + "'";
  if (names.size() > kMost) text += oneweight::format_text(" and %zu more", names.size() - kMost);
  return text;
}

void print_kept(const ShrunkModel& shrunk) {
  if (shrunk.kept.empty()) return;
  struct Group {
    std::string reason;
    std::vector<std::string> names;
    int64_t bytes = 0;
  };
  std::vector<Group> groups;
  for (const KeptConstant& k : shrunk.kept) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.reason == k.reason; });
    if (group == groups.end()) group = groups.insert(groups.end(), {k.reason, {}, 0});
    group->names.push_back(k.name);
    group->bytes += k.bytes;
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.bytes > b.bytes; });
  std::printf("stay float, because each\n");
  for (const Group& g : groups)
    std::printf("  %s: %zu constant%s, %s: %s\n", g.reason.c_str(), g.names.size(), g.names.size() == 1 ? "" : "s", megabytes(static_cast<double>(g.bytes)).c_str(),
                some_names(g.names).c_str());
}

// Runs both models on the same inputs, and prints how far their outputs are apart. What the float model cannot do is no error;
// a new model that does not do what the float model does is.
Status compare_models(const ShrinkArguments& arguments, const std::shared_ptr<const oneweight::ModelView>& model,
                      const std::shared_ptr<const oneweight::ModelView>& shrunk) {
  std::vector<std::string> signatures = {arguments.model.signature};
  for (const oneweight::SignatureDef& s : model->signatures())
    if (!is_asked_for(arguments) && s.subgraph != 0) signatures.push_back(s.key);
  for (const std::string& signature : signatures) {
    const std::string of = signature.empty() ? "" : " of signature '" + printable(signature) + "'";
    ModelArguments how = arguments.model;
    how.signature = signature;
    auto before = prepare(model, how, arguments.inputs);
    Status status = before.status();
    if (status.ok()) status = before->context->run();
    if (!status.ok() && is_asked_for(arguments)) return status;
    if (!status.ok()) {
      std::printf("the outputs%s are not compared, as the float model does not run here: %s\n", of.c_str(), status.message().c_str());
      continue;
    }
    auto after = prepare(shrunk, how, arguments.inputs);
    status = after.status();
    if (status.ok()) status = after->context->run();
    if (!status.ok()) return make_error(status.code(), "the new model would not run, so nothing is written: %s", status.message().c_str());
    std::printf("outputs%s beside the float model's, on %s:\n", of.c_str(), arguments.inputs.empty() ? "pseudo-random inputs" : "the inputs");
    for (size_t i = 0; i < before->plan->outputs().size(); ++i) {
      const std::string name = "output " + std::to_string(i) + " '" + printable(before->plan->output_names()[i]) + "'";
      const auto want = get_output(*before->context, static_cast<int>(i)), got = get_output(*after->context, static_cast<int>(i));
      if (want.ok() && got.ok()) {
        print_difference(name, *got, *want);
      } else {
        std::printf("  %s: not compared: %s\n", name.c_str(), (want.ok() ? got : want).status().message().c_str());
      }
    }
  }
  return {};
}

}  // namespace

int shrink(const ShrinkArguments& arguments) {
  const std::string& path = arguments.model.model;
  auto model = oneweight::ModelView::open(path.c_str());
  if (!model.ok()) return report(model.status());
  const Storage storage = arguments.storage == "half" ? Storage::half : Storage::int8;
  if (is_asked_for(arguments))
    if (auto run = prepare(*model, arguments.model, arguments.inputs); !run.ok()) return report(run.status());
  auto shrunk = shrink_model(**model, storage);
  if (!shrunk.ok()) return report(make_error(shrunk.status().code(), "%s: %s", path.c_str(), shrunk.status().message().c_str()));

  const size_t before = (*model)->bytes().size(), after = shrunk->file.size();
  if (shrunk->converted == 0 || after >= before) {
    std::error_code none;
    const bool same = std::filesystem::equivalent(path, arguments.output, none);
    if (!same) {
      NewFile copy(arguments.output);
      Status status = copy.write((*model)->bytes());
      if (status.ok()) status = copy.finish();
      if (!status.ok()) return report(status);
    }
    std::printf("%s: %zu bytes, nothing to shrink%s\n", path.c_str(), before,
                same ? "; the file is left as it is" : ("; " + arguments.output + " is a copy").c_str());
    if (shrunk->converted > 0) std::printf("%s weights would not make the file smaller\n", arguments.storage.c_str());
    print_kept(*shrunk);
    return kSuccess;
  }

  auto opened = oneweight::ModelView::from_bytes(shrunk->file);
  if (!opened.ok()) return report(make_error(opened.status().code(), "the new model would not open, so nothing is written: %s", opened.status().message().c_str()));
  NewFile file(arguments.output);
  if (Status status = file.write(shrunk->file); !status.ok()) return report(status);
  std::printf("%s: %zu bytes; %s: %zu bytes (%.1f %%)\n", path.c_str(), before, arguments.output.c_str(), after,
              100.0 * static_cast<double>(after) / static_cast<double>(before));
  std::printf("%d constant%s became %s: %lld bytes of weights instead of %lld\n", shrunk->converted, shrunk->converted == 1 ? "" : "s", arguments.storage.c_str(),
              static_cast<long long>(shrunk->bytes_after), static_cast<long long>(shrunk->bytes_before));
  if (shrunk->became_zero + shrunk->became_denormal > 0)
    std::printf("of their %lld values, %lld were so small that they became 0, and %lld are denormal now\n", static_cast<long long>(shrunk->values),
                static_cast<long long>(shrunk->became_zero), static_cast<long long>(shrunk->became_denormal));
  print_kept(*shrunk);
  Status status = compare_models(arguments, *model, *opened);
  if (status.ok()) status = file.finish();
  return status.ok() ? static_cast<int>(kSuccess) : report(status);
}

}  // namespace program
