// CALL_ONCE: runs a subgraph without inputs and outputs in the first run of a context, and again after reset().
#ifndef ONEWEIGHT_OPS_CALL_ONCE_H
#define ONEWEIGHT_OPS_CALL_ONCE_H

#include "oneweight/ops/subgraph.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct CallOnce {
  struct Params {
    const Plan* plan = nullptr;
    int64_t done = 0;                // resource: a byte that is set when it has run
  };
  static bool accepts(const NodeTypes& t) { return t.input_count == 0 && t.output_count == 0; }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::call_once, .types = "", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void call_once_kernel(const KernelArgs& args) {
  const auto& p = args.params<CallOnce::Params>();
  std::byte* done = args.run->resource(p.done);
  if (*done != std::byte{0}) return;
  if (call_subgraph(*p.plan, args.scratch, args.run, [&](int) { return args.scratch; })) *done = std::byte{1};
}

ONEWEIGHT_INLINE Status CallOnce::prepare(Preparation& p) {
  Params* params = p.make_params<Params>();
  if (!params) return p.no_memory();
  const int32_t graph = p.options().get<int32_t>(0, 0);
  ONEWEIGHT_RETURN_IF_ERROR(p.subgraph(graph, {}, &params->plan));
  // One flag a subgraph: called from two places it still runs once.
  ONEWEIGHT_RETURN_IF_ERROR(p.resource("call once " + std::to_string(graph), TensorType::uint8, Shape{1}, &params->done));
  p.set_scratch(aligned_block_bytes(*params->plan));
  p.set_kernel(&call_once_kernel);
  p.set_side_effect();
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_CALL_ONCE_H
