// GATHER: slices of input 0 along an axis, chosen by input 1 (int32, int64 or int16; checked while running), with
// leading batch axes in common. Also tables of 4-bit numbers; stored half tables are read where they lie and widened to
// float.
#ifndef ONEWEIGHT_OPS_GATHER_H
#define ONEWEIGHT_OPS_GATHER_H

#include "oneweight/ops/indices.h"
#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct GatherParams {
  int64_t batches = 1, outer = 1, extent = 0, indices = 0;  // indices of a batch
  int64_t slice_bits = 0;
  TensorType index_type = TensorType::int32;
};

// A half constant behind a DEQUANTIZE.
struct GatherStored {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 2 && t.in(0, TensorType::float16) && t.constant[0] && t.out(0, TensorType::float32) &&
           is_index_type(t, 1);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::gather,
                                .types = "half constants -> float",
                                .accepts = &accepts,
                                .prepare = &prepare,
                                .stored_inputs = 1};
};

struct Gather {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 2 && t.has_input[0] && t.out(0, t.inputs[0]) && tensor_type_bits(t.inputs[0]) >= 4 &&
           is_index_type(t, 1);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::gather, .types = "all of at least 4 bits", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
// Calls copy(source slice, output slice) for each slice of args.rows.
template <class Copy>
void for_each_gathered(const KernelArgs& args, Copy copy) {
  const auto& p = args.params<GatherParams>();
  const std::byte* indices = args.in<std::byte>(1);
  int64_t slice = args.rows.begin * p.indices;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int64_t batch = row / p.outer;
    for (int64_t i = 0; i < p.indices; ++i, ++slice) {
      const int64_t index = load_index(indices, p.index_type, batch * p.indices + i);
      if (index < 0 || index >= p.extent)
        return args.run->fail(ErrorCode::invalid_data,
                              "index %lld (number %lld) is outside the %lld entries of its axis",
                              static_cast<long long>(index), static_cast<long long>(batch * p.indices + i),
                              static_cast<long long>(p.extent));
      copy(row * p.extent + index, slice);
    }
  }
}
inline void gather_kernel(const KernelArgs& args) {
  const int64_t bytes = args.params<GatherParams>().slice_bits / 8;
  for_each_gathered(args, [&](int64_t from, int64_t to) {
    std::memcpy(args.out<std::byte>(0) + to * bytes, args.in<std::byte>(0) + from * bytes, static_cast<size_t>(bytes));
  });
}
inline void gather_half_kernel(const KernelArgs& args) {
  const int64_t count = args.params<GatherParams>().slice_bits / 16;
  for_each_gathered(args, [&](int64_t from, int64_t to) {
    for (int64_t i = 0; i < count; ++i)
      args.out<float>(0)[to * count + i] =
          half_to_float(Preparation::load<half>(args.in<std::byte>(0), from * count + i));
  });
}
inline void gather_nibbles_kernel(const KernelArgs& args) {
  const int64_t count = args.params<GatherParams>().slice_bits / 4;
  for_each_gathered(args, [&](int64_t from, int64_t to) {
    copy_nibbles(args.in<std::byte>(0), from * count, args.out<std::byte>(0), to * count, count);
  });
}

inline Status prepare_gather(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand &table = p.input(0), &indices = p.input(1);
  const Shape &in = table.shape, &at = indices.shape;
  int axis = 0, batch = 0;
  ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(p.options().get<int32_t>(0, 0), in.rank(), &axis));
  const int32_t wanted = p.options().get<int32_t>(1, 0);
  batch = wanted < 0 ? wanted + at.rank() : wanted;
  if (batch < 0 || batch > axis || batch > at.rank())
    return p.invalid("batch_dims %d does not fit axis %d and %s", wanted, axis, p.describe(indices).c_str());
  for (int i = 0; i < batch; ++i)
    if (in[i] != at[i])
      return p.invalid("%s and %s differ in batch axis %d", p.describe(table).c_str(), p.describe(indices).c_str(), i);
  if (in.rank() - 1 + at.rank() - batch > kMaxRank) return p.invalid("makes more than %d axes", kMaxRank);
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.push_back(in[i]);
  for (int i = batch; i < at.rank(); ++i) shape.push_back(at[i]);
  for (int i = axis + 1; i < in.rank(); ++i) shape.push_back(in[i]);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  GatherParams* params = p.make_params<GatherParams>();
  if (!params) return p.no_memory();
  params->batches = in.elements(0, batch);
  params->outer = in.elements(batch, axis);
  params->extent = in[axis];
  params->indices = at.elements(batch, at.rank());
  params->slice_bits = in.elements(axis + 1, in.rank()) * tensor_type_bits(table.type);
  params->index_type = indices.type;
  // Halves of a byte are written one after the other: in one task.
  const int64_t rows = params->batches * params->outer;
  if (params->slice_bits % 8 != 0) {
    params->outer = rows, params->batches = 1;
    if (batch > 0)
      return p.error(ErrorCode::unsupported, "batch axes of %s are not supported", p.describe(table).c_str());
    p.set_kernel([](const KernelArgs& args) {
      KernelArgs all = args;
      all.rows = {0, args.params<GatherParams>().outer};
      gather_nibbles_kernel(all);
    });
  } else {
    p.set_kernel(table.type == p.output(0).type ? &gather_kernel : &gather_half_kernel, rows);
  }
  return {};
}
ONEWEIGHT_INLINE Status Gather::prepare(Preparation& p) { return prepare_gather(p); }
ONEWEIGHT_INLINE Status GatherStored::prepare(Preparation& p) { return prepare_gather(p); }
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_GATHER_H
