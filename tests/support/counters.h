// How often this program has allocated and locked: counted in context/real_time_test.cc, where no sanitizer does so itself.
#ifndef ONEWEIGHT_TESTS_SUPPORT_COUNTERS_H
#define ONEWEIGHT_TESTS_SUPPORT_COUNTERS_H

#include <atomic>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ONEWEIGHT_TESTS_COUNT 1
extern std::atomic<long> allocations, locks;
#endif

#endif  // ONEWEIGHT_TESTS_SUPPORT_COUNTERS_H
