// SVDF: input [batch, input], weights_feature [filters, input], weights_time [filters, memory], bias [filters / rank] (may be left
// out), state [batch, filters * memory], a variable. Each run the state of every filter moves on by one element, the newest is
// weights_feature . input; the output of a unit is act(bias + the sum over its `rank` filters of weights_time . state).
// Types: float; float with half weights, or with int8 weights (inputs are quantised by vector; asymmetric_quantize_inputs); int8
// with int16 weights_time and state, or int8 ones, bit by bit as the reference kernels of TFLite and of TFLite Micro.
// Scratch: with int8, the input as int16 and one sum a filter. Rows: batch.
#ifndef ONEWEIGHT_OPS_SVDF_H
#define ONEWEIGHT_OPS_SVDF_H

#include "oneweight/base/fixed_point.h"
#include "oneweight/ops/lstm_node.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct SvdfParams {
  int64_t batch = 0, input = 0, filters = 0, memory = 0, rank = 1;
  Activation activation = Activation::none;
  // Int8 weights
  bool asymmetric = false;
  float feature_scale = 1, time_scale = 1;
  // Int8 input
  FixedMultiplier feature, time;
  int32_t input_zero = 0, state_zero = 0, output_zero = 0, low = -128, high = 127;
};

// W: storage of weights_feature; A: of the input, S: of weights_time and (int8 input) the state.
template <class W, class A, class S>
struct Svdf {
  static bool accepts(const NodeTypes& t) {
    return t.in(0, tensor_type_of<A>) && t.in(1, tensor_type_of<W>) && t.in(2, tensor_type_of<S>) && t.out(0, tensor_type_of<A>);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::svdf,
                                .types = sizeof(A) == 1 ? (sizeof(S) == 1 ? "int8" : "int8, int16 state")
                                         : sizeof(W) == 2 ? "float, half weights" : sizeof(W) == 1 ? "float, int8 weights" : "float",
                                .accepts = &accepts,
                                .prepare = &prepare,
                                .stored_inputs = sizeof(W) == 2 ? 6u : 0u};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_SVDF_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_SVDF_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_SVDF_KERNELS
#undef ONEWEIGHT_OPS_SVDF_KERNELS
#else
#define ONEWEIGHT_OPS_SVDF_KERNELS
#endif

#include <algorithm>

#include "oneweight/ops/recurrent-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// All filters move on by one; the last element of each is written afterwards.
template <class T>
HWY_INLINE void move_on(const SvdfParams& p, T* state) {
  std::memmove(state, state + 1, static_cast<size_t>(p.filters * p.memory - 1) * sizeof(T));
}

template <class W>
HWY_INLINE float time_dot(const W* HWY_RESTRICT w, float scale, const float* HWY_RESTRICT state, int64_t memory) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < memory; i += n) {
    const auto left = static_cast<size_t>(memory - i < n ? memory - i : n);
    sum = hn::MulAdd(load_weights(d, w + i, left, scale), hn::LoadN(d, state + i, left), sum);
  }
  return hn::ReduceSum(d, sum);
}

template <class W>
void svdf_float_kernel(const KernelArgs& args) {
  const auto& p = args.params<SvdfParams>();
  const int64_t units = p.filters / p.rank, sums_bytes = (4 * p.filters + 63) / 64 * 64;
  auto* newest = reinterpret_cast<float*>(args.scratch);
  float scale = 1;
  const RowWork work{reinterpret_cast<int32_t*>(args.scratch + sums_bytes), &scale, p.asymmetric};
  auto* bytes = reinterpret_cast<int16_t*>(args.scratch + 2 * sums_bytes);
  const W* time = args.in<W>(2);
  for (int64_t b = args.rows.begin; b < args.rows.end; ++b) {
    float* state = const_cast<float*>(args.in<float>(4)) + b * p.filters * p.memory;
    const float* in = args.in<float>(0) + b * p.input;
    fill_rows(nullptr, p.filters, 1, newest, p.filters);
    quantize_rows<W>(in, p.input, p.input, 1, work, bytes);
    add_rows(args.in<W>(1), p.feature_scale, p.filters, p.input, in, p.input, 1, work, bytes, newest, p.filters);
    move_on(p, state);
    for (int64_t f = 0; f < p.filters; ++f) state[f * p.memory + p.memory - 1] = newest[f];
    float* out = args.out<float>(0) + b * units;
    for (int64_t u = 0; u < units; ++u) {
      float sum = 0;
      for (int64_t f = u * p.rank; f < (u + 1) * p.rank; ++f)
        sum += time_dot(time + f * p.memory, p.time_scale, state + f * p.memory, p.memory);
      out[u] = args.inputs[3] >= 0 ? sum + args.in<float>(3)[u] : sum;
    }
    activate_floats(p.activation, out, out, units);
  }
}

template <class S>
void svdf_integer_kernel(const KernelArgs& args) {
  const auto& p = args.params<SvdfParams>();
  constexpr int32_t kLow = std::numeric_limits<S>::min(), kHigh = std::numeric_limits<S>::max();
  const int64_t units = p.filters / p.rank, padded = padded_columns(p.input);
  auto* sums = reinterpret_cast<int32_t*>(args.scratch);
  auto* in = reinterpret_cast<int16_t*>(args.scratch + (4 * p.filters + 63) / 64 * 64);
  const S* time = args.in<S>(2);
  const int32_t* bias = args.inputs[3] < 0 ? nullptr : args.in<int32_t>(3);
  for (int64_t b = args.rows.begin; b < args.rows.end; ++b) {
    S* state = const_cast<S*>(args.in<S>(4)) + b * p.filters * p.memory;
    for (int64_t k = 0; k < padded; ++k)
      in[k] = k < p.input ? static_cast<int16_t>(args.in<int8_t>(0)[b * p.input + k] - p.input_zero) : int16_t{0};
    byte_row_products(args.in<int8_t>(1), p.filters, p.input, in, padded, 1, sums, p.filters);
    move_on(p, state);
    for (int64_t f = 0; f < p.filters; ++f) {
      const int32_t newest = multiply_by_quantized_multiplier(sums[f], p.feature);
      // TFLite Micro lets the sum with the zero point of an int8 state wrap.
      state[f * p.memory + p.memory - 1] = static_cast<S>(p.state_zero + std::min(std::max(newest, kLow), kHigh));
    }
    for (int64_t u = 0; u < units; ++u) {
      auto sum = static_cast<uint32_t>(bias ? bias[u] : 0);
      for (int64_t i = u * p.rank * p.memory; i < (u + 1) * p.rank * p.memory; ++i)
        sum += static_cast<uint32_t>(time[i] * (state[i] - p.state_zero));
      const int64_t y = int64_t{multiply_by_quantized_multiplier(static_cast<int32_t>(sum), p.time)} + p.output_zero;
      args.out<int8_t>(0)[b * units + u] = static_cast<int8_t>(std::min<int64_t>(std::max<int64_t>(y, p.low), p.high));
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

template <class W, class A, class S>
Status Svdf<W, A, S>::prepare(Preparation& p) {
  constexpr bool kInteger = sizeof(A) == 1;
  if (p.input_count() != 5) return p.invalid("has %d inputs, not 5", p.input_count());
  if (p.output_count() != 1) return p.invalid("has %d outputs, not 1", p.output_count());
  for (int i : {0, 1, 2, 4})
    if (!p.has_input(i)) return p.invalid("input %d is left out", i);
  const Operand &x = p.input(0), &feature = p.input(1), &time = p.input(2), &state = p.input(4);
  for (const Operand* t : {&x, &feature, &time, &state}) ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(*t, 2, 2));
  SvdfParams* params = p.make_params<SvdfParams>();
  if (!params) return p.no_memory();
  const OptionsView& o = p.options();
  params->rank = o.get<int32_t>(0, 0);
  params->activation = static_cast<Activation>(o.get<int8_t>(1, 0));
  params->asymmetric = o.get<bool>(2, false);
  params->batch = x.shape[0], params->input = x.shape[1], params->filters = feature.shape[0], params->memory = time.shape[1];
  if (params->rank <= 0 || params->filters <= 0 || params->filters % params->rank != 0)
    return p.invalid("has %lld filters of rank %lld", static_cast<long long>(params->filters), static_cast<long long>(params->rank));
  if (params->memory <= 0) return p.invalid("%s has no memory", p.describe(time).c_str());
  const int64_t units = params->filters / params->rank;
  ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, feature, tensor_type_of<W>, {params->filters, params->input}, "weights"));
  ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, time, tensor_type_of<S>, {params->filters, params->memory}, "weights in time"));
  if (p.has_input(3))
    ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, p.input(3), kInteger ? TensorType::int32 : TensorType::float32, {units}, "bias"));
  int64_t remembered = 0;
  if (!checked_multiply(params->filters, params->memory, &remembered) || Shape({params->batch, remembered}).bytes(TensorType::float32) < 0)
    return p.invalid("is too large");
  ONEWEIGHT_RETURN_IF_ERROR(expect_state(p, state, kInteger ? tensor_type_of<S> : TensorType::float32, {params->batch, remembered},
      "state"));
  if (params->input > (int64_t{1} << 40) || params->filters > (int64_t{1} << 40)) return p.invalid("is too large");
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, {params->batch, units}));
  const int64_t sums = (4 * params->filters + 63) / 64 * 64, bytes = 2 * padded_lstm_columns(params->input);
  p.set_not_foldable();
  const auto symmetric = [&](const Operand& t) -> Status {
    ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, t));
    if (t.zero_point() == 0) return {};
    return p.error(ErrorCode::unsupported, "%s has zero point %d, not 0", p.describe(t).c_str(), t.zero_point());
  };
  if (sizeof(W) == 1) {
    ONEWEIGHT_RETURN_IF_ERROR(symmetric(feature));
    ONEWEIGHT_RETURN_IF_ERROR(symmetric(time));
  }
  if constexpr (kInteger) {
    const Operand& out = p.output(0);
    ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, x));
    ONEWEIGHT_RETURN_IF_ERROR(sizeof(S) == 2 ? symmetric(state) : expect_quantized(p, state));
    ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, out));
    // TFLite's kernels clamp to the type alone, which is relu where the output's zero point is its least value.
    if (params->activation != Activation::relu)
      return p.error(ErrorCode::unsupported, "fused activation %d is not supported", static_cast<int>(params->activation));
    if constexpr (sizeof(S) == 2) {
      const auto wide = [](const Operand& t) { return static_cast<double>(t.scale()); };
      params->feature = quantize_multiplier(wide(x) * wide(feature) / wide(state));
      params->time = quantize_multiplier(wide(state) * wide(time) / wide(out));
    } else {
      params->feature = quantize_multiplier(static_cast<double>(x.scale() * feature.scale() / state.scale()));
      params->time = quantize_multiplier(static_cast<double>(state.scale() * time.scale() / out.scale()));
    }
    params->input_zero = x.zero_point(), params->state_zero = state.zero_point(), params->output_zero = out.zero_point();
    p.set_scratch(sums + bytes);
    p.set_kernel(ONEWEIGHT_KERNEL(p.target(), svdf_integer_kernel<S>), params->batch);
  } else {
    if (params->activation < Activation::none || params->activation > Activation::tanh)
      return p.error(ErrorCode::unsupported, "fused activation %d is not supported", static_cast<int>(params->activation));
    params->feature_scale = feature.scale(), params->time_scale = time.scale();
    p.set_scratch(sizeof(W) == 1 ? 2 * sums + bytes : sums);
    p.set_kernel(ONEWEIGHT_KERNEL(p.target(), svdf_float_kernel<W>), params->batch);
  }
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
