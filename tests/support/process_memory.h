// What this process holds in memory, as the kernel counts it page by page.
#ifndef ONEWEIGHT_TESTS_SUPPORT_PROCESS_MEMORY_H
#define ONEWEIGHT_TESTS_SUPPORT_PROCESS_MEMORY_H

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

struct ProcessMemory {
  int64_t resident = 0, anonymous = 0;  // bytes
};

// Allocates nothing. (The counters of /proc/self/statm are kept by processor, and lag behind.)
inline ProcessMemory process_memory() {
  char text[4096] = {};
  const int file = ::open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t n = ::read(file, text, sizeof text - 1);
  ::close(file);
  const auto field = [&](const char* name) {
    const char* at = n > 0 ? std::strstr(text, name) : nullptr;
    return at ? std::strtoll(at + std::strlen(name), nullptr, 10) * 1024 : 0;
  };
  return {field("\nRss:"), field("\nAnonymous:")};
}

#endif  // ONEWEIGHT_TESTS_SUPPORT_PROCESS_MEMORY_H
