// STABLEHLO_CASE: runs one of several subgraphs, chosen by an int32 (outside the range: the last one). STABLEHLO_COMPOSITE: runs
// the subgraph that says in known operators what the composite computes. The other inputs are given to the subgraph, whose
// outputs are the outputs; all branches must give the same shapes. Scratch: the largest of the subgraphs' blocks.
#ifndef ONEWEIGHT_OPS_STABLEHLO_CALLS_H
#define ONEWEIGHT_OPS_STABLEHLO_CALLS_H

#include <algorithm>

#include "oneweight/ops/subgraph.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct CallParams {
  const Plan* const* branches = nullptr;
  int32_t count = 0;
  int32_t first = 0;  // number of the first input that is given to the subgraph; 1: input 0 chooses
};

struct StablehloCase {
  static bool accepts(const NodeTypes& t) { return t.in(0, TensorType::int32); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::stablehlo_case, .types = "all", .accepts = &accepts, .prepare = &prepare};
};
struct StablehloComposite {
  static bool accepts(const NodeTypes&) { return true; }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::stablehlo_composite, .types = "all", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void call_kernel(const KernelArgs& args) {
  const auto& p = args.params<CallParams>();
  int64_t chosen = p.first > 0 ? Preparation::load<int32_t>(args.in<std::byte>(0), 0) : 0;
  if (chosen < 0 || chosen >= p.count) chosen = p.count - 1;
  const Plan& plan = *p.branches[chosen];
  if (!call_subgraph(plan, args.scratch, args.run, [&](int i) { return args.in<std::byte>(i + p.first); })) return;
  for (size_t i = 0; i < plan.outputs().size(); ++i)
    if (const int64_t bytes = subgraph_output_bytes(plan, static_cast<int>(i)); bytes > 0)
      std::memcpy(args.out<std::byte>(static_cast<int>(i)), subgraph_output(plan, args.scratch, static_cast<int>(i)),
                  static_cast<size_t>(bytes));
}

inline Status prepare_calls(Preparation& p, const std::vector<int64_t>& subgraphs, int first) {
  std::vector<const Operand*> inputs;
  for (int i = first; i < p.input_count(); ++i) {
    if (!p.has_input(i)) return p.invalid("input %d is left out", i);
    inputs.push_back(&p.input(i));
  }
  CallParams* params = p.make_params<CallParams>();
  const Plan** branches = p.derived<const Plan*>(static_cast<int64_t>(subgraphs.size()));
  if (!params || !branches) return p.no_memory();
  params->branches = branches, params->count = static_cast<int32_t>(subgraphs.size()), params->first = first;
  int64_t scratch = 0;
  for (size_t b = 0; b < subgraphs.size(); ++b) {
    ONEWEIGHT_RETURN_IF_ERROR(p.subgraph(static_cast<int>(subgraphs[b]), inputs, &branches[b]));
    const Plan& plan = *branches[b];
    if (static_cast<int>(plan.outputs().size()) != p.output_count())
      return p.invalid("has %d outputs, its branch %zu gives %zu", p.output_count(), b, plan.outputs().size());
    for (int i = 0; i < p.output_count(); ++i) {
      const PlanTensor& t = plan.tensors()[plan.outputs()[i]];
      if (t.type != p.output(i).type)
        return p.invalid("output %d is %s, branch %zu gives %s", i, tensor_type_name(p.output(i).type), b, tensor_type_name(t.type));
      if (b > 0 && !(t.shape == p.output(i).shape))
        return p.error(ErrorCode::unsupported, "output %d has shape %s in one branch and %s in another", i,
                       p.output(i).shape.to_string().c_str(), t.shape.to_string().c_str());
      ONEWEIGHT_RETURN_IF_ERROR(p.set_output(i, t.shape));
    }
    scratch = std::max(scratch, aligned_block_bytes(plan));
  }
  p.set_scratch(scratch);
  p.set_kernel(&call_kernel);
  p.set_side_effect();  // a subgraph may assign variables
  return {};
}

ONEWEIGHT_INLINE Status StablehloCase::prepare(Preparation& p) {
  if (p.input_count() < 1 || !p.has_input(0)) return p.invalid("has no index");
  if (p.input(0).shape.elements() != 1) return p.invalid("its index %s is not one element", p.describe(p.input(0)).c_str());
  const std::vector<int64_t>* branches = p.options().vector(0);
  if (!branches || branches->empty()) return p.invalid("has no branches");
  if (branches->size() > 65536) return p.invalid("has %zu branches", branches->size());
  return prepare_calls(p, *branches, 1);
}
ONEWEIGHT_INLINE Status StablehloComposite::prepare(Preparation& p) { return prepare_calls(p, {p.options().get<int32_t>(1, 0)}, 0); }
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_STABLEHLO_CALLS_H
