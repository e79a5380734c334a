// Memory for scratch: where it comes from, and that it goes back.
#ifndef ONEWEIGHT_CONTEXT_SCRATCH_H
#define ONEWEIGHT_CONTEXT_SCRATCH_H

#include <cstddef>
#include <new>

#include "oneweight/base/pages.h"
#include "oneweight/plan/plan.h"

namespace oneweight {
inline namespace v1 {

// Null when there is no memory.
inline std::byte* allocate_scratch(size_t bytes) {
  return static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kAlignment}, std::nothrow));
}

// Allocators keep what is freed for later; the pages of a large block go back to the system first, whatever becomes of its addresses.
// (To touch them anew takes a good part of a short run: who needs contexts again and again keeps them, or a ScratchPool.)
inline void free_scratch(std::byte* memory, size_t bytes) {
  constexpr size_t kLarge = 256 * 1024;
  if (bytes >= kLarge) (void)Pages::inside(memory, bytes).discard();
  ::operator delete(memory, std::align_val_t{kAlignment});
}

// A block and who takes it back: nobody, where it is the caller's.
struct Scratch {
  std::byte* block = nullptr;
  void (*give_back)(void* owner, std::byte* block, size_t bytes) = nullptr;
  void* owner = nullptr;
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_CONTEXT_SCRATCH_H
