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

// Runs a subgraph's plan in a block whose address table is filled. False after an error, which names the inner step.
inline bool run_subgraph(const Plan& plan, std::byte* block, RunState* run) {
  for (const Step& step : plan.steps()) {
    step.kernel(KernelArgs{step.params, address_table(block), step.inputs, step.outputs, block + step.scratch_offset, {0, step.rows}, run, {0, step.blocks}});
    if (run->failed()) {
      run->add_place(step.operator_index, step.name);
      return false;
    }
  }
  return true;
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_EXECUTE_H
