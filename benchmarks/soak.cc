// Nothing grows: does again and again what a program does with a model, and compares the memory of this process after a tenth of the
// rounds with that after all. Also: what is closed is back at the base. The exit code is 1 where more than 64 KB are added.
//   soak [--percent P] MODEL.tflite...      P: of the rounds; a model takes about two minutes with all
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "oneweight/context/scratch_pool.h"
#include "oneweight/oneweight.h"
#include "tests/support/process_memory.h"

namespace {

using namespace oneweight;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMostGrowth = 64 * 1024;

// Without what the allocator keeps for later, which comes and goes.
ProcessMemory measure() {
  ::malloc_trim(0);
  return process_memory();
}

Status fail(const char* text) { return Status(ErrorCode::invalid_data, text); }

void fill_inputs(ExecutionContext& context) {
  for (int i = 0; i < static_cast<int>(context.plan()->inputs().size()); ++i) {
    std::ranges::fill(context.input_bytes(i), std::byte{0});
    if (auto floats = context.input<float>(i); floats.ok()) std::ranges::fill(*floats, 0.5f);
  }
}

// Opens a model, runs it and closes it again.
Status open_and_run(const char* path) {
  auto model = ModelView::open(path);
  if (!model.ok()) return model.status();
  auto plan = make_plan<opset::All>(*model);
  if (!plan.ok()) return plan.status();
  auto context = ExecutionContext::create(*plan);
  if (!context.ok()) return context.status();
  fill_inputs(*context);
  return context->run();
}

// All that is done with one model; the rows of the table that it prints.
class Soak {
 public:
  // `percent` of the rounds; 0: three of each without a word, for what a process pays once (its own pages, buffers of the C library).
  Soak(const char* path, int percent) : path_(path), percent_(percent) {}

  // False when something fails or grows.
  bool all() {
    const Status status = with_open_model();
    if (!status.ok()) std::printf("failed: %s\n", status.message().c_str());
    good_ = good_ && status.ok();
    repeat("opened, planned, run and closed", 1000, [&](int) { return open_and_run(path_); });
    const int file = ::open(path_, O_RDONLY | O_CLOEXEC);
    const off_t size = ::lseek(file, 0, SEEK_END);
    uint64_t random = 1;
    repeat("opens of the first bytes of the file only", 10000, [&](int) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const uint64_t length = 1 + (random >> 33) % static_cast<uint64_t>(size - 1);
      // (What is missing at the end may be no part of the model: labels packed into the file.)
      return ModelView::from_descriptor(file, 0, length).ok() && length < static_cast<uint64_t>(size) / 2 ? fail("half a model was opened") : Status();
    });
    ::close(file);
    return good_;
  }

  // Prints what was added to the memory of `from`.
  void judge(const ProcessMemory& from, const ProcessMemory& to) {
    const int64_t resident = to.resident - from.resident, anonymous = to.anonymous - from.anonymous;
    const bool grows = resident > kMostGrowth || anonymous > kMostGrowth;
    good_ = good_ && !grows;
    std::printf("%12lld %+12lld %+12lld  %s\n", static_cast<long long>(to.resident / 1024), static_cast<long long>(resident / 1024),
                static_cast<long long>(anonymous / 1024), grows ? "GROWS" : "ok");
    std::fflush(stdout);
  }
  bool good() const { return good_; }

 private:
  template <class Work>
  void repeat(const char* name, int rounds, const Work& work) {
    rounds = percent_ == 0 ? 3 : std::max(rounds * percent_ / 100, 10);
    if (percent_ > 0) std::printf("  %-52s %8d ", name, rounds);
    std::fflush(stdout);
    ProcessMemory first;
    for (int i = 0; i < rounds; ++i) {
      if (const Status status = work(i); !status.ok()) {
        std::printf("failed: %s\n", status.message().c_str());
        good_ = false;
        return;
      }
      if (i + 1 == std::max(rounds / 10, 1)) first = measure();
    }
    if (percent_ > 0) judge(first, measure());
  }

  Status with_open_model() {
    auto model = ModelView::open(path_);
    if (!model.ok()) return model.status();
    auto plan = make_plan<opset::All>(*model);
    if (!plan.ok()) return plan.status();
    auto context = ExecutionContext::create(*plan);
    if (!context.ok()) return context.status();
    auto state = ContextState::create(*plan);
    if (!state.ok()) return state.status();
    fill_inputs(*context);
    ONEWEIGHT_RETURN_IF_ERROR(context->run());
    const Clock::time_point start = Clock::now();
    ONEWEIGHT_RETURN_IF_ERROR(context->run());
    const bool small = Clock::now() - start < std::chrono::microseconds(500);

    repeat("runs of one context", small ? 100000 : 1000, [&](int) { return context->run(); });
    repeat("contexts made, touched and destroyed", 10000, [&](int) {
      auto made = ExecutionContext::create(*plan);
      if (made.ok()) made->prefault();
      return made.status();
    });
    ScratchPool pool;
    repeat("turns in a pool, scratch and weights given back", 1000, [&](int round) {
      auto turn = pool.context(*state);
      if (!turn.ok()) return turn.status();
      fill_inputs(*turn);
      ONEWEIGHT_RETURN_IF_ERROR(turn->run());
      if (round % 3 == 0) ONEWEIGHT_RETURN_IF_ERROR(turn->release_scratch());
      if (round % 3 == 1) ONEWEIGHT_RETURN_IF_ERROR((*model)->release());
      if (round % 3 == 2) pool.trim();
      context->prefault();  // touches the weights, so that all measurements find them
      return Status();
    });
    repeat("plans that are refused", 1000, [&](int) {
      PlanOptions options;
      options.memory_limit = 1;
      return make_plan<opset::All>(*model, options).ok() ? fail("there is a plan without memory") : Status();
    });
    return {};
  }

  const char* path_;
  int percent_;
  bool good_ = true;
};

bool soak(const char* path, int percent) {
  std::printf("%s\n", path);
  if (!Soak(path, 0).all()) return false;
  const ProcessMemory base = measure();
  Soak soak(path, percent);
  soak.all();
  std::printf("  %-61s ", "all of it closed, against the base");
  soak.judge(base, measure());
  return soak.good();
}

}  // namespace

int main(int count, char** values) {
  // The allocator's caches of threads hold on to pieces of freed memory, and to the pages around them: anew without.
  if (!std::getenv("GLIBC_TUNABLES")) {
    ::setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
    ::execv("/proc/self/exe", values);
  }
  int percent = 100;
  std::vector<const char*> models;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(values[i], "--percent") == 0 && i + 1 < count) percent = std::atoi(values[++i]);
    else models.push_back(values[i]);
  }
  if (models.empty() || percent < 1 || percent > 1000) {
    std::fprintf(stderr, "usage: soak [--percent P] MODEL.tflite...\n");
    return 2;
  }
  std::printf("  %-52s %8s %12s %12s %12s\n", "KiB in this process", "rounds", "resident", "growth", "anonymous");
  bool good = true;
  for (const char* model : models) good &= soak(model, percent);
  std::printf("%s\n", good ? "nothing grows" : "something grows");
  return good ? 0 : 1;
}
