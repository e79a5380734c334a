// EMBEDDING_LOOKUP: rows of the table of input 1 chosen by the ids of input 0 (int32, checked while running). Tables of
// half, int8, uint8, int4 and uint4 give float where the output is float, with one scale for all or one for each row.
#ifndef ONEWEIGHT_OPS_EMBEDDING_LOOKUP_H
#define ONEWEIGHT_OPS_EMBEDDING_LOOKUP_H

#include "oneweight/ops/indices.h"
#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct EmbeddingLookupParams {
  int64_t entries = 0, width = 0, row_bytes = 0;
  TensorType type = TensorType::float32;
  const float* scales = nullptr;  // one, or one an entry
  const int32_t* zero_points = nullptr;
  bool per_entry = false;
};

template <uint32_t kStored>
struct EmbeddingLookupBy {
  static bool accepts(const NodeTypes& t) {
    if (t.input_count != 2 || !t.in(0, TensorType::int32) || !t.has_input[1]) return false;
    if (kStored) return t.in(1, TensorType::float16) && t.constant[1] && t.out(0, TensorType::float32);
    if (accepts_moved<1>(t)) return true;
    return t.out(0, TensorType::float32) &&
           (t.in(1, TensorType::float16) || t.in(1, TensorType::int8) || t.in(1, TensorType::uint8) ||
            t.in(1, TensorType::int4) || t.in(1, TensorType::uint4));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::embedding_lookup,
                                .types = "all of whole bytes; half, 8 and 4 bits -> float",
                                .accepts = &accepts,
                                .prepare = &prepare,
                                .stored_inputs = kStored};
};
using EmbeddingLookup = EmbeddingLookupBy<0>;
using EmbeddingLookupStored = EmbeddingLookupBy<2>;

#if ONEWEIGHT_HAS_KERNELS
namespace embedding {
inline float stored_value(const std::byte* table, TensorType type, int64_t i) {
  switch (type) {
    case TensorType::float16: return half_to_float(Preparation::load<half>(table, i));
    case TensorType::int8: return Preparation::load<int8_t>(table, i);
    case TensorType::uint8: return Preparation::load<uint8_t>(table, i);
    case TensorType::int4: return static_cast<float>((load_nibble(table, i) ^ 8) - 8);
    default: return load_nibble(table, i);
  }
}

template <bool kWiden>
void kernel(const KernelArgs& args) {
  const auto& p = args.params<EmbeddingLookupParams>();
  const std::byte* table = args.in<std::byte>(1);
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int64_t id = args.in<int32_t>(0)[row];
    if (id < 0 || id >= p.entries)
      return args.run->fail(ErrorCode::invalid_data, "id %lld (number %lld) is outside the table of %lld entries",
                            static_cast<long long>(id), static_cast<long long>(row), static_cast<long long>(p.entries));
    if constexpr (kWiden) {
      const int64_t q = p.per_entry ? id : 0;
      const float scale = p.scales[q];
      const auto zero = static_cast<float>(p.zero_points[q]);
      for (int64_t i = 0; i < p.width; ++i)
        args.out<float>(0)[row * p.width + i] = (stored_value(table, p.type, id * p.width + i) - zero) * scale;
    } else {
      std::memcpy(args.out<std::byte>(0) + row * p.row_bytes, table + id * p.row_bytes,
                  static_cast<size_t>(p.row_bytes));
    }
  }
}
}  // namespace embedding

template <uint32_t kStored>
Status EmbeddingLookupBy<kStored>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand &ids = p.input(0), &table = p.input(1);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(ids, 1, 1));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(table, 1, kMaxRank));
  Shape shape = table.shape;
  shape[0] = ids.shape[0];
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  EmbeddingLookupParams* params = p.make_params<EmbeddingLookupParams>();
  if (!params) return p.no_memory();
  params->entries = table.shape[0];
  params->width = table.shape.elements(1, table.shape.rank());
  params->row_bytes = params->width * tensor_type_bits(table.type) / 8;
  params->type = table.type;
  if (table.type == p.output(0).type) {
    p.set_kernel(&embedding::kernel<false>, shape[0]);
    return {};
  }
  const Quantization& q = *table.quantization;
  const auto count = static_cast<int64_t>(q.scales.size());
  if (table.type != TensorType::float16 && count != 1 && (count != params->entries || q.axis != 0))
    return p.invalid("%s has %lld scales along axis %d, not one or one for each entry", p.describe(table).c_str(),
                     static_cast<long long>(count), q.axis);
  const bool scaled = table.type != TensorType::float16;
  float* scales = p.derived<float>(scaled ? count : 1);
  int32_t* zeros = p.derived<int32_t>(scaled ? count : 1);
  if (!scales || !zeros) return p.no_memory();
  scales[0] = 1;
  for (int64_t i = 0; scaled && i < count; ++i) {
    scales[i] = q.scales[static_cast<size_t>(i)];
    zeros[i] = static_cast<int32_t>(q.zero_points[static_cast<size_t>(i)]);
  }
  params->scales = scales, params->zero_points = zeros, params->per_entry = scaled && count > 1;
  p.set_kernel(&embedding::kernel<true>, shape[0]);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_EMBEDDING_LOOKUP_H
