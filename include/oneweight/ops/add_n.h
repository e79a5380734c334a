// ADD_N (the sum of any number of tensors of one shape, in their order) and ZEROS_LIKE. Float, int32 (wrapping); zeros
// also int64 and every other type of whole bytes.
#ifndef ONEWEIGHT_OPS_ADD_N_H
#define ONEWEIGHT_OPS_ADD_N_H

#include "oneweight/ops/elementwise.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct AddNParams {
  ElementRows elements;
  int32_t count = 0;
};

struct AddN {
  static bool accepts(const NodeTypes& t) {
    return t.input_count >= 1 && t.out(0, t.inputs[0]) && (t.inputs[0] == TensorType::float32 || t.inputs[0] == TensorType::int32);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::add_n, .types = "float, int32", .accepts = &accepts, .prepare = &prepare};
};

struct ZerosLike {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 1 && t.out(0, t.inputs[0]) && tensor_type_bits(t.inputs[0]) >= 8;
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::zeros_like, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
// T: float, or uint32_t, whose sums wrap.
template <class T>
void add_n_kernel(const KernelArgs& args) {
  const auto& p = args.params<AddNParams>();
  T* out = args.out<T>(0);
  const int64_t begin = p.elements.begin(args.rows), end = p.elements.end(args.rows);
  constexpr int64_t kBlock = 256;  // stays in the first-level cache; the output may be the memory of any one input
  T sums[kBlock];
  for (int64_t first = begin; first < end; first += kBlock) {
    const int64_t n = std::min(kBlock, end - first);
    std::memcpy(sums, args.in<T>(0) + first, static_cast<size_t>(n) * sizeof(T));
    for (int32_t k = 1; k < p.count; ++k) {
      const T* in = args.in<T>(k) + first;
      for (int64_t i = 0; i < n; ++i) sums[i] += in[i];
    }
    std::memcpy(out + first, sums, static_cast<size_t>(n) * sizeof(T));
  }
}

ONEWEIGHT_INLINE Status AddN::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1 << 20));
  for (int i = 0; i < p.input_count(); ++i) {
    if (!p.has_input(i)) return p.invalid("input %d is left out", i);
    if (p.input(i).type != p.input(0).type || !(p.input(i).shape == p.input(0).shape))
      return p.invalid("%s and %s differ in type or shape", p.describe(p.input(0)).c_str(), p.describe(p.input(i)).c_str());
    p.allow_in_place(i);
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, p.input(0).shape));
  AddNParams* params = p.make_params<AddNParams>();
  if (!params) return p.no_memory();
  params->elements = ElementRows(p.input(0).shape);
  params->count = p.input_count();
  p.set_kernel(p.input(0).type == TensorType::float32 ? &add_n_kernel<float> : &add_n_kernel<uint32_t>, params->elements.rows);
  p.set_same_rows();
  return {};
}

inline void zeros_kernel(const KernelArgs& args) {
  const auto bytes = static_cast<size_t>(args.params<int64_t>());
  if (bytes > 0) std::memset(args.out<std::byte>(0), 0, bytes);
}

ONEWEIGHT_INLINE Status ZerosLike::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, p.input(0).shape));
  int64_t* bytes = p.make_params<int64_t>();
  if (!bytes) return p.no_memory();
  *bytes = p.output(0).shape.bytes(p.output(0).type);
  p.set_kernel(&zeros_kernel);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_ADD_N_H
