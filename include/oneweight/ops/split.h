// SPLIT and SPLIT_V: cuts a tensor along a constant axis, into equal parts, or into parts of the constant sizes of
// input 1 (one may be -1: what is left).
#ifndef ONEWEIGHT_OPS_SPLIT_H
#define ONEWEIGHT_OPS_SPLIT_H

#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct SplitParams {
  const int64_t* part_bytes = nullptr;  // of each run of each output
  int32_t input = 0;
  int32_t count = 0;
  int64_t run_bytes = 0;  // of the input
};

template <bool kSizes>
struct SplitBy {
  static constexpr int kData = kSizes ? 0 : 1;
  static bool accepts(const NodeTypes& t) {
    if (t.input_count != (kSizes ? 3 : 2) || !t.has_input[kData] || tensor_type_bits(t.inputs[kData]) < 8) return false;
    for (int i = 0; i < t.output_count && i < 4; ++i)
      if (t.outputs[i] != t.inputs[kData]) return false;
    return true;
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kSizes ? BuiltinOperator::split_v : BuiltinOperator::split,
                                .types = "all of whole bytes",
                                .accepts = &accepts,
                                .prepare = &prepare};
};
using Split = SplitBy<false>;
using SplitV = SplitBy<true>;

#if ONEWEIGHT_HAS_KERNELS
inline void split_kernel(const KernelArgs& args) {
  const auto& p = args.params<SplitParams>();
  const std::byte* from = args.in<std::byte>(p.input) + args.rows.begin * p.run_bytes;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row)
    for (int32_t i = 0; i < p.count; ++i) {
      const int64_t bytes = p.part_bytes[i];
      std::byte* to = args.out<std::byte>(i) + row * bytes;
      if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<size_t>(bytes));
      from += bytes;
    }
}

template <bool kSizes>
Status SplitBy<kSizes>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(kSizes ? 3 : 2, kSizes ? 3 : 2, p.output_count()));
  const Operand& input = p.input(kData);
  std::vector<int64_t> axes, sizes;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(kSizes ? 2 : 0, &axes));
  if (axes.size() != 1) return p.invalid("names %zu axes, not one", axes.size());
  int axis = 0;
  ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(axes[0], input.shape.rank(), &axis));
  const int count = p.output_count();
  const int64_t extent = input.shape[axis];
  if (p.options().get<int32_t>(0, count) != count)
    return p.invalid("splits into %d parts, but has %d outputs", p.options().get<int32_t>(0, count), count);
  if constexpr (kSizes) {
    ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &sizes));
    if (sizes.size() != static_cast<size_t>(count))
      return p.invalid("has %zu sizes, but %d outputs", sizes.size(), count);
    int64_t sum = 0, rest = -1;
    for (int i = 0; i < count; ++i) {
      if (sizes[i] < -1 || sizes[i] > extent || (sizes[i] == -1 && rest >= 0))
        return p.invalid("size %lld of part %d of %s is not valid", static_cast<long long>(sizes[i]), i,
                         p.describe(input).c_str());
      if (sizes[i] == -1)
        rest = i;
      else
        sum += sizes[i];
    }
    if (rest >= 0 && sum <= extent) sizes[rest] = extent - sum, sum = extent;
    if (sum != extent)
      return p.invalid("its parts have %lld elements along axis %d of %s", static_cast<long long>(sum), axis,
                       p.describe(input).c_str());
  } else {
    if (count == 0 || extent % count != 0)
      return p.invalid("axis %d of %s cannot be cut into %d equal parts", axis, p.describe(input).c_str(), count);
    sizes.assign(static_cast<size_t>(count), extent / count);
  }
  SplitParams* params = p.make_params<SplitParams>();
  int64_t* parts = p.derived<int64_t>(count);
  if (!params || !parts) return p.no_memory();
  int64_t element = 0;
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &element));
  const int64_t inner = input.shape.elements(axis + 1, input.shape.rank()) * element;
  for (int i = 0; i < count; ++i) {
    Shape shape = input.shape;
    shape[axis] = sizes[i];
    ONEWEIGHT_RETURN_IF_ERROR(p.set_output(i, shape));
    if (p.output(i).type != input.type)
      return p.invalid("%s does not have the type of %s", p.describe(p.output(i)).c_str(), p.describe(input).c_str());
    parts[i] = sizes[i] * inner;
  }
  params->part_bytes = parts;
  params->input = kData;
  params->count = count;
  params->run_bytes = extent * inner;
  p.set_kernel(&split_kernel, input.shape.elements(0, axis));
  if (input.shape.elements(0, axis) == 1) {
    int64_t offset = 0;
    for (int i = 0; i < count; offset += parts[i++]) p.allow_part(kData, i, offset);
  }
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_SPLIT_H
