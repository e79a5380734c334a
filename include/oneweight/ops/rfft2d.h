// RFFT2D: the transform of real numbers over the last two axes, in double; complex64. Input 1 (constant): the lengths, powers of
// two, to which the axes are cut or filled with zeros; of the last axis length / 2 + 1 numbers are kept.
// Scratch: four arrays of doubles of one transform. Derived: 8 bytes times the larger length. Rows: transforms.
#ifndef ONEWEIGHT_OPS_RFFT2D_H
#define ONEWEIGHT_OPS_RFFT2D_H

#include "oneweight/ops/op.h"
#include "oneweight/simd/fft.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct Rfft2dParams {
  int64_t in_h = 1, in_w = 1;        // of an input plane
  int64_t height = 1, width = 1;     // of the transform
  TwiddleTable twiddles;
  int64_t columns() const { return width / 2 + 1; }
};

struct Rfft2d {
  static bool accepts(const NodeTypes& t) { return t.input_count == 2 && t.in(0, TensorType::float32) && t.out(0, TensorType::complex64); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::rfft2d, .types = "float", .accepts = &accepts, .prepare = &prepare};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_RFFT2D_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_RFFT2D_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_RFFT2D_KERNELS
#undef ONEWEIGHT_OPS_RFFT2D_KERNELS
#else
#define ONEWEIGHT_OPS_RFFT2D_KERNELS
#endif

#include <algorithm>
#include <cstring>

#include "oneweight/simd/fft-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

inline void rfft2d_kernel(const KernelArgs& args) {
  const Rfft2dParams& p = args.params<Rfft2dParams>();
  const int64_t columns = p.columns(), size = p.height * columns;
  double* const memory = reinterpret_cast<double*>(args.scratch);
  const ComplexArrays x{memory, memory + size}, y{memory + 2 * size, memory + 3 * size};
  const int64_t rows = std::min(p.in_h, p.height), used = std::min(p.in_w, p.width);
  for (int64_t plane = args.rows.begin; plane < args.rows.end; ++plane) {
    const float* in = args.in<float>(0) + plane * p.in_h * p.in_w;
    // The rows into x, by way of y.
    for (int64_t r = 0; r < p.height; ++r) {
      const ComplexArrays to{x.re + r * columns, x.im + r * columns};
      if (r >= rows) {
        std::memset(to.re, 0, static_cast<size_t>(columns) * sizeof(double));
        std::memset(to.im, 0, static_cast<size_t>(columns) * sizeof(double));
        continue;
      }
      const float* from = in + r * p.in_w;
      if (p.width == 1) {
        to.re[0] = used > 0 ? static_cast<double>(from[0]) : 0, to.im[0] = 0;
        continue;
      }
      double* const work = y.re;  // 2 * columns at least: width / 2 of each of four
      const int64_t m = p.width / 2;
      const ComplexArrays a{work, work + m}, b{to.re, to.im};
      int64_t k = 0;
      for (; 2 * k + 1 < used; ++k) a.re[k] = static_cast<double>(from[2 * k]), a.im[k] = static_cast<double>(from[2 * k + 1]);
      if (2 * k < used) a.re[k] = static_cast<double>(from[2 * k]), a.im[k] = 0, ++k;
      for (; k < m; ++k) a.re[k] = a.im[k] = 0;
      real_fft(a, b, p.width, p.twiddles, {work + 2 * m, work + 2 * m + columns});
      std::memcpy(to.re, work + 2 * m, static_cast<size_t>(columns) * sizeof(double));
      std::memcpy(to.im, work + 2 * m + columns, static_cast<size_t>(columns) * sizeof(double));
    }
    const ComplexArrays z = fft(x, y, p.height, columns, p.twiddles);
    float* out = args.out<float>(0) + plane * size * 2;
    for (int64_t i = 0; i < size; ++i) out[2 * i] = static_cast<float>(z.re[i]), out[2 * i + 1] = static_cast<float>(z.im[i]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

ONEWEIGHT_INLINE Status Rfft2d::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand& in = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(in, 2, kMaxRank));
  std::vector<int64_t> lengths;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &lengths));
  if (lengths.size() != 2) return p.invalid("has %zu transform lengths, not 2", lengths.size());
  for (int64_t n : lengths)
    if (!is_power_of_two(n) || n > (1 << 22)) return p.error(ErrorCode::unsupported, "its transform length %lld is not a power of two up to 2^22", static_cast<long long>(n));
  Rfft2dParams* params = p.make_params<Rfft2dParams>();
  if (!params) return p.no_memory();
  const int rank = in.shape.rank();
  params->in_h = in.shape[rank - 2], params->in_w = in.shape[rank - 1];
  params->height = lengths[0], params->width = lengths[1];
  Shape shape = in.shape;
  shape[rank - 2] = params->height, shape[rank - 1] = params->columns();
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  const int64_t longest = std::max(params->height, params->width);
  double* factors = p.derived<double>(twiddle_count(longest));
  if (!factors) return p.no_memory();
  fill_twiddles(longest, factors);
  params->twiddles = {factors, longest};
  // One row more than the arrays: room for the work on the last ones.
  p.set_scratch((4 * params->height * params->columns() + 4 * params->columns()) * static_cast<int64_t>(sizeof(double)));
  p.set_kernel(ONEWEIGHT_KERNEL(p.target(), rfft2d_kernel), shape.elements(0, rank - 2));
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
