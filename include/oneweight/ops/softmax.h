// SOFTMAX (exp(beta (x - max)) over its sum) and LOG_SOFTMAX along the last axis. Float; int8 and uint8 (to int8, uint8 or, for
// SOFTMAX, int16) and int16, computed in float from the stored values (SOFTMAX of bytes: from a table of exponentials) and rounded
// halves away from zero: within one step of TFLite's tables. The maximum is subtracted, so nothing overflows; a NaN makes its whole row NaN.
#ifndef ONEWEIGHT_OPS_SOFTMAX_H
#define ONEWEIGHT_OPS_SOFTMAX_H

#include "oneweight/ops/elementwise.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct SoftmaxParams {
  int64_t depth = 0;                 // extent of the last axis
  float beta = 1;
  float in_scale = 1;                // quantised: of the input
  double out_scale = 1;
  int32_t out_zero_point = 0;
  const float* exponentials = nullptr;  // of SOFTMAX of bytes: exp(-beta in_scale d) for d < 256 steps below the maximum
};

template <bool kLog>
struct SoftmaxBy {
  static bool accepts(const NodeTypes& t) {
    if (t.input_count != 1 || t.output_count != 1) return false;
    if (t.inputs[0] == t.outputs[0])
      return t.inputs[0] == TensorType::float32 || t.inputs[0] == TensorType::int8 || t.inputs[0] == TensorType::uint8 || (!kLog && t.inputs[0] == TensorType::int16);
    return !kLog && t.inputs[0] == TensorType::int8 && t.outputs[0] == TensorType::int16;
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kLog ? BuiltinOperator::log_softmax : BuiltinOperator::softmax, .types = "float, int8, uint8, int16", .accepts = &accepts, .prepare = &prepare};
};
using Softmax = SoftmaxBy<false>;
using LogSoftmax = SoftmaxBy<true>;

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_SOFTMAX_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_SOFTMAX_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_SOFTMAX_TARGET
#undef ONEWEIGHT_OPS_SOFTMAX_TARGET
#else
#define ONEWEIGHT_OPS_SOFTMAX_TARGET
#endif

#include <cmath>

#include "oneweight/simd/elementwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One row of `depth` floats; in == out is allowed.
template <bool kLog>
HWY_INLINE void softmax_row(const float* in, float* out, size_t depth, float beta) {
  const hn::ScalableTag<float> d;
  const size_t n = hn::Lanes(d);
  float largest = in[0];
  bool nan = false;
  {
    auto most = hn::Set(d, in[0]);
    size_t i = 0;
    for (; i + n <= depth; i += n) most = hn::Max(most, hn::LoadU(d, in + i));
    largest = hn::ReduceMax(d, most);
    for (; i < depth; ++i) largest = in[i] > largest ? in[i] : largest;
    for (size_t k = 0; k < depth; ++k) nan |= in[k] != in[k];
  }
  if (nan) {
    for (size_t i = 0; i < depth; ++i) out[i] = std::numeric_limits<float>::quiet_NaN();
    return;
  }
  const auto vmax = hn::Set(d, largest), vbeta = hn::Set(d, beta);
  auto sums = hn::Zero(d);
  size_t i = 0;
  for (; i < depth; i += n) {
    const size_t left = depth - i < n ? depth - i : n;
    const auto x = hn::Mul(hn::Sub(hn::LoadN(d, in + i, left), vmax), vbeta);
    const auto e = hn::IfThenElseZero(hn::FirstN(d, left), exp_float(d, x));
    sums = hn::Add(sums, e);
    hn::StoreN(kLog ? x : e, d, out + i, left);
  }
  const float sum = hn::ReduceSum(d, sums);
  if constexpr (kLog) {
    const float log_sum = std::log(sum);
    map_floats(out, out, depth, [log_sum](auto dd, auto x) HWY_ATTR { return hn::Sub(x, hn::Set(dd, log_sum)); });
  } else {
    const float scale = 1.0f / sum;
    map_floats(out, out, depth, [scale](auto dd, auto x) HWY_ATTR { return hn::Mul(x, hn::Set(dd, scale)); });
  }
}

template <bool kLog>
void softmax_float_kernel(const KernelArgs& args) {
  const auto& p = args.params<SoftmaxParams>();
  for (int64_t r = args.rows.begin; r < args.rows.end; ++r)
    softmax_row<kLog>(args.in<float>(0) + r * p.depth, args.out<float>(0) + r * p.depth, static_cast<size_t>(p.depth), p.beta);
}

template <bool kLog, class In, class Out>
void softmax_quantized_kernel(const KernelArgs& args) {
  const auto& p = args.params<SoftmaxParams>();
  auto* row = reinterpret_cast<float*>(args.scratch);
  for (int64_t r = args.rows.begin; r < args.rows.end; ++r) {
    const In* in = args.in<In>(0) + r * p.depth;
    Out* out = args.out<Out>(0) + r * p.depth;
    for (int64_t i = 0; i < p.depth; ++i) row[i] = p.in_scale * static_cast<float>(in[i]);
    softmax_row<kLog>(row, row, static_cast<size_t>(p.depth), p.beta);
    for (int64_t i = 0; i < p.depth; ++i) {
      const double q = std::round(static_cast<double>(row[i]) / p.out_scale) + p.out_zero_point;
      constexpr double low = std::numeric_limits<Out>::min(), high = std::numeric_limits<Out>::max();
      out[i] = static_cast<Out>(q < low ? low : q > high ? high : q);
    }
  }
}

// SOFTMAX of bytes.
template <class In>
HWY_INLINE int32_t largest_byte(const In* in, int64_t depth) {
  const hn::ScalableTag<In> d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  In largest = in[0];
  if (depth >= n) {
    auto most = hn::LoadU(d, in);
    for (i = n; i + n <= depth; i += n) most = hn::Max(most, hn::LoadU(d, in + i));
    HWY_ALIGN In lanes[HWY_MAX_BYTES];
    hn::Store(most, d, lanes);
    for (int64_t k = 0; k < n; ++k) largest = std::max(largest, lanes[k]);
  }
  for (; i < depth; ++i) largest = std::max(largest, in[i]);
  return largest;
}
template <class In, class Out>
void softmax_bytes_kernel(const KernelArgs& args) {
  const SoftmaxParams p = args.params<SoftmaxParams>();
  const float* const table = p.exponentials;
  auto* const row = reinterpret_cast<float*>(args.scratch);
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const hn::Rebind<In, decltype(d)> d_in;
  const hn::Rebind<Out, decltype(d)> d_out;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  const float out_scale = static_cast<float>(p.out_scale);
  constexpr int32_t kLow = std::numeric_limits<Out>::min(), kHigh = std::numeric_limits<Out>::max();
  for (int64_t r = args.rows.begin; r < args.rows.end; ++r) {
    const In* in = args.in<In>(0) + r * p.depth;
    Out* out = args.out<Out>(0) + r * p.depth;
    const int32_t largest = largest_byte(in, p.depth);
    if (p.depth < n) {
      float sum = 0;
      for (int64_t i = 0; i < p.depth; ++i) sum += table[largest - in[i]];
      const float scale = 1.0f / (sum * out_scale);
      for (int64_t i = 0; i < p.depth; ++i) {
        const int32_t q = static_cast<int32_t>(table[largest - in[i]] * scale + 0.5f) + p.out_zero_point;
        out[i] = static_cast<Out>(std::min(std::max(q, kLow), kHigh));
      }
      continue;
    }
    auto sums = hn::Zero(d);
    const auto vlargest = hn::Set(d32, largest);
    for (int64_t i = 0; i < p.depth; i += n) {
      const size_t left = static_cast<size_t>(std::min(n, p.depth - i));
      const auto stored = left == static_cast<size_t>(n) ? hn::LoadU(d_in, in + i) : hn::LoadN(d_in, in + i, left);
      const auto below = hn::And(hn::Sub(vlargest, hn::PromoteTo(d32, stored)), hn::Set(d32, 255));
      const auto e = hn::IfThenElseZero(hn::FirstN(d, left), hn::GatherIndex(d, table, below));
      sums = hn::Add(sums, e);
      hn::StoreN(e, d, row + i, left);
    }
    const auto scale = hn::Set(d, 1.0f / (hn::ReduceSum(d, sums) * out_scale)), half = hn::Set(d, 0.5f);
    for (int64_t i = 0; i < p.depth; i += n) {
      const size_t left = static_cast<size_t>(std::min(n, p.depth - i));
      const auto q = hn::Add(hn::ConvertTo(d32, hn::MulAdd(hn::LoadN(d, row + i, left), scale, half)), hn::Set(d32, p.out_zero_point));
      const auto bytes = hn::DemoteTo(d_out, hn::Min(hn::Max(q, hn::Set(d32, kLow)), hn::Set(d32, kHigh)));
      if (left == static_cast<size_t>(n)) hn::StoreU(bytes, d_out, out + i);
      else hn::StoreN(bytes, d_out, out + i, left);
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

template <bool kLog>
Status SoftmaxBy<kLog>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const Operand &in = p.input(0), &out = p.output(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(in, 1, kMaxRank));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, in.shape));
  SoftmaxParams* params = p.make_params<SoftmaxParams>();
  if (!params) return p.no_memory();
  params->depth = in.shape[in.shape.rank() - 1];
  if (!kLog) params->beta = p.options().template get<float>(0, 1.0f);
  const int64_t rows = params->depth > 0 ? in.shape.elements() / params->depth : 0;
  if (in.type == TensorType::float32) {
    p.set_kernel(ONEWEIGHT_KERNEL(p.target(), softmax_float_kernel<kLog>), rows);
    p.set_same_rows();
    p.allow_in_place(0);
    return {};
  }
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, in));
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, out));
  params->in_scale = in.scale();
  params->out_scale = static_cast<double>(out.scale());
  params->out_zero_point = out.zero_point();
  p.set_scratch(params->depth * static_cast<int64_t>(sizeof(float)));
  if constexpr (!kLog) {
    if (in.type != TensorType::int16) {
      float* table = p.derived<float>(256);
      if (!table) return p.no_memory();
      for (int i = 0; i < 256; ++i) table[i] = static_cast<float>(std::exp(-static_cast<double>(params->beta) * static_cast<double>(in.scale()) * i));
      params->exponentials = table;
      p.set_kernel(in.type == TensorType::uint8      ? ONEWEIGHT_KERNEL(p.target(), softmax_bytes_kernel<uint8_t, uint8_t>)
                   : out.type == TensorType::int16 ? ONEWEIGHT_KERNEL(p.target(), softmax_bytes_kernel<int8_t, int16_t>)
                                                   : ONEWEIGHT_KERNEL(p.target(), softmax_bytes_kernel<int8_t, int8_t>),
                   rows);
      p.set_same_rows();
      return {};
    }
  }
  if (in.type == TensorType::uint8) p.set_kernel(ONEWEIGHT_KERNEL(p.target(), softmax_quantized_kernel<kLog, uint8_t, uint8_t>), rows);
  else if (in.type == TensorType::int16) p.set_kernel(ONEWEIGHT_KERNEL(p.target(), softmax_quantized_kernel<kLog, int16_t, int16_t>), rows);
  else if (out.type == TensorType::int16) p.set_kernel(ONEWEIGHT_KERNEL(p.target(), softmax_quantized_kernel<kLog, int8_t, int16_t>), rows);
  else p.set_kernel(ONEWEIGHT_KERNEL(p.target(), softmax_quantized_kernel<kLog, int8_t, int8_t>), rows);
  p.set_same_rows();
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // per target
#endif  // ONEWEIGHT_HAS_KERNELS
