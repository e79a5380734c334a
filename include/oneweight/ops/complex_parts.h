// COMPLEX_ABS (hypot: neither overflows nor loses an infinity to NaN), REAL and IMAG. complex64 to float, complex128 to double.
// Rows as of the elementwise operators.
#ifndef ONEWEIGHT_OPS_COMPLEX_PARTS_H
#define ONEWEIGHT_OPS_COMPLEX_PARTS_H

#include <cmath>

#include "oneweight/ops/elementwise.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

enum class ComplexPart { magnitude, real, imaginary };

template <ComplexPart kPart>
struct PartOfComplex {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 1 && ((t.in(0, TensorType::complex64) && t.out(0, TensorType::float32)) ||
                                  (t.in(0, TensorType::complex128) && t.out(0, TensorType::float64)));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kPart == ComplexPart::magnitude ? BuiltinOperator::complex_abs
                                        : kPart == ComplexPart::real    ? BuiltinOperator::real
                                                                        : BuiltinOperator::imag,
                                .types = "complex64, complex128", .accepts = &accepts, .prepare = &prepare};
};
using ComplexAbs = PartOfComplex<ComplexPart::magnitude>;
using Real = PartOfComplex<ComplexPart::real>;
using Imag = PartOfComplex<ComplexPart::imaginary>;

#if ONEWEIGHT_HAS_KERNELS
template <ComplexPart kPart, class T>
void complex_part_kernel(const KernelArgs& args) {
  const auto& p = args.params<UnaryParams>();
  const T* in = args.in<T>(0);
  T* out = args.out<T>(0);
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i) {
    const T re = in[2 * i], im = in[2 * i + 1];
    if constexpr (kPart == ComplexPart::real) {
      out[i] = re;
    } else if constexpr (kPart == ComplexPart::imaginary) {
      out[i] = im;
    } else if constexpr (sizeof(T) == 4) {
      const double r = static_cast<double>(re), k = static_cast<double>(im), size = std::sqrt(r * r + k * k);
      out[i] = static_cast<float>(size == size ? size : std::hypot(r, k));
    } else {
      out[i] = std::hypot(re, im);
    }
  }
}

template <ComplexPart kPart>
Status PartOfComplex<kPart>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const Operand& in = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, in.shape));
  UnaryParams* params = p.make_params<UnaryParams>();
  if (!params) return p.no_memory();
  params->elements = ElementRows(in.shape);
  p.set_kernel(in.type == TensorType::complex64 ? &complex_part_kernel<kPart, float> : &complex_part_kernel<kPart, double>,
               params->elements.rows);
  p.set_same_rows();
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_COMPLEX_PARTS_H
