// Memory whose neighbourhood may not be touched.
#ifndef ONEWEIGHT_TESTS_SUPPORT_GUARDED_MEMORY_H
#define ONEWEIGHT_TESTS_SUPPORT_GUARDED_MEMORY_H

#include <sys/mman.h>

#include <cstddef>

// `bytes` of zeroed memory between two forbidden pages, at the end of its pages.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes) : pages_((bytes + kPage - 1) / kPage + 2), bytes_(bytes) {
    base_ = static_cast<std::byte*>(mmap(nullptr, pages_ * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (pages_ > 2) mprotect(base_ + kPage, (pages_ - 2) * kPage, PROT_READ | PROT_WRITE);
  }
  GuardedMemory(GuardedMemory&& other) noexcept : base_(other.base_), pages_(other.pages_), bytes_(other.bytes_) { other.base_ = nullptr; }
  GuardedMemory(const GuardedMemory&) = delete;
  ~GuardedMemory() {
    if (base_) munmap(base_, pages_ * kPage);
  }
  std::byte* data() const { return base_ + (pages_ - 1) * kPage - bytes_; }
  void make_read_only() {
    if (pages_ > 2) mprotect(base_ + kPage, (pages_ - 2) * kPage, PROT_READ);
  }

 private:
  static constexpr size_t kPage = 4096;
  std::byte* base_;
  size_t pages_, bytes_;
};

#endif  // ONEWEIGHT_TESTS_SUPPORT_GUARDED_MEMORY_H
