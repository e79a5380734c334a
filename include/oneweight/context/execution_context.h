// One place to run a plan: a block of scratch and nothing else. As many as you like share a plan and a model.
#ifndef ONEWEIGHT_CONTEXT_EXECUTION_CONTEXT_H
#define ONEWEIGHT_CONTEXT_EXECUTION_CONTEXT_H

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "oneweight/context/denormals.h"
#include "oneweight/context/scratch.h"
#include "oneweight/plan/execute.h"

namespace oneweight {
inline namespace v1 {

struct StepExecutor;

struct RunOptions : RunControl {
  // Computes bands of large steps at the same time, where the plan has them (PlanOptions::workers): context/executor.h.
  const StepExecutor* executor = nullptr;
  // `cancel` and `deadline` are looked at between steps: the run answers `cancelled` once they say so.
  // Called before each step and once after the last with the number of steps (for profiles), never twice at a time; for steps that run
  // tile by tile (Plan::chains) before each part. Must not throw.
  void (*observer)(void* user, int step) = nullptr;
  void* observer_user = nullptr;
};

// One run that is about to begin.
struct RunOfSteps {
  const Plan& plan;
  std::byte* block;
  const RunOptions& options;
  RunState& state;

  int count() const { return static_cast<int>(plan.steps().size()); }
  bool is_watched() const { return options.cancel || options.observer || options.deadline.time_since_epoch().count() != 0; }
  // False when the run is to stop before this step.
  bool watch(int step) const {
    if (options.should_stop()) return false;
    if (options.observer) options.observer(options.observer_user, step);
    return true;
  }
  KernelArgs args(const Step& step) const { return args_of(step, block, &state); }
  // Runs all steps on this thread; the number of the step that failed or did not begin, or count().
  int run() const {
    const bool watched = is_watched();
    return for_each_turn(plan, block, [&](int s, RowRange rows) {
      const Step& step = plan.steps()[static_cast<size_t>(s)];
      if (watched && !watch(s)) return false;
      KernelArgs step_args = args(step);
      if (rows.end >= 0) step_args.rows = rows;
      step.kernel(step_args);
      return !state.failed();
    });
  }
};

// Who else may run the steps; returns what RunOfSteps::run does.
struct StepExecutor {
  int (*run_steps)(const StepExecutor& executor, const RunOfSteps& run);
};

// Used by one thread at a time. Movable, not copyable; keeps plan and model alive.
class ExecutionContext {
 public:
  // Allocates plan->context_bytes() bytes, or uses the first ones of `memory` (64-byte aligned; it must
  // outlive the context). Errors: out_of_memory, invalid_argument (too small or misaligned, with numbers).
  static Expected<ExecutionContext> create(std::shared_ptr<const Plan> plan, std::span<std::byte> memory = {}) {
    if (!plan) return make_error(ErrorCode::invalid_argument, "no plan");
    const auto needed = static_cast<size_t>(plan->context_bytes());
    Scratch scratch;
    if (memory.data() != nullptr) {
      if (memory.size() < needed)
        return make_error(ErrorCode::invalid_argument, "the scratch buffer has %zu bytes, this plan needs %zu", memory.size(), needed);
      if (reinterpret_cast<uintptr_t>(memory.data()) % kAlignment != 0)
        return make_error(ErrorCode::invalid_argument, "the scratch buffer is not aligned to %d bytes", static_cast<int>(kAlignment));
      scratch.block = memory.data();
    } else {
      scratch = {allocate_scratch(needed), [](void*, std::byte* block, size_t bytes) { free_scratch(block, bytes); }};
      if (!scratch.block) return make_error(ErrorCode::out_of_memory, "no memory for the %zu bytes of a context", needed);
    }
    return ExecutionContext(std::move(plan), scratch);
  }

  ExecutionContext(ExecutionContext&& other) noexcept { swap(other); }
  ExecutionContext& operator=(ExecutionContext&& other) noexcept {
    ExecutionContext moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~ExecutionContext() {
    if (scratch_.give_back) scratch_.give_back(scratch_.owner, scratch_.block, static_cast<size_t>(plan_->context_bytes()));
  }

  const std::shared_ptr<const Plan>& plan() const { return plan_; }

  // Runs all steps: allocates nothing, locks nothing, calls no system. After an error the outputs are
  // undefined, and the context can be run again. Errors: cancelled; invalid_data, with operator and values.
  Status run(const RunOptions& options = {}) {
    const Plan& plan = *plan_;
    DenormalsFlushed denormals;
    RunState state(state_, &options);
    const RunOfSteps run{plan, scratch_.block, options, state};
    const int end = options.executor && plan.is_divided() ? options.executor->run_steps(*options.executor, run) : run.run();
    if (end < run.count()) [[unlikely]] {
      const Step& step = plan.steps_[end];
      if (!state.failed()) return make_error(ErrorCode::cancelled, "stopped before step %d of %d", end, run.count());
      return make_error(state.code(), "operator %d %s: %s", step.operator_index, step.name, state.message());
    }
    if (options.observer) options.observer(options.observer_user, end);
    copy_bound_outputs();
    return {};
  }

  // Sets all state (variables, LSTM state) to its initial value, real zero. Inputs stay: a state that goes out and in again is the caller's.
  void reset() { reset_state(*plan_, state_); }

  // Gives the pages of the scratch back to the system until they are used again: a context that rests has its state resident and no
  // more. Bound memory, state and all addresses stay; what inputs and outputs held in the block is lost. Nothing needs to be taken
  // again: the next run (or prefault()) pays page faults as the first one did.
  // Errors: unsupported (the memory is the caller's, or the system knows no pages), invalid_argument (it is locked).
  Status release_scratch() {
    if (!scratch_.give_back) return Status(ErrorCode::unsupported, "the scratch is the caller's memory, which is not given back");
    const int64_t kept = plan_->resource_offset() + plan_->state_bytes();
    return Pages::inside(scratch_.block + kept, static_cast<size_t>(plan_->context_bytes() - kept)).discard();
  }

  // Touches every page of the block and of the weights, so that the first run meets no page faults for them. State and inputs stay.
  void prefault() {
    constexpr int64_t kPage = 4096;
    for (int64_t i = 0; i < plan_->context_bytes(); i += kPage) {
      volatile std::byte* page = scratch_.block + i;
      *page = *page;
    }
    for (const PlanTensor& t : plan_->tensors_) {
      if (t.placement != Placement::constant || t.bytes <= 0) continue;
      const volatile std::byte* bytes = t.constant;
      for (int64_t i = 0; i < t.bytes; i += kPage) (void)bytes[i];
      (void)bytes[t.bytes - 1];
    }
  }

  // ---- Inputs and outputs, by number (order of the signature or subgraph). Their memory stays where it is
  // until it is bound elsewhere; a run never changes inputs. Inputs of a new context hold anything.
  std::span<std::byte> input_bytes(int number) { return bytes_of(plan_->inputs_, number); }
  std::span<const std::byte> output_bytes(int number) const {
    return const_cast<ExecutionContext*>(this)->bytes_of(plan_->outputs_, number);
  }
  const PlanTensor& input_tensor(int number) const { return plan_->tensors_[plan_->inputs_[number]]; }
  const PlanTensor& output_tensor(int number) const { return plan_->tensors_[plan_->outputs_[number]]; }

  // Typed views. Errors: not_found (names or numbers that exist are listed), invalid_argument (another type).
  template <class T> Expected<std::span<T>> input(int number) {
    ONEWEIGHT_RETURN_IF_ERROR(check(number, plan_->inputs_, "input"));
    return typed<T>(plan_->inputs_[number]);
  }
  template <class T> Expected<std::span<T>> input(std::string_view name) {
    const int number = plan_->find_input(name);
    if (number < 0) return unknown(name, plan_->input_names_, "input");
    return typed<T>(plan_->inputs_[number]);
  }
  template <class T> Expected<std::span<const T>> output(int number) const {
    ONEWEIGHT_RETURN_IF_ERROR(check(number, plan_->outputs_, "output"));
    return read<T>(plan_->outputs_[number]);
  }
  template <class T> Expected<std::span<const T>> output(std::string_view name) const {
    const int number = plan_->find_output(name);
    if (number < 0) return unknown(name, plan_->output_names_, "output");
    return read<T>(plan_->outputs_[number]);
  }
  // Any tensor that is kept (PlanOptions::keep), an input, an output or state, by its name.
  template <class T> Expected<std::span<const T>> tensor(std::string_view name) const {
    const int index = plan_->find_tensor(name);
    if (index < 0) return make_error(ErrorCode::not_found, "no tensor '%s'", std::string(name).c_str());
    const PlanTensor& t = plan_->tensors_[index];
    if (t.placement == Placement::none || (t.placement == Placement::arena && t.last_step < static_cast<int>(plan_->steps_.size())))
      return make_error(ErrorCode::not_found, "tensor '%s' is not kept after a run: name it in PlanOptions::keep", std::string(name).c_str());
    return read<T>(index);
  }

  // Lets the plan read input `number` from, or write output `number` to, the caller's memory without a copy. It must
  // have the tensor's exact size and the alignment of its type, and outlive its use; empty = back to the block.
  // (An output that is itself an input or a constant is copied after the run.)
  Status bind_input(int number, std::span<const std::byte> memory) {
    ONEWEIGHT_RETURN_IF_ERROR(check(number, plan_->inputs_, "input"));
    return bind(plan_->inputs_[number], const_cast<std::byte*>(memory.data()), memory.size());
  }
  Status bind_output(int number, std::span<std::byte> memory) {
    ONEWEIGHT_RETURN_IF_ERROR(check(number, plan_->outputs_, "output"));
    const int32_t t = plan_->outputs_[number];
    bool own = plan_->tensors_[t].placement == Placement::arena;
    for (int32_t i : plan_->inputs_) own = own && i != t;
    for (size_t o = 0; o < plan_->outputs_.size(); ++o) own = own && (static_cast<int>(o) == number || plan_->outputs_[o] != t);
    if (own) return bind(t, memory.data(), memory.size());
    ONEWEIGHT_RETURN_IF_ERROR(check_memory(t, memory.data(), memory.size()));
    addresses()[plan_->tensors_.size() + static_cast<size_t>(number)] = memory.data();
    return {};
  }

 private:
  friend class ContextState;
  friend class ScratchPool;

  // State lies in the block and is new, or it is the one at `state`.
  ExecutionContext(std::shared_ptr<const Plan> plan, const Scratch& scratch, std::byte* state = nullptr)
      : plan_(std::move(plan)), scratch_(scratch), state_(state ? state : scratch.block + plan_->resource_offset()) {
    fill_addresses();
    if (!state) reset();
  }

  void swap(ExecutionContext& other) noexcept {
    std::swap(plan_, other.plan_);
    std::swap(scratch_, other.scratch_);
    std::swap(state_, other.state_);
  }
  std::byte** addresses() const { return address_table(scratch_.block); }

  // `state`: the plan's resources and behind them its state tensors.
  static std::byte* state_tensor(const Plan& plan, const PlanTensor& t, std::byte* state) { return state + (t.offset - plan.resource_offset()); }
  static void reset_state(const Plan& plan, std::byte* state) {
    if (plan.resource_bytes() > 0) std::memset(state, 0, static_cast<size_t>(plan.resource_bytes()));
    for (const PlanTensor& t : plan.tensors()) {
      if (t.placement != Placement::state || t.bytes == 0) continue;
      const bool bytes = tensor_type_bits(t.type) == 8 && !t.quantization->zero_points.empty();
      std::memset(state_tensor(plan, t, state), bytes ? static_cast<int>(t.quantization->zero_points[0]) : 0, static_cast<size_t>(t.bytes));
    }
  }

  void fill_addresses() {
    fill_address_table(*plan_, scratch_.block);
    for (size_t t = 0; t < plan_->tensors_.size(); ++t)
      if (plan_->tensors_[t].placement == Placement::state) addresses()[t] = state_tensor(*plan_, plan_->tensors_[t], state_);
    for (size_t i = 0; i < plan_->outputs_.size(); ++i) addresses()[plan_->tensors_.size() + i] = nullptr;
  }

  void copy_bound_outputs() {
    std::byte** table = addresses();
    for (size_t o = 0; o < plan_->outputs_.size(); ++o) {
      std::byte* to = table[plan_->tensors_.size() + o];
      const int32_t t = plan_->outputs_[o];
      if (to && plan_->tensors_[t].bytes > 0) std::memcpy(to, table[t], static_cast<size_t>(plan_->tensors_[t].bytes));
    }
  }

  std::span<std::byte> bytes_of(const std::vector<int32_t>& indices, int number) {
    if (number < 0 || static_cast<size_t>(number) >= indices.size()) return {};
    const PlanTensor& t = plan_->tensors_[indices[number]];
    return {addresses()[indices[number]], static_cast<size_t>(t.bytes)};
  }

  Status check(int number, const std::vector<int32_t>& indices, const char* what) const {
    if (number >= 0 && static_cast<size_t>(number) < indices.size()) return {};
    return make_error(ErrorCode::not_found, "no %s %d: the model has %zu", what, number, indices.size());
  }
  static Status unknown(std::string_view name, const std::vector<std::string>& names, const char* what) {
    std::string known;
    for (const std::string& n : names) known += (known.empty() ? "'" : ", '") + n + "'";
    return make_error(ErrorCode::not_found, "no %s '%s': the model has %s", what, std::string(name).c_str(), known.c_str());
  }
  template <class T> Status check_type(const PlanTensor& t) const {
    if (t.type == tensor_type_of<std::remove_const_t<T>>) return {};
    return make_error(ErrorCode::invalid_argument, "tensor '%s' has type %s, not %s", std::string(t.name).c_str(),
                      tensor_type_name(t.type), tensor_type_name(tensor_type_of<std::remove_const_t<T>>));
  }
  template <class T> Expected<std::span<T>> typed(int32_t index) {
    const PlanTensor& t = plan_->tensors_[index];
    ONEWEIGHT_RETURN_IF_ERROR(check_type<T>(t));
    return std::span<T>(reinterpret_cast<T*>(addresses()[index]), static_cast<size_t>(t.shape.elements()));
  }
  template <class T> Expected<std::span<const T>> read(int32_t index) const {
    const PlanTensor& t = plan_->tensors_[index];
    ONEWEIGHT_RETURN_IF_ERROR(check_type<T>(t));
    return std::span<const T>(reinterpret_cast<const T*>(addresses()[index]), static_cast<size_t>(t.shape.elements()));
  }

  Status check_memory(int32_t index, const std::byte* memory, size_t bytes) const {
    const PlanTensor& t = plan_->tensors_[index];
    if (!memory) return {};
    if (bytes != static_cast<size_t>(t.bytes))
      return make_error(ErrorCode::invalid_argument, "memory of %zu bytes bound to tensor '%s', which has %lld", bytes,
                        std::string(t.name).c_str(), static_cast<long long>(t.bytes));
    const auto alignment = static_cast<size_t>(std::max(1, tensor_type_bits(t.type) / 8));
    if (reinterpret_cast<uintptr_t>(memory) % alignment != 0)
      return make_error(ErrorCode::invalid_argument, "memory bound to tensor '%s' is not aligned to the %zu bytes of %s",
                        std::string(t.name).c_str(), alignment, tensor_type_name(t.type));
    return {};
  }
  // Moves a tensor and all that share its memory (views of it, in-place steps before it).
  Status bind(int32_t index, std::byte* memory, size_t bytes) {
    ONEWEIGHT_RETURN_IF_ERROR(check_memory(index, memory, bytes));
    const PlanTensor& bound = plan_->tensors_[index];
    for (size_t t = 0; t < plan_->tensors_.size(); ++t) {
      const PlanTensor& other = plan_->tensors_[t];
      if (other.placement == Placement::arena && other.buffer == bound.buffer)
        addresses()[t] = memory ? memory + (other.offset - bound.offset) : scratch_.block + other.offset;
    }
    return {};
  }

  std::shared_ptr<const Plan> plan_;
  Scratch scratch_;
  std::byte* state_ = nullptr;       // in the block, or a ContextState's
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_CONTEXT_EXECUTION_CONTEXT_H
