// ONE_HOT: for each index (int32 or int64) a vector of the constant depth, `on` at the index and `off` elsewhere (only
// `off` where the index lies outside), along a new axis.
#ifndef ONEWEIGHT_OPS_ONE_HOT_H
#define ONEWEIGHT_OPS_ONE_HOT_H

#include "oneweight/ops/indices.h"
#include "oneweight/ops/pad.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct OneHotParams {
  int64_t depth = 0, prefix = 1, suffix = 1, element = 1;
  TensorType index_type = TensorType::int32;
};

struct OneHot {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 4 && accepts_moved<2>(t) && t.in(3, t.inputs[2]) &&
           (t.in(0, TensorType::int32) || t.in(0, TensorType::int64));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::one_hot, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void one_hot_kernel(const KernelArgs& args) {
  const auto& p = args.params<OneHotParams>();
  const std::byte *on = args.in<std::byte>(2), *off = args.in<std::byte>(3);
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    std::byte* to = args.out<std::byte>(0) + row * p.depth * p.suffix * p.element;
    pad::fill_elements(to, off, p.element, p.depth * p.suffix);
    for (int64_t i = 0; i < p.suffix; ++i) {
      const int64_t index = load_index(args.in<std::byte>(0), p.index_type, row * p.suffix + i);
      if (index >= 0 && index < p.depth)
        std::memcpy(to + (index * p.suffix + i) * p.element, on, static_cast<size_t>(p.element));
    }
  }
}

ONEWEIGHT_INLINE Status OneHot::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(4, 4));
  const Operand& indices = p.input(0);
  const int rank = indices.shape.rank();
  std::vector<int64_t> depth;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &depth));
  if (depth.size() != 1 || depth[0] < 0)
    return p.invalid("its depth %s is not one number of at least 0", p.describe(p.input(1)).c_str());
  for (int i : {2, 3})
    if (p.input(i).shape.elements() != 1) return p.invalid("%s is not one value", p.describe(p.input(i)).c_str());
  if (rank >= kMaxRank) return p.invalid("%s cannot have more than %d axes", p.describe(indices).c_str(), kMaxRank);
  int axis = 0;
  ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(p.options().get<int32_t>(0, 0), rank + 1, &axis));
  Shape shape;
  for (int i = 0; i <= rank; ++i)
    shape.push_back(i < axis ? indices.shape[i] : i == axis ? depth[0] : indices.shape[i - 1]);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  OneHotParams* params = p.make_params<OneHotParams>();
  if (!params) return p.no_memory();
  params->depth = depth[0];
  params->prefix = indices.shape.elements(0, axis);
  params->suffix = indices.shape.elements(axis, rank);
  params->index_type = indices.type;
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, p.input(2), &params->element));
  p.set_kernel(&one_hot_kernel, params->prefix);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_ONE_HOT_H
