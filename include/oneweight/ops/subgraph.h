// What the control flow operators share: running a subgraph's plan with values of the calling graph.
#ifndef ONEWEIGHT_OPS_SUBGRAPH_H
#define ONEWEIGHT_OPS_SUBGRAPH_H

#include "oneweight/ops/op.h"
#include "oneweight/plan/execute.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

#if ONEWEIGHT_HAS_KERNELS
inline int64_t aligned_block_bytes(const Plan& plan) {
  return (plan.context_bytes() + kAlignment - 1) / kAlignment * kAlignment;
}

// Copies values into the inputs of a subgraph, runs it, and leaves its outputs in `block`. value(i): address of the
// value for input i. False after an error.
template <class Value>
bool call_subgraph(const Plan& plan, std::byte* block, RunState* run, Value value) {
  fill_address_table(plan, block);
  for (size_t i = 0; i < plan.inputs().size(); ++i) {
    const PlanTensor& t = plan.tensors()[plan.inputs()[i]];
    if (t.placement != Placement::constant && t.bytes > 0)
      std::memcpy(address_table(block)[plan.inputs()[i]], value(static_cast<int>(i)), static_cast<size_t>(t.bytes));
  }
  return run_subgraph(plan, block, run);
}
inline const std::byte* subgraph_output(const Plan& plan, std::byte* block, int number) {
  return address_table(block)[plan.outputs()[number]];
}
inline int64_t subgraph_output_bytes(const Plan& plan, int number) { return plan.tensors()[plan.outputs()[number]].bytes; }
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_SUBGRAPH_H
