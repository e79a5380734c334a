// GATHER_ND: slices of input 0 addressed by the rows (last axis) of input 1; checked while running.
#ifndef ONEWEIGHT_OPS_GATHER_ND_H
#define ONEWEIGHT_OPS_GATHER_ND_H

#include "oneweight/ops/indices.h"
#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct GatherNdParams {
  IndexRows rows;
  int64_t element = 1, slice_bytes = 0;
};

struct GatherNd {
  static bool accepts(const NodeTypes& t) { return t.input_count == 2 && accepts_moved<0>(t) && is_index_type(t, 1); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::gather_nd, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void gather_nd_kernel(const KernelArgs& args) {
  const auto& p = args.params<GatherNdParams>();
  for (int64_t r = args.rows.begin; r < args.rows.end; ++r) {
    int64_t at = 0;
    if (!p.rows.offset(args.in<std::byte>(1), r, args.run, &at)) return;
    std::memcpy(args.out<std::byte>(0) + r * p.slice_bytes, args.in<std::byte>(0) + at * p.element,
                static_cast<size_t>(p.slice_bytes));
  }
}

ONEWEIGHT_INLINE Status GatherNd::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand &table = p.input(0), &indices = p.input(1);
  const int rank = indices.shape.rank();
  if (rank < 1) return p.invalid("%s has no axis of coordinates", p.describe(indices).c_str());
  const int64_t depth = indices.shape[rank - 1];
  if (depth > table.shape.rank())
    return p.invalid("%s has %lld coordinates a row for %s", p.describe(indices).c_str(), static_cast<long long>(depth),
                     p.describe(table).c_str());
  if (rank - 1 + table.shape.rank() - depth > kMaxRank) return p.invalid("makes more than %d axes", kMaxRank);
  Shape shape;
  for (int i = 0; i < rank - 1; ++i) shape.push_back(indices.shape[i]);
  for (int i = static_cast<int>(depth); i < table.shape.rank(); ++i) shape.push_back(table.shape[i]);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  GatherNdParams* params = p.make_params<GatherNdParams>();
  if (!params) return p.no_memory();
  make_index_rows(table.shape, static_cast<int>(depth), indices.type, &params->rows);
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, table, &params->element));
  params->slice_bytes = table.shape.elements(static_cast<int>(depth), table.shape.rank()) * params->element;
  p.set_kernel(&gather_nd_kernel, indices.shape.elements(0, rank - 1));
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_GATHER_ND_H
