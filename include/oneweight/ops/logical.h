// LOGICAL_AND, LOGICAL_OR (with broadcasting) and LOGICAL_NOT on bool.
#ifndef ONEWEIGHT_OPS_LOGICAL_H
#define ONEWEIGHT_OPS_LOGICAL_H

#include "oneweight/ops/broadcast.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <bool kAnd>
struct LogicalBinary {
  static bool accepts(const NodeTypes& t) {
    return t.in(0, TensorType::boolean) && t.in(1, TensorType::boolean) && t.out(0, TensorType::boolean);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kAnd ? BuiltinOperator::logical_and : BuiltinOperator::logical_or, .types = "bool", .accepts = &accepts, .prepare = &prepare};

  using Params = BroadcastParams;
  static uint8_t apply(uint8_t a, uint8_t b, const Params&, RunState*) { return kAnd ? a && b : a || b; }
};
using LogicalAnd = LogicalBinary<true>;
using LogicalOr = LogicalBinary<false>;

struct LogicalNot {
  struct Params { int64_t count = 0; };
  static bool accepts(const NodeTypes& t) { return t.in(0, TensorType::boolean) && t.out(0, TensorType::boolean); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::logical_not, .types = "bool", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
template <bool kAnd>
Status LogicalBinary<kAnd>::prepare(Preparation& p) {
  BroadcastParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_broadcast(p, &params));
  set_broadcast_kernel(p, &broadcast_kernel<uint8_t, uint8_t, LogicalBinary>);
  return {};
}

inline void logical_not_kernel(const KernelArgs& args) {
  const int64_t count = args.params<LogicalNot::Params>().count;
  for (int64_t i = 0; i < count; ++i) args.out<uint8_t>(0)[i] = args.in<uint8_t>(0)[i] == 0;
}
ONEWEIGHT_INLINE Status LogicalNot::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, p.input(0).shape));
  Params* params = p.make_params<Params>();
  if (!params) return p.no_memory();
  params->count = p.input(0).shape.elements();
  p.set_kernel(&logical_not_kernel);
  p.allow_in_place(0);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_LOGICAL_H
