// BUCKETIZE: the number (int32) of sorted float boundaries that are not above each element; float, double, int32, int64.
// Integers are compared as floats; NaN lies above all boundaries.
#ifndef ONEWEIGHT_OPS_BUCKETIZE_H
#define ONEWEIGHT_OPS_BUCKETIZE_H

#include <algorithm>
#include <bit>
#include <type_traits>

#include "oneweight/ops/elementwise.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct Bucketize {
  struct Params {
    ElementRows elements;
    const float* boundaries = nullptr;
    int64_t count = 0;
  };
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 1 && t.out(0, TensorType::int32) &&
           (t.in(0, TensorType::float32) || t.in(0, TensorType::float64) || t.in(0, TensorType::int32) || t.in(0, TensorType::int64));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::bucketize, .types = "float, double, int32, int64", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
template <class T>
void bucketize_kernel(const KernelArgs& args) {
  const auto& p = args.params<Bucketize::Params>();
  using Compared = std::conditional_t<std::is_same_v<T, double>, double, float>;
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i) {
    const auto value = static_cast<Compared>(args.in<T>(0)[i]);
    int64_t first = 0, last = p.count;  // the first boundary above the value
    while (first < last) {
      const int64_t middle = (first + last) / 2;
      if (value < static_cast<Compared>(p.boundaries[middle]))
        last = middle;
      else
        first = middle + 1;
    }
    args.out<int32_t>(0)[i] = static_cast<int32_t>(first);
  }
}

ONEWEIGHT_INLINE Status Bucketize::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const Operand& input = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, input.shape));
  Params* params = p.make_params<Params>();
  if (!params) return p.no_memory();
  params->elements = ElementRows(input.shape);
  if (const std::vector<int64_t>* bits = p.options().vector(0)) {
    params->count = static_cast<int64_t>(bits->size());
    float* boundaries = p.derived<float>(params->count);
    if (!boundaries) return p.no_memory();
    for (size_t i = 0; i < bits->size(); ++i) {
      boundaries[i] = std::bit_cast<float>(static_cast<uint32_t>((*bits)[i]));
      if (!(boundaries[i] == boundaries[i]) || (i > 0 && boundaries[i] < boundaries[i - 1]))
        return p.invalid("its boundaries are not sorted: number %zu is %g", i, static_cast<double>(boundaries[i]));
    }
    params->boundaries = boundaries;
  }
  switch (input.type) {
    case TensorType::float32: p.set_kernel(&bucketize_kernel<float>, params->elements.rows); break;
    case TensorType::float64: p.set_kernel(&bucketize_kernel<double>, params->elements.rows); break;
    case TensorType::int32: p.set_kernel(&bucketize_kernel<int32_t>, params->elements.rows); break;
    default: p.set_kernel(&bucketize_kernel<int64_t>, params->elements.rows);
  }
  p.set_same_rows();
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_BUCKETIZE_H
