// FILL: a tensor of the constant shape of input 0, every element the scalar of input 1.
#ifndef ONEWEIGHT_OPS_FILL_H
#define ONEWEIGHT_OPS_FILL_H

#include "oneweight/ops/pad.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct FillParams {
  int64_t element = 1, count = 0;
};

struct Fill {
  static bool accepts(const NodeTypes& t) { return t.input_count == 2 && accepts_moved<1>(t); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::fill, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void fill_kernel(const KernelArgs& args) {
  const auto& p = args.params<FillParams>();
  pad::fill_elements(args.out<std::byte>(0), args.in<std::byte>(1), p.element, p.count);
}

ONEWEIGHT_INLINE Status Fill::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  std::vector<int64_t> wanted;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(0, &wanted));
  const Operand& value = p.input(1);
  if (value.shape.elements() != 1) return p.invalid("the value %s is not one element", p.describe(value).c_str());
  if (wanted.size() > static_cast<size_t>(kMaxRank))
    return p.invalid("asks for rank %zu, more than %d", wanted.size(), kMaxRank);
  Shape shape;
  for (int64_t extent : wanted) {
    if (extent < 0) return p.invalid("extent %lld of its shape is negative", static_cast<long long>(extent));
    shape.push_back(extent);
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  FillParams* params = p.make_params<FillParams>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, value, &params->element));
  params->count = shape.elements();
  p.set_kernel(&fill_kernel);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_FILL_H
