// Eigen's thread pool as an executor. Needs threads; workers sleep while no run lasts.
#ifndef ONEWEIGHT_CONTEXT_EIGEN_EXECUTOR_H
#define ONEWEIGHT_CONTEXT_EIGEN_EXECUTOR_H

#include <unsupported/Eigen/CXX11/ThreadPool>

#include <memory>

#include "oneweight/context/executor.h"

namespace oneweight {

// Serves one run at a time; neither copied nor moved. Executors of several contexts may share a pool: none waits for another, a
// run goes on alone while the pool is busy.
class EigenExecutor : public Executor {
 public:
  // `threads` in all: the calling thread works too.
  explicit EigenExecutor(int threads) : EigenExecutor(std::make_unique<Eigen::ThreadPool>(std::max(threads - 1, 1), /*allow_spinning=*/false)) {}
  // The pool must outlive this.
  explicit EigenExecutor(Eigen::ThreadPoolInterface* pool) : Executor(&call, this), pool_(pool) {}
  ~EigenExecutor() {
    wait_for_none(invited_);
    wait_for_none(guests_);
  }
  EigenExecutor(const EigenExecutor&) = delete;
  EigenExecutor& operator=(const EigenExecutor&) = delete;

 private:
  explicit EigenExecutor(std::unique_ptr<Eigen::ThreadPool> pool) : EigenExecutor(pool.get()) { own_ = std::move(pool); }

  static void call(void* user, int count, void (*task)(void*, int), void* argument) {
    static_cast<EigenExecutor*>(user)->call(count, task, argument);
  }
  void call(int count, void (*task)(void*, int), void* argument) {
    task_ = task, argument_ = argument;
    taken_.store(1, std::memory_order_relaxed);
    count_ = count;
    guests_.fetch_add(kOpen, std::memory_order_release);
    // Those who were invited to earlier runs and have not come yet will do for this one.
    const auto wanted = static_cast<uint32_t>(std::min(count - 1, pool_->NumThreads()));
    while (invited_.load() < wanted) {
      invited_.fetch_add(1);
      pool_->Schedule([this] { enter(); });  // one pointer: nothing is allocated
    }
    task(argument, 0);
    // Those who are inside leave soon; those who come later find it closed.
    guests_.fetch_sub(kOpen);
    wait_for_none(guests_);
  }
  void enter() {
    const bool is_open = guests_.fetch_add(1) & kOpen;
    if (invited_.fetch_sub(1) == 1) invited_.notify_one();
    if (is_open) {
      const int i = taken_.fetch_add(1, std::memory_order_relaxed);
      if (i < count_) task_(argument_, i);
    }
    if (guests_.fetch_sub(1) == 1) guests_.notify_one();
  }
  static void wait_for_none(const std::atomic<uint32_t>& count) {
    for (uint32_t left = count; left != 0;) left = v1::detail::wait_for_change(count, left);
  }

  static constexpr uint32_t kOpen = 1u << 31;
  Eigen::ThreadPoolInterface* pool_;
  void (*task_)(void*, int) = nullptr;
  void* argument_ = nullptr;
  int count_ = 0;
  std::atomic<int> taken_{0};
  std::atomic<uint32_t> invited_{0};  // who have not come yet
  std::atomic<uint32_t> guests_{0};   // inside; the highest bit: there is a run to help with
  std::unique_ptr<Eigen::ThreadPool> own_;  // the last member: its threads end first
};

}  // namespace oneweight

#endif  // ONEWEIGHT_CONTEXT_EIGEN_EXECUTOR_H
