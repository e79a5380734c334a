// Runs the steps of a plan in a block of memory: what contexts and control flow operators share.
#ifndef ONEWEIGHT_PLAN_EXECUTE_H
#define ONEWEIGHT_PLAN_EXECUTE_H

#include "oneweight/plan/plan.h"

namespace oneweight {
inline namespace v1 {

// A block begins with the addresses of all tensors.
inline std::byte** address_table(std::byte* block) { return reinterpret_cast<std::byte**>(block); }

inline void fill_address_table(const Plan& plan, std::byte* block) {
  std::byte** table = address_table(block);
  for (const PlanTensor& t : plan.tensors()) {
    switch (t.placement) {
      case Placement::none: *table++ = nullptr; break;
      case Placement::constant: *table++ = const_cast<std::byte*>(t.constant); break;
      default: *table++ = block + t.offset;
    }
  }
}

inline KernelArgs args_of(const Step& step, std::byte* block, RunState* run) {
  return {step.params, address_table(block), step.inputs, step.outputs, block + step.scratch_offset, {0, step.rows}, run, {0, step.blocks}};
}

// Makes room in the windows of a chain for its next tile, and tells the kernels where their rows would begin.
inline void move_windows(const Chain& chain, int32_t tile, std::byte* block) {
  std::byte** table = address_table(block);
  for (int32_t w = 0; w < chain.window_count; ++w) {
    const Chain::Window& window = chain.windows[w];
    const int64_t low = chain.low(tile, w), old_low = chain.low(tile - 1, w), kept = chain.end(tile - 1, window.writer) - low;
    std::byte* memory = block + window.offset;
    if (low > old_low && kept > 0)
      std::memmove(memory, memory + (low - old_low) * window.row_bytes, static_cast<size_t>(kept * window.row_bytes));
    // Row 0 may lie before the block; only rows inside the window are touched.
    auto* row_0 = reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(memory) - static_cast<uintptr_t>(low * window.row_bytes));
    for (int32_t i = 0; i < window.tensor_count; ++i) table[window.tensors[i]] = row_0;
  }
}

// Calls visit(step number, its rows) for all that a plan runs, one behind the other, until it answers false; then the number of that
// step, else the number of steps. rows of size -1: all.
template <class Visit>
int for_each_turn(const Plan& plan, std::byte* block, Visit&& visit) {
  constexpr RowRange kAll{0, -1};
  const auto end = static_cast<int>(plan.steps().size());
  int s = 0;
  for (const Chain& chain : plan.chains()) {
    for (; s < chain.first; ++s)
      if (!visit(s, kAll)) [[unlikely]] return s;
    for (int32_t tile = 0; tile < chain.tiles; ++tile) {
      move_windows(chain, tile, block);
      for (int32_t k = 0; k < chain.count; ++k) {
        const int64_t each = plan.steps()[static_cast<size_t>(chain.first + k)].rows_each;
        const RowRange rows{chain.end(tile - 1, k) * each, chain.end(tile, k) * each};
        if (rows.size() > 0 && !visit(chain.first + k, rows)) [[unlikely]] return chain.first + k;
      }
    }
    s = chain.first + chain.count;
  }
  for (; s < end; ++s)
    if (!visit(s, kAll)) [[unlikely]] return s;
  return end;
}

// Runs a subgraph's plan in a block whose address table is filled. False after an error, which names the inner step.
inline bool run_subgraph(const Plan& plan, std::byte* block, RunState* run) {
  const int end = for_each_turn(plan, block, [&](int s, RowRange rows) {
    const Step& step = plan.steps()[static_cast<size_t>(s)];
    KernelArgs args = args_of(step, block, run);
    if (rows.end >= 0) args.rows = rows;
    step.kernel(args);
    return !run->failed();
  });
  if (!run->failed()) return true;
  const Step& step = plan.steps()[static_cast<size_t>(end)];
  run->add_place(step.operator_index, step.name);
  return false;
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_EXECUTE_H
