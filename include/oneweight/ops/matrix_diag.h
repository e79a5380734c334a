// MATRIX_DIAG: vectors on the diagonals of square matrices of zeros; MATRIX_SET_DIAG: input 0 with the diagonals of
// input 1.
#ifndef ONEWEIGHT_OPS_MATRIX_DIAG_H
#define ONEWEIGHT_OPS_MATRIX_DIAG_H

#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct MatrixDiagParams {
  int64_t rows = 0, columns = 0, diagonal = 0, element = 1;
};

struct MatrixDiag {
  static bool accepts(const NodeTypes& t) { return t.input_count == 1 && accepts_moved<0>(t); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::matrix_diag, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};
struct MatrixSetDiag {
  static bool accepts(const NodeTypes& t) { return t.input_count == 2 && accepts_moved<0>(t) && t.in(1, t.inputs[0]); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::matrix_set_diag,
                                .types = "all of whole bytes",
                                .accepts = &accepts,
                                .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
// kSet: the matrices are those of input 0 and the diagonals input 1, else zeros and input 0.
template <bool kSet>
void matrix_diag_kernel(const KernelArgs& args) {
  const auto& p = args.params<MatrixDiagParams>();
  const int64_t bytes = p.rows * p.columns * p.element;
  for (int64_t m = args.rows.begin; m < args.rows.end; ++m) {
    std::byte* to = args.out<std::byte>(0) + m * bytes;
    if (!kSet)
      std::memset(to, 0, static_cast<size_t>(bytes));
    else if (args.in<std::byte>(0) != args.out<std::byte>(0))
      std::memcpy(to, args.in<std::byte>(0) + m * bytes, static_cast<size_t>(bytes));
    const std::byte* diagonal = args.in<std::byte>(kSet ? 1 : 0) + m * p.diagonal * p.element;
    for (int64_t i = 0; i < p.diagonal; ++i)
      std::memcpy(to + i * (p.columns + 1) * p.element, diagonal + i * p.element, static_cast<size_t>(p.element));
  }
}

inline Status prepare_diag(Preparation& p, KernelFn kernel, const Shape& shape) {
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  MatrixDiagParams* params = p.make_params<MatrixDiagParams>();
  if (!params) return p.no_memory();
  const int rank = shape.rank();
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, p.input(0), &params->element));
  params->rows = shape[rank - 2], params->columns = shape[rank - 1];
  params->diagonal = std::min(params->rows, params->columns);
  p.set_kernel(kernel, shape.elements() > 0 ? shape.elements(0, rank - 2) : 0);
  return {};
}

ONEWEIGHT_INLINE Status MatrixDiag::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(p.input(0), 1, kMaxRank - 1));
  Shape shape = p.input(0).shape;
  shape.push_back(shape[shape.rank() - 1]);
  return prepare_diag(p, &matrix_diag_kernel<false>, shape);
}

ONEWEIGHT_INLINE Status MatrixSetDiag::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand &input = p.input(0), &diagonal = p.input(1);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(input, 2, kMaxRank));
  const int rank = input.shape.rank();
  bool fits = diagonal.shape.rank() == rank - 1 &&
              diagonal.shape[rank - 2] == std::min(input.shape[rank - 2], input.shape[rank - 1]);
  for (int i = 0; fits && i < rank - 2; ++i) fits = diagonal.shape[i] == input.shape[i];
  if (!fits) return p.invalid("%s is not the diagonal of %s", p.describe(diagonal).c_str(), p.describe(input).c_str());
  p.allow_in_place(0);
  return prepare_diag(p, &matrix_diag_kernel<true>, input.shape);
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_MATRIX_DIAG_H
