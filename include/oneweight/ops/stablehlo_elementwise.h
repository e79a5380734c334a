// STABLEHLO_ADD, _MULTIPLY, _MAXIMUM, _MINIMUM, _AND and _SHIFT_LEFT on two tensors of one shape; all numbers and bool (AND
// and SHIFT_LEFT: no floats; SHIFT_LEFT: no bool). Plain arithmetic: scales are ignored, integers wrap, half is computed in
// float and rounded. bool: add and maximum are or, multiply and minimum are and. NaN wins maxima and minima. Shift amounts
// outside the width give 0.
#ifndef ONEWEIGHT_OPS_STABLEHLO_ELEMENTWISE_H
#define ONEWEIGHT_OPS_STABLEHLO_ELEMENTWISE_H

#include <type_traits>

#include "oneweight/ops/elementwise.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

enum class StablehloBinary { add, multiply, maximum, minimum, bitwise_and, shift_left };

constexpr BuiltinOperator stablehlo_code(StablehloBinary kind) {
  switch (kind) {
    case StablehloBinary::add: return BuiltinOperator::stablehlo_add;
    case StablehloBinary::multiply: return BuiltinOperator::stablehlo_multiply;
    case StablehloBinary::maximum: return BuiltinOperator::stablehlo_maximum;
    case StablehloBinary::minimum: return BuiltinOperator::stablehlo_minimum;
    case StablehloBinary::bitwise_and: return BuiltinOperator::stablehlo_and;
    default: return BuiltinOperator::stablehlo_shift_left;
  }
}

template <StablehloBinary kKind>
struct StablehloElementwise {
  static constexpr bool kFloats = kKind != StablehloBinary::bitwise_and && kKind != StablehloBinary::shift_left;
  static bool accepts(const NodeTypes& t) {
    if (t.input_count != 2 || !t.has_input[0] || !t.in(1, t.inputs[0]) || !t.out(0, t.inputs[0])) return false;
    switch (t.inputs[0]) {
      case TensorType::float32:
      case TensorType::float16:
      case TensorType::float64: return kFloats;
      case TensorType::boolean: return kKind != StablehloBinary::shift_left;
      case TensorType::int8:
      case TensorType::uint8:
      case TensorType::int16:
      case TensorType::uint16:
      case TensorType::int32:
      case TensorType::uint32:
      case TensorType::int64:
      case TensorType::uint64: return true;
      default: return false;
    }
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = stablehlo_code(kKind),
                                .types = kFloats                                 ? "float, half, double, integers, bool"
                                         : kKind == StablehloBinary::bitwise_and ? "integers, bool"
                                                                                 : "integers",
                                .accepts = &accepts,
                                .prepare = &prepare};
};
using StablehloAdd = StablehloElementwise<StablehloBinary::add>;
using StablehloMultiply = StablehloElementwise<StablehloBinary::multiply>;
using StablehloMaximum = StablehloElementwise<StablehloBinary::maximum>;
using StablehloMinimum = StablehloElementwise<StablehloBinary::minimum>;
using StablehloAnd = StablehloElementwise<StablehloBinary::bitwise_and>;
using StablehloShiftLeft = StablehloElementwise<StablehloBinary::shift_left>;

#if ONEWEIGHT_HAS_KERNELS
namespace stablehlo {
// T: float, double, bool or an integer.
template <StablehloBinary kKind, class T>
T combine(T a, T b) {
  using enum StablehloBinary;
  if constexpr (std::is_same_v<T, bool>) {
    return kKind == add || kKind == maximum ? a || b : a && b;
  } else if constexpr (kKind == maximum || kKind == minimum) {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a || b != b) return a + b;
    }
    return (kKind == maximum ? a < b : b < a) ? b : a;
  } else if constexpr (std::is_floating_point_v<T>) {
    return kKind == multiply ? a * b : a + b;
  } else if constexpr (kKind == bitwise_and) {
    return static_cast<T>(a & b);
  } else if constexpr (kKind == shift_left) {
    using U = std::make_unsigned_t<T>;
    const auto by = static_cast<U>(b);
    return by < sizeof(T) * 8 ? static_cast<T>(static_cast<uint64_t>(static_cast<U>(a)) << by) : T{0};
  } else {
    const auto wide_a = static_cast<uint64_t>(a), wide_b = static_cast<uint64_t>(b);
    return static_cast<T>(kKind == multiply ? wide_a * wide_b : wide_a + wide_b);
  }
}

template <StablehloBinary kKind, class T>
void elementwise_kernel(const KernelArgs& args) {
  const auto& p = args.params<UnaryParams>();
  const T *a = args.in<T>(0), *b = args.in<T>(1);
  T* out = args.out<T>(0);
  for (int64_t i = p.elements.begin(args.rows), end = p.elements.end(args.rows); i < end; ++i) {
    if constexpr (std::is_same_v<T, half>)
      out[i] = float_to_half(combine<kKind, float>(half_to_float(a[i]), half_to_float(b[i])));
    else if constexpr (std::is_same_v<T, bool>)  // any byte but 0 is true
      out[i] = combine<kKind, T>(args.in<uint8_t>(0)[i] != 0, args.in<uint8_t>(1)[i] != 0);
    else
      out[i] = combine<kKind, T>(a[i], b[i]);
  }
}
}  // namespace stablehlo

template <StablehloBinary kKind>
Status StablehloElementwise<kKind>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand &a = p.input(0), &b = p.input(1);
  if (!(a.shape == b.shape)) return p.invalid("%s and %s differ in shape", p.describe(a).c_str(), p.describe(b).c_str());
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, a.shape));
  UnaryParams* params = p.make_params<UnaryParams>();
  if (!params) return p.no_memory();
  params->elements = ElementRows(a.shape);
  KernelFn kernel = nullptr;
  const auto use = [&]<class T>(T) {
    constexpr bool kFloat = std::is_floating_point_v<T> || std::is_same_v<T, half>;
    if constexpr ((kFloats || !kFloat) && !(kKind == StablehloBinary::shift_left && std::is_same_v<T, bool>))
      if (a.type == tensor_type_of<T>) kernel = &stablehlo::elementwise_kernel<kKind, T>;
  };
  use(float{}), use(half{}), use(double{}), use(bool{}), use(int8_t{}), use(uint8_t{}), use(int16_t{}), use(uint16_t{}), use(int32_t{}),
      use(uint32_t{}), use(int64_t{}), use(uint64_t{});
  p.set_kernel(kernel, params->elements.rows);
  p.allow_in_place(0);
  p.allow_in_place(1);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_STABLEHLO_ELEMENTWISE_H
