// DYNAMIC_UPDATE_SLICE: input 0 with the block of input 1 written at the computed start of input 2, which is moved so
// that the block fits. In place where the plan can.
#ifndef ONEWEIGHT_OPS_DYNAMIC_UPDATE_SLICE_H
#define ONEWEIGHT_OPS_DYNAMIC_UPDATE_SLICE_H

#include "oneweight/ops/indices.h"
#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct DynamicUpdateSliceParams {
  StridedCopy copy;
  int64_t bytes = 0;
  int rank = 0;
  TensorType index_type = TensorType::int32;
  int64_t room[kMaxRank] = {}, strides[kMaxRank] = {};
};

struct DynamicUpdateSlice {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 3 && accepts_moved<0>(t) && t.in(1, t.inputs[0]) &&
           (t.in(2, TensorType::int32) || t.in(2, TensorType::int64));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::dynamic_update_slice,
                                .types = "all of whole bytes",
                                .accepts = &accepts,
                                .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void dynamic_update_slice_kernel(const KernelArgs& args) {
  const auto& p = args.params<DynamicUpdateSliceParams>();
  std::byte* to = args.out<std::byte>(0);
  if (p.bytes > 0 && args.in<std::byte>(0) != to) std::memcpy(to, args.in<std::byte>(0), static_cast<size_t>(p.bytes));
  for (int i = 0; i < p.rank; ++i)
    to += std::clamp<int64_t>(load_index(args.in<std::byte>(2), p.index_type, i), 0, p.room[i]) * p.strides[i];
  copy_strided(p.copy, args.in<std::byte>(1), to, {0, p.copy.rows()});
}

ONEWEIGHT_INLINE Status DynamicUpdateSlice::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(3, 3));
  const Operand &input = p.input(0), &update = p.input(1), &start = p.input(2);
  const int rank = input.shape.rank();
  if (update.shape.rank() != rank || start.shape.elements() != rank)
    return p.invalid("%s, %s and %s do not fit together", p.describe(input).c_str(), p.describe(update).c_str(),
                     p.describe(start).c_str());
  DynamicUpdateSliceParams* params = p.make_params<DynamicUpdateSliceParams>();
  if (!params) return p.no_memory();
  int64_t element = 0, from[kMaxRank];
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &element));
  dense_strides(update.shape, element, from);
  dense_strides(input.shape, element, params->strides);
  for (int i = 0; i < rank; ++i) {
    params->room[i] = input.shape[i] - update.shape[i];
    if (params->room[i] < 0)
      return p.invalid("%s is larger than %s", p.describe(update).c_str(), p.describe(input).c_str());
    params->copy.add_axis(update.shape[i], from[i], params->strides[i]);
  }
  params->copy.finish(element);
  params->bytes = input.shape.bytes(input.type);
  params->rank = rank;
  params->index_type = start.type;
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, input.shape));
  p.allow_in_place(0);
  p.set_kernel(&dynamic_update_slice_kernel);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_DYNAMIC_UPDATE_SLICE_H
