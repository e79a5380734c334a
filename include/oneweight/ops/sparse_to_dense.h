// SPARSE_TO_DENSE: a tensor of the constant shape of input 1, filled with the scalar of input 3, with the values of
// input 2 (one for all, or one each) at the indices of input 0 (a scalar, a vector, or a matrix with a row each);
// checked while running.
#ifndef ONEWEIGHT_OPS_SPARSE_TO_DENSE_H
#define ONEWEIGHT_OPS_SPARSE_TO_DENSE_H

#include "oneweight/ops/indices.h"
#include "oneweight/ops/pad.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct SparseToDenseParams {
  IndexRows rows;
  int64_t count = 0, elements = 0, element = 1;
  bool one_value = false;
};

struct SparseToDense {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 4 && accepts_moved<2>(t) && t.in(3, t.inputs[2]) &&
           (t.in(0, TensorType::int32) || t.in(0, TensorType::int64));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::sparse_to_dense,
                                .types = "all of whole bytes",
                                .accepts = &accepts,
                                .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void sparse_to_dense_kernel(const KernelArgs& args) {
  const auto& p = args.params<SparseToDenseParams>();
  std::byte* out = args.out<std::byte>(0);
  pad::fill_elements(out, args.in<std::byte>(3), p.element, p.elements);
  for (int64_t i = 0; i < p.count; ++i) {
    int64_t at = 0;
    if (!p.rows.offset(args.in<std::byte>(0), i, args.run, &at)) return;
    std::memcpy(out + at * p.element, args.in<std::byte>(2) + (p.one_value ? 0 : i) * p.element,
                static_cast<size_t>(p.element));
  }
}

ONEWEIGHT_INLINE Status SparseToDense::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(4, 4));
  const Operand &indices = p.input(0), &values = p.input(2);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(indices, 0, 2));
  std::vector<int64_t> wanted;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &wanted));
  if (wanted.size() > static_cast<size_t>(kMaxRank))
    return p.invalid("asks for rank %zu, more than %d", wanted.size(), kMaxRank);
  Shape shape;
  for (int64_t extent : wanted) {
    if (extent < 0) return p.invalid("extent %lld of its shape is negative", static_cast<long long>(extent));
    shape.push_back(extent);
  }
  const int64_t depth = indices.shape.rank() == 2 ? indices.shape[1] : 1;
  const int64_t count = indices.shape.rank() == 0 ? 1 : indices.shape[0];
  if (depth != shape.rank())
    return p.invalid("%s has %lld coordinates a row for the shape %s", p.describe(indices).c_str(),
                     static_cast<long long>(depth), shape.to_string().c_str());
  const bool one_value = values.shape.rank() == 0;
  if ((!one_value && values.shape.elements() != count) || p.input(3).shape.elements() != 1)
    return p.invalid("%s or %s does not fit %lld indices", p.describe(values).c_str(), p.describe(p.input(3)).c_str(),
                     static_cast<long long>(count));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  SparseToDenseParams* params = p.make_params<SparseToDenseParams>();
  if (!params) return p.no_memory();
  make_index_rows(shape, static_cast<int>(depth), indices.type, &params->rows);
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, values, &params->element));
  params->count = count, params->elements = shape.elements(), params->one_value = one_value;
  p.set_kernel(&sparse_to_dense_kernel);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_SPARSE_TO_DENSE_H
