// Blocks of scratch for contexts that take turns: a thousand streams on two threads need two blocks.
//
//   ScratchPool pool;
//   auto state = ContextState::create(plan);      // one for each stream: what it remembers, and nothing else
//   {
//     auto context = pool.context(*state);        // an ordinary context in a block of the pool
//     fill(*context->input<float>(0)); context->run(); read(*context->output<float>(0));
//   }                                             // the block is free for whoever comes next, of this model or another
//
// A block is lent for the life of a context rather than for a run. A context is made in about the time it takes to write down the
// addresses of its tensors, and so inputs are filled and outputs read where they lie, a run still locks and allocates nothing, and
// there is no context without scratch that functions would have to refuse. State has memory of its own and is used there: neither
// turn nor change of block copies anything.
#ifndef ONEWEIGHT_CONTEXT_SCRATCH_POOL_H
#define ONEWEIGHT_CONTEXT_SCRATCH_POOL_H

#include <memory>
#include <mutex>
#include <utility>

#include "oneweight/context/execution_context.h"

namespace oneweight {
inline namespace v1 {

// The variables, LSTM state and resources of one stream through a plan, between its contexts. Movable, not copyable; serves one
// context at a time and must outlive it.
class ContextState {
 public:
  // Allocates plan->state_bytes() bytes. Errors: out_of_memory, invalid_argument.
  static Expected<ContextState> create(std::shared_ptr<const Plan> plan) {
    if (!plan) return make_error(ErrorCode::invalid_argument, "no plan");
    ContextState state;
    const auto bytes = static_cast<size_t>(plan->state_bytes());
    state.memory_ = {allocate_scratch(bytes), Free{bytes}};
    if (!state.memory_) return make_error(ErrorCode::out_of_memory, "no memory for the %zu bytes of a state", bytes);
    state.plan_ = std::move(plan);
    state.reset();
    return state;
  }

  const std::shared_ptr<const Plan>& plan() const { return plan_; }
  // As ExecutionContext::reset.
  void reset() { ExecutionContext::reset_state(*plan_, memory_.get()); }

 private:
  friend class ScratchPool;
  struct Free {
    size_t bytes;
    void operator()(std::byte* memory) const { free_scratch(memory, bytes); }
  };
  ContextState() = default;

  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<std::byte, Free> memory_{nullptr, Free{0}};
};

// Thread-safe. Must outlive its contexts.
class ScratchPool {
 public:
  // `limit`: most bytes of all blocks together; 0 = as many as there are.
  explicit ScratchPool(int64_t limit = 0) : limit_(limit) {}
  ~ScratchPool() { trim(); }
  ScratchPool(const ScratchPool&) = delete;
  ScratchPool& operator=(const ScratchPool&) = delete;

  // A context that gives its block back when it ends; it takes part in the stream of `state`, or is a new one. The smallest free
  // block that is large enough serves; a free block that is too small makes way for a larger one. So there are never more blocks
  // than there were contexts at one time, none larger than the largest plan needs.
  // Errors: out_of_memory (with the bytes of the block, and of the limit), invalid_argument.
  Expected<ExecutionContext> context(ContextState& state) { return context(state.plan_, state.memory_.get()); }
  Expected<ExecutionContext> context(std::shared_ptr<const Plan> plan) { return context(std::move(plan), nullptr); }

  // Gives the free blocks back to the system.
  void trim() {
    std::lock_guard<std::mutex> lock(mutex_);
    while (free_) drop();
  }

  // Of the blocks that are lent or free.
  int blocks() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return blocks_;
  }
  int64_t bytes() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return bytes_;
  }

 private:
  // Stands before the block's first byte.
  struct alignas(kAlignment) Head {
    Head* next;                      // of the free blocks, no smaller than this one
    int64_t bytes;                   // of the block
  };

  Expected<ExecutionContext> context(std::shared_ptr<const Plan> plan, std::byte* state) {
    if (!plan) return make_error(ErrorCode::invalid_argument, "no plan");
    Expected<std::byte*> block = take(plan->context_bytes());
    if (!block.ok()) return block.status();
    const auto give_back = [](void* pool, std::byte* lent, size_t) { static_cast<ScratchPool*>(pool)->give_back(lent); };
    return ExecutionContext(std::move(plan), {*block, give_back, this}, state);
  }

  Expected<std::byte*> take(int64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    Head** at = &free_;
    while (*at && (*at)->bytes < bytes) at = &(*at)->next;
    if (Head* head = *at) {
      *at = head->next;
      return block_of(head);
    }
    if (free_) drop();
    while (free_ && limit_ > 0 && bytes_ + bytes > limit_) drop();
    if (limit_ > 0 && bytes_ + bytes > limit_)
      return make_error(ErrorCode::out_of_memory, "a context needs %lld bytes; the pool may hold %lld, of which %lld are lent", static_cast<long long>(bytes),
                        static_cast<long long>(limit_), static_cast<long long>(bytes_));
    std::byte* memory = allocate_scratch(sizeof(Head) + static_cast<size_t>(bytes));
    while (!memory && free_) drop(), memory = allocate_scratch(sizeof(Head) + static_cast<size_t>(bytes));
    if (!memory) return make_error(ErrorCode::out_of_memory, "no memory for the %lld bytes of a context", static_cast<long long>(bytes));
    bytes_ += bytes;
    ++blocks_;
    return block_of(new (memory) Head{nullptr, bytes});
  }

  void give_back(std::byte* block) {
    std::lock_guard<std::mutex> lock(mutex_);
    Head* head = reinterpret_cast<Head*>(block) - 1;
    Head** at = &free_;
    while (*at && (*at)->bytes < head->bytes) at = &(*at)->next;
    head->next = *at;
    *at = head;
  }

  // Frees the smallest free block.
  void drop() {
    Head* head = free_;
    free_ = head->next;
    bytes_ -= head->bytes;
    --blocks_;
    free_scratch(reinterpret_cast<std::byte*>(head), sizeof(Head) + static_cast<size_t>(head->bytes));
  }

  static std::byte* block_of(Head* head) { return reinterpret_cast<std::byte*>(head + 1); }

  const int64_t limit_;
  mutable std::mutex mutex_;
  Head* free_ = nullptr;             // the smallest first
  int64_t bytes_ = 0;
  int blocks_ = 0;
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_CONTEXT_SCRATCH_POOL_H
