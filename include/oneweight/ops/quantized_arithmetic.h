// DIV (int8, uint8, int16) and SQUARED_DIFFERENCE (int8) on quantised operands, bit by bit as TFLite's reference kernels,
// with broadcasting. A divisor of real value 0 is an error while running.
#ifndef ONEWEIGHT_OPS_QUANTIZED_ARITHMETIC_H
#define ONEWEIGHT_OPS_QUANTIZED_ARITHMETIC_H

#include "oneweight/ops/broadcast.h"
#include "oneweight/ops/elementwise.h"
#include "oneweight/ops/fixed_functions.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct QuantizedArithmeticParams {
  BroadcastPlan<2> broadcast;
  ElementRows elements;
  int32_t zero_point[2] = {}, out_zero_point = 0;
  int32_t low = 0, high = 0;
  FixedMultiplier factor[2], out_factor;
};

// The reference kernel scales the operands of a squared difference up by so many bits.
inline constexpr int kSquaredDifferenceShift = 7;

struct QuantizedDiv {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 2 && t.inputs[0] == t.inputs[1] && t.out(0, t.inputs[0]) &&
           (t.inputs[0] == TensorType::int8 || t.inputs[0] == TensorType::uint8 || t.inputs[0] == TensorType::int16);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::div, .types = "int8, uint8, int16", .accepts = &accepts, .prepare = &prepare};
};

struct QuantizedSquaredDifference {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 2 && t.in(0, TensorType::int8) && t.in(1, TensorType::int8) && t.out(0, TensorType::int8);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::squared_difference, .types = "int8", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
// Types, shapes, zero points and bounds; `params` are made.
template <class T>
Status prepare_quantized_arithmetic(Preparation& p, const FusedActivation& bounds, QuantizedArithmeticParams** params) {
  ONEWEIGHT_RETURN_IF_ERROR(prepare_broadcast(p, params));
  const Operand &a = p.input(0), &b = p.input(1), &out = p.output(0);
  for (const Operand* t : {&a, &b, &out}) ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, *t));
  QuantizedArithmeticParams& v = **params;
  v.elements = ElementRows(out.shape);
  v.zero_point[0] = a.zero_point(), v.zero_point[1] = b.zero_point(), v.out_zero_point = out.zero_point();
  const QuantizedRange range = quantized_range(bounds.low, bounds.high, out.scale(), out.zero_point(), std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  v.low = range.low, v.high = range.high;
  return {};
}

template <class T>
void quantized_div_kernel(const KernelArgs& args) {
  const auto& p = args.params<QuantizedArithmeticParams>();
  const T *a = args.in<T>(0), *b = args.in<T>(1);
  for_each_run(p.broadcast, p.elements.begin(args.rows), p.elements.end(args.rows), [&](int64_t o, const int64_t* at, int64_t count, const int64_t* step) {
    for (int64_t i = 0; i < count; ++i) {
      int32_t x = a[at[0] + i * step[0]] - p.zero_point[0], y = b[at[1] + i * step[1]] - p.zero_point[1];
      if (y == 0) {
        args.run->fail(ErrorCode::invalid_data, "division by a quantised zero");
        y = 1;
      }
      if (y < 0) x = -x, y = -y;
      int bits = 0;
      const int32_t inverse = fixed::reciprocal(y, 31, &bits);
      const int headroom = std::countl_zero(static_cast<uint32_t>(x < 0 ? ~x : x)) - 1;
      const int32_t quotient = fixed::multiply(static_cast<int32_t>(static_cast<uint32_t>(x) << headroom), inverse);
      const int right = -(p.out_factor.shift - bits - headroom);
      const int32_t scaled = fixed::multiply(quotient, p.out_factor.multiplier);
      // The reference shifts to the right only; a quotient that must grow does so here by doubling.
      const int32_t q = right > 31 ? 0 : right >= 0 ? rounding_divide_by_pot(scaled, right) : fixed::shift_left(scaled, right < -31 ? 31 : -right);
      const int64_t moved = static_cast<int64_t>(q) + p.out_zero_point;
      args.out<T>(0)[o + i] = static_cast<T>(moved < p.low ? p.low : moved > p.high ? p.high : moved);
    }
  });
}

template <class T>
Status prepare_quantized_div(Preparation& p) {
  FusedActivation bounds;
  ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, static_cast<Activation>(p.options().get<int8_t>(0, 0)), &bounds));
  QuantizedArithmeticParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_quantized_arithmetic<T>(p, bounds, &params));
  const float divisor = p.input(1).scale() * p.output(0).scale();
  params->out_factor = quantize_multiplier(static_cast<double>(p.input(0).scale() / divisor));
  p.set_kernel(&quantized_div_kernel<T>, params->elements.rows);
  p.set_same_rows();
  return {};
}
ONEWEIGHT_INLINE Status QuantizedDiv::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  return p.input(0).type == TensorType::int8    ? prepare_quantized_div<int8_t>(p)
         : p.input(0).type == TensorType::uint8 ? prepare_quantized_div<uint8_t>(p)
                                                : prepare_quantized_div<int16_t>(p);
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_QUANTIZED_ARITHMETIC_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_QUANTIZED_ARITHMETIC_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_QUANTIZED_ARITHMETIC_TARGET
#undef ONEWEIGHT_OPS_QUANTIZED_ARITHMETIC_TARGET
#else
#define ONEWEIGHT_OPS_QUANTIZED_ARITHMETIC_TARGET
#endif

#include "oneweight/simd/quantized_store-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline void quantized_squared_difference_kernel(const KernelArgs& args) {
  const QuantizedArithmeticParams p = args.params<QuantizedArithmeticParams>();  // a copy: stored bytes do not change it
  const int8_t *a = args.in<int8_t>(0), *b = args.in<int8_t>(1);
  int8_t* const out = args.out<int8_t>(0);
  const Int32Tag d;
  const hn::Rebind<int8_t, Int32Tag> d8;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Set(d, p.out_zero_point), low = hn::Set(d, p.low), high = hn::Set(d, p.high);
  const auto operand = [&](const int8_t* from, int64_t step, int k, size_t some) HWY_ATTR {
    const auto v = step == 0 ? hn::Set(d, *from) : hn::PromoteTo(d, static_cast<int64_t>(some) == n ? hn::LoadU(d8, from) : hn::LoadN(d8, from, some));
    return requantize(d, hn::ShiftLeft<kSquaredDifferenceShift>(hn::Sub(v, hn::Set(d, p.zero_point[k]))), p.factor[k]);
  };
  for_each_run(p.broadcast, p.elements.begin(args.rows), p.elements.end(args.rows),
               [&](int64_t o, const int64_t* at, int64_t count, const int64_t* step) HWY_ATTR {
                 for (int64_t i = 0; i < count; i += n) {
                   const auto some = static_cast<size_t>(std::min(n, count - i));
                   const auto difference = hn::Sub(operand(a + at[0] + i * step[0], step[0], 0, some), operand(b + at[1] + i * step[1], step[1], 1, some));
                   const auto q = hn::Add(requantize(d, hn::Mul(difference, difference), p.out_factor), zero);
                   const auto bytes = hn::DemoteTo(d8, hn::Min(hn::Max(q, low), high));
                   if (static_cast<int64_t>(some) == n) hn::StoreU(bytes, d8, out + o + i);
                   else hn::StoreN(bytes, d8, out + o + i, some);
                 }
               });
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

inline Status QuantizedSquaredDifference::prepare(Preparation& p) {
  QuantizedArithmeticParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_quantized_arithmetic<int8_t>(p, FusedActivation(), &params));
  const double twice = 2.0 * static_cast<double>(std::max(p.input(0).scale(), p.input(1).scale()));
  for (int i = 0; i < 2; ++i) params->factor[i] = quantize_multiplier(static_cast<double>(p.input(i).scale()) / twice);
  params->out_factor =
      quantize_multiplier(twice * twice / (static_cast<double>(1 << (2 * kSquaredDifferenceShift)) * static_cast<double>(p.output(0).scale())));
  p.set_kernel(ONEWEIGHT_KERNEL(p.target(), quantized_squared_difference_kernel), params->elements.rows);
  p.set_same_rows();
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // per target
#endif  // ONEWEIGHT_HAS_KERNELS
