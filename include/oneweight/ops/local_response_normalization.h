// LOCAL_RESPONSE_NORMALIZATION on float: x / (bias + alpha * sum of squares)^beta over the 2 * radius + 1 neighbouring channels
// of the last axis; channels outside count nothing. Sums in float, from the first channel to the last.
// Scratch: the squares of one pixel's channels between radius zeros. Rows: pixels, by ElementRows.
#ifndef ONEWEIGHT_OPS_LOCAL_RESPONSE_NORMALIZATION_H
#define ONEWEIGHT_OPS_LOCAL_RESPONSE_NORMALIZATION_H

#include <algorithm>

#include "oneweight/ops/elementwise.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct LocalResponseNormalization {
  struct Params {
    ElementRows elements;
    int64_t depth = 0, radius = 0;
    float bias = 0, alpha = 0, beta = 0;
  };
  static bool accepts(const NodeTypes& t) { return t.input_count == 1 && t.in(0, TensorType::float32) && t.out(0, TensorType::float32); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::local_response_normalization, .types = "float", .accepts = &accepts, .prepare = &prepare};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_LOCAL_RESPONSE_NORMALIZATION_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_LOCAL_RESPONSE_NORMALIZATION_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_LOCAL_RESPONSE_NORMALIZATION_TARGET
#undef ONEWEIGHT_OPS_LOCAL_RESPONSE_NORMALIZATION_TARGET
#else
#define ONEWEIGHT_OPS_LOCAL_RESPONSE_NORMALIZATION_TARGET
#endif

#include "hwy/highway.h"
#include "oneweight/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// x^-beta; the usual exponents without a logarithm.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V inverse_power(D d, V x, float beta) {
  const V one = hn::Set(d, 1.0f);
  if (beta == 1.0f) return hn::Div(one, x);
  if (beta == 0.5f) return hn::Div(one, hn::Sqrt(x));
  if (beta == 0.75f) return hn::Div(one, hn::Mul(hn::Sqrt(x), hn::Sqrt(hn::Sqrt(x))));
  if (beta == 2.0f) return hn::Div(one, hn::Mul(x, x));
  if (beta == 0.0f) return one;
  return exp_float(d, hn::Mul(hn::Set(d, -beta), log_float(d, x)));
}

inline void local_response_normalization(const KernelArgs& args) {
  const auto& p = args.params<LocalResponseNormalization::Params>();
  const hn::ScalableTag<float> d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  auto* squares = reinterpret_cast<float*>(args.scratch);
  for (int64_t i = 0; i < p.radius; ++i) squares[i] = squares[p.radius + p.depth + i] = 0;
  const auto bias = hn::Set(d, p.bias), alpha = hn::Set(d, p.alpha);
  for (int64_t at = p.elements.begin(args.rows), end = p.elements.end(args.rows); at < end; at += p.depth) {
    const float* in = args.in<float>(0) + at;
    float* out = args.out<float>(0) + at;
    for (int64_t c = 0; c < p.depth; c += n) {
      const auto left = static_cast<size_t>(std::min(n, p.depth - c));
      const auto x = hn::LoadN(d, in + c, left);
      hn::StoreN(hn::Mul(x, x), d, squares + p.radius + c, left);
    }
    for (int64_t c = 0; c < p.depth; c += n) {
      const auto left = static_cast<size_t>(std::min(n, p.depth - c));
      auto sum = hn::Zero(d);
      if (static_cast<int64_t>(left) == n) {
        for (int64_t k = 0; k <= 2 * p.radius; ++k) sum = hn::Add(sum, hn::LoadU(d, squares + c + k));
      } else {
        for (int64_t k = 0; k <= 2 * p.radius; ++k) sum = hn::Add(sum, hn::LoadN(d, squares + c + k, left));
      }
      const auto by = inverse_power(d, hn::MulAdd(alpha, sum, bias), p.beta);
      hn::StoreN(hn::Mul(hn::LoadN(d, in + c, left), by), d, out + c, left);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

ONEWEIGHT_INLINE Status LocalResponseNormalization::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const Shape& shape = p.input(0).shape;
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(p.input(0), 2, kMaxRank));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  const int32_t radius = p.options().get<int32_t>(0, 0);
  if (radius < 0) return p.invalid("radius %d is negative", radius);
  Params* params = p.make_params<Params>();
  if (!params) return p.no_memory();
  params->elements = ElementRows(shape);
  params->depth = shape[shape.rank() - 1];
  params->radius = std::min<int64_t>(radius, params->depth);
  params->bias = p.options().get<float>(1, 0.0f);
  params->alpha = p.options().get<float>(2, 0.0f);
  params->beta = p.options().get<float>(3, 0.0f);
  p.set_scratch((params->depth + 2 * params->radius) * static_cast<int64_t>(sizeof(float)));
  p.set_kernel(ONEWEIGHT_KERNEL(p.target(), local_response_normalization), params->elements.rows);
  p.set_same_rows();
  p.allow_in_place(0);
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // per target
#endif  // ONEWEIGHT_HAS_KERNELS
