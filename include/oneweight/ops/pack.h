// PACK: tensors of one shape stacked along a new axis; UNPACK: the other way round.
#ifndef ONEWEIGHT_OPS_PACK_H
#define ONEWEIGHT_OPS_PACK_H

#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct PackParams {
  int64_t count = 0;
  int64_t run_bytes = 0;  // that lie together in the stack and in its parts
};

struct Pack {
  static bool accepts(const NodeTypes& t) {
    for (int i = 0; i < t.input_count && i < NodeTypes::kMax; ++i)
      if (!t.has_input[i] || !t.out(0, t.inputs[i])) return false;
    return t.input_count >= 1 && tensor_type_bits(t.inputs[0]) >= 8;
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::pack, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};

struct Unpack {
  static bool accepts(const NodeTypes& t) {
    for (int i = 0; i < t.output_count && i < 4; ++i)
      if (!t.in(0, t.outputs[i])) return false;
    return t.input_count == 1 && tensor_type_bits(t.inputs[0]) >= 8;
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::unpack, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void copy_run(std::byte* to, const std::byte* from, int64_t bytes) {
  if (to != from) std::memcpy(to, from, static_cast<size_t>(bytes));  // equal: a view
}
inline void pack_kernel(const KernelArgs& args) {
  const auto& p = args.params<PackParams>();
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row)
    for (int64_t i = 0; i < p.count; ++i)
      copy_run(args.out<std::byte>(0) + (row * p.count + i) * p.run_bytes, args.in<std::byte>(static_cast<int>(i)) + row * p.run_bytes, p.run_bytes);
}
inline void unpack_kernel(const KernelArgs& args) {
  const auto& p = args.params<PackParams>();
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row)
    for (int64_t i = 0; i < p.count; ++i)
      copy_run(args.out<std::byte>(static_cast<int>(i)) + row * p.run_bytes, args.in<std::byte>(0) + (row * p.count + i) * p.run_bytes, p.run_bytes);
}

// Parameters and rows for a stack of `part` along `axis`.
inline Status set_pack_kernel(Preparation& p, KernelFn kernel, const Operand& part, const Shape& shape, int axis,
                              int count) {
  PackParams* params = p.make_params<PackParams>();
  if (!params) return p.no_memory();
  int64_t element = 0;
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, part, &element));
  params->count = count;
  params->run_bytes = shape.elements(axis, shape.rank()) * element;
  p.set_kernel(kernel, params->run_bytes > 0 ? shape.elements(0, axis) : 0);
  if (shape.elements(0, axis) == 1)
    for (int i = 0; i < count; ++i) {
      if (kernel == &pack_kernel) p.allow_gathered(i, i * params->run_bytes);
      else p.allow_part(0, i, i * params->run_bytes);
    }
  return {};
}

ONEWEIGHT_INLINE Status Pack::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1 << 20));
  const Operand& first = p.input(0);
  const int count = p.input_count();
  if (p.options().get<int32_t>(0, count) != count)
    return p.invalid("packs %d values, but has %d inputs", p.options().get<int32_t>(0, count), count);
  if (first.shape.rank() >= kMaxRank)
    return p.invalid("%s cannot have more than %d axes", p.describe(first).c_str(), kMaxRank);
  int axis = 0;
  ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(p.options().get<int32_t>(1, 0), first.shape.rank() + 1, &axis));
  for (int i = 0; i < count; ++i) {
    if (!p.has_input(i)) return p.invalid("input %d is left out", i);
    if (!(p.input(i).shape == first.shape) || p.input(i).type != first.type)
      return p.invalid("%s differs from %s", p.describe(p.input(i)).c_str(), p.describe(first).c_str());
  }
  Shape shape;
  for (int i = 0; i <= first.shape.rank(); ++i)
    shape.push_back(i < axis ? first.shape[i] : i == axis ? count : first.shape[i - 1]);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  return set_pack_kernel(p, &pack_kernel, first, first.shape, axis, count);
}

ONEWEIGHT_INLINE Status Unpack::prepare(Preparation& p) {
  const int count = p.output_count();
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1, count));
  const Operand& input = p.input(0);
  int axis = 0;
  ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(p.options().get<int32_t>(1, 0), input.shape.rank(), &axis));
  if (p.options().get<int32_t>(0, count) != count || input.shape[axis] != count)
    return p.invalid("axis %d of %s gives other than %d outputs (num is %d)", axis, p.describe(input).c_str(), count,
                     p.options().get<int32_t>(0, count));
  Shape shape;
  for (int i = 0; i < input.shape.rank(); ++i)
    if (i != axis) shape.push_back(input.shape[i]);
  for (int i = 0; i < count; ++i) {
    if (p.output(i).type != input.type)
      return p.invalid("%s does not have the type of %s", p.describe(p.output(i)).c_str(), p.describe(input).c_str());
    ONEWEIGHT_RETURN_IF_ERROR(p.set_output(i, shape));
  }
  return set_pack_kernel(p, &unpack_kernel, input, shape, axis, count);
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_PACK_H
