// Eight threads, each with a context of its own, on one model: nothing is locked and the weights exist once.
//   threads MODEL.tflite
#include <oneweight/oneweight.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

int main(int count, char** values) {
  if (count != 2) return std::fprintf(stderr, "usage: threads MODEL.tflite\n"), 2;
  constexpr int kThreads = 8, kRuns = 20;
  auto model = oneweight::ModelView::open(values[1]);
  if (!model.ok()) return std::fprintf(stderr, "%s\n", model.status().message().c_str()), 1;
  auto plan = oneweight::make_plan<oneweight::opset::All>(*model);
  if (!plan.ok()) return std::fprintf(stderr, "%s\n", plan.status().message().c_str()), 1;

  std::vector<oneweight::Status> statuses(kThreads);
  std::vector<std::thread> threads;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      auto context = oneweight::ExecutionContext::create(*plan);
      if (!context.ok()) {
        statuses[static_cast<size_t>(i)] = context.status();
        return;
      }
      for (size_t k = 0; k < (*plan)->inputs().size(); ++k) {
        auto bytes = context->input_bytes(static_cast<int>(k));
        if (!bytes.empty()) std::memset(bytes.data(), 0, bytes.size());
      }
      for (int run = 0; run < kRuns; ++run)
        if (statuses[static_cast<size_t>(i)] = context->run(); !statuses[static_cast<size_t>(i)].ok()) return;
    });
  for (std::thread& thread : threads) thread.join();
  for (const oneweight::Status& status : statuses)
    if (!status.ok()) return std::fprintf(stderr, "%s\n", status.message().c_str()), 1;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%d contexts, %.1f runs a second in all; each has %lld bytes of scratch beside the %zu bytes of the model\n", kThreads,
              kThreads * kRuns / seconds, static_cast<long long>((*plan)->context_bytes()), (*model)->bytes().size());
  return 0;
}
