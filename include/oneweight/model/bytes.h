// Where a model's bytes come from: a mapped file, a private copy, or memory of the caller.
// ONEWEIGHT_FILES (base/pages.h) says what there is.
#ifndef ONEWEIGHT_MODEL_BYTES_H
#define ONEWEIGHT_MODEL_BYTES_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "oneweight/base/pages.h"
#include "oneweight/base/status.h"

#if ONEWEIGHT_FILES == 2
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif
#if ONEWEIGHT_FILES
#include <cerrno>
#include <cstdio>
#include <system_error>
#endif

namespace oneweight {
inline namespace v1 {

// Read-only bytes and what keeps them alive.
class Bytes {
 public:
  Bytes() = default;
  Bytes(Bytes&&) = default;
  Bytes& operator=(Bytes&&) = default;

  std::span<const std::byte> span() const { return view_; }
  bool is_mapped() const { return map_ != nullptr; }

  // Bytes of the caller; `owner` (may be null) is held.
  static Bytes borrow(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
    Bytes result;
    result.view_ = bytes;
    result.owner_ = std::move(owner);
    return result;
  }

  // A private copy, aligned to 64.
  static Expected<Bytes> duplicate(std::span<const std::byte> bytes) {
    Expected<Bytes> result = allocate(bytes.size());
    if (result.ok() && !bytes.empty()) std::memcpy(result->copy_.get(), bytes.data(), bytes.size());
    return result;
  }

  // A file, mapped or (copy) read.
  static Expected<Bytes> open_file(const char* path, bool copy) {
#if ONEWEIGHT_FILES == 2
    int fd;
    do fd = ::open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) return system_error("cannot be opened", errno);
    Expected<Bytes> result = from_descriptor(fd, 0, 0, copy);
    ::close(fd);
    return result;
#elif ONEWEIGHT_FILES == 1
    (void)copy;
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "rb"), &std::fclose);
    if (!file) return system_error("cannot be opened", errno);
    return read_stream(file.get());
#else
    (void)path, (void)copy;
    return Status(ErrorCode::unsupported, "this build has no file system: use from_bytes");
#endif
  }

  // `length` bytes at `offset` of an open descriptor; length 0 = to the end of the file.
  static Expected<Bytes> from_descriptor(int descriptor, uint64_t offset, uint64_t length, bool copy) {
#if ONEWEIGHT_FILES == 2
    struct stat info;
    if (::fstat(descriptor, &info) != 0) return system_error("cannot be examined", errno);
    if (!S_ISREG(info.st_mode)) return Status(ErrorCode::io_error, "is not a regular file");
    const uint64_t file_size = static_cast<uint64_t>(info.st_size);
    if (offset > file_size || length > file_size - offset) {
      return make_error(ErrorCode::invalid_argument,
                        "offset %llu and length %llu reach beyond the end of the file of %llu bytes",
                        static_cast<unsigned long long>(offset), static_cast<unsigned long long>(length),
                        static_cast<unsigned long long>(file_size));
    }
    if (length == 0) length = file_size - offset;
    if (length > std::numeric_limits<size_t>::max() / 2) {
      return Status(ErrorCode::out_of_memory, "is larger than the address space");
    }
    if (length == 0) return Bytes();
    return copy ? read_descriptor(descriptor, offset, static_cast<size_t>(length))
                : map_descriptor(descriptor, offset, static_cast<size_t>(length));
#else
    (void)descriptor, (void)offset, (void)length, (void)copy;
    return Status(ErrorCode::unsupported, "this build cannot read descriptors: use open or from_bytes");
#endif
  }

 private:
  struct AlignedDelete {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  struct Unmap {
    size_t size;
    void operator()(std::byte* p) const {
#if ONEWEIGHT_FILES == 2
      ::munmap(p, size);
#else
      (void)p;
#endif
    }
  };

  static Expected<Bytes> allocate(size_t size) {
    Bytes result;
    result.copy_.reset(static_cast<std::byte*>(::operator new (size, std::align_val_t{64}, std::nothrow)));
    if (!result.copy_) return make_error(ErrorCode::out_of_memory, "no memory for a copy of %zu bytes", size);
    result.view_ = {result.copy_.get(), size};
    return result;
  }

#if ONEWEIGHT_FILES
  static Status system_error(const char* what, int number) {
    const ErrorCode code = number == ENOENT || number == ENOTDIR ? ErrorCode::not_found
                           : number == ENOMEM                    ? ErrorCode::out_of_memory
                                                                 : ErrorCode::io_error;
    return Status(code, what + (": " + std::generic_category().message(number)));
  }
#endif

#if ONEWEIGHT_FILES == 2
  // Shared and read-only: every process and every view of the file sees the same pages.
  static Expected<Bytes> map_descriptor(int descriptor, uint64_t offset, size_t length) {
    const size_t skip = static_cast<size_t>(offset % static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)));
    void* p = ::mmap(nullptr, length + skip, PROT_READ, MAP_SHARED, descriptor, static_cast<off_t>(offset - skip));
    if (p == MAP_FAILED) return system_error("cannot be mapped", errno);
    Bytes result;
    result.map_ = {static_cast<std::byte*>(p), Unmap{length + skip}};
    result.view_ = {static_cast<const std::byte*>(p) + skip, length};
    return result;
  }

  static Expected<Bytes> read_descriptor(int descriptor, uint64_t offset, size_t length) {
    Expected<Bytes> result = allocate(length);
    if (!result.ok()) return result;
    constexpr size_t kMost = size_t{1} << 30;  // some systems refuse more at once
    for (size_t done = 0; done < length;) {
      const size_t want = length - done < kMost ? length - done : kMost;
      const ssize_t n = ::pread(descriptor, result->copy_.get() + done, want, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return system_error("cannot be read", errno);
      if (n == 0) return Status(ErrorCode::io_error, "became shorter while it was read");
      done += static_cast<size_t>(n);
    }
    return result;
  }
#elif ONEWEIGHT_FILES == 1
  static Expected<Bytes> read_stream(std::FILE* file) {
#if defined(_WIN32)
    const bool at_end = ::_fseeki64(file, 0, SEEK_END) == 0;
    const long long size = at_end ? ::_ftelli64(file) : -1;
#else
    const bool at_end = std::fseek(file, 0, SEEK_END) == 0;
    const long long size = at_end ? std::ftell(file) : -1;
#endif
    if (size < 0) return system_error("cannot be examined", errno);
    if (size == 0) return Bytes();
    if (static_cast<unsigned long long>(size) > std::numeric_limits<size_t>::max() / 2) {
      return Status(ErrorCode::out_of_memory, "is larger than the address space");
    }
    std::rewind(file);
    Expected<Bytes> result = allocate(static_cast<size_t>(size));
    if (!result.ok()) return result;
    if (std::fread(result->copy_.get(), 1, static_cast<size_t>(size), file) != static_cast<size_t>(size)) {
      return Status(ErrorCode::io_error, "could not be read to its end");
    }
    return result;
  }
#endif

  std::span<const std::byte> view_;
  std::shared_ptr<const void> owner_;
  std::unique_ptr<std::byte, AlignedDelete> copy_;
  std::unique_ptr<std::byte, Unmap> map_{nullptr, Unmap{0}};
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_MODEL_BYTES_H
