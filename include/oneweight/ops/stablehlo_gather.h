// STABLEHLO_GATHER: blocks of slice_sizes elements of input 0 at the start indices (int32, int64) of input 1, clamped so that
// every block lies inside. STABLEHLO_SCATTER: input 0 with the blocks of input 2 joined to it at the indices of input 1; cells
// outside are left out; the function is a subgraph of one operator or its second argument. Dimension numbers as in StableHLO,
// without batching dimensions. GATHER: all types of whole bytes; SCATTER: float, integers (wrap), bool.
#ifndef ONEWEIGHT_OPS_STABLEHLO_GATHER_H
#define ONEWEIGHT_OPS_STABLEHLO_GATHER_H

#include <algorithm>

#include "oneweight/ops/indices.h"
#include "oneweight/ops/stablehlo_body.h"
#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// Between an operand and the small tensor (GATHER: result, SCATTER: updates) whose axes are batch axes, in order those of the
// indices without the index vector, and window axes, in order those operand axes that are not collapsed.
struct BlockGeometry {
  int operand_rank = 0, small_rank = 0, index_depth = 1;
  int64_t operand[kMaxRank] = {};  // extents
  int64_t small[kMaxRank] = {};
  int64_t window[kMaxRank] = {};         // extent of the block along each operand axis
  int window_axis[kMaxRank] = {};        // operand axis of each axis of the small tensor, -1: a batch axis
  int64_t index_strides[kMaxRank] = {};  // of each batch axis of the small tensor in the indices
  int64_t vector_stride = 1;             // of the index vector
  int start_axis[kMaxRank] = {};         // operand axis of each element of the index vector
  TensorType index_type = TensorType::int64;
  int64_t elements = 0, element = 1, operand_elements = 0;

  // Position in the operand of element `at` of the small tensor; negative when it is outside. kClamp: blocks are moved inside.
  template <bool kClamp>
  int64_t operand_position(const std::byte* indices, int64_t at) const {
    int64_t position[kMaxRank] = {}, first = 0;
    for (int i = small_rank - 1; i >= 0; --i) {
      const int64_t index = at % small[i];
      at /= small[i];
      if (window_axis[i] >= 0)
        position[window_axis[i]] = index;
      else
        first += index * index_strides[i];
    }
    for (int k = 0; k < index_depth; ++k) {
      const int axis = start_axis[k];
      int64_t start = load_index(indices, index_type, first + k * vector_stride);
      if (kClamp)
        start = std::clamp<int64_t>(start, 0, operand[axis] - window[axis]);
      else if (start < -(int64_t{1} << 46) || start > (int64_t{1} << 46))
        return -1;
      position[axis] += start;
    }
    int64_t result = 0;
    for (int i = 0; i < operand_rank; ++i) {
      if (position[i] < 0 || position[i] >= operand[i]) return -1;
      result = result * operand[i] + position[i];
    }
    return result;
  }
};
struct BlockParams {
  BlockGeometry geometry;
};

struct StablehloGather {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 2 && accepts_moved<0>(t) && (t.in(1, TensorType::int32) || t.in(1, TensorType::int64));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::stablehlo_gather, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};
struct StablehloScatter {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 3 && t.has_input[0] && is_body_type(t.inputs[0]) && t.in(2, t.inputs[0]) && t.out(0, t.inputs[0]) &&
           (t.in(1, TensorType::int32) || t.in(1, TensorType::int64));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::stablehlo_scatter, .types = "float, integers, bool", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void stablehlo_gather_kernel(const KernelArgs& args) {
  const BlockGeometry& g = args.params<BlockParams>().geometry;
  const int64_t width = g.small_rank > 0 ? g.small[g.small_rank - 1] : 1;
  for (int64_t i = args.rows.begin * width; i < args.rows.end * width; ++i) {
    const int64_t at = g.operand_position<true>(args.in<std::byte>(1), i);
    std::memcpy(args.out<std::byte>(0) + i * g.element, args.in<std::byte>(0) + at * g.element, static_cast<size_t>(g.element));
  }
}
template <BodyFunction kFunction, class T>
void stablehlo_scatter_kernel(const KernelArgs& args) {
  const BlockGeometry& g = args.params<BlockParams>().geometry;
  T* out = args.out<T>(0);
  if (args.in<T>(0) != out && g.operand_elements > 0)
    std::memcpy(static_cast<void*>(out), args.in<std::byte>(0), static_cast<size_t>(g.operand_elements) * sizeof(T));
  for (int64_t i = 0; i < g.elements; ++i)
    if (const int64_t at = g.operand_position<false>(args.in<std::byte>(1), i); at >= 0)
      out[at] = apply_body<kFunction, T>(out[at], Preparation::load<T>(args.in<std::byte>(2), i));
}

// Fills *g but the extents of the small tensor's window axes; *batch: the extents of its batch axes.
inline Status read_blocks(Preparation& p, const std::vector<int64_t>* window_axes, const std::vector<int64_t>* collapsed,
                          const std::vector<int64_t>* start_axes, int64_t vector_axis, BlockGeometry* g, Shape* batch) {
  static const std::vector<int64_t> none;
  if (!window_axes) window_axes = &none;
  if (!collapsed) collapsed = &none;
  if (!start_axes) start_axes = &none;
  const Operand &operand = p.input(0), &indices = p.input(1);
  const int rank = operand.shape.rank(), index_rank = indices.shape.rank();
  if (vector_axis < 0 || vector_axis > index_rank)
    return p.invalid("index axis %lld is outside of %s", static_cast<long long>(vector_axis), p.describe(indices).c_str());
  g->operand_rank = rank;
  g->index_type = indices.type;
  for (int i = 0; i < rank; ++i) g->operand[i] = operand.shape[i];
  g->operand_elements = operand.shape.elements();
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, operand, &g->element));
  int64_t strides[kMaxRank + 1] = {};
  dense_strides(indices.shape, 1, strides);
  const bool has_vector = vector_axis < index_rank;
  const int64_t depth = has_vector ? indices.shape[static_cast<int>(vector_axis)] : 1;
  g->vector_stride = has_vector ? strides[vector_axis] : 1;
  if (depth != static_cast<int64_t>(start_axes->size()) || depth > rank)
    return p.invalid("%s has index vectors of %lld elements for %zu axes", p.describe(indices).c_str(), static_cast<long long>(depth),
                     start_axes->size());
  g->index_depth = static_cast<int>(depth);
  bool used[kMaxRank] = {};
  for (int k = 0; k < g->index_depth; ++k) {
    const int64_t axis = (*start_axes)[static_cast<size_t>(k)];
    if (axis < 0 || axis >= rank || used[axis])
      return p.invalid("axis %lld of its index vectors is not valid", static_cast<long long>(axis));
    used[axis] = true;
    g->start_axis[k] = static_cast<int>(axis);
  }
  bool gone[kMaxRank] = {};
  for (int64_t axis : *collapsed) {
    if (axis < 0 || axis >= rank || gone[axis]) return p.invalid("collapsed axis %lld is not valid", static_cast<long long>(axis));
    gone[axis] = true;
  }
  const size_t windows = static_cast<size_t>(rank) - collapsed->size();
  g->small_rank = static_cast<int>(windows) + index_rank - (has_vector ? 1 : 0);
  if (window_axes->size() != windows || g->small_rank > kMaxRank)
    return p.invalid("has %zu window axes, %s has %zu that are not collapsed", window_axes->size(), p.describe(operand).c_str(), windows);
  std::fill(g->window_axis, g->window_axis + kMaxRank, -1);
  int next = 0;
  int64_t before = -1;
  for (int64_t axis : *window_axes) {
    if (axis <= before || axis >= g->small_rank) return p.invalid("window axis %lld is not valid", static_cast<long long>(axis));
    before = axis;
    while (gone[next]) ++next;
    g->window_axis[axis] = next++;
  }
  int from = 0;
  for (int i = 0; i < g->small_rank; ++i) {
    if (g->window_axis[i] >= 0) continue;
    if (has_vector && from == vector_axis) ++from;
    g->index_strides[i] = strides[from];
    batch->push_back(indices.shape[from]);
    ++from;
  }
  return {};
}

ONEWEIGHT_INLINE Status StablehloGather::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const OptionsView& o = p.options();
  BlockParams* params = p.make_params<BlockParams>();
  if (!params) return p.no_memory();
  BlockGeometry& g = params->geometry;
  Shape batch;
  ONEWEIGHT_RETURN_IF_ERROR(read_blocks(p, o.vector(0), o.vector(1), o.vector(2), o.get<int64_t>(3, 0), &g, &batch));
  const std::vector<int64_t>* sizes = o.vector(4);
  if (!sizes || sizes->size() != static_cast<size_t>(g.operand_rank))
    return p.invalid("has %zu slice sizes for %s", sizes ? sizes->size() : 0, p.describe(p.input(0)).c_str());
  bool kept[kMaxRank] = {};
  for (int i = 0; i < g.small_rank; ++i)
    if (g.window_axis[i] >= 0) kept[g.window_axis[i]] = true;
  for (int i = 0; i < g.operand_rank; ++i) {
    g.window[i] = (*sizes)[static_cast<size_t>(i)];
    if (g.window[i] < 0 || g.window[i] > g.operand[i] || (!kept[i] && g.window[i] != 1))
      return p.invalid("slice size %lld of axis %d does not fit %s", static_cast<long long>(g.window[i]), i,
                       p.describe(p.input(0)).c_str());
  }
  Shape shape;
  for (int i = 0, next = 0; i < g.small_rank; ++i) {
    shape.push_back(g.window_axis[i] >= 0 ? g.window[g.window_axis[i]] : batch[next++]);
    g.small[i] = shape[i];
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  g.elements = shape.elements();
  p.set_kernel(&stablehlo_gather_kernel, g.elements > 0 ? shape.elements(0, g.small_rank > 0 ? g.small_rank - 1 : 0) : 0);
  return {};
}

ONEWEIGHT_INLINE Status StablehloScatter::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(3, 3));
  const OptionsView& o = p.options();
  const Operand &operand = p.input(0), &updates = p.input(2);
  BlockParams* params = p.make_params<BlockParams>();
  if (!params) return p.no_memory();
  BlockGeometry& g = params->geometry;
  Shape batch;
  ONEWEIGHT_RETURN_IF_ERROR(read_blocks(p, o.vector(1), o.vector(2), o.vector(3), o.get<int64_t>(4, 0), &g, &batch));
  bool fits = updates.shape.rank() == g.small_rank;
  for (int i = 0, next = 0; fits && i < g.small_rank; ++i) {
    g.small[i] = updates.shape[i];
    fits = g.window_axis[i] >= 0 ? updates.shape[i] <= g.operand[g.window_axis[i]] : updates.shape[i] == batch[next++];
  }
  if (!fits)
    return p.invalid("updates %s do not fit %s and %s", p.describe(updates).c_str(), p.describe(operand).c_str(),
                     p.describe(p.input(1)).c_str());
  BodyFunction function = BodyFunction::add;
  ONEWEIGHT_RETURN_IF_ERROR(body_function(p, o.get<int32_t>(6, 0), operand, &function));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, operand.shape));
  g.elements = updates.shape.elements();
  KernelFn kernel = nullptr;
  const bool known = with_body_type(operand.type, [&]<class T>(T) {
    switch (function) {
      case BodyFunction::add: kernel = &stablehlo_scatter_kernel<BodyFunction::add, T>; break;
      case BodyFunction::multiply: kernel = &stablehlo_scatter_kernel<BodyFunction::multiply, T>; break;
      case BodyFunction::minimum: kernel = &stablehlo_scatter_kernel<BodyFunction::minimum, T>; break;
      case BodyFunction::maximum: kernel = &stablehlo_scatter_kernel<BodyFunction::maximum, T>; break;
      case BodyFunction::all: kernel = &stablehlo_scatter_kernel<BodyFunction::all, T>; break;
      case BodyFunction::any: kernel = &stablehlo_scatter_kernel<BodyFunction::any, T>; break;
      default: kernel = &stablehlo_scatter_kernel<BodyFunction::replace, T>;
    }
  });
  if (!known) return p.error(ErrorCode::unsupported, "%s is not supported", p.describe(operand).c_str());
  p.set_kernel(kernel);
  p.allow_in_place(0);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_STABLEHLO_GATHER_H
