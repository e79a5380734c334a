// IF: runs one of two subgraphs, by a bool of one element. Inputs 1... are given to the chosen one, whose outputs are
// the outputs. Both branches must give the same shapes. Scratch: the larger of the two subgraphs' blocks.
#ifndef ONEWEIGHT_OPS_IF_H
#define ONEWEIGHT_OPS_IF_H

#include "oneweight/ops/subgraph.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct If {
  struct Params {
    const Plan* branches[2] = {};    // taken when true, when false
  };
  static bool accepts(const NodeTypes& t) { return t.in(0, TensorType::boolean); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::if_, .types = "all", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void if_kernel(const KernelArgs& args) {
  const Plan& plan = *args.params<If::Params>().branches[*args.in<uint8_t>(0) ? 0 : 1];
  if (!call_subgraph(plan, args.scratch, args.run, [&](int i) { return args.in<std::byte>(i + 1); })) return;
  for (size_t i = 0; i < plan.outputs().size(); ++i)
    if (const int64_t bytes = subgraph_output_bytes(plan, static_cast<int>(i)); bytes > 0)
      std::memcpy(args.out<std::byte>(static_cast<int>(i)), subgraph_output(plan, args.scratch, static_cast<int>(i)), static_cast<size_t>(bytes));
}

ONEWEIGHT_INLINE Status If::prepare(Preparation& p) {
  if (p.input_count() < 1 || !p.has_input(0)) return p.invalid("has no condition");
  if (p.input(0).shape.elements() != 1) return p.invalid("its condition %s has not one element", p.describe(p.input(0)).c_str());
  std::vector<const Operand*> inputs;
  for (int i = 1; i < p.input_count(); ++i) {
    if (!p.has_input(i)) return p.invalid("input %d is left out", i);
    inputs.push_back(&p.input(i));
  }
  Params* params = p.make_params<Params>();
  if (!params) return p.no_memory();
  int64_t scratch = 0;
  for (int b = 0; b < 2; ++b) {
    ONEWEIGHT_RETURN_IF_ERROR(p.subgraph(p.options().get<int32_t>(b, 0), inputs, &params->branches[b]));
    const Plan& plan = *params->branches[b];
    if (static_cast<int>(plan.outputs().size()) != p.output_count())
      return p.invalid("has %d outputs, its branch %d gives %zu", p.output_count(), b, plan.outputs().size());
    for (int i = 0; i < p.output_count(); ++i) {
      const PlanTensor& t = plan.tensors()[plan.outputs()[i]];
      if (t.type != p.output(i).type) return p.invalid("output %d is %s, branch %d gives %s", i, tensor_type_name(p.output(i).type), b, tensor_type_name(t.type));
      if (b == 1 && !(t.shape == p.output(i).shape))
        return p.error(ErrorCode::unsupported, "output %d has shape %s in one branch and %s in the other", i, p.output(i).shape.to_string().c_str(), t.shape.to_string().c_str());
      ONEWEIGHT_RETURN_IF_ERROR(p.set_output(i, t.shape));
    }
    scratch = std::max(scratch, aligned_block_bytes(plan));
  }
  p.set_scratch(scratch);
  p.set_kernel(&if_kernel);
  p.set_side_effect();  // a branch may assign variables
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_IF_H
