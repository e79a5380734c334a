// What the subcommands share.
#ifndef ONEWEIGHT_EXAMPLES_COMMON_H
#define ONEWEIGHT_EXAMPLES_COMMON_H

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "npy.h"
#include "oneweight/oneweight.h"

namespace program {

// Exit codes, as --help documents them.
enum Exit : int { kSuccess = 0, kCaseFailed = 1, kWrongUsage = 2, kError = 3 };

// Prints "oneweight: <message>" to stderr and returns kError.
int report(const oneweight::Status& status);

// Options of every subcommand that plans a model.
struct ModelArguments {
  std::string model;
  std::string signature;
  std::vector<std::string> resize;  // "INPUT=1,224,224,3": number or name of the input
  std::string memory_limit;         // "140MiB": bytes of a context and of derived constants
  int tile_rows = 0;                // oneweight::PlanOptions::tile_rows
  double extra_work = oneweight::PlanOptions().extra_work;
  bool lock_weights = false;        // keep the file's pages in memory
};

struct Planned {
  std::shared_ptr<const oneweight::ModelView> model;
  std::shared_ptr<const oneweight::Plan> plan;
};
// Opens and plans. Errors: those of the library, invalid_argument for a resize that names no input.
oneweight::Expected<Planned> open_and_plan(const ModelArguments& arguments, const oneweight::PlanOptions& options = {});
// The plan options the arguments ask for.
oneweight::Status apply(const ModelArguments& arguments, const oneweight::ModelView& model, oneweight::PlanOptions* options);
// Names of the inputs as the plan will number them.
std::vector<std::string> input_names(const oneweight::ModelView& model, const std::string& signature);

// Reproducible inputs: floats in [-1, 1], bytes of any value, other integers small and not negative.
void fill_inputs(oneweight::ExecutionContext& context);

// The array's bytes become those of the tensor (packed, where the type has less than a byte).
oneweight::Status set_input(oneweight::ExecutionContext& context, int number, const Array& array);
// From npy files: "FILE.npy" in the order of the inputs, or "NAME=FILE.npy"; without any, fill_inputs().
oneweight::Status set_inputs(oneweight::ExecutionContext& context, const std::vector<std::string>& files);
oneweight::Expected<Array> get_output(const oneweight::ExecutionContext& context, int number);

std::string megabytes(double bytes);  // "12.3 MiB"
std::string highway_target(const oneweight::Plan& plan);

using Clock = std::chrono::steady_clock;
inline double milliseconds(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

// "label 12/345", rewritten in place on stderr when that is a terminal; silent otherwise.
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress();
  void show(int64_t done, int64_t total);
  // Removes the line, so that ordinary output may follow.
  void clear();

 private:
  std::string label_;
  bool terminal_;
  size_t width_ = 0;
  Clock::time_point last_{};
};

// Fields of /proc/self/smaps_rollup and /proc/self/status in bytes, read without allocating.
struct ProcessMemory {
  int64_t rss = 0, anonymous = 0;
  int64_t file_backed() const { return rss - anonymous; }
};
ProcessMemory process_memory();
int64_t locked_bytes();    // kept in memory by mlock()
int64_t peak_rss();        // since start or reset_peak_rss()
void reset_peak_rss();     // where the kernel allows it

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_COMMON_H
