// Several threads for one run: the caller's own, called once a run. Bands of large steps are taken by whoever is free, so that a
// thread that comes late or not at all costs no more than its help. Answers are the same bits with any number of threads.
#ifndef ONEWEIGHT_CONTEXT_EXECUTOR_H
#define ONEWEIGHT_CONTEXT_EXECUTOR_H

#include <atomic>

#include "oneweight/context/execution_context.h"

namespace oneweight {
inline namespace v1 {

// The threads: run() calls task(argument, i) for at least one i in [0, count), on this thread or others, at the same time if it
// likes but never twice for one i, and returns when no call is left. It must not throw. A plain loop over all i would do.
struct Executor : StepExecutor {
  using RunFn = void (*)(void* user, int count, void (*task)(void* argument, int i), void* argument);
  inline explicit Executor(RunFn run, void* user = nullptr);
  RunFn run;
  void* user;
};

namespace detail {

// What a processor may do while it waits for memory that another one writes.
inline void pause_thread() {
#if defined(__SSE2__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Looks for another value for a tenth of a millisecond or two, then sleeps until there is one. Waking up takes a good part of that
// time, which is more than most steps that are divided.
inline uint32_t wait_for_change(const std::atomic<uint32_t>& from, uint32_t old) {
  for (int i = 0; i < 8000; ++i) {
    const uint32_t now = from.load(std::memory_order_acquire);
    if (now != old) return now;
    pause_thread();
  }
  from.wait(old, std::memory_order_acquire);
  return from.load(std::memory_order_acquire);
}

// The first thread to come leads: it runs undivided steps, opens the divided ones, and goes on when all their bands are done.
class SharedRun {
 public:
  explicit SharedRun(const RunOfSteps& run) : run_(run), resources_(run.state.resources()), control_(run.state.control()) {}

  static void task(void* argument, int i) {
    auto& shared = *static_cast<SharedRun*>(argument);
    DenormalsFlushed denormals;
    if (shared.has_leader_.exchange(true)) shared.help(i);
    else shared.lead(i);
  }
  bool has_leader() const { return has_leader_; }
  int end() const { return end_; }

 private:
  // next_: the number of the open step, then that of its first band nobody has taken. A step that runs tile by tile is opened for each
  // tile, with the same numbers: who takes a band late takes it of the tile that is open.
  static constexpr int kBandBits = 8;
  static constexpr uint32_t kBandMask = (1u << kBandBits) - 1;
  static constexpr uint32_t kNoStep = (1u << (32 - kBandBits)) - 1;
  static constexpr uint32_t kNothingYet = kNoStep << kBandBits | 1, kFinished = kNoStep << kBandBits;

  void lead(int worker) {
    const bool watched = run_.is_watched();
    end_ = for_each_turn(run_.plan, run_.block, [&](int s, RowRange rows) {
      if (watched && !run_.watch(s)) return false;
      const Step& step = run_.plan.steps()[static_cast<size_t>(s)];
      rows_ = rows.end < 0 ? RowRange{0, step.rows} : rows;
      if (step.bands == 1) {
        KernelArgs args = run_.args(step);
        args.rows = rows_;
        step.kernel(args);
      } else {
        done_.store(0, std::memory_order_relaxed);
        open(static_cast<uint32_t>(s) << kBandBits);
        take_bands(worker, run_.state);
        const auto bands = static_cast<uint32_t>(step.bands);
        for (uint32_t done = done_.load(std::memory_order_acquire); done != bands;) done = wait_for_change(done_, done);
        if (failed_band_ >= 0) run_.state = failure_;
      }
      return !run_.state.failed();
    });
    open(kFinished);
  }

  void help(int worker) {
    RunState state(resources_, control_);
    for (uint32_t next = take_bands(worker, state); next != kFinished; next = take_bands(worker, state)) wait_for_change(next_, next);
  }

  void open(uint32_t next) {
    next_.store(next);  // sequentially consistent: before it is asked who sleeps
    next_.notify_all();
  }

  // Computes bands of the open step while there are any; then what next_ was.
  uint32_t take_bands(int worker, RunState& state) {
    uint32_t next = next_.load(std::memory_order_acquire);
    while (next >> kBandBits != kNoStep) {
      const Step& step = run_.plan.steps()[next >> kBandBits];
      const auto band = static_cast<int64_t>(next & kBandMask);
      if (band >= step.bands) return next;
      if (!next_.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      run_band(step, band, step.bands <= run_.plan.workers() ? band : worker, state);
      if (done_.fetch_add(1) + 1 == static_cast<uint32_t>(step.bands)) done_.notify_one();
      next = next_.load(std::memory_order_acquire);
    }
    return next;
  }

  void run_band(const Step& step, int64_t band, int64_t scratch, RunState& state) {
    KernelArgs args = run_.args(step);
    args.run = &state;
    args.scratch += scratch * step.scratch_bytes;
    args.rows = rows_;
    const int64_t units = step.divides_blocks ? step.blocks : rows_.size();
    const RowRange part{units * band / step.bands, units * (band + 1) / step.bands};
    if (step.divides_blocks) args.blocks = part;
    else args.rows = {rows_.begin + part.begin, rows_.begin + part.end};
    if (part.size() > 0) step.kernel(args);
    if (state.failed()) [[unlikely]] keep_failure(band, state);
  }

  // The error of the first band that has one: the message does not depend on who was faster.
  void keep_failure(int64_t band, RunState& state) {
    while (failing_.exchange(true, std::memory_order_acquire)) pause_thread();
    if (failed_band_ < 0 || band < failed_band_) failed_band_ = band, failure_ = state;
    failing_.store(false, std::memory_order_release);
    state = RunState(resources_, control_);
  }

  const RunOfSteps& run_;
  std::byte* const resources_;
  const RunControl* const control_;
  std::atomic<bool> has_leader_{false}, failing_{false};
  int64_t failed_band_ = -1;
  RunState failure_;
  int end_ = 0;
  RowRange rows_;                    // of the open step
  alignas(64) std::atomic<uint32_t> next_{kNothingYet};
  alignas(64) std::atomic<uint32_t> done_{0};
};

}  // namespace detail

inline Executor::Executor(RunFn run_fn, void* user_data)
    : StepExecutor{[](const StepExecutor& base, const RunOfSteps& run) {
        const auto& self = static_cast<const Executor&>(base);
        detail::SharedRun shared(run);
        self.run(self.user, run.plan.workers(), &detail::SharedRun::task, &shared);
        if (!shared.has_leader()) detail::SharedRun::task(&shared, 0);
        return shared.end();
      }},
      run(run_fn), user(user_data) {}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_CONTEXT_EXECUTOR_H
