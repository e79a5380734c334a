// SELECT and SELECT_V2: out = condition ? x : y, any type of fixed whole-byte size. SELECT_V2 broadcasts all three;
// SELECT takes a condition of the values' shape, a scalar, or a vector over their first axis.
#ifndef ONEWEIGHT_OPS_SELECT_H
#define ONEWEIGHT_OPS_SELECT_H

#include "oneweight/ops/broadcast.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct SelectParams {
  BroadcastPlan<3> broadcast;
};

template <bool kV2>
struct SelectBy {
  static bool accepts(const NodeTypes& t) {
    return t.in(0, TensorType::boolean) && t.input_count == 3 && t.inputs[1] == t.inputs[2] && t.out(0, t.inputs[1]) &&
           tensor_type_bits(t.inputs[1]) >= 8;
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kV2 ? BuiltinOperator::select_v2 : BuiltinOperator::select, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};
using Select = SelectBy<false>;
using SelectV2 = SelectBy<true>;

#if ONEWEIGHT_HAS_KERNELS
// T: an unsigned integer of the element's size.
template <class T>
void select_kernel(const KernelArgs& args) {
  const uint8_t* condition = args.in<uint8_t>(0);
  const std::byte *x = args.in<std::byte>(1), *y = args.in<std::byte>(2);
  T* out = args.out<T>(0);
  for_each_run(args.params<SelectParams>().broadcast, args.rows.begin, args.rows.end, [&](int64_t o, const int64_t* at, int64_t count, const int64_t* step) {
    for (int64_t i = 0; i < count; ++i)
      out[o + i] = condition[at[0] + i * step[0]] ? Preparation::load<T>(x, at[1] + i * step[1]) : Preparation::load<T>(y, at[2] + i * step[2]);
  });
}

template <bool kV2>
Status SelectBy<kV2>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(3, 3));
  Shape condition = p.input(0).shape, shape;
  if constexpr (kV2) {
    Shape values;
    ONEWEIGHT_RETURN_IF_ERROR(p.broadcast(p.input(1).shape, p.input(2).shape, &values));
    ONEWEIGHT_RETURN_IF_ERROR(p.broadcast(condition, values, &shape));
  } else {
    shape = p.input(1).shape;
    if (!(p.input(2).shape == shape))
      return p.invalid("%s and %s differ in shape", p.describe(p.input(1)).c_str(), p.describe(p.input(2)).c_str());
    const bool vector = condition.rank() == 1 && shape.rank() >= 1 && condition[0] == shape[0];
    if (!(condition == shape) && condition.elements() != 1 && !vector)
      return p.invalid("condition %s fits neither the values %s nor their first axis", condition.to_string().c_str(), shape.to_string().c_str());
    if (vector) condition.resize(shape.rank());  // [n] becomes [n, 1, 1 ...]
    else if (condition.elements() == 1) condition = Shape();
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  SelectParams* params = p.make_params<SelectParams>();
  if (!params) return p.no_memory();
  const Shape* const inputs[3] = {&condition, &p.input(1).shape, &p.input(2).shape};
  params->broadcast = plan_broadcast<3>(shape, inputs);
  switch (tensor_type_bits(p.output(0).type)) {
    case 8: set_broadcast_kernel(p, &select_kernel<uint8_t>); break;
    case 16: set_broadcast_kernel(p, &select_kernel<uint16_t>); break;
    case 32: set_broadcast_kernel(p, &select_kernel<uint32_t>); break;
    case 64: set_broadcast_kernel(p, &select_kernel<uint64_t>); break;
    default: return p.error(ErrorCode::unsupported, "elements of %s are not supported", tensor_type_name(p.output(0).type));
  }
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_SELECT_H
