// SCATTER_ND: zeros of the constant shape of input 2, with the slices of input 1 added at the rows (last axis) of input
// 0; checked while running. Integers wrap; bool: or.
#ifndef ONEWEIGHT_OPS_SCATTER_ND_H
#define ONEWEIGHT_OPS_SCATTER_ND_H

#include "oneweight/ops/indices.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct ScatterNdParams {
  IndexRows rows;
  int64_t count = 0, slice = 0, bytes = 0;
};

struct ScatterNd {
  static bool accepts(const NodeTypes& t) {
    switch (t.inputs[1]) {
      case TensorType::float32:
      case TensorType::int8:
      case TensorType::uint8:
      case TensorType::int16:
      case TensorType::int32:
      case TensorType::int64:
      case TensorType::boolean: break;
      default: return false;
    }
    return t.input_count == 3 && t.has_input[1] && t.out(0, t.inputs[1]) &&
           (t.in(0, TensorType::int32) || t.in(0, TensorType::int64));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::scatter_nd,
                                .types = "float, int8, uint8, int16, int32, int64, bool",
                                .accepts = &accepts,
                                .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
template <class T>
void scatter_nd_kernel(const KernelArgs& args) {
  const auto& p = args.params<ScatterNdParams>();
  T* out = args.out<T>(0);
  if (p.bytes > 0) std::memset(static_cast<void*>(out), 0, static_cast<size_t>(p.bytes));
  for (int64_t r = 0; r < p.count; ++r) {
    int64_t at = 0;
    if (!p.rows.offset(args.in<std::byte>(0), r, args.run, &at)) return;
    for (int64_t i = 0; i < p.slice; ++i) {
      const T update = Preparation::load<T>(args.in<std::byte>(1), r * p.slice + i);
      T& cell = out[at + i];
      if constexpr (std::is_same_v<T, bool>)
        cell = cell || update;
      else if constexpr (std::is_floating_point_v<T>)
        cell += update;
      else
        cell = static_cast<T>(static_cast<uint64_t>(cell) + static_cast<uint64_t>(update));
    }
  }
}

ONEWEIGHT_INLINE Status ScatterNd::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(3, 3));
  const Operand &indices = p.input(0), &updates = p.input(1);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(indices, 1, kMaxRank));
  std::vector<int64_t> wanted;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(2, &wanted));
  if (wanted.size() > static_cast<size_t>(kMaxRank))
    return p.invalid("asks for rank %zu, more than %d", wanted.size(), kMaxRank);
  Shape shape;
  for (int64_t extent : wanted) {
    if (extent < 0) return p.invalid("extent %lld of its shape is negative", static_cast<long long>(extent));
    shape.push_back(extent);
  }
  const int lead = indices.shape.rank() - 1;
  const int64_t depth = indices.shape[lead];
  bool fits = depth <= shape.rank() && updates.shape.rank() == lead + shape.rank() - depth;
  for (int i = 0; fits && i < updates.shape.rank(); ++i)
    fits = updates.shape[i] == (i < lead ? indices.shape[i] : shape[i - lead + static_cast<int>(depth)]);
  if (!fits)
    return p.invalid("%s and %s do not fit the shape %s", p.describe(indices).c_str(), p.describe(updates).c_str(),
                     shape.to_string().c_str());
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  ScatterNdParams* params = p.make_params<ScatterNdParams>();
  if (!params) return p.no_memory();
  make_index_rows(shape, static_cast<int>(depth), indices.type, &params->rows);
  params->count = indices.shape.elements(0, lead);
  params->slice = shape.elements(static_cast<int>(depth), shape.rank());
  params->bytes = shape.bytes(updates.type);
  switch (updates.type) {
    case TensorType::float32: p.set_kernel(&scatter_nd_kernel<float>); break;
    case TensorType::int8: p.set_kernel(&scatter_nd_kernel<int8_t>); break;
    case TensorType::uint8: p.set_kernel(&scatter_nd_kernel<uint8_t>); break;
    case TensorType::int16: p.set_kernel(&scatter_nd_kernel<int16_t>); break;
    case TensorType::int32: p.set_kernel(&scatter_nd_kernel<int32_t>); break;
    case TensorType::int64: p.set_kernel(&scatter_nd_kernel<int64_t>); break;
    default: p.set_kernel(&scatter_nd_kernel<bool>);
  }
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_SCATTER_ND_H
