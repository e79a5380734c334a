// What a kernel sees while it runs, and how it reports data it cannot work on.
#ifndef ONEWEIGHT_PLAN_KERNEL_H
#define ONEWEIGHT_PLAN_KERNEL_H

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "oneweight/base/status.h"

namespace oneweight {
inline namespace v1 {

// Half-open range of output rows. What a row is belongs to the operator; for spatial operators it is
// batch * out_height + y, so that any band of an output map can be computed on its own.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

// What can stop a run from outside; asked between steps and by kernels that loop.
struct RunControl {
  const std::atomic<bool>* cancel = nullptr;
  std::chrono::steady_clock::time_point deadline = {};  // the epoch: none

  bool should_stop() const {
    return (cancel && cancel->load(std::memory_order_relaxed)) ||
           (deadline.time_since_epoch().count() != 0 && std::chrono::steady_clock::now() >= deadline);
  }
};

// What belongs to one run: its first error, collected without allocating; the context's resources; who may stop it.
class RunState {
 public:
  explicit RunState(std::byte* resources = nullptr, const RunControl* control = nullptr)
      : resources_(resources), control_(control) {}
  // Variables and flags that live as long as the context, at the offsets that Preparation::resource gave.
  std::byte* resource(int64_t offset) const { return resources_ + offset; }
  std::byte* resources() const { return resources_; }
  const RunControl* control() const { return control_; }
  bool should_stop() const { return control_ && control_->should_stop(); }
  // Puts the step of a nested graph before the message.
  void add_place(int operator_index, const char* name) {
    char inner[sizeof(text_)];
    std::memcpy(inner, text_, sizeof(text_));
    std::snprintf(text_, sizeof(text_), "operator %d %s: %.160s", operator_index, name, inner);
  }
  bool failed() const { return code_ != ErrorCode::ok; }
  ErrorCode code() const { return code_; }
  const char* message() const { return text_; }
  // The message is cut at 200 characters; operator and step are added by the context.
  ONEWEIGHT_PRINTF(3, 4) void fail(ErrorCode code, const char* format, ...) {
    if (failed()) return;
    code_ = code;
    std::va_list args;
    va_start(args, format);
    std::vsnprintf(text_, sizeof(text_), format, args);
    va_end(args);
  }

 private:
  std::byte* resources_;
  const RunControl* control_;
  ErrorCode code_ = ErrorCode::ok;
  char text_[200] = {};
};

// Entries of -1 behind a node's last input: kernels may ask for that many optional inputs the node does not name.
inline constexpr int kAbsentInputs = 4;

// Output channels of a block, of KernelArgs::blocks.
inline constexpr int64_t kBlockChannels = 64;

struct KernelArgs {
  const void* params_bytes;          // what prepare() stored with make_params()
  std::byte* const* tensors;         // addresses of all tensors of the plan
  const int32_t* inputs;             // indices into tensors, -1 = left out
  const int32_t* outputs;
  std::byte* scratch;                // as many bytes as prepare() asked for, 64-byte aligned
  RowRange rows;                     // the part of the output to compute
  RunState* run;
  RowRange blocks{0, 1};             // of output channels, all of args.rows: where prepare() said that there are blocks

  // The channels of the blocks, of `all`.
  RowRange channels(int64_t all) const { return {blocks.begin * kBlockChannels, std::min(blocks.end * kBlockChannels, all)}; }
  template <class P> const P& params() const { return *static_cast<const P*>(params_bytes); }
  // Address of input/output number i; null for an input that is left out. Constants may be unaligned.
  template <class T> const T* in(int i) const {
    return inputs[i] < 0 ? nullptr : reinterpret_cast<const T*>(tensors[inputs[i]]);
  }
  template <class T> T* out(int i) const {
    return outputs[i] < 0 ? nullptr : reinterpret_cast<T*>(tensors[outputs[i]]);
  }
};

// Computes args.rows (and args.blocks) of the outputs. Must not throw, allocate, lock or write elsewhere.
using KernelFn = void (*)(const KernelArgs& args);

// Which input rows of input 0 the given output rows need (for running chains band by band).
using InputRowsFn = RowRange (*)(const void* params, RowRange output_rows);

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_KERNEL_H
