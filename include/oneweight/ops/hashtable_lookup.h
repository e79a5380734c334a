// HASHTABLE_LOOKUP: the values (input 2) of the int32 keys in input 0; input 1 holds the sorted keys of the table. Values of
// all types of whole bytes. Output 1 (uint8) tells which keys were found; the others give zeros.
#ifndef ONEWEIGHT_OPS_HASHTABLE_LOOKUP_H
#define ONEWEIGHT_OPS_HASHTABLE_LOOKUP_H

#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct HashtableLookup {
  struct Params {
    int64_t keys = 0, bytes = 0;  // of the table; of a value
  };
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 3 && t.in(0, TensorType::int32) && t.in(1, TensorType::int32) && accepts_moved<2>(t) &&
           t.out(1, TensorType::uint8);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::hashtable_lookup, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void hashtable_lookup_kernel(const KernelArgs& args) {
  const auto& p = args.params<HashtableLookup::Params>();
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int32_t key = Preparation::load<int32_t>(args.in<std::byte>(0), row);
    int64_t first = 0, last = p.keys;
    while (first < last) {
      const int64_t middle = (first + last) / 2;
      if (Preparation::load<int32_t>(args.in<std::byte>(1), middle) < key)
        first = middle + 1;
      else
        last = middle;
    }
    const bool hit = first < p.keys && Preparation::load<int32_t>(args.in<std::byte>(1), first) == key;
    args.out<uint8_t>(1)[row] = hit;
    if (p.bytes == 0) continue;
    std::byte* to = args.out<std::byte>(0) + row * p.bytes;
    if (hit)
      std::memcpy(to, args.in<std::byte>(2) + first * p.bytes, static_cast<size_t>(p.bytes));
    else
      std::memset(to, 0, static_cast<size_t>(p.bytes));
  }
}

ONEWEIGHT_INLINE Status HashtableLookup::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(3, 3, 2));
  const Operand &wanted = p.input(0), &keys = p.input(1), &values = p.input(2);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(wanted, 1, 1));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(keys, 1, 1));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(values, 1, kMaxRank));
  if (keys.shape[0] != values.shape[0])
    return p.invalid("%s and %s differ in their first axis", p.describe(keys).c_str(), p.describe(values).c_str());
  Shape shape = values.shape;
  shape[0] = wanted.shape[0];
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(1, wanted.shape));
  Params* params = p.make_params<Params>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, values, &params->bytes));
  params->bytes *= values.shape.elements(1, values.shape.rank());
  params->keys = keys.shape[0];
  p.set_kernel(&hashtable_lookup_kernel, shape[0]);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_HASHTABLE_LOOKUP_H
