// WHILE: runs the body subgraph as long as the condition subgraph says so. The values start as the inputs, become the
// body's outputs after each round, and end as the outputs; their shapes must not change. Every round works on copies, so
// a body may permute its values; what it hands through may stay where it is. Scratch: the larger block of both subgraphs,
// which run by turns. Answers `cancelled` between rounds.
#ifndef ONEWEIGHT_OPS_WHILE_H
#define ONEWEIGHT_OPS_WHILE_H

#include "oneweight/ops/subgraph.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct While {
  struct Params {
    const Plan* condition = nullptr;
    const Plan* body = nullptr;
    // The body hands value i through.
    bool is_invariant(int i) const { return body->outputs()[static_cast<size_t>(i)] == body->inputs()[static_cast<size_t>(i)]; }
  };
  static bool accepts(const NodeTypes& t) { return t.input_count == t.output_count; }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::while_, .types = "all", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void while_kernel(const KernelArgs& args) {
  const auto& p = args.params<While::Params>();
  const int count = static_cast<int>(p.body->outputs().size());
  const auto value = [&](int i) { return args.out<std::byte>(i); };
  for (int i = 0; i < count; ++i)
    if (const int64_t bytes = subgraph_output_bytes(*p.body, i); bytes > 0 && args.out<std::byte>(i) != args.in<std::byte>(i))
      std::memcpy(args.out<std::byte>(i), args.in<std::byte>(i), static_cast<size_t>(bytes));
  while (true) {
    if (!call_subgraph(*p.condition, args.scratch, args.run, value)) return;
    if (*subgraph_output(*p.condition, args.scratch, 0) == std::byte{0}) return;
    if (args.run->should_stop()) return args.run->fail(ErrorCode::cancelled, "stopped in a loop");
    if (!call_subgraph(*p.body, args.scratch, args.run, value)) return;
    for (int i = 0; i < count; ++i)
      if (const int64_t bytes = subgraph_output_bytes(*p.body, i); bytes > 0 && !p.is_invariant(i))
        std::memcpy(args.out<std::byte>(i), subgraph_output(*p.body, args.scratch, i), static_cast<size_t>(bytes));
  }
}

ONEWEIGHT_INLINE Status While::prepare(Preparation& p) {
  std::vector<const Operand*> inputs;
  for (int i = 0; i < p.input_count(); ++i) {
    if (!p.has_input(i)) return p.invalid("input %d is left out", i);
    inputs.push_back(&p.input(i));
  }
  Params* params = p.make_params<Params>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(p.subgraph(p.options().get<int32_t>(0, 0), inputs, &params->condition));
  ONEWEIGHT_RETURN_IF_ERROR(p.subgraph(p.options().get<int32_t>(1, 0), inputs, &params->body));
  const Plan &condition = *params->condition, &body = *params->body;
  const auto output = [](const Plan& plan, int i) -> const PlanTensor& { return plan.tensors()[plan.outputs()[i]]; };
  if (condition.outputs().size() != 1 || output(condition, 0).type != TensorType::boolean || output(condition, 0).shape.elements() != 1)
    return p.invalid("its condition does not give one bool");
  if (static_cast<int>(body.outputs().size()) != p.output_count())
    return p.invalid("has %d outputs, its body gives %zu", p.output_count(), body.outputs().size());
  for (int i = 0; i < p.output_count(); ++i) {
    const PlanTensor& t = output(body, i);
    if (t.type != p.input(i).type || t.type != p.output(i).type)
      return p.invalid("value %d is %s at first, %s after a round", i, tensor_type_name(p.input(i).type), tensor_type_name(t.type));
    if (!(t.shape == p.input(i).shape))
      return p.error(ErrorCode::unsupported, "value %d changes its shape from %s to %s in a round", i, p.input(i).shape.to_string().c_str(), t.shape.to_string().c_str());
    ONEWEIGHT_RETURN_IF_ERROR(p.set_output(i, t.shape));
    if (params->is_invariant(i)) p.allow_part(i, i, 0);
  }
  p.set_scratch(std::max(aligned_block_bytes(condition), aligned_block_bytes(body)));
  p.set_kernel(&while_kernel);
  p.set_side_effect();
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_WHILE_H
