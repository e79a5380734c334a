// ADD, SUB and MUL with numpy broadcasting to rank 8 and a fused activation (none, relu, relu6, relu_n1_to_1).
// Float, half (in float), int32, int64 and int16 without scales (wrapping), complex64; int8, uint8, int16 bit-exact with TFLite's reference
// kernels: for sums both operands are scaled by 2^20 (int16: 2^15) over twice the larger scale, added, and
// scaled to the output; for products (q1 - z1)(q2 - z2) is scaled once. Sums of bytes are linear forms of the operands,
// computed from bounds of the reference kernel's roundings; where the bounds round apart it is followed step by step.
// NaN passes the activation. In place where an operand has the output's shape. A float product of x with the logistic function of x
// becomes an activation of what computes x, or one function; a product of bytes with a function of theirs becomes a table.
#ifndef ONEWEIGHT_OPS_ADD_H
#define ONEWEIGHT_OPS_ADD_H

#include <complex>

#include "oneweight/base/fixed_point.h"
#include "oneweight/ops/broadcast.h"
#include "oneweight/ops/elementwise.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// Bounds of an 8-bit sum without the output's zero point: floor((a factor[0] + b factor[1] + low) / 2^shift), and the same
// with `width` added. Only where `usable`.
struct LinearSum {
  int32_t factor[2] = {}, low = 0, width = 0, shift = 0;
  bool usable = false;
};

struct SumParams {
  BroadcastPlan<2> broadcast;
  ElementRows elements;
  FusedActivation activation;        // float
  int64_t low = 0, high = 0;         // stored bounds of integer types
  int32_t zero_point[2] = {}, out_zero_point = 0;
  int32_t left_shift = 0;
  FixedMultiplier factor[2], out_factor;
  bool halves[2] = {};               // factor is 1/2: no rounding
  bool narrow = false;               // 8 bits: no shift to the left
  LinearSum linear;
};

enum class SumKind { add, sub, mul };

template <SumKind kKind>
struct Sum2 {
  static bool accepts(const NodeTypes& t) {
    if (t.input_count != 2 || t.inputs[0] != t.inputs[1] || !t.out(0, t.inputs[0])) return false;
    switch (t.inputs[0]) {
      case TensorType::float32: case TensorType::float16: case TensorType::int8: case TensorType::uint8: case TensorType::int16:
      case TensorType::int32: case TensorType::int64: case TensorType::uint32: case TensorType::complex64: return true;
      default: return false;
    }
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kKind == SumKind::add   ? BuiltinOperator::add
                                        : kKind == SumKind::sub ? BuiltinOperator::sub
                                                                : BuiltinOperator::mul,
                                .types = "float, half, int8, uint8, int16, int32, int64", .accepts = &accepts, .prepare = &prepare};
};
using Add = Sum2<SumKind::add>;
using Sub = Sum2<SumKind::sub>;
using Mul = Sum2<SumKind::mul>;

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_ADD_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_ADD_TARGET) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_ADD_TARGET
#undef ONEWEIGHT_OPS_ADD_TARGET
#else
#define ONEWEIGHT_OPS_ADD_TARGET
#endif

#include "oneweight/ops/table-inl.h"
#include "oneweight/simd/activation-inl.h"
#include "oneweight/simd/elementwise-inl.h"
#include "oneweight/simd/quantized_store-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <SumKind kKind, FusedActivation::After kAfter>
HWY_INLINE void sum_floats(const KernelArgs& args) {
  const auto& p = args.params<SumParams>();
  map_broadcast(p.broadcast, p.elements.begin(args.rows), p.elements.end(args.rows), args.in<float>(0), args.in<float>(1), args.out<float>(0),
                [&p](auto d, auto x, auto y) HWY_ATTR {
                  const auto z = kKind == SumKind::add ? hn::Add(x, y) : kKind == SumKind::sub ? hn::Sub(x, y) : hn::Mul(x, y);
                  return activate_after<kAfter>(d, clamp_keep_nan(d, z, hn::Set(d, p.activation.low), hn::Set(d, p.activation.high)));
                });
}

template <SumKind kKind>
void sum_float_kernel(const KernelArgs& args) {
  with_activation(args.params<SumParams>().activation.after, [&](auto after) HWY_ATTR { sum_floats<kKind, decltype(after)::value>(args); });
}

// MUL of a tensor by its own logistic function.
inline void swish_float_kernel(const KernelArgs& args) {
  const auto& p = args.params<UnaryParams>();
  const int64_t begin = p.elements.begin(args.rows);
  map_floats(args.in<float>(0) + begin, args.out<float>(0) + begin, static_cast<size_t>(p.elements.end(args.rows) - begin),
             [](auto d, auto x) HWY_ATTR { return activate_after<FusedActivation::swish>(d, x); });
}

// Factors of 8-bit operands, whose shifted values stay below 2^30.
template <class D>
struct SumFactors {
  NarrowFactors<D> in[2], out;
};
template <class D>
HWY_INLINE SumFactors<D> sum_factors(D d, const SumParams& p) {
  const auto of = [&](const FixedMultiplier& f) HWY_ATTR { return narrow_factors(d, hn::Set(d, f.multiplier), hn::Set(d, f.shift), false); };
  return {{of(p.factor[0]), of(p.factor[1])}, of(p.out_factor)};
}

// One vector of results from two of stored operands, without zero point and bounds of the output.
template <SumKind kKind, bool kNarrow, class D, class V = hn::Vec<D>>
HWY_INLINE V sum_quantized(D d, const SumParams& p, const SumFactors<D>& f, V x, V y) {
  const auto operand = [&](V v, int k) HWY_ATTR {
    v = hn::Sub(v, hn::Set(d, p.zero_point[k]));
    if constexpr (kKind == SumKind::mul) return v;
    if (p.halves[k]) return hn::ShiftLeftSame(v, p.left_shift - 1);
    v = hn::ShiftLeftSame(v, p.left_shift);
    if constexpr (kNarrow) return requantize_narrow(d, v, f.in[k]);
    else return requantize(d, v, p.factor[k]);
  };
  x = operand(x, 0), y = operand(y, 1);
  const V z = kKind == SumKind::add ? hn::Add(x, y) : kKind == SumKind::sub ? hn::Sub(x, y) : hn::Mul(x, y);
  if constexpr (kNarrow) return requantize_narrow(d, z, f.out);
  else return requantize(d, z, p.out_factor);
}

template <SumKind kKind, class T, bool kNarrow>
HWY_INLINE void sum_quantized_rows(const KernelArgs& args) {
  const SumParams p = args.params<SumParams>();  // a copy: the compiler takes stored bytes for changes of the original
  const T *a = args.in<T>(0), *b = args.in<T>(1);
  T* out = args.out<T>(0);
  const Int32Tag d;
  const hn::Rebind<T, Int32Tag> dt;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  const auto factors = sum_factors(d, p);
  const auto zero = hn::Set(d, p.out_zero_point), low = hn::Set(d, static_cast<int32_t>(p.low)), high = hn::Set(d, static_cast<int32_t>(p.high));
  for_each_run(p.broadcast, p.elements.begin(args.rows), p.elements.end(args.rows), [&](int64_t o, const int64_t* at, int64_t count, const int64_t* step) HWY_ATTR {
    const auto load = [&](const T* from, int64_t stride, int64_t i, int64_t left) HWY_ATTR {
      if (stride == 0) return hn::Set(d, *from);
      if (left >= n) return hn::PromoteTo(d, hn::LoadU(dt, from + i));
      return hn::PromoteTo(d, hn::LoadN(dt, from + i, static_cast<size_t>(left)));
    };
    const auto result = [&](int64_t i, int64_t left) HWY_ATTR {
      return sum_quantized<kKind, kNarrow>(d, p, factors, load(a + at[0], step[0], i, left), load(b + at[1], step[1], i, left));
    };
    int64_t i = 0;
#if ONEWEIGHT_PACKS_BYTES
    if constexpr (sizeof(T) == 1) {
      const BytePacker<T, Int32Tag> packer(d, p.out_zero_point, static_cast<int32_t>(p.low), static_cast<int32_t>(p.high));
      const auto exact = [&](int64_t k) HWY_ATTR { return packer.pack(result(k, n), result(k + n, n), result(k + 2 * n, n), result(k + 3 * n, n)); };
      const hn::Repartition<T, Int32Tag> d8;
      if (kKind != SumKind::mul && p.linear.usable) {
        const auto fa = hn::Set(d, p.linear.factor[0]), fb = hn::Set(d, p.linear.factor[1]), low = hn::Set(d, p.linear.low), width = hn::Set(d, p.linear.width);
        const auto sum = [&](int64_t k) HWY_ATTR {
          return hn::Add(hn::Add(hn::Mul(load(a + at[0], step[0], k, n), fa), low), hn::Mul(load(b + at[1], step[1], k, n), fb));
        };
        const auto rounded = [&](auto v) HWY_ATTR { return hn::ShiftRightSame(v, p.linear.shift); };
        for (; i + 4 * n <= count; i += 4 * n) {
          const auto s0 = sum(i), s1 = sum(i + n), s2 = sum(i + 2 * n), s3 = sum(i + 3 * n);
          const auto from = packer.pack(rounded(s0), rounded(s1), rounded(s2), rounded(s3));
          const auto to = packer.pack(rounded(hn::Add(s0, width)), rounded(hn::Add(s1, width)), rounded(hn::Add(s2, width)), rounded(hn::Add(s3, width)));
          hn::StoreU(HWY_LIKELY(hn::AllTrue(d8, hn::Eq(from, to))) ? from : exact(i), d8, out + o + i);
        }
      }
      for (; i + 4 * n <= count; i += 4 * n) hn::StoreU(exact(i), d8, out + o + i);
    }
#endif
    for (; i < count; i += n) {
      const int64_t left = count - i;
      const auto z = hn::Add(result(i, left), zero);
      const auto narrow = hn::DemoteTo(dt, hn::Min(hn::Max(z, low), high));
      if (left >= n) hn::StoreU(narrow, dt, out + o + i);
      else hn::StoreN(narrow, dt, out + o + i, static_cast<size_t>(left));
    }
  });
}

// T: int8_t, uint8_t or int16_t.
template <SumKind kKind, class T>
void sum_quantized_kernel(const KernelArgs& args) {
  if constexpr (sizeof(T) == 1) {
    if (args.params<SumParams>().narrow) return sum_quantized_rows<kKind, T, true>(args);
  }
  sum_quantized_rows<kKind, T, false>(args);
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// Types that are rarely hot, in plain loops. T: half, int16_t, int32_t, int64_t, uint32_t, std::complex<float>.
template <SumKind kKind, class T>
void sum_plain_kernel(const KernelArgs& args) {
  const auto& p = args.params<SumParams>();
  const auto combine = [&](T a, T b) -> T {
    if constexpr (std::is_same_v<T, half>) {
      const float x = half_to_float(a), y = half_to_float(b);
      float z = kKind == SumKind::add ? x + y : kKind == SumKind::sub ? x - y : x * y;
      if (z < p.activation.low) z = p.activation.low;
      if (z > p.activation.high) z = p.activation.high;
      return float_to_half(z);
    } else if constexpr (std::is_integral_v<T>) {
      const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
      const auto z = static_cast<T>(kKind == SumKind::add ? x + y : kKind == SumKind::sub ? x - y : x * y);
      if constexpr (std::is_unsigned_v<T>) return z;
      else return static_cast<int64_t>(z) < p.low ? static_cast<T>(p.low) : static_cast<int64_t>(z) > p.high ? static_cast<T>(p.high) : z;
    } else {
      return kKind == SumKind::add ? a + b : kKind == SumKind::sub ? a - b : a * b;
    }
  };
  for_each_run(p.broadcast, p.elements.begin(args.rows), p.elements.end(args.rows), [&](int64_t o, const int64_t* at, int64_t count, const int64_t* step) {
    for (int64_t i = 0; i < count; ++i) args.out<T>(0)[o + i] = combine(args.in<T>(0)[at[0] + i * step[0]], args.in<T>(1)[at[1] + i * step[1]]);
  });
}

// The linear form of a sum (signs: 1, or -1 for the second operand of a difference). The reference kernel rounds each operand to a
// multiple of twice / 2^20 (twice: double the larger scale), by at most two thirds of it, and their sum times twice / (2^20 so) first to a fraction as fine
// or finer. Not usable where it overflows, or where many sums lie where the bounds round apart, as in halves of integers.
inline LinearSum linear_sum(double sa, double sb, double so, const SumParams& p, bool subtract, int32_t lowest) {
  LinearSum f;
  const double ra = sa / so, rb = sb / so, largest = 255 * (ra + rb) + 300;
  if (!(largest < (1 << 14))) return f;
  for (f.shift = 22; largest * static_cast<double>(int64_t{1} << f.shift) >= 2147483648.0;) --f.shift;
  const double one = static_cast<double>(int64_t{1} << f.shift), unit = 2 * std::max(ra, rb) / (1 << 20);
  const int64_t a = std::llround(ra * one), b = std::llround(rb * one) * (subtract ? -1 : 1);
  const auto error = static_cast<int64_t>(std::ceil((4 * unit + largest / (1 << 29)) * one)) + 256;  // 255 steps of each factor's half
  const int64_t middle = (int64_t{1} << (f.shift - 1)) - p.zero_point[0] * a - p.zero_point[1] * b;
  f.factor[0] = static_cast<int32_t>(a), f.factor[1] = static_cast<int32_t>(b);
  f.width = static_cast<int32_t>(2 * error);
  const int64_t low = middle - error;
  for (const int64_t x : {lowest, lowest + 255})
    for (const int64_t y : {lowest, lowest + 255})
      if (low + a * x + b * y < INT32_MIN || low + a * x + b * y + 2 * error > INT32_MAX) return f;  // zero points far outside
  f.low = static_cast<int32_t>(static_cast<uint32_t>(low));  // sums are right modulo 2^32
  int apart = 0;
  for (int64_t x = lowest; x < lowest + 256; ++x)
    for (int64_t y = lowest + x % 4 + 4; y < lowest + 256; y += 61) apart += (low + a * x + b * y) >> f.shift != (low + a * x + b * y + 2 * error) >> f.shift;
  f.usable = apart < 16;  // of about 1100 pairs
  return f;
}

template <SumKind kKind, class T>
Status prepare_quantized_sum(Preparation& p, SumParams* params, const FusedActivation& bounds, KernelFn kernel) {
  const Operand &a = p.input(0), &b = p.input(1), &out = p.output(0);
  for (const Operand* t : {&a, &b, &out}) ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, *t));
  const QuantizedRange range = quantized_range(bounds.low, bounds.high, out.scale(), out.zero_point(), std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  params->low = range.low, params->high = range.high;
  params->zero_point[0] = a.zero_point(), params->zero_point[1] = b.zero_point();
  params->out_zero_point = out.zero_point();
  const double sa = static_cast<double>(a.scale()), sb = static_cast<double>(b.scale()), so = static_cast<double>(out.scale());
  if constexpr (kKind == SumKind::mul) {
    params->out_factor = quantize_multiplier(static_cast<double>(a.scale() * b.scale() / out.scale()));  // in float, as the reference kernel
  } else {
    params->left_shift = sizeof(T) == 2 ? 15 : 20;
    const double twice = 2 * std::max(sa, sb);
    params->factor[0] = quantize_multiplier(sa / twice);
    params->factor[1] = quantize_multiplier(sb / twice);
    params->out_factor = quantize_multiplier(twice / (static_cast<double>(1 << params->left_shift) * so));
    for (int k = 0; k < 2; ++k) params->halves[k] = params->factor[k].multiplier == 1 << 30 && params->factor[k].shift == 0;
  }
  if constexpr (sizeof(T) == 1 && kKind != SumKind::mul)
    params->linear = linear_sum(sa, sb, so, *params, kKind == SumKind::sub, std::numeric_limits<T>::min());
  params->narrow = params->out_factor.shift <= 0 && params->factor[0].shift <= 0 && params->factor[1].shift <= 0;
  p.set_kernel(kernel, params->elements.rows);
  p.set_same_rows();
  return {};
}

// The product of bytes x with a function of theirs (`gate`, by a table) is a table again.
inline Status prepare_product_table(Preparation& p, const Operand& gate, const uint8_t* gates) {
  const Operand x = p.input(0), out = p.output(0);
  for (const Operand* t : {&x, &gate, &out}) ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, *t));
  FusedActivation bounds;
  ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, static_cast<Activation>(p.options().get<int8_t>(0, 0)), &bounds));
  const bool is_signed = out.type == TensorType::int8;
  const QuantizedRange range = quantized_range(bounds.low, bounds.high, out.scale(), out.zero_point(), is_signed ? -128 : 0, is_signed ? 127 : 255);
  const FixedMultiplier factor = quantize_multiplier(static_cast<double>(x.scale() * gate.scale() / out.scale()));
  TableParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_unary(p, ONEWEIGHT_KERNEL(p.target(), table_kernel), &params));
  uint8_t* table = p.derived<uint8_t>(256);
  if (!table) return p.no_memory();
  const auto stored = [&](int bits) { return is_signed ? static_cast<int8_t>(bits) : bits; };
  for (int i = 0; i < 256; ++i) {
    const int32_t product = (stored(i) - x.zero_point()) * (stored(gates[i]) - gate.zero_point());
    const int32_t q = multiply_by_quantized_multiplier(product, factor) + out.zero_point();
    table[i] = static_cast<uint8_t>(std::clamp(q, range.low, range.high));
  }
  params->table = table;
  p.set_table(table);
  return {};
}

template <SumKind kKind>
Status Sum2<kKind>::prepare(Preparation& p) {
  if constexpr (kKind == SumKind::mul) {
    const uint8_t* table = nullptr;
    if (const bool is_float = p.output(0).type == TensorType::float32; !is_float || p.options().get<int8_t>(0, 0) == 0) {
      const Operand operands[2] = {p.input(0), p.input(1)};
      const int vanished = p.absorb_function(&table);
      if (vanished >= 0 && table) return prepare_product_table(p, operands[vanished], table);
      if (vanished >= 0) {
        FusedActivation swish;
        swish.after = FusedActivation::swish;
        if (p.fuse_activation(swish)) return {};
        UnaryParams* unary;
        return prepare_unary(p, ONEWEIGHT_KERNEL(p.target(), swish_float_kernel), &unary);
      }
    }
  }
  SumParams* params;
  ONEWEIGHT_RETURN_IF_ERROR(prepare_broadcast(p, &params));
  params->elements = ElementRows(p.output(0).shape);
  FusedActivation bounds;
  ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, static_cast<Activation>(p.options().get<int8_t>(0, 0)), &bounds));
  params->activation = bounds;
  const bool clamped = std::isfinite(bounds.low);
  const auto integer_bounds = [&](int64_t low, int64_t high) {
    params->low = clamped ? static_cast<int64_t>(bounds.low) : low;
    params->high = std::isfinite(bounds.high) ? static_cast<int64_t>(bounds.high) : high;
  };
  const int64_t rows = params->elements.rows;
  switch (p.output(0).type) {
    case TensorType::float32:
      p.set_kernel(ONEWEIGHT_KERNEL(p.target(), sum_float_kernel<kKind>), rows);
      p.set_same_rows();
      p.offer_activation(&params->activation);
      return {};
    case TensorType::int8: return prepare_quantized_sum<kKind, int8_t>(p, params, bounds, ONEWEIGHT_KERNEL(p.target(), sum_quantized_kernel<kKind, int8_t>));
    case TensorType::uint8: return prepare_quantized_sum<kKind, uint8_t>(p, params, bounds, ONEWEIGHT_KERNEL(p.target(), sum_quantized_kernel<kKind, uint8_t>));
    case TensorType::int16:
      if (!p.input(0).quantized() && !p.input(1).quantized() && !p.output(0).quantized()) {  // plain numbers
        integer_bounds(std::numeric_limits<int16_t>::min(), std::numeric_limits<int16_t>::max());
        p.set_kernel(&sum_plain_kernel<kKind, int16_t>, rows);
        return {};
      }
      return prepare_quantized_sum<kKind, int16_t>(p, params, bounds, ONEWEIGHT_KERNEL(p.target(), sum_quantized_kernel<kKind, int16_t>));
    case TensorType::float16: p.set_kernel(&sum_plain_kernel<kKind, half>, rows); return {};
    case TensorType::int32:
      integer_bounds(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
      p.set_kernel(&sum_plain_kernel<kKind, int32_t>, rows);
      return {};
    case TensorType::int64:
      integer_bounds(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
      p.set_kernel(&sum_plain_kernel<kKind, int64_t>, rows);
      return {};
    case TensorType::uint32: p.set_kernel(&sum_plain_kernel<kKind, uint32_t>, rows); return {};
    default: p.set_kernel(&sum_plain_kernel<kKind, std::complex<float>>, rows); return {};
  }
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // per target
#endif  // ONEWEIGHT_HAS_KERNELS
