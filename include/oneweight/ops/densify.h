// DENSIFY: the dense form of a constant that the file stores sparse (traversal order, blocks, dense and compressed
// dimensions). All indices are checked when the plan is made.
#ifndef ONEWEIGHT_OPS_DENSIFY_H
#define ONEWEIGHT_OPS_DENSIFY_H

#include "oneweight/ops/copy.h"
#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// How a sparse constant is walked: one level for each entry of the traversal order.
struct SparseWalk {
  struct Level {
    const SparsityDimension* dimension = nullptr;  // lives in the model
    int64_t extent = 0;
    int64_t stride = 0;  // elements of the dense tensor between neighbours
  };
  int count = 0;
  Level levels[2 * kMaxRank];

  // Calls leaf(number of the stored value, place in the dense tensor) for each stored value. False when an index
  // lies outside, or leaf says so.
  template <class Leaf>
  bool visit(Leaf leaf, int level = 0, int64_t position = 0, int64_t place = 0) const {
    if (level == count) return leaf(position, place);
    const Level& l = levels[level];
    if (!l.dimension->sparse) {
      for (int64_t i = 0; i < l.extent; ++i)
        if (!visit(leaf, level + 1, position * l.extent + i, place + i * l.stride)) return false;
      return true;
    }
    const auto& segments = l.dimension->segments;
    const auto& indices = l.dimension->indices;
    if (position + 1 >= static_cast<int64_t>(segments.size())) return false;
    const int64_t begin = segments[static_cast<size_t>(position)], end = segments[static_cast<size_t>(position) + 1];
    if (begin < 0 || end < begin || end > static_cast<int64_t>(indices.size())) return false;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t index = indices[static_cast<size_t>(k)];
      if (index < 0 || index >= l.extent || !visit(leaf, level + 1, k, place + index * l.stride)) return false;
    }
    return true;
  }
};

struct DensifyParams {
  SparseWalk walk;
  int64_t bytes = 0, element = 1;
};

struct Densify {
  static bool accepts(const NodeTypes& t) { return t.input_count == 1 && accepts_moved<0>(t) && t.constant[0]; }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::densify, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare, .takes_sparse = true};
};

#if ONEWEIGHT_HAS_KERNELS
inline void densify_kernel(const KernelArgs& args) {
  const auto& p = args.params<DensifyParams>();
  std::byte* out = args.out<std::byte>(0);
  if (p.bytes > 0) std::memset(out, 0, static_cast<size_t>(p.bytes));
  const std::byte* in = args.in<std::byte>(0);
  const auto walk = [&]<class T>(T) {
    p.walk.visit([&](int64_t from, int64_t to) {
      std::memcpy(out + to * static_cast<int64_t>(sizeof(T)), in + from * static_cast<int64_t>(sizeof(T)), sizeof(T));
      return true;
    });
  };
  switch (p.element) {
    case 1: walk(uint8_t{}); break;
    case 2: walk(uint16_t{}); break;
    case 4: walk(uint32_t{}); break;
    default: walk(uint64_t{});
  }
}

ONEWEIGHT_INLINE Status Densify::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const Operand& input = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, input.shape));
  if (!input.sparsity) return prepare_copy(p);
  const Sparsity& sparsity = *input.sparsity;
  DensifyParams* params = p.make_params<DensifyParams>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &params->element));
  if (params->element > 8) return p.error(ErrorCode::unsupported, "%s is not supported", p.describe(input).c_str());
  params->bytes = input.shape.bytes(input.type);
  const int rank = input.shape.rank(), count = static_cast<int>(sparsity.traversal_order.size());
  // Dimensions beyond the rank are the insides of blocks.
  int64_t block[kMaxRank], strides[kMaxRank];
  dense_strides(input.shape, 1, strides);
  for (int i = 0; i < rank; ++i) block[i] = 1;
  for (int pass = 0; pass < 2; ++pass)
    for (int l = 0; l < count; ++l) {
      const int dimension = sparsity.traversal_order[static_cast<size_t>(l)];
      const SparsityDimension& d = sparsity.dimensions[static_cast<size_t>(l)];
      const bool inner = dimension >= rank;
      const int axis = inner ? sparsity.block_map[static_cast<size_t>(dimension - rank)] : dimension;
      if (inner && pass == 0) {
        if (d.sparse || d.dense_size <= 0 || block[axis] != 1 || input.shape[axis] % d.dense_size != 0)
          return p.invalid("%s has an invalid block of %d along axis %d", p.describe(input).c_str(), d.dense_size,
                           axis);
        block[axis] = d.dense_size;
      }
      if (pass == 0) continue;
      SparseWalk::Level& level = params->walk.levels[l];
      level.dimension = &d;
      level.extent = inner ? block[axis] : input.shape[axis] / block[axis];
      level.stride = inner ? strides[axis] : strides[axis] * block[axis];
      if (!d.sparse && d.dense_size != level.extent)
        return p.invalid("%s has a dense dimension of %d where its shape has %lld", p.describe(input).c_str(),
                         d.dense_size, static_cast<long long>(level.extent));
    }
  params->walk.count = count;
  const int64_t stored = input.data_bytes / params->element;
  const bool good = params->walk.visit([&](int64_t from, int64_t) { return from < stored; });
  if (!good)
    return p.invalid("the sparse indices of %s lie outside its shape or its %lld stored values",
                     p.describe(input).c_str(), static_cast<long long>(stored));
  p.set_kernel(&densify_kernel);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_DENSIFY_H
