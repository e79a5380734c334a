// STRIDED_SLICE: begin, end and stride per axis (constants), with TFLite's masks: begin and end (bit i: the whole axis
// on that side), ellipsis (the axes not named), new axis and shrink axis; with the option `offset`, ends count from
// their begins. Negative numbers count from the end, and both ends are clamped.
#ifndef ONEWEIGHT_OPS_STRIDED_SLICE_H
#define ONEWEIGHT_OPS_STRIDED_SLICE_H

#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct StridedSlice {
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::strided_slice,
                                .types = "all of whole bytes",
                                .accepts = &accepts_moved<0>,
                                .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
ONEWEIGHT_INLINE Status StridedSlice::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(4, 4));
  const Operand& input = p.input(0);
  const Shape& in = input.shape;
  std::vector<int64_t> begins, ends, steps;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &begins));
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(2, &ends));
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(3, &steps));
  if (begins.size() != ends.size() || begins.size() != steps.size() || begins.size() > 31)
    return p.invalid("has %zu begins, %zu ends and %zu strides", begins.size(), ends.size(), steps.size());
  const auto mask = [&](int field) { return static_cast<uint32_t>(p.options().get<int32_t>(field, 0)); };
  const uint32_t begin_mask = mask(0), end_mask = mask(1), new_mask = mask(3), shrink_mask = mask(4);
  const bool relative = p.options().get<bool>(5, false);
  uint32_t ellipsis_mask = mask(2);
  const int count = static_cast<int>(begins.size());
  ellipsis_mask &= (uint32_t{1} << count) - 1;
  if (ellipsis_mask & (ellipsis_mask - 1)) return p.invalid("has more than one ellipsis (mask %u)", ellipsis_mask);
  int named = 0;  // axes of the input that an entry speaks of
  for (int i = 0; i < count; ++i) {
    const uint32_t bit = uint32_t{1} << i;
    if (!(ellipsis_mask & bit) && !(new_mask & bit)) ++named;
  }
  if (named > in.rank()) return p.invalid("slices %d axes of %s", named, p.describe(input).c_str());

  int64_t element = 0, strides[kMaxRank];
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &element));
  dense_strides(in, element, strides);
  Shape shape;
  int64_t step_bytes[kMaxRank] = {}, offset = 0;
  int axis = 0, out = 0;
  const auto push = [&](int64_t extent, int64_t bytes) {
    if (out < kMaxRank) step_bytes[out] = bytes, shape.push_back(extent);
    ++out;
  };
  for (int i = 0; i < count; ++i) {
    const uint32_t bit = uint32_t{1} << i;
    if (ellipsis_mask & bit) {
      for (int left = in.rank() - named; left > 0; --left, ++axis) push(in[axis], strides[axis]);
      continue;
    }
    if (new_mask & bit) {
      push(1, 0);
      continue;
    }
    const int64_t extent = in[axis], step = steps[i];
    if (step == 0) return p.invalid("stride 0 along axis %d", axis);
    const int64_t least = step > 0 ? 0 : -1, most = step > 0 ? extent : extent - 1;
    const auto clamped = [&](int64_t at) { return std::clamp(at, least, std::max(most, least)); };
    if (shrink_mask & bit) {
      const int64_t at = (begin_mask & bit) ? (step > 0 ? 0 : extent - 1)
                         : begins[i] < 0    ? begins[i] + extent
                                            : begins[i];
      if (at < 0 || at >= extent)
        return p.invalid("index %lld along axis %d lies outside %s", static_cast<long long>(begins[i]), axis,
                         p.describe(input).c_str());
      offset += at * strides[axis++];
      continue;
    }
    const int64_t begin =
        (begin_mask & bit) ? (step > 0 ? 0 : extent - 1) : clamped(begins[i] < 0 ? begins[i] + extent : begins[i]);
    int64_t end = 0;
    if (end_mask & bit) {
      end = step > 0 ? extent : -1;
    } else if (relative) {
      end = clamped(begin + ends[i]);
    } else {
      end = clamped(ends[i] < 0 ? ends[i] + extent : ends[i]);
    }
    const int64_t length = step > 0 ? end - begin : begin - end, stride = step > 0            ? step
                                                                          : step == INT64_MIN ? INT64_MAX
                                                                                              : -step;
    const int64_t size = length <= 0 ? 0 : (length - 1) / stride + 1;
    if (size > 0) offset += begin * strides[axis];
    push(size, size > 1 ? step * strides[axis] : 0);
    ++axis;
  }
  for (; axis < in.rank(); ++axis) push(in[axis], strides[axis]);
  if (out > kMaxRank) return p.invalid("makes %d axes, more than %d", out, kMaxRank);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  int64_t to[kMaxRank];
  dense_strides(shape, element, to);
  StridedCopy copy;
  copy.from_offset = offset;
  for (int i = 0; i < shape.rank(); ++i) copy.add_axis(shape[i], step_bytes[i], to[i]);
  copy.finish(element);
  if (copy.rank == 0) p.allow_part(0, 0, offset);  // one run of bytes
  return set_strided_copy(p, copy);
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_STRIDED_SLICE_H
