// run() allocates nothing, locks nothing and calls no system, also when it reports an error.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <linux/seccomp.h>
#include <new>

#include "tests/support/counters.h"
#include "tests/support/test_data.h"

// Sanitizers bring allocation and locks of their own.
#ifdef ONEWEIGHT_TESTS_COUNT
std::atomic<long> allocations{0};
std::atomic<long> locks{0};

// Counted replacements of what code in a run could reach.
void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  ++locks;
  static auto* real = reinterpret_cast<int (*)(pthread_mutex_t*)>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  return real(mutex);
}

TEST_CASE("a run allocates nothing and locks nothing", "[context]") {
  for (const std::string& path : test_models()) {
    INFO(path);
    auto context = context_of(plan_of(path));
    fill_inputs(context);
    REQUIRE(context.run().ok());
    const long allocated = allocations, locked = locks;
    bool ok = true;
    for (int i = 0; i < 10; ++i) ok = ok && context.run().ok();
    const long allocated_then = allocations, locked_then = locks;  // before CHECK allocates
    CHECK(ok);
    CHECK(allocated_then == allocated);
    CHECK(locked_then == locked);
  }
}

TEST_CASE("the counters of this file do count", "[context]") {
  const long allocated = allocations, locked = locks;
  ::operator delete(::operator new(1));  // a new-expression could be optimised away
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  const long allocated_then = allocations, locked_then = locks;  // before CHECK allocates
  CHECK(allocated_then == allocated + 1);
  CHECK(locked_then == locked + 1);
}

namespace {
// Runs `work` in a child that may call the system no more than to exit; true when it got to the end.
template <class Work>
bool survives_without_system_calls(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(3);
    const bool ok = work();
    syscall(SYS_exit, ok ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
}  // namespace

TEST_CASE("a run calls no system", "[context]") {
  for (const std::string& path : test_models()) {
    INFO(path);
    auto context = context_of(plan_of(path));
    fill_inputs(context);
    context.prefault();
    CHECK(survives_without_system_calls([&] {
      bool ok = true;
      for (int i = 0; i < 3; ++i) ok = ok && context.run().ok();
      return ok;
    }));
  }
  CHECK_FALSE(survives_without_system_calls([] { return getppid() > 0; }));
}
#endif
