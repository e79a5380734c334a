// REVERSE_SEQUENCE: turns the first elements of each sequence round, as many as input 1 (int32 or int64, one number a
// batch) says; checked while running.
#ifndef ONEWEIGHT_OPS_REVERSE_SEQUENCE_H
#define ONEWEIGHT_OPS_REVERSE_SEQUENCE_H

#include "oneweight/ops/indices.h"
#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct ReverseSequenceParams {
  int64_t time = 0, time_weight = 1;  // extent, and rows between neighbours
  int64_t batch = 0, batch_weight = 1;
  int64_t row_bytes = 0;
  TensorType index_type = TensorType::int32;
};

struct ReverseSequence {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 2 && accepts_moved<0>(t) && (t.in(1, TensorType::int32) || t.in(1, TensorType::int64));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::reverse_sequence,
                                .types = "all of whole bytes",
                                .accepts = &accepts,
                                .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void reverse_sequence_kernel(const KernelArgs& args) {
  const auto& p = args.params<ReverseSequenceParams>();
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int64_t t = row / p.time_weight % p.time, b = row / p.batch_weight % p.batch;
    const int64_t length = load_index(args.in<std::byte>(1), p.index_type, b);
    if (length < 0 || length > p.time)
      return args.run->fail(ErrorCode::invalid_data, "length %lld of sequence %lld is outside [0, %lld]",
                            static_cast<long long>(length), static_cast<long long>(b), static_cast<long long>(p.time));
    const int64_t source = t < length ? row + (length - 1 - 2 * t) * p.time_weight : row;
    std::memcpy(args.out<std::byte>(0) + row * p.row_bytes, args.in<std::byte>(0) + source * p.row_bytes,
                static_cast<size_t>(p.row_bytes));
  }
}

ONEWEIGHT_INLINE Status ReverseSequence::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand &input = p.input(0), &lengths = p.input(1);
  const Shape& in = input.shape;
  int time = 0, batch = 0;
  ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(p.options().get<int32_t>(0, 0), in.rank(), &time));
  ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(p.options().get<int32_t>(1, 0), in.rank(), &batch));
  if (time == batch) return p.invalid("axis %d is both time and batch", time);
  if (lengths.shape.rank() != 1 || lengths.shape[0] != in[batch])
    return p.invalid("%s does not have one length for each of axis %d of %s", p.describe(lengths).c_str(), batch,
                     p.describe(input).c_str());
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, in));
  ReverseSequenceParams* params = p.make_params<ReverseSequenceParams>();
  if (!params) return p.no_memory();
  int64_t element = 0;
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &element));
  const int last = std::max(time, batch);
  params->time = in[time], params->time_weight = in.elements(time + 1, last + 1);
  params->batch = in[batch], params->batch_weight = in.elements(batch + 1, last + 1);
  params->row_bytes = in.elements(last + 1, in.rank()) * element;
  params->index_type = lengths.type;
  p.set_kernel(&reverse_sequence_kernel, in.elements() > 0 ? in.elements(0, last + 1) : 0);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_REVERSE_SEQUENCE_H
