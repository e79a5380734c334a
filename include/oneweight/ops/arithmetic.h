// DIV, POW, FLOOR_DIV, FLOOR_MOD, SQUARED_DIFFERENCE, ATAN2, BITWISE_XOR and RIGHT_SHIFT on float and integers, with
// broadcasting. Integer rules: DIV truncates toward zero, FLOOR_DIV rounds toward minus infinity, FLOOR_MOD takes the
// divisor's sign; a zero divisor, or a negative exponent of POW, is an error while running. Shifts are
// arithmetic for signed types; amounts outside [0, width) count as the nearest bound. Differences wrap.
#ifndef ONEWEIGHT_OPS_ARITHMETIC_H
#define ONEWEIGHT_OPS_ARITHMETIC_H

#include <cmath>

#include "oneweight/ops/broadcast.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

namespace arithmetic {
template <class T>
bool divisible(T b, RunState* run) {
  if (b != 0) return true;
  run->fail(ErrorCode::invalid_data, "integer division by zero");
  return false;
}
// a / b without overflow for the smallest number divided by -1, which wraps.
template <class T>
T quotient(T a, T b) {
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(std::make_unsigned_t<T>(0) - static_cast<std::make_unsigned_t<T>>(a));
  return static_cast<T>(a / b);
}
template <class T>
T wrapping_multiply(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }
}  // namespace arithmetic

struct DivideBy {
  static constexpr auto code = BuiltinOperator::div;
  static constexpr bool has_activation = true;
  static constexpr TensorType types[] = {TensorType::float32, TensorType::int32};
  template <class T> static T apply(T a, T b, RunState* run) {
    if constexpr (std::is_floating_point_v<T>) return a / b;
    else return arithmetic::divisible(b, run) ? arithmetic::quotient(a, b) : T{0};
  }
};
struct FloorDivideBy {
  static constexpr auto code = BuiltinOperator::floor_div;
  static constexpr bool has_activation = false;
  static constexpr TensorType types[] = {TensorType::float32, TensorType::int8, TensorType::int16, TensorType::int32};
  template <class T> static T apply(T a, T b, RunState* run) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::floor(a / b);
    } else {
      if (!arithmetic::divisible(b, run)) return 0;
      const T q = arithmetic::quotient(a, b);
      return b != -1 && a % b != 0 && (a < 0) != (b < 0) ? static_cast<T>(q - 1) : q;
    }
  }
};
struct FloorModulo {
  static constexpr auto code = BuiltinOperator::floor_mod;
  static constexpr bool has_activation = false;
  static constexpr TensorType types[] = {TensorType::float32, TensorType::int8, TensorType::int16, TensorType::int32, TensorType::int64};
  template <class T> static T apply(T a, T b, RunState* run) {
    if constexpr (std::is_floating_point_v<T>) {
      const T r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    } else {
      if (!arithmetic::divisible(b, run)) return 0;
      if (b == -1) return 0;
      const T r = static_cast<T>(a % b);
      return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
    }
  }
};
struct PowerOf {
  static constexpr auto code = BuiltinOperator::pow;
  static constexpr bool has_activation = false;
  static constexpr TensorType types[] = {TensorType::float32, TensorType::int32};
  template <class T> static T apply(T a, T b, RunState* run) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(a, b);
    } else {
      if (b < 0) {
        run->fail(ErrorCode::invalid_data, "integer power with the negative exponent %lld", static_cast<long long>(b));
        return 0;
      }
      T result = 1;
      for (; b > 0; b = static_cast<T>(b >> 1), a = arithmetic::wrapping_multiply(a, a))
        if (b & 1) result = arithmetic::wrapping_multiply(result, a);
      return result;
    }
  }
};
struct SquaredDifferenceOf {
  static constexpr auto code = BuiltinOperator::squared_difference;
  static constexpr bool has_activation = false;
  static constexpr TensorType types[] = {TensorType::float32, TensorType::int32};
  template <class T> static T apply(T a, T b, RunState*) {
    if constexpr (std::is_floating_point_v<T>) return (a - b) * (a - b);
    const auto d = static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
    return arithmetic::wrapping_multiply(d, d);
  }
};
struct Atan2Of {
  static constexpr auto code = BuiltinOperator::atan2;
  static constexpr bool has_activation = false;
  static constexpr TensorType types[] = {TensorType::float32, TensorType::float64};
  template <class T> static T apply(T a, T b, RunState*) { return std::atan2(a, b); }
};
struct BitwiseXorOf {
  static constexpr auto code = BuiltinOperator::bitwise_xor;
  static constexpr bool has_activation = false;
  static constexpr TensorType types[] = {TensorType::int8, TensorType::uint8, TensorType::int16, TensorType::uint16, TensorType::int32, TensorType::uint32};
  template <class T> static T apply(T a, T b, RunState*) {
    return static_cast<T>(a ^ b);
  }
};
struct RightShiftBy {
  static constexpr auto code = BuiltinOperator::right_shift;
  static constexpr bool has_activation = false;
  static constexpr TensorType types[] = {TensorType::int8, TensorType::uint8, TensorType::int16, TensorType::uint16, TensorType::int32, TensorType::uint32};
  template <class T> static T apply(T a, T b, RunState*) {
    constexpr int64_t most = static_cast<int64_t>(sizeof(T)) * 8 - 1;
    const int64_t by = static_cast<int64_t>(b) < 0 ? 0 : static_cast<int64_t>(b) > most ? most : static_cast<int64_t>(b);
    return static_cast<T>(a >> by);
  }
};

struct ArithmeticParams {
  BroadcastPlan<2> broadcast;
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  bool clamp = false;
};

// Function: one of the structs above.
template <class Function>
struct Arithmetic {
  static constexpr bool takes(TensorType wanted) {
    for (TensorType type : Function::types)
      if (type == wanted) return true;
    return false;
  }
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 2 && t.inputs[0] == t.inputs[1] && t.out(0, t.inputs[0]) && takes(t.inputs[0]);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = Function::code, .types = "float and integers", .accepts = &accepts, .prepare = &prepare};

  using Params = ArithmeticParams;
  template <class T>
  static T apply(T a, T b, const Params& p, RunState* run) {
    const T value = Function::apply(a, b, run);
    if (!Function::has_activation || !p.clamp) return value;
    if (value < static_cast<T>(p.low)) return static_cast<T>(p.low);
    return static_cast<double>(value) > static_cast<double>(p.high) ? static_cast<T>(p.high) : value;
  }
};

using Div = Arithmetic<DivideBy>;
using FloorDiv = Arithmetic<FloorDivideBy>;
using FloorMod = Arithmetic<FloorModulo>;
using Pow = Arithmetic<PowerOf>;
using SquaredDifference = Arithmetic<SquaredDifferenceOf>;
using Atan2 = Arithmetic<Atan2Of>;
using BitwiseXor = Arithmetic<BitwiseXorOf>;
using RightShift = Arithmetic<RightShiftBy>;

#if ONEWEIGHT_HAS_KERNELS
template <class Function>
Status Arithmetic<Function>::prepare(Preparation& p) {
  ArithmeticParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_broadcast(p, &params));
  if constexpr (Function::has_activation) {
    FusedActivation bounds;
    const auto activation = static_cast<Activation>(p.options().get<int8_t>(0, 0));
    ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, activation, &bounds));
    params->clamp = activation != Activation::none;
    // Integers: relu has no upper bound, and the lower bound of relu_n1_to_1 is -1.
    params->low = bounds.low, params->high = bounds.high;
  }
  KernelFn kernel = nullptr;
  const TensorType type = p.input(0).type;
  const auto use = [&]<class T>(T) {
    if constexpr (takes(tensor_type_of<T>))
      if (type == tensor_type_of<T>) kernel = &broadcast_kernel<T, T, Arithmetic>;
  };
  use(float{}), use(double{}), use(int8_t{}), use(uint8_t{}), use(int16_t{}), use(uint16_t{}), use(int32_t{}), use(uint32_t{}), use(int64_t{});
  set_broadcast_kernel(p, kernel);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_ARITHMETIC_H
