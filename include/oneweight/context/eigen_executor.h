// Eigen's thread pool as an executor. Needs threads (std::mutex); workers sleep while idle.
#ifndef ONEWEIGHT_CONTEXT_EIGEN_EXECUTOR_H
#define ONEWEIGHT_CONTEXT_EIGEN_EXECUTOR_H

#include <unsupported/Eigen/CXX11/ThreadPool>

#include "oneweight/context/execution_context.h"

namespace oneweight {

// `threads` in all: the calling thread works too. May serve several contexts, one run at a time each.
class EigenExecutor {
 public:
  explicit EigenExecutor(int threads) : pool_(std::max(threads - 1, 1), /*allow_spinning=*/false) {}

  Executor executor() {
    return {[](void* user, int count, void (*task)(void*, int), void* argument) {
              auto* pool = static_cast<Eigen::ThreadPool*>(user);
              Eigen::Barrier done(static_cast<unsigned>(count - 1));
              for (int i = 1; i < count; ++i)
                pool->Schedule([&done, task, argument, i] {
                  task(argument, i);
                  done.Notify();
                });
              task(argument, 0);
              done.Wait();
            },
            &pool_};
  }

 private:
  Eigen::ThreadPool pool_;
};

}  // namespace oneweight

#endif  // ONEWEIGHT_CONTEXT_EIGEN_EXECUTOR_H
