// MEAN, SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, REDUCE_ANY and REDUCE_ALL over the constant axes of input 1 (negative
// and repeated ones allowed; none: every element by itself).
// float: rounding errors of long sums are kept, so that a mean over millions of cells stays accurate; the order of
// additions depends on the shape alone. int32, int64: sums wrap, means truncate toward zero. int8, uint8, int16: exact
// sums, rescaled in fixed point as TFLite's reference kernel does; products are rescaled at every factor, maxima and
// minima need equal scales. Nothing to reduce: 0 for SUM, NaN (integers: 0) for MEAN, the identity for the others.
// Rows: outputs, in blocks of channels where the last axis is kept.
#ifndef ONEWEIGHT_OPS_REDUCTION_H
#define ONEWEIGHT_OPS_REDUCTION_H

#include <algorithm>
#include <cmath>

#include "oneweight/base/fixed_point.h"
#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

enum class Reduction { mean, sum, maximum, minimum, product, any, all };

// Axes merged where neighbours are reduced, or kept, together. Strides in elements.
struct ReductionGeometry {
  int kept_rank = 0, reduced_rank = 0;  // besides `inner` and `run`
  int64_t kept[kMaxRank] = {}, kept_strides[kMaxRank] = {};
  int64_t reduced[kMaxRank] = {}, reduced_strides[kMaxRank] = {};
  int64_t run = 1, run_stride = 1;  // the innermost reduced axes
  int64_t inner = 1;                // kept elements that lie together
  int64_t outer = 1;                // products of kept, reduced
  int64_t cells = 1;                // elements behind one output

  // Position of the input's first cell for outer output `index`.
  int64_t origin(int64_t index) const {
    int64_t at = 0;
    for (int i = kept_rank - 1; i >= 0; --i) {
      at += index % kept[i] * kept_strides[i];
      index /= kept[i];
    }
    return at;
  }
  // Calls run_at(offset from the origin) for every run of cells, in order.
  template <class RunAt>
  void for_each_run(RunAt run_at) const {
    int64_t index[kMaxRank] = {}, at = 0, runs = 1;
    for (int i = 0; i < reduced_rank; ++i) runs *= reduced[i];
    for (int64_t r = 0; r < runs; ++r) {
      run_at(at);
      for (int i = reduced_rank - 1; i >= 0; --i) {
        at += reduced_strides[i];
        if (++index[i] < reduced[i]) break;
        at -= reduced_strides[i] * reduced[i];
        index[i] = 0;
      }
    }
  }
};

struct ReductionParams {
  ReductionGeometry geometry;
  int64_t block = 1;   // kept elements of `inner` that make a row
  int64_t blocks = 1;  // of them in each outer output
  FixedMultiplier factor;
  int32_t in_zero = 0, out_zero = 0;
};

constexpr BuiltinOperator reduction_code(Reduction kind) {
  switch (kind) {
    case Reduction::mean: return BuiltinOperator::mean;
    case Reduction::sum: return BuiltinOperator::sum;
    case Reduction::maximum: return BuiltinOperator::reduce_max;
    case Reduction::minimum: return BuiltinOperator::reduce_min;
    case Reduction::product: return BuiltinOperator::reduce_prod;
    case Reduction::any: return BuiltinOperator::reduce_any;
    default: return BuiltinOperator::reduce_all;
  }
}

template <Reduction kKind>
struct Reduce {
  static constexpr bool kLogical = kKind == Reduction::any || kKind == Reduction::all;
  static bool accepts(const NodeTypes& t) {
    if (t.input_count != 2 || !t.has_input[0] || !t.out(0, t.inputs[0])) return false;
    switch (t.inputs[0]) {
      case TensorType::boolean: return kLogical;
      case TensorType::float32:
      case TensorType::int32:
      case TensorType::int64:
      case TensorType::int8:
      case TensorType::uint8:
      case TensorType::int16: return !kLogical;
      default: return false;
    }
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = reduction_code(kKind),
                                .types = kLogical ? "bool" : "float, int8, uint8, int16, int32, int64",
                                .accepts = &accepts,
                                .prepare = &prepare};
};
using Mean = Reduce<Reduction::mean>;
using Sum = Reduce<Reduction::sum>;
using ReduceMax = Reduce<Reduction::maximum>;
using ReduceMin = Reduce<Reduction::minimum>;
using ReduceProd = Reduce<Reduction::product>;
using ReduceAny = Reduce<Reduction::any>;
using ReduceAll = Reduce<Reduction::all>;

#if ONEWEIGHT_HAS_KERNELS
namespace reduction {
inline constexpr int64_t kBlock = 64;

template <Reduction kKind, class T>
constexpr T start() {
  using Limits = std::numeric_limits<T>;
  if constexpr (kKind == Reduction::maximum)
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  else if constexpr (kKind == Reduction::minimum)
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  else if constexpr (kKind == Reduction::product || kKind == Reduction::all)
    return T(1);
  else
    return T(0);
}
template <Reduction kKind, class T>
T take(T state, T cell) {
  if constexpr (kKind == Reduction::maximum)
    return state < cell ? cell : state;
  else if constexpr (kKind == Reduction::minimum)
    return cell < state ? cell : state;
  else if constexpr (kKind == Reduction::any)
    return state || cell;
  else if constexpr (kKind == Reduction::all)
    return state && cell;
  else if constexpr (std::is_floating_point_v<T>)
    return kKind == Reduction::product ? state * cell : state + cell;
  else if constexpr (kKind == Reduction::product)
    return static_cast<T>(static_cast<uint64_t>(state) * static_cast<uint64_t>(cell));
  else
    return static_cast<T>(static_cast<uint64_t>(state) + static_cast<uint64_t>(cell));
}

// Calls finish(state, output) for each output of args.rows, with states of type State folded by fold(state, cell).
template <class T, class State, class Fold, class Finish>
void run(const KernelArgs& args, State first, Fold fold, Finish finish) {
  const auto& p = args.params<ReductionParams>();
  const ReductionGeometry& g = p.geometry;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int64_t outer = row / p.blocks, begin = row % p.blocks * p.block, end = std::min(begin + p.block, g.inner);
    const T* in = args.in<T>(0) + g.origin(outer);
    T* out = args.out<T>(0) + outer * g.inner;
    for (int64_t c = begin; c < end; c += kBlock) {
      const int64_t n = std::min(kBlock, end - c);
      State states[kBlock];
      for (int64_t i = 0; i < n; ++i) states[i] = first;
      if (g.cells > 0) {
        g.for_each_run([&](int64_t at) {
          const T* cell = in + at + c;
          for (int64_t r = 0; r < g.run; ++r, cell += g.run_stride)
            for (int64_t i = 0; i < n; ++i) states[i] = fold(states[i], cell[i]);
        });
      }
      for (int64_t i = 0; i < n; ++i) finish(states[i], &out[c + i]);
    }
  }
}

// What needs no scale: extremes, logic, products of plain numbers.
template <Reduction kKind, class T>
void plain(const KernelArgs& args) {
  run<T, T>(args, start<kKind, T>(), take<kKind, T>, [](T state, T* to) { *to = state; });
}

template <bool kMean, class T>
void wide_sum(const KernelArgs& args) {
  const int64_t cells = args.params<ReductionParams>().geometry.cells;
  run<T, int64_t>(
      args, 0, [](int64_t s, T x) { return take<Reduction::sum, int64_t>(s, x); },
      [&](int64_t s, T* to) {
        *to = static_cast<T>(!kMean ? s : cells > 0 ? s / cells : 0);
      });
}

template <class T>
T rescaled(int64_t sum, const ReductionParams& p) {
  const int64_t value = int64_t{multiply_by_quantized_multiplier(static_cast<int32_t>(sum), p.factor)} + p.out_zero;
  return static_cast<T>(std::clamp<int64_t>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

template <class T>
void quantized_sum(const KernelArgs& args) {
  const auto& p = args.params<ReductionParams>();
  const int64_t offset = p.geometry.cells * p.in_zero;
  run<T, int64_t>(
      args, 0, [](int64_t s, T x) { return s + x; }, [&](int64_t s, T* to) { *to = rescaled<T>(s - offset, p); });
}

struct Product {
  int32_t value = 0;
  bool begun = false;
};
template <class T>
void quantized_product(const KernelArgs& args) {
  const auto& p = args.params<ReductionParams>();
  run<T, Product>(
      args, Product{},
      [&](Product s, T x) {
        const int32_t real = x - p.in_zero;
        return Product{s.begun ? multiply_by_quantized_multiplier(int64_t{s.value} * real, p.factor) : real, true};
      },
      [&](Product s, T* to) {
        const int64_t value = int64_t{multiply_by_quantized_multiplier(int64_t{s.value}, p.factor)} + p.out_zero;
        *to = static_cast<T>(std::clamp<int64_t>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
      });
}

template <Reduction kKind>
KernelFn choose(TensorType type, bool rescale) {
  constexpr bool kSums = kKind == Reduction::mean || kKind == Reduction::sum;
  const auto of = [&]<class T>(T) -> KernelFn {
    if constexpr (kSums)
      return rescale ? &quantized_sum<T> : &wide_sum<kKind == Reduction::mean, T>;
    else if constexpr (kKind == Reduction::product)
      return rescale ? &quantized_product<T> : &plain<kKind, T>;
    else
      return &plain<kKind, T>;
  };
  switch (type) {
    case TensorType::int8: return of(int8_t{});
    case TensorType::uint8: return of(uint8_t{});
    case TensorType::int16: return of(int16_t{});
    case TensorType::int32:
      if constexpr (kSums)
        return &wide_sum<kKind == Reduction::mean, int32_t>;
      else
        return &plain<kKind, int32_t>;
    case TensorType::int64:
      if constexpr (kSums)
        return &wide_sum<kKind == Reduction::mean, int64_t>;
      else
        return &plain<kKind, int64_t>;
    default: return nullptr;
  }
}
}  // namespace reduction

// Output shape, geometry and rows.
inline Status prepare_reduction(Preparation& p, ReductionParams* params) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Shape& in = p.input(0).shape;
  std::vector<int64_t> axes;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &axes));
  bool reduced[kMaxRank] = {};
  for (int64_t wanted : axes) {
    int axis = 0;
    if (in.rank() == 0 && (wanted == 0 || wanted == -1)) continue;
    ONEWEIGHT_RETURN_IF_ERROR(p.normalize_axis(wanted, in.rank(), &axis));
    reduced[axis] = true;
  }
  const bool keep = p.options().get<bool>(0, false);
  Shape shape;
  int64_t strides[kMaxRank];
  dense_strides(in, 1, strides);
  ReductionGeometry& g = params->geometry;
  // From the innermost axis out: groups of reduced and of kept axes.
  struct Group {
    int64_t extent, stride;
    bool reduced;
  } groups[kMaxRank];
  int count = 0;
  for (int i = in.rank() - 1; i >= 0; --i) {
    if (in[i] == 1) continue;
    if (count > 0 && groups[count - 1].reduced == reduced[i])
      groups[count - 1].extent *= in[i];
    else
      groups[count++] = {in[i], strides[i], reduced[i]};
  }
  for (int i = 0; i < in.rank(); ++i) {
    if (!reduced[i])
      shape.push_back(in[i]);
    else if (keep)
      shape.push_back(1);
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  int first = 0;
  if (count > 0 && !groups[0].reduced) g.inner = groups[first++].extent;
  if (first < count) {
    g.run = groups[first].extent, g.run_stride = groups[first].stride;
    g.cells = g.run;
    ++first;
  }
  for (int i = count - 1; i >= first; --i) {
    const Group& group = groups[i];
    if (group.reduced) {
      g.reduced[g.reduced_rank] = group.extent, g.reduced_strides[g.reduced_rank++] = group.stride;
      g.cells *= group.extent;
    } else {
      g.kept[g.kept_rank] = group.extent, g.kept_strides[g.kept_rank++] = group.stride;
      g.outer *= group.extent;
    }
  }
  params->block = std::max<int64_t>(std::min(g.inner, reduction::kBlock * 4), 1);
  params->blocks = (g.inner + params->block - 1) / params->block;
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_REDUCTION_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_REDUCTION_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_REDUCTION_KERNELS
#undef ONEWEIGHT_OPS_REDUCTION_KERNELS
#else
#define ONEWEIGHT_OPS_REDUCTION_KERNELS
#endif
#include "oneweight/simd/targets.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A sum that stays accurate over millions of addends: every kSpan of them join the rest, whose rounding errors are
// kept.
template <class D, class V = hn::Vec<D>>
struct LongSum {
  static constexpr int kSpan = 16;
  V low, high, error;
  int count = 0;
  explicit HWY_INLINE LongSum(D d) : low(hn::Zero(d)), high(hn::Zero(d)), error(hn::Zero(d)) {}
  HWY_INLINE void add(D d, V x) {
    low = hn::Add(low, x);
    if (++count < kSpan) return;
    const V sum = hn::Add(high, low), part = hn::Sub(sum, high);
    error = hn::Add(error, hn::Add(hn::Sub(high, hn::Sub(sum, part)), hn::Sub(low, part)));
    high = sum, low = hn::Zero(d), count = 0;
  }
  HWY_INLINE V total(D d) const {
    const V kept = hn::IfThenElse(hn::Eq(error, error), error, hn::Zero(d));  // infinities leave no error but NaN
    return hn::Add(high, hn::Add(low, kept));
  }
};

template <bool kMean>
void sum_floats(const KernelArgs& args) {
  const auto& p = args.params<ReductionParams>();
  const ReductionGeometry& g = p.geometry;
  const hn::ScalableTag<float> d;
  using Sum = LongSum<decltype(d)>;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  const auto cells = static_cast<float>(g.cells);
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int64_t outer = row / p.blocks, begin = row % p.blocks * p.block, end = std::min(begin + p.block, g.inner);
    const float* in = args.in<float>(0) + g.origin(outer);
    float* out = args.out<float>(0) + outer * g.inner;
    const auto divisor = hn::Set(d, kMean ? cells : 1.0f);
    if (g.cells == 0) {
      for (int64_t c = begin; c < end; ++c) out[c] = kMean ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
    } else if (g.inner == 1 && g.run_stride == 1) {
      Sum s0(d), s1(d);
      g.for_each_run([&](int64_t at) HWY_ATTR {
        const float* cell = in + at;
        int64_t i = 0;
        for (; i + 2 * n <= g.run; i += 2 * n) {
          s0.add(d, hn::LoadU(d, cell + i));
          s1.add(d, hn::LoadU(d, cell + i + n));
        }
        for (; i < g.run; i += n) s0.add(d, hn::LoadN(d, cell + i, static_cast<size_t>(std::min(n, g.run - i))));
      });
      const float sum = hn::ReduceSum(d, hn::Add(s0.total(d), s1.total(d)));
      out[0] = kMean ? sum / cells : sum;
    } else {
      int64_t c = begin;
      for (; c + 2 * n <= end; c += 2 * n) {
        Sum s0(d), s1(d);
        g.for_each_run([&](int64_t at) HWY_ATTR {
          const float* cell = in + at + c;
          for (int64_t r = 0; r < g.run; ++r, cell += g.run_stride) {
            s0.add(d, hn::LoadU(d, cell));
            s1.add(d, hn::LoadU(d, cell + n));
          }
        });
        hn::StoreU(hn::Div(s0.total(d), divisor), d, out + c);
        hn::StoreU(hn::Div(s1.total(d), divisor), d, out + c + n);
      }
      for (; c < end; c += n) {
        const auto left = static_cast<size_t>(std::min(n, end - c));
        Sum s(d);
        g.for_each_run([&](int64_t at) HWY_ATTR {
          const float* cell = in + at + c;
          for (int64_t r = 0; r < g.run; ++r, cell += g.run_stride) s.add(d, hn::LoadN(d, cell, left));
        });
        hn::StoreN(hn::Div(s.total(d), divisor), d, out + c, left);
      }
    }
  }
}

// Largest or smallest float; NaN never wins.
template <Reduction kKind>
void extreme_floats(const KernelArgs& args) {
  const auto& p = args.params<ReductionParams>();
  const ReductionGeometry& g = p.geometry;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  constexpr bool kMax = kKind == Reduction::maximum;
  const float first = reduction::start<kKind, float>();
  const auto take = [](V state, V cell) HWY_ATTR {
    return hn::IfThenElse(kMax ? hn::Lt(state, cell) : hn::Lt(cell, state), cell, state);
  };
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int64_t outer = row / p.blocks, begin = row % p.blocks * p.block, end = std::min(begin + p.block, g.inner);
    const float* in = args.in<float>(0) + g.origin(outer);
    float* out = args.out<float>(0) + outer * g.inner;
    if (g.cells > 0 && g.inner == 1 && g.run_stride == 1) {
      V best = hn::Set(d, first);
      g.for_each_run([&](int64_t at) HWY_ATTR {
        int64_t i = 0;
        for (; i + n <= g.run; i += n) best = take(best, hn::LoadU(d, in + at + i));
        if (i < g.run)
          best = take(best, hn::LoadNOr(hn::Set(d, first), d, in + at + i, static_cast<size_t>(g.run - i)));
      });
      out[0] = kMax ? hn::ReduceMax(d, best) : hn::ReduceMin(d, best);
      continue;
    }
    for (int64_t c = begin; c < end; c += n) {
      const auto left = static_cast<size_t>(std::min(n, end - c));
      V best = hn::Set(d, first);
      if (g.cells > 0) {
        g.for_each_run([&](int64_t at) HWY_ATTR {
          const float* cell = in + at + c;
          for (int64_t r = 0; r < g.run; ++r, cell += g.run_stride) best = take(best, hn::LoadN(d, cell, left));
        });
      }
      hn::StoreN(best, d, out + c, left);
    }
  }
}

// Sums of 8-bit numbers where the last axis is kept, in 32 bits (few enough cells: prepare() sees to it).
template <class T>
void channel_sums(const KernelArgs& args) {
  const auto& p = args.params<ReductionParams>();
  const ReductionGeometry& g = p.geometry;
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<T, decltype(d)> d8;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  const int64_t offset = g.cells * p.in_zero;
  int32_t sums[HWY_MAX_BYTES];
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int64_t outer = row / p.blocks, begin = row % p.blocks * p.block, end = std::min(begin + p.block, g.inner);
    const T* in = args.in<T>(0) + g.origin(outer);
    T* out = args.out<T>(0) + outer * g.inner;
    for (int64_t c = begin; c < end; c += 2 * n) {
      auto s0 = hn::Zero(d), s1 = hn::Zero(d);
      const int64_t count = std::min(2 * n, end - c);
      if (count == 2 * n) {
        g.for_each_run([&](int64_t at) HWY_ATTR {
          const T* cell = in + at + c;
          for (int64_t r = 0; r < g.run; ++r, cell += g.run_stride) {
            s0 = hn::Add(s0, hn::PromoteTo(d, hn::LoadU(d8, cell)));
            s1 = hn::Add(s1, hn::PromoteTo(d, hn::LoadU(d8, cell + n)));
          }
        });
      } else {
        const auto n0 = static_cast<size_t>(std::min(n, count)),
                   n1 = static_cast<size_t>(std::max<int64_t>(count - n, 0));
        g.for_each_run([&](int64_t at) HWY_ATTR {
          const T* cell = in + at + c;
          for (int64_t r = 0; r < g.run; ++r, cell += g.run_stride) {
            s0 = hn::Add(s0, hn::PromoteTo(d, hn::LoadN(d8, cell, n0)));
            if (n1 > 0) s1 = hn::Add(s1, hn::PromoteTo(d, hn::LoadN(d8, cell + n, n1)));
          }
        });
      }
      hn::StoreU(s0, d, sums);
      hn::StoreU(s1, d, sums + n);
      for (int64_t i = 0; i < count; ++i) out[c + i] = reduction::rescaled<T>(sums[i] - offset, p);
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

template <Reduction kKind>
Status Reduce<kKind>::prepare(Preparation& p) {
  ReductionParams* params = p.make_params<ReductionParams>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(prepare_reduction(p, params));
  const Operand &input = p.input(0), &output = p.output(0);
  const ReductionGeometry& g = params->geometry;
  constexpr bool kSums = kKind == Reduction::mean || kKind == Reduction::sum;
  const bool small =
      input.type == TensorType::int8 || input.type == TensorType::uint8 || input.type == TensorType::int16;
  const bool rescale = small && (input.quantized() || output.quantized());
  if (rescale && (kSums || kKind == Reduction::product)) {
    if (!(input.scale() > 0) || !(output.scale() > 0))
      return p.invalid("%s has scale %g, its output %g: both must be above 0", p.describe(input).c_str(),
                       static_cast<double>(input.scale()), static_cast<double>(output.scale()));
    if (input.type == TensorType::int16 && (input.zero_point() != 0 || output.zero_point() != 0))
      return p.invalid("int16 zero points must be 0, not %d and %d", input.zero_point(), output.zero_point());
    if (g.cells * std::numeric_limits<uint16_t>::max() > (int64_t{1} << 47) ||
        (kSums && g.cells > (int64_t{1} << (input.type == TensorType::int16 ? 15 : 22))))
      return p.error(ErrorCode::unsupported, "sums of %lld quantised elements are not supported",
                     static_cast<long long>(g.cells));
    params->in_zero = input.zero_point(), params->out_zero = output.zero_point();
    const double in_scale = input.scale(), out_scale = output.scale();
    params->factor = kKind == Reduction::product
                         ? quantize_multiplier(
                               in_scale / std::pow(out_scale, 1.0 / static_cast<double>(std::max<int64_t>(g.cells, 1))))
                         : quantize_multiplier(in_scale / out_scale);
    if (kKind == Reduction::mean && g.cells > 0) {
      // The division by the number of cells goes into the factor.
      int shift = 0;
      while ((int64_t{2} << shift) <= g.cells) ++shift;
      shift = std::min({shift, 32, 31 + params->factor.shift});
      params->factor.multiplier =
          static_cast<int32_t>((static_cast<int64_t>(params->factor.multiplier) << shift) / g.cells);
      params->factor.shift -= shift;
    }
  } else if (rescale && (input.scale() != output.scale() || input.zero_point() != output.zero_point())) {
    return p.invalid("%s and its output differ in scale (%g, %g) or zero point (%d, %d)", p.describe(input).c_str(),
                     static_cast<double>(input.scale()), static_cast<double>(output.scale()), input.zero_point(),
                     output.zero_point());
  }
  KernelFn kernel = nullptr;
  if constexpr (kLogical) {
    kernel = &reduction::plain<kKind, bool>;
  } else if (input.type == TensorType::float32) {
    if constexpr (kSums)
      kernel = ONEWEIGHT_KERNEL(p.target(), sum_floats<kKind == Reduction::mean>);
    else if constexpr (kKind == Reduction::maximum || kKind == Reduction::minimum)
      kernel = ONEWEIGHT_KERNEL(p.target(), extreme_floats<kKind>);
    else
      kernel = &reduction::plain<kKind, float>;
  } else {
    kernel = reduction::choose<kKind>(input.type, rescale);
    if constexpr (kSums) {
      if (rescale && g.inner > 1 && g.cells > 0 && input.type == TensorType::int8)
        kernel = ONEWEIGHT_KERNEL(p.target(), channel_sums<int8_t>);
      if (rescale && g.inner > 1 && g.cells > 0 && input.type == TensorType::uint8)
        kernel = ONEWEIGHT_KERNEL(p.target(), channel_sums<uint8_t>);
    }
  }
  p.set_kernel(kernel, g.outer * params->blocks);
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // per target
#endif  // ONEWEIGHT_HAS_KERNELS
