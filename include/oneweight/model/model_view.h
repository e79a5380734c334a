// One verified, immutable model. Everything but weights is decoded into owned memory when it is
// opened; weights stay where they lie. Thread-safe: all methods are const.
#ifndef ONEWEIGHT_MODEL_MODEL_VIEW_H
#define ONEWEIGHT_MODEL_MODEL_VIEW_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "oneweight/base/pages.h"
#include "oneweight/base/status.h"
#include "oneweight/model/bytes.h"
#include "oneweight/model/decode.h"
#include "oneweight/model/definitions.h"

namespace oneweight {
inline namespace v1 {

struct OpenOptions {
  // Read the file into private memory instead of mapping it: for files that may be overwritten or
  // truncated in place. A mapping sees such writes: after opening, overwritten weights give other numbers
  // (never a wild index), a truncated file raises SIGBUS, and a file must not change while open() runs.
  // Replacing a file by rename is always safe.
  bool copy = false;
};

class ModelView {
 public:
  // Maps and verifies a .tflite file.
  // Errors: not_found, io_error, invalid_model (with what and where), unsupported, out_of_memory.
  static Expected<std::shared_ptr<const ModelView>> open(const char* path, const OpenOptions& options = {}) {
    if (path == nullptr) return Status(ErrorCode::invalid_argument, "the path is null");
    return guarded([&]() -> Result {
      Result result = from_source(Bytes::open_file(path, options.copy));
      if (result.ok()) return result;
      return Status(result.status().code(), std::string(path) + ": " + result.status().message());
    });
  }

  // The same for `length` bytes at `offset` of an open descriptor (any alignment; 0 = to the end of the
  // file), for models inside archives. The descriptor may be closed afterwards.
  static Expected<std::shared_ptr<const ModelView>> from_descriptor(int descriptor, uint64_t offset = 0,
                                                                    uint64_t length = 0,
                                                                    const OpenOptions& options = {}) {
    return guarded([&] { return from_source(Bytes::from_descriptor(descriptor, offset, length, options.copy)); });
  }

  // Verifies caller-owned bytes in place (any alignment). They must stay unchanged while the view or
  // anything made from it lives; `owner`, when given, is kept alive as long.
  static Expected<std::shared_ptr<const ModelView>> from_bytes(std::span<const std::byte> bytes,
                                                               std::shared_ptr<const void> owner = nullptr,
                                                               const OpenOptions& options = {}) {
    return guarded(
        [&] { return from_source(options.copy ? Bytes::duplicate(bytes) : Bytes::borrow(bytes, std::move(owner))); });
  }

  std::span<const std::byte> bytes() const { return bytes_.span(); }  // the whole file
  uint32_t version() const { return model_.version; }                 // of the schema; 3 in all known files
  const std::string& description() const { return model_.description; }
  std::span<const SubgraphDef> subgraphs() const { return model_.subgraphs; }  // never empty; 0 is the main one
  std::span<const SignatureDef> signatures() const { return model_.signatures; }
  std::span<const MetadataDef> metadata() const { return model_.metadata; }
  // Null when there is none.
  const SignatureDef* find_signature(std::string_view key) const {
    for (const SignatureDef& signature : model_.signatures)
      if (signature.key == key) return &signature;
    return nullptr;
  }
  // Heap bytes of the decoded structure (without the file itself), about; for memory reports.
  size_t structure_bytes() const { return static_cast<size_t>(model_.structure_bytes) + sizeof(ModelView); }

  // ---- The pages of a mapped file: all of them, or those of a part of bytes() such as a tensor's data (whole pages, so its
  // neighbours' edges too). May be called while contexts run. For copies and bytes of the caller prefetch() does nothing,
  // resident_bytes() counts as for a file, and the others are refused. Errors: unsupported (also where the system knows no
  // pages), invalid_argument (not a part of bytes()), io_error.

  // Asks the system to read the file ahead, and returns at once.
  Status prefetch() const { return prefetch(bytes()); }
  Status prefetch(std::span<const std::byte> part) const {
    ONEWEIGHT_RETURN_IF_ERROR(check_part(part));
    return bytes_.is_mapped() ? pages(part).prefetch() : Status();
  }
  // Reads the weights now and keeps them in memory until unlock() or the end of the view: no run waits for the file. Locks do
  // not add up. Errors: out_of_memory (with bytes and the limit for this process).
  Status lock() const { return lock(bytes()); }
  Status lock(std::span<const std::byte> part) const {
    ONEWEIGHT_RETURN_IF_ERROR(check_mapped(part, "locked"));
    return pages(part).lock();
  }
  Status unlock() const { return unlock(bytes()); }
  Status unlock(std::span<const std::byte> part) const {
    ONEWEIGHT_RETURN_IF_ERROR(check_mapped(part, "unlocked"));
    return pages(part).unlock();
  }
  // Takes the pages out of this process, whose resident memory shrinks by resident_bytes(). Nothing is lost: what a run touches
  // comes back, from the system's cache while it has room, else from the file. Errors: invalid_argument (locked pages).
  Status release() const { return release(bytes()); }
  Status release(std::span<const std::byte> part) const {
    ONEWEIGHT_RETURN_IF_ERROR(check_mapped(part, "given back"));
    return pages(part).release();
  }
  // Bytes that are resident for this process, as its RSS counts them. (The system's cache may hold more of the file.)
  Expected<size_t> resident_bytes() const { return resident_bytes(bytes()); }
  Expected<size_t> resident_bytes(std::span<const std::byte> part) const {
    ONEWEIGHT_RETURN_IF_ERROR(check_part(part));
    return pages(part).resident_bytes();
  }

  ModelView(const ModelView&) = delete;
  ModelView& operator=(const ModelView&) = delete;

 private:
  using Result = Expected<std::shared_ptr<const ModelView>>;

  ModelView() = default;

  static Result from_source(Expected<Bytes> source) {
    if (!source.ok()) return source.status();
    std::shared_ptr<ModelView> view(new ModelView);
    view->bytes_ = std::move(*source);
    ONEWEIGHT_RETURN_IF_ERROR(view->align());
    ONEWEIGHT_RETURN_IF_ERROR(ModelDecoder(view->bytes_.span()).decode(&view->model_));
    return std::shared_ptr<const ModelView>(std::move(view));
  }

  // The format aligns numbers relative to the file's first byte. Bytes that start at an odd address are
  // decoded where they lie on processors that load from any address, and are copied once on those that
  // trap (values are read with memcpy everywhere; flatbuffers' own table offsets are not).
  Status align() {
#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__) || defined(__wasm__) || defined(_M_X64) || \
    defined(_M_IX86) || defined(_M_ARM64) || defined(__ARM_FEATURE_UNALIGNED)
    return Status();
#else
    if (reinterpret_cast<uintptr_t>(bytes_.span().data()) % sizeof(uint32_t) == 0) return Status();
    Expected<Bytes> aligned = Bytes::duplicate(bytes_.span());
    if (!aligned.ok()) return aligned.status();
    bytes_ = std::move(*aligned);
    return Status();
#endif
  }

  static Pages pages(std::span<const std::byte> part) { return Pages::around(part.data(), part.size()); }
  Status check_part(std::span<const std::byte> part) const {
    const auto begin = reinterpret_cast<uintptr_t>(bytes().data()), at = reinterpret_cast<uintptr_t>(part.data());
    if (part.empty() || (at >= begin && at - begin <= bytes().size() && part.size() <= bytes().size() - (at - begin))) return {};
    return make_error(ErrorCode::invalid_argument, "%zu bytes at %p are no part of the model's %zu bytes at %p", part.size(),
                      static_cast<const void*>(part.data()), bytes().size(), static_cast<const void*>(bytes().data()));
  }
  Status check_mapped(std::span<const std::byte> part, const char* what) const {
    ONEWEIGHT_RETURN_IF_ERROR(check_part(part));
    if (bytes_.is_mapped()) return {};
    return make_error(ErrorCode::unsupported, "the model is not a mapped file: its bytes cannot be %s", what);
  }

  // Runs f; a failed allocation becomes out_of_memory where exceptions exist.
  template <class F>
  static Result guarded(F f) {
#if defined(__cpp_exceptions)
    try {
      return f();
    } catch (const std::bad_alloc&) {
      return Status(ErrorCode::out_of_memory, "no memory");
    }
#else
    return f();
#endif
  }

  Bytes bytes_;
  ModelDef model_;
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_MODEL_MODEL_VIEW_H
