// EMBEDDING_LOOKUP_SPARSE: weighted sums of the rows of a float table (input 4), one for each cell of the leading axes of a
// sparse tensor: ids (input 0, int32 [n]) at coordinates (input 1, int32 [n, r]) of the dense shape (input 2, int32 [r]) with
// weights (input 3, float [n]). Entries of a cell follow one another. Combined as they are (0), divided by the sum of weights
// (1) or by the root of the sum of squared weights (2). Cells without entries hold zeros. A dense shape that is computed must
// be the one the file gives the output; ids and coordinates are checked while running.
#ifndef ONEWEIGHT_OPS_EMBEDDING_LOOKUP_SPARSE_H
#define ONEWEIGHT_OPS_EMBEDDING_LOOKUP_SPARSE_H

#include <cmath>

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct EmbeddingLookupSparse {
  struct Params {
    int64_t count = 0, entries = 0, width = 0, cells = 0;
    int rank = 0, combiner = 0;
    int64_t extents[kMaxRank] = {};  // of all axes of the sparse tensor but the last
  };
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 5 && t.in(0, TensorType::int32) && t.in(1, TensorType::int32) && t.in(2, TensorType::int32) &&
           t.in(3, TensorType::float32) && t.in(4, TensorType::float32) && t.out(0, TensorType::float32);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::embedding_lookup_sparse, .types = "float", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void embedding_lookup_sparse_kernel(const KernelArgs& args) {
  const auto& p = args.params<EmbeddingLookupSparse::Params>();
  const auto shown = [](int64_t n) { return static_cast<long long>(n); };
  float* out = args.out<float>(0);
  if (p.cells * p.width > 0) std::memset(out, 0, static_cast<size_t>(p.cells * p.width) * sizeof(float));
  for (int i = 0; i + 1 < p.rank; ++i)
    if (const int32_t extent = Preparation::load<int32_t>(args.in<std::byte>(2), i); extent != p.extents[i])
      return args.run->fail(ErrorCode::invalid_data, "extent %d of axis %d of its dense shape is not the %lld of its output", extent, i,
                            shown(p.extents[i]));
  int64_t cell = -1;
  float weights = 0, squares = 0;
  const auto finish = [&] {
    if (cell < 0 || p.combiner == 0) return;
    const float by = p.combiner == 1 ? weights : std::sqrt(squares);
    for (int64_t k = 0; k < p.width; ++k) out[cell * p.width + k] /= by;
  };
  for (int64_t n = 0; n < p.count; ++n) {
    const int64_t id = Preparation::load<int32_t>(args.in<std::byte>(0), n);
    if (id < 0 || id >= p.entries)
      return args.run->fail(ErrorCode::invalid_data, "id %lld (number %lld) is outside the table of %lld entries", shown(id), shown(n),
                            shown(p.entries));
    int64_t at = 0;
    for (int i = 0; i + 1 < p.rank; ++i) {
      const int64_t index = Preparation::load<int32_t>(args.in<std::byte>(1), n * p.rank + i);
      if (index < 0 || index >= p.extents[i])
        return args.run->fail(ErrorCode::invalid_data, "coordinate %lld of entry %lld is outside the %lld of axis %d", shown(index),
                              shown(n), shown(p.extents[i]), i);
      at = at * p.extents[i] + index;
    }
    if (at != cell) {
      finish();
      cell = at, weights = squares = 0;
    }
    const float weight = Preparation::load<float>(args.in<std::byte>(3), n);
    weights += weight, squares += weight * weight;
    const std::byte* row = args.in<std::byte>(4) + id * p.width * static_cast<int64_t>(sizeof(float));
    for (int64_t k = 0; k < p.width; ++k) out[cell * p.width + k] += Preparation::load<float>(row, k) * weight;
  }
  finish();
}

ONEWEIGHT_INLINE Status EmbeddingLookupSparse::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(5, 5));
  const Operand &ids = p.input(0), &indices = p.input(1), &dense = p.input(2), &weights = p.input(3), &table = p.input(4);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(ids, 1, 1));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(indices, 2, 2));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(dense, 1, 1));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(weights, 1, 1));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(table, 2, kMaxRank));
  const int64_t rank = indices.shape[1];
  if (indices.shape[0] != ids.shape[0] || weights.shape[0] != ids.shape[0] || dense.shape[0] != rank || rank < 1)
    return p.invalid("%s, %s, %s and %s do not fit one another", p.describe(ids).c_str(), p.describe(indices).c_str(),
                     p.describe(dense).c_str(), p.describe(weights).c_str());
  if (rank - 1 + table.shape.rank() - 1 > kMaxRank) return p.invalid("makes more than %d axes", kMaxRank);
  Params* params = p.make_params<Params>();
  if (!params) return p.no_memory();
  params->rank = static_cast<int>(rank);
  params->combiner = p.options().get<int8_t>(0, 0);
  if (params->combiner < 0 || params->combiner > 2) return p.invalid("combiner %d is not known", params->combiner);
  Shape shape;
  if (dense.is_constant) {
    std::vector<int64_t> extents;
    ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(2, &extents));
    for (int i = 0; i + 1 < params->rank; ++i) {
      if (extents[i] < 0) return p.invalid("extent %lld of its dense shape is negative", static_cast<long long>(extents[i]));
      shape.push_back(extents[i]);
    }
  } else {
    if (p.output(0).shape.rank() != params->rank - 1 + table.shape.rank() - 1)
      return p.error(ErrorCode::unsupported, "needs the values of %s before the run, but they are computed", p.describe(dense).c_str());
    for (int i = 0; i + 1 < params->rank; ++i) shape.push_back(p.output(0).shape[i]);
  }
  for (int i = 0; i + 1 < params->rank; ++i) params->extents[i] = shape[i];
  params->cells = shape.elements();
  for (int i = 1; i < table.shape.rank(); ++i) shape.push_back(table.shape[i]);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  params->count = ids.shape[0], params->entries = table.shape[0];
  params->width = table.shape.elements(1, table.shape.rank());
  p.set_kernel(&embedding_lookup_sparse_kernel);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_EMBEDDING_LOOKUP_SPARSE_H
