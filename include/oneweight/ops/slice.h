// SLICE: the block of input 0 that starts at input 1 and has the extents of input 2 (-1 = up to the end). The sizes are
// constant; the start may be computed while running and is checked there. With computed sizes, or a computed start and a
// size of -1, the output has no shape before the run: CONCATENATION can look through that.
#ifndef ONEWEIGHT_OPS_SLICE_H
#define ONEWEIGHT_OPS_SLICE_H

#include <algorithm>

#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct Slice {
  static Status prepare(Preparation& p);
  static Status unsized(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::slice, .types = "all of whole bytes", .accepts = &accepts_moved<0>, .prepare = &prepare};
};

struct MovingSliceParams {
  StridedCopy copy;
  int rank = 0;
  bool wide = false;  // the start is int64, not int32
  int64_t strides[kMaxRank] = {};
  int64_t room[kMaxRank] = {};  // largest valid start
};

#if ONEWEIGHT_HAS_KERNELS
inline void moving_slice_kernel(const KernelArgs& args) {
  const auto& p = args.params<MovingSliceParams>();
  const std::byte* from = args.in<std::byte>(0);
  for (int i = 0; i < p.rank; ++i) {
    const int64_t start = p.wide ? Preparation::load<int64_t>(args.in<std::byte>(1), i)
                                 : Preparation::load<int32_t>(args.in<std::byte>(1), i);
    if (start < 0 || start > p.room[i])
      return args.run->fail(ErrorCode::invalid_data, "start %lld along axis %d is outside [0, %lld]",
                            static_cast<long long>(start), i, static_cast<long long>(p.room[i]));
    from += start * p.strides[i];
  }
  copy_strided(p.copy, from, args.out<std::byte>(0), args.rows);
}

ONEWEIGHT_INLINE Status Slice::unsized(Preparation& p) {
  for (int i = 1; i < 3; ++i) {
    const Operand& t = p.input(i);
    if (t.type != TensorType::int32 && t.type != TensorType::int64) return p.invalid("%s is neither int32 nor int64", p.describe(t).c_str());
    if (t.shape.elements() != p.input(0).shape.rank())
      return p.invalid("%s does not fit %s", p.describe(t).c_str(), p.describe(p.input(0)).c_str());
  }
  p.set_unsized_output();
  return {};
}

ONEWEIGHT_INLINE Status Slice::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(3, 3));
  const Operand &input = p.input(0), &begin = p.input(1);
  const Shape& in = input.shape;
  std::vector<int64_t> starts, sizes;
  const bool moving = !begin.is_constant;
  if (!p.input(2).is_constant) return unsized(p);
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(2, &sizes));
  if (moving && std::find(sizes.begin(), sizes.end(), -1) != sizes.end()) return unsized(p);
  if (!moving) ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &starts));
  if (moving && begin.type != TensorType::int32 && begin.type != TensorType::int64)
    return p.invalid("%s is neither int32 nor int64", p.describe(begin).c_str());
  const auto rank = static_cast<size_t>(in.rank());
  if ((moving ? begin.shape.elements() : static_cast<int64_t>(starts.size())) != in.rank() || sizes.size() != rank)
    return p.invalid("%s has rank %d, but its slice has %lld starts and %zu sizes", p.describe(input).c_str(),
                     in.rank(), static_cast<long long>(begin.shape.elements()), sizes.size());
  int64_t element = 0, from[kMaxRank], to[kMaxRank], offset = 0;
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &element));
  dense_strides(in, element, from);
  Shape shape;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t start = moving ? 0 : starts[i];
    const bool starts_inside = start >= 0 && start <= in[i];
    const int64_t size = sizes[i] != -1 ? sizes[i] : starts_inside ? in[i] - start : 0;
    if (!starts_inside || size < 0 || size > in[i] - start)
      return p.invalid("start %lld and size %lld along axis %d lie outside %s", static_cast<long long>(start),
                       static_cast<long long>(sizes[i]), i, p.describe(input).c_str());
    shape.push_back(size);
    offset += start * from[i];
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  dense_strides(shape, element, to);
  StridedCopy copy;
  copy.from_offset = offset;
  for (int i = 0; i < in.rank(); ++i) copy.add_axis(shape[i], from[i], to[i]);
  copy.finish(element);
  if (!moving && copy.rank == 0) p.allow_part(0, 0, offset);  // one run of bytes
  if (!moving) return set_strided_copy(p, copy);
  MovingSliceParams* params = p.make_params<MovingSliceParams>();
  if (!params) return p.no_memory();
  params->copy = copy;
  params->rank = in.rank();
  params->wide = begin.type == TensorType::int64;
  for (int i = 0; i < in.rank(); ++i) params->strides[i] = from[i], params->room[i] = in[i] - shape[i];
  p.set_kernel(&moving_slice_kernel, copy.rows());
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_SLICE_H
