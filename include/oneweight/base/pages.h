// Pages of this process's memory, where the system has them: to read them ahead, to keep them in memory, to give them back, and
// to count those that are there.
//
// ONEWEIGHT_FILES is 2 where POSIX mappings exist, 1 where only C streams are trusted (files are read into memory), 0 on bare
// metal (no files: only caller-owned bytes). It may be set from outside. Below 2 everything here answers `unsupported`.
#ifndef ONEWEIGHT_BASE_PAGES_H
#define ONEWEIGHT_BASE_PAGES_H

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "oneweight/base/status.h"

#ifndef ONEWEIGHT_FILES
#if defined(__unix__) || defined(__APPLE__)
#define ONEWEIGHT_FILES 2
#elif defined(_WIN32)
#define ONEWEIGHT_FILES 1
#else
#define ONEWEIGHT_FILES 0
#endif
#endif

#if ONEWEIGHT_FILES == 2
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#endif

namespace oneweight {
inline namespace v1 {

class Pages {
 public:
  // All pages that hold some of the bytes, or only those that hold nothing else.
  static Pages around(const void* begin, size_t bytes) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(begin);
    return bytes == 0 ? Pages(at, at) : Pages(at / page_bytes() * page_bytes(), (at + bytes + page_bytes() - 1) / page_bytes() * page_bytes());
  }
  static Pages inside(const void* begin, size_t bytes) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(begin);
    return Pages((at + page_bytes() - 1) / page_bytes() * page_bytes(), (at + bytes) / page_bytes() * page_bytes());
  }

  size_t bytes() const { return end_ - begin_; }

#if ONEWEIGHT_FILES == 2
  // Asks for file pages to be read ahead, and returns at once.
  Status prefetch() const { return advise(MADV_WILLNEED, "be read ahead"); }

  // Brings the pages into memory and keeps them there. Errors: out_of_memory, with the bytes and the limit.
  Status lock() const {
    if (bytes() == 0 || ::mlock(address(), bytes()) == 0) return {};
    const int error = errno;
    if (error == EAGAIN) ::munlock(address(), bytes());  // some could not be read: none stays locked
    rlimit limit{};
    std::string most = "unknown";
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
      most = limit.rlim_cur == RLIM_INFINITY ? "none" : std::to_string(limit.rlim_cur) + " bytes";
    return make_error(ErrorCode::out_of_memory, "%zu bytes cannot be locked in memory: %s; the limit RLIMIT_MEMLOCK is %s", bytes(),
                      message(error).c_str(), most.c_str());
  }
  Status unlock() const {
    if (bytes() == 0 || ::munlock(address(), bytes()) == 0) return {};
    return make_error(ErrorCode::io_error, "%zu bytes cannot be unlocked: %s", bytes(), message(errno).c_str());
  }

  // Takes pages of a file that is mapped and only read out of this process; they come back when they are touched.
  Status release() const { return advise(MADV_DONTNEED, "be given back"); }

  // Gives pages of private memory back to the system. What they held is lost; they come back, with anything in them, when they
  // are touched.
  Status discard() const {
#if defined(__linux__)
    return advise(MADV_DONTNEED, "be given back");
#else
    return advise(MADV_FREE, "be given back");
#endif
  }

  // Bytes of these pages that are in memory for this process. Errors: unsupported, io_error.
  Expected<size_t> resident_bytes() const {
#if defined(__linux__)
    int file;
    do file = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    while (file < 0 && errno == EINTR);
    if (file < 0) return make_error(ErrorCode::io_error, "/proc/self/pagemap cannot be opened: %s", message(errno).c_str());
    constexpr uint64_t kPresent = uint64_t{1} << 63;
    uint64_t entries[256];
    size_t resident = 0;
    int error = 0;
    for (uintptr_t page = begin_ / page_bytes(), end = end_ / page_bytes(); page < end && error == 0;) {
      const size_t wanted = std::min<size_t>(end - page, std::size(entries)) * sizeof(uint64_t);
      const ssize_t got = ::pread(file, entries, wanted, static_cast<off_t>(page * sizeof(uint64_t)));
      if (got < 0 && errno == EINTR) continue;
      if (got < static_cast<ssize_t>(sizeof(uint64_t))) {
        error = got < 0 ? errno : EIO;
      } else {
        const size_t count = static_cast<size_t>(got) / sizeof(uint64_t);
        for (size_t i = 0; i < count; ++i) resident += entries[i] & kPresent ? page_bytes() : 0;
        page += count;
      }
    }
    ::close(file);
    if (error != 0) return make_error(ErrorCode::io_error, "/proc/self/pagemap cannot be read: %s", message(error).c_str());
    return resident;
#else
    return Status(ErrorCode::unsupported, "this system does not tell which pages are in memory for one process");
#endif
  }

 private:
  static size_t page_bytes() {
    static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
  }
  static std::string message(int error) { return std::generic_category().message(error); }
  void* address() const { return reinterpret_cast<void*>(begin_); }
  Status advise(int advice, const char* what) const {
    if (bytes() == 0 || ::madvise(address(), bytes(), advice) == 0) return {};
    const int error = errno;
    if (error == EINVAL && advice != MADV_WILLNEED)
      return make_error(ErrorCode::invalid_argument, "%zu bytes cannot %s while some of them are locked in memory", bytes(), what);
    return make_error(ErrorCode::io_error, "%zu bytes cannot %s: %s", bytes(), what, message(error).c_str());
  }
#else
  Status prefetch() const { return none(); }
  Status lock() const { return none(); }
  Status unlock() const { return none(); }
  Status release() const { return none(); }
  Status discard() const { return none(); }
  Expected<size_t> resident_bytes() const { return none(); }

 private:
  static constexpr size_t page_bytes() { return 4096; }
  static Status none() { return Status(ErrorCode::unsupported, "this build knows no pages of memory"); }
#endif

  Pages(uintptr_t begin, uintptr_t end) : begin_(begin), end_(std::max(begin, end)) {}

  uintptr_t begin_, end_;
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_BASE_PAGES_H
