// Functions of one element: LOGISTIC, TANH, HARD_SWISH, EXP, LOG, SQRT, RSQRT, SQUARE, ABS, NEG, SIN, COS, FLOOR, CEIL, ROUND,
// SIGN, ELU, GELU. Float and half (in float); int8 and uint8 by a 256-entry table made with the plan; int16 per element.
// or by an interpolated table. NaN passes through all; infinities follow IEEE. ROUND: halves to even. Quantised results
// round halves away from zero and saturate: bit by bit as TFLite's reference kernels, but for SQRT, which cuts there.
#ifndef ONEWEIGHT_OPS_UNARY_H
#define ONEWEIGHT_OPS_UNARY_H

#include "oneweight/base/fixed_point.h"
#include "oneweight/ops/int16_tables.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// For each function: its operator code, the value in double for tables, and (below, per target) on float vectors.
namespace function {
struct Logistic { static constexpr auto code = BuiltinOperator::logistic; static double value(double x) { return 1 / (1 + std::exp(-x)); } };
struct Tanh { static constexpr auto code = BuiltinOperator::tanh; static double value(double x) { return std::tanh(x); } };
struct HardSwish {
  static constexpr auto code = BuiltinOperator::hard_swish;
  static double value(double x) { return x * std::fmin(std::fmax(x + 3, 0), 6) / 6; }
};
struct Exp { static constexpr auto code = BuiltinOperator::exp; static double value(double x) { return std::exp(x); } };
struct Log { static constexpr auto code = BuiltinOperator::log; static double value(double x) { return std::log(x); } };
struct Sqrt { static constexpr auto code = BuiltinOperator::sqrt; static double value(double x) { return std::sqrt(x); } };
struct Rsqrt { static constexpr auto code = BuiltinOperator::rsqrt; static double value(double x) { return 1 / std::sqrt(x); } };
struct Square { static constexpr auto code = BuiltinOperator::square; static double value(double x) { return x * x; } };
struct Abs { static constexpr auto code = BuiltinOperator::abs; static double value(double x) { return std::fabs(x); } };
struct Neg { static constexpr auto code = BuiltinOperator::neg; static double value(double x) { return -x; } };
struct Sin { static constexpr auto code = BuiltinOperator::sin; static double value(double x) { return std::sin(x); } };
struct Cos { static constexpr auto code = BuiltinOperator::cos; static double value(double x) { return std::cos(x); } };
struct Floor { static constexpr auto code = BuiltinOperator::floor; static double value(double x) { return std::floor(x); } };
struct Ceil { static constexpr auto code = BuiltinOperator::ceil; static double value(double x) { return std::ceil(x); } };
struct Round { static constexpr auto code = BuiltinOperator::round; static double value(double x) { return std::nearbyint(x); } };
struct Sign { static constexpr auto code = BuiltinOperator::sign; static double value(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; } };
struct Elu { static constexpr auto code = BuiltinOperator::elu; static double value(double x) { return x < 0 ? std::expm1(x) : x; } };
// approximate = false: x Phi(x) with erf; the tanh form is chosen by an option.
struct Gelu {
  static constexpr auto code = BuiltinOperator::gelu;
  static double value(double x) { return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440)); }
};
struct GeluTanh {
  static constexpr auto code = BuiltinOperator::gelu;
  static double value(double x) { return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))); }
};
}  // namespace function

template <class Function>
struct Unary {
  static bool accepts(const NodeTypes& t) {
    if (t.input_count != 1 || !t.out(0, t.inputs[0])) return false;
    switch (t.inputs[0]) {
      case TensorType::float32: case TensorType::float16: case TensorType::float64: case TensorType::int8: case TensorType::uint8:
      case TensorType::int16: return true;
      case TensorType::int32: return Function::code == BuiltinOperator::abs || Function::code == BuiltinOperator::neg ||
                                     Function::code == BuiltinOperator::square || Function::code == BuiltinOperator::sign;
      case TensorType::int64: return Function::code == BuiltinOperator::neg;
      default: return false;
    }
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = Function::code, .types = "float, half, double, int8, uint8, int16", .accepts = &accepts, .prepare = &prepare};
};

using Logistic = Unary<function::Logistic>;
using Tanh = Unary<function::Tanh>;
using HardSwish = Unary<function::HardSwish>;
using Exp = Unary<function::Exp>;
using Log = Unary<function::Log>;
using Sqrt = Unary<function::Sqrt>;
using Rsqrt = Unary<function::Rsqrt>;
using Square = Unary<function::Square>;
using Abs = Unary<function::Abs>;
using Neg = Unary<function::Neg>;
using Sin = Unary<function::Sin>;
using Cos = Unary<function::Cos>;
using Floor = Unary<function::Floor>;
using Ceil = Unary<function::Ceil>;
using Round = Unary<function::Round>;
using Sign = Unary<function::Sign>;
using Elu = Unary<function::Elu>;
using Gelu = Unary<function::Gelu>;

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_UNARY_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_UNARY_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_UNARY_TARGET
#undef ONEWEIGHT_OPS_UNARY_TARGET
#else
#define ONEWEIGHT_OPS_UNARY_TARGET
#endif

#include "oneweight/ops/table-inl.h"
#include "oneweight/simd/elementwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The value on a vector of floats. Functions without vector code are computed lane by lane.
template <class F, class D, class V = hn::Vec<D>>
HWY_INLINE V function_on_vector(D d, V x) {
  if constexpr (std::is_same_v<F, function::Logistic>) {
    return logistic_float(d, x);
  } else if constexpr (std::is_same_v<F, function::Tanh>) {
    return tanh_float(d, x);
  } else if constexpr (std::is_same_v<F, function::HardSwish>) {
    const V gate = clamp_keep_nan(d, hn::Add(x, hn::Set(d, 3.0f)), hn::Zero(d), hn::Set(d, 6.0f));
    return hn::Mul(x, hn::Mul(gate, hn::Set(d, 1.0f / 6)));
  } else if constexpr (std::is_same_v<F, function::Exp>) {
    return exp_float(d, x);
  } else if constexpr (std::is_same_v<F, function::Log>) {
    return log_float(d, x);
  } else if constexpr (std::is_same_v<F, function::Sqrt>) {
    return hn::Sqrt(x);
  } else if constexpr (std::is_same_v<F, function::Rsqrt>) {
    return hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x));
  } else if constexpr (std::is_same_v<F, function::Square>) {
    return hn::Mul(x, x);
  } else if constexpr (std::is_same_v<F, function::Abs>) {
    return hn::Abs(x);
  } else if constexpr (std::is_same_v<F, function::Neg>) {
    return hn::Neg(x);
  } else if constexpr (std::is_same_v<F, function::Floor>) {
    return hn::Floor(x);
  } else if constexpr (std::is_same_v<F, function::Ceil>) {
    return hn::Ceil(x);
  } else if constexpr (std::is_same_v<F, function::Round>) {
    return hn::Round(x);
  } else if constexpr (std::is_same_v<F, function::Elu>) {
    // exp(x) - 1 loses digits near 0, where the first seven terms of the series are exact enough.
    V p = hn::MulAdd(x, hn::Set(d, 1.0f / 5040), hn::Set(d, 1.0f / 720));
    p = hn::MulAdd(p, x, hn::Set(d, 1.0f / 120));
    p = hn::MulAdd(p, x, hn::Set(d, 1.0f / 24));
    p = hn::MulAdd(p, x, hn::Set(d, 1.0f / 6));
    p = hn::MulAdd(p, x, hn::Set(d, 0.5f));
    p = hn::MulAdd(hn::Mul(p, x), x, x);
    const V far = hn::Sub(exp_float(d, x), hn::Set(d, 1.0f));
    const V negative = hn::IfThenElse(hn::Gt(x, hn::Set(d, -0.25f)), p, far);
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), negative, x);
  } else if constexpr (std::is_same_v<F, function::GeluTanh>) {
    const V inner = hn::Mul(hn::Set(d, 0.79788456080286535588f), hn::MulAdd(hn::Mul(hn::Mul(x, x), x), hn::Set(d, 0.044715f), x));
    return hn::Mul(hn::Mul(hn::Set(d, 0.5f), x), hn::Add(hn::Set(d, 1.0f), tanh_float(d, inner)));
  } else {
    HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(x, d, lanes);
    for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = static_cast<float>(F::value(static_cast<double>(lanes[i])));
    return hn::Load(d, lanes);
  }
}

template <class F>
void unary_float_kernel(const KernelArgs& args) {
  const auto& p = args.params<UnaryParams>();
  const int64_t begin = p.elements.begin(args.rows);
  map_floats(args.in<float>(0) + begin, args.out<float>(0) + begin, static_cast<size_t>(p.elements.end(args.rows) - begin),
             [](auto d, auto x) HWY_ATTR { return function_on_vector<F>(d, x); });
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <class F>
void unary_half_kernel(const KernelArgs& args) {
  const auto& p = args.params<UnaryParams>();
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i)
    args.out<half>(0)[i] = float_to_half(static_cast<float>(F::value(static_cast<double>(half_to_float(args.in<half>(0)[i])))));
}
template <class F>
void unary_double_kernel(const KernelArgs& args) {
  const auto& p = args.params<UnaryParams>();
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i) args.out<double>(0)[i] = F::value(args.in<double>(0)[i]);
}
template <class F, class T>
void unary_integer_kernel(const KernelArgs& args) {
  const auto& p = args.params<UnaryParams>();
  using U = std::make_unsigned_t<T>;
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i) {
    const T x = args.in<T>(0)[i];
    T y = x;
    if constexpr (F::code == BuiltinOperator::neg) y = static_cast<T>(U{0} - static_cast<U>(x));
    if constexpr (F::code == BuiltinOperator::abs) y = x < 0 ? static_cast<T>(U{0} - static_cast<U>(x)) : x;
    if constexpr (F::code == BuiltinOperator::square) y = static_cast<T>(static_cast<U>(x) * static_cast<U>(x));
    if constexpr (F::code == BuiltinOperator::sign) y = x > 0 ? 1 : x < 0 ? -1 : 0;
    args.out<T>(0)[i] = y;
  }
}
// ABS of quantised values, rescaled to the output as the reference kernel does.
struct QuantizedAbsParams {
  ElementRows elements;
  int32_t zero_point = 0, out_zero_point = 0;
  bool rescales = false;
  FixedMultiplier factor;
};
template <class T>
void quantized_abs_kernel(const KernelArgs& args) {
  const auto& p = args.params<QuantizedAbsParams>();
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i) {
    const int32_t x = args.in<T>(0)[i] - p.zero_point, magnitude = x < 0 ? -x : x;
    const int32_t q = (p.rescales ? multiply_by_quantized_multiplier(magnitude, p.factor) : magnitude) + p.out_zero_point;
    constexpr int32_t low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    args.out<T>(0)[i] = static_cast<T>(q < low ? low : q > high ? high : q);
  }
}
inline Status prepare_quantized_abs(Preparation& p) {
  const Operand &in = p.input(0), &out = p.output(0);
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, in));
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, out));
  QuantizedAbsParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_unary(p, in.type == TensorType::int8 ? &quantized_abs_kernel<int8_t> : in.type == TensorType::uint8 ? &quantized_abs_kernel<uint8_t> : &quantized_abs_kernel<int16_t>, &params));
  params->zero_point = in.zero_point(), params->out_zero_point = out.zero_point();
  params->rescales = in.scale() != out.scale();
  params->factor = quantize_multiplier(static_cast<double>(in.scale() / out.scale()));
  return {};
}

// int8, uint8 and int16.
template <class F>
Status prepare_quantized_function(Preparation& p) {
  const TensorType type = p.input(0).type;
  UnaryParams* params;
  if constexpr (F::code == BuiltinOperator::neg || F::code == BuiltinOperator::abs) {
    if (type == TensorType::int16 && !p.input(0).quantized()) return prepare_unary(p, &unary_integer_kernel<F, int16_t>, &params);
    if (type == TensorType::int8 && !p.input(0).quantized()) return prepare_unary(p, &unary_integer_kernel<F, int8_t>, &params);
  }
  if constexpr (F::code == BuiltinOperator::abs) return prepare_quantized_abs(p);
  if (type != TensorType::int16) return prepare_table(p, ONEWEIGHT_KERNEL(p.target(), table_kernel), &F::value);
  if constexpr (F::code == BuiltinOperator::logistic || F::code == BuiltinOperator::tanh)
    return prepare_int16_sigmoid<F::code == BuiltinOperator::tanh>(p);
  if constexpr (F::code == BuiltinOperator::exp || F::code == BuiltinOperator::gelu || F::code == BuiltinOperator::log || F::code == BuiltinOperator::rsqrt) {
    // Outside of its domain a function has the value that the output holds at the nearest end.
    const float scale = p.output(0).scale(), low = scale * static_cast<float>(-32768 - p.output(0).zero_point());
    const float high = scale * static_cast<float>(32767 - p.output(0).zero_point());
    return prepare_int16_table(p, [=](float x) {
      if (F::code == BuiltinOperator::log && x <= 0) return low;
      if (F::code == BuiltinOperator::rsqrt && x <= 0) return high;
      return static_cast<float>(F::value(static_cast<double>(x)));
    });
  }
  return prepare_int16<F>(p);
}
template <class F>
Status prepare_function(Preparation& p) {
  UnaryParams* params;
  switch (p.input(0).type) {
    case TensorType::float32: return prepare_unary(p, ONEWEIGHT_KERNEL(p.target(), unary_float_kernel<F>), &params);
    case TensorType::float16: return prepare_unary(p, &unary_half_kernel<F>, &params);
    case TensorType::float64: return prepare_unary(p, &unary_double_kernel<F>, &params);
    case TensorType::int32: return prepare_unary(p, &unary_integer_kernel<F, int32_t>, &params);
    case TensorType::int64: return prepare_unary(p, &unary_integer_kernel<F, int64_t>, &params);
    default: return prepare_quantized_function<F>(p);
  }
}

template <class Function>
Status Unary<Function>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  if constexpr (Function::code == BuiltinOperator::hard_swish) {
    FusedActivation wanted;
    wanted.after = FusedActivation::hard_swish;
    if (p.input(0).type == TensorType::float32 && p.fuse_activation(wanted)) return {};
  }
  if constexpr (Function::code == BuiltinOperator::gelu)
    if (p.options().template get<bool>(0, false)) return prepare_function<function::GeluTanh>(p);
  if (Function::code == BuiltinOperator::logistic && p.input(0).type == TensorType::float32) p.set_logistic();
  return prepare_function<Function>(p);
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // per target
#endif  // ONEWEIGHT_HAS_KERNELS
