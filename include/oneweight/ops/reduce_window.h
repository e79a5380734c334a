// REDUCE_WINDOW: sum, product, minimum, maximum, all or any (by its option) over windows of every axis, beginning with the
// scalar of input 1; window, strides and dilations are constant inputs, windows lie inside. STABLEHLO_REDUCE_WINDOW: the same
// by its options, with margins (negative ones crop) and gaps between elements that count as the scalar; the function is a
// subgraph of one operator. float (summed in float, in the order of the elements), integers (wrap), bool.
// Rows: outputs in blocks of the last axis.
#ifndef ONEWEIGHT_OPS_REDUCE_WINDOW_H
#define ONEWEIGHT_OPS_REDUCE_WINDOW_H

#include "oneweight/ops/stablehlo_body.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct ReduceWindowAxis {
  int64_t in = 1, out = 1, window = 1, stride = 1, dilation = 1, before = 0, gap = 1, step = 1;  // gap: base dilation; step: elements
};
struct ReduceWindowParams {
  int rank = 0;
  int64_t taps = 1;
  ReduceWindowAxis axes[kMaxRank];
};

template <bool kStablehlo>
struct ReduceWindowBy {
  static bool accepts(const NodeTypes& t) {
    if (!t.has_input[0] || !is_body_type(t.inputs[0]) || !t.in(1, t.inputs[0]) || !t.out(0, t.inputs[0])) return false;
    for (int i = 2; i < 5 && !kStablehlo; ++i)
      if (!t.in(i, TensorType::int64) && !t.in(i, TensorType::int32)) return false;
    return t.input_count == (kStablehlo ? 2 : 5);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kStablehlo ? BuiltinOperator::stablehlo_reduce_window : BuiltinOperator::reduce_window,
                                .types = "float, integers, bool",
                                .accepts = &accepts,
                                .prepare = &prepare};
};
using ReduceWindow = ReduceWindowBy<false>;
using StablehloReduceWindow = ReduceWindowBy<true>;

#if ONEWEIGHT_HAS_KERNELS
template <BodyFunction kFunction, class T>
void reduce_window_kernel(const KernelArgs& args) {
  const auto& p = args.params<ReduceWindowParams>();
  const std::byte* in = args.in<std::byte>(0);
  const T first = Preparation::load<T>(args.in<std::byte>(1), 0);
  const int last = p.rank - 1;
  const int64_t width = p.rank > 0 ? p.axes[last].out : 1;
  for (int64_t o = args.rows.begin * width; o < args.rows.end * width; ++o) {
    int64_t origin[kMaxRank] = {};
    for (int64_t i = last, rest = o; i >= 0; --i) {
      const ReduceWindowAxis& a = p.axes[i];
      origin[i] = rest % a.out * a.stride - a.before;
      rest /= a.out;
    }
    T state = first;
    int64_t tap[kMaxRank] = {};
    for (int64_t t = 0; t < p.taps; ++t) {
      int64_t at = 0;
      bool inside = true;
      for (int i = 0; i < p.rank; ++i) {
        const ReduceWindowAxis& a = p.axes[i];
        const int64_t place = origin[i] + tap[i] * a.dilation;
        inside = inside && place >= 0 && place % a.gap == 0 && place / a.gap < a.in;
        at += place / a.gap * a.step;
      }
      state = apply_body<kFunction, T>(state, inside ? Preparation::load<T>(in, at) : first);
      for (int i = last; i >= 0; --i) {
        if (++tap[i] < p.axes[i].window) break;
        tap[i] = 0;
      }
    }
    args.out<T>(0)[o] = state;
  }
}

// `numbers` of every axis; none: `otherwise` for all.
inline Status window_numbers(const Preparation& p, const char* what, const std::vector<int64_t>* numbers, int count, int64_t otherwise,
                             bool needed, std::vector<int64_t>* values) {
  if (!numbers || (numbers->empty() && !needed)) {
    if (needed) return p.invalid("has no %s", what);
    values->assign(static_cast<size_t>(count), otherwise);
    return {};
  }
  if (numbers->size() != static_cast<size_t>(count))
    return p.invalid("has %zu %s for %d axes", numbers->size(), what, p.input(0).shape.rank());
  *values = *numbers;
  return {};
}

template <bool kStablehlo>
Status ReduceWindowBy<kStablehlo>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(kStablehlo ? 2 : 5, kStablehlo ? 2 : 5));
  const Operand& input = p.input(0);
  const int rank = input.shape.rank();
  if (p.input(1).shape.elements() != 1) return p.invalid("the first value %s is not one element", p.describe(p.input(1)).c_str());
  BodyFunction function = BodyFunction::add;
  std::vector<int64_t> window, strides, gaps(static_cast<size_t>(rank), 1), dilations, margins(static_cast<size_t>(2 * rank), 0);
  if constexpr (kStablehlo) {
    const OptionsView& o = p.options();
    ONEWEIGHT_RETURN_IF_ERROR(window_numbers(p, "window sizes", o.vector(0), rank, 1, rank > 0, &window));
    ONEWEIGHT_RETURN_IF_ERROR(window_numbers(p, "strides", o.vector(1), rank, 1, false, &strides));
    ONEWEIGHT_RETURN_IF_ERROR(window_numbers(p, "base dilations", o.vector(2), rank, 1, false, &gaps));
    ONEWEIGHT_RETURN_IF_ERROR(window_numbers(p, "dilations", o.vector(3), rank, 1, false, &dilations));
    ONEWEIGHT_RETURN_IF_ERROR(window_numbers(p, "paddings", o.vector(4), 2 * rank, 0, false, &margins));
    ONEWEIGHT_RETURN_IF_ERROR(body_function(p, o.get<int32_t>(5, 0), input, &function));
    if (function == BodyFunction::replace) return p.error(ErrorCode::unsupported, "its subgraph computes nothing");
  } else {
    std::vector<int64_t>* const lists[3] = {&window, &strides, &dilations};
    for (int i = 0; i < 3; ++i) {
      ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(2 + i, lists[i]));
      if (lists[i]->size() != static_cast<size_t>(rank))
        return p.invalid("%s has %zu numbers for %s", p.describe(p.input(2 + i)).c_str(), lists[i]->size(), p.describe(input).c_str());
    }
    const int32_t code = p.options().get<int32_t>(0, 0);
    constexpr BodyFunction functions[] = {BodyFunction::add,     BodyFunction::multiply, BodyFunction::minimum,
                                          BodyFunction::maximum, BodyFunction::all,      BodyFunction::any};
    if (code < 1 || code > 6) return p.error(ErrorCode::unsupported, "function %d is not supported", code);
    function = functions[code - 1];
  }
  ReduceWindowParams* params = p.make_params<ReduceWindowParams>();
  if (!params) return p.no_memory();
  params->rank = rank;
  Shape shape;
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    params->axes[i].step = step;
    step *= input.shape[i] > 0 ? input.shape[i] : 1;
  }
  for (int i = 0; i < rank; ++i) {
    ReduceWindowAxis& a = params->axes[i];
    const auto k = static_cast<size_t>(i);
    constexpr int64_t kMost = int64_t{1} << 30;
    a.in = input.shape[i], a.window = window[k], a.stride = strides[k], a.dilation = dilations[k], a.gap = gaps[k],
    a.before = margins[2 * k];
    const int64_t behind = margins[2 * k + 1];
    for (int64_t n : {a.window, a.stride, a.dilation, a.gap})
      if (n < 1 || n > kMost) return p.invalid("%lld is not a valid size, stride or dilation of axis %d", static_cast<long long>(n), i);
    if (a.in > kMost || a.before < -kMost || a.before > kMost || behind < -kMost || behind > kMost)
      return p.invalid("padding %lld, %lld of axis %d is not valid", static_cast<long long>(a.before), static_cast<long long>(behind), i);
    const int64_t extent = (a.in > 0 ? (a.in - 1) * a.gap + 1 : 0) + a.before + behind, reach = (a.window - 1) * a.dilation + 1;
    a.out = extent < reach ? 0 : (extent - reach) / a.stride + 1;
    shape.push_back(a.out);
    if (!checked_multiply(params->taps, a.window, &params->taps)) return p.invalid("its window has too many elements");
  }
  int64_t work = 0;
  if (shape.elements() > 0 && (!checked_multiply(params->taps, shape.elements(), &work) || work > int64_t{1} << 40))
    return p.error(ErrorCode::unsupported, "would visit %lld window elements for each of %lld outputs", static_cast<long long>(params->taps),
                   static_cast<long long>(shape.elements()));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  KernelFn kernel = nullptr;
  const bool known = with_body_type(input.type, [&]<class T>(T) {
    switch (function) {
      case BodyFunction::add: kernel = &reduce_window_kernel<BodyFunction::add, T>; break;
      case BodyFunction::multiply: kernel = &reduce_window_kernel<BodyFunction::multiply, T>; break;
      case BodyFunction::minimum: kernel = &reduce_window_kernel<BodyFunction::minimum, T>; break;
      case BodyFunction::maximum: kernel = &reduce_window_kernel<BodyFunction::maximum, T>; break;
      case BodyFunction::all: kernel = &reduce_window_kernel<BodyFunction::all, T>; break;
      default: kernel = &reduce_window_kernel<BodyFunction::any, T>;
    }
  });
  if (!known) return p.error(ErrorCode::unsupported, "%s is not supported", p.describe(input).c_str());
  p.set_kernel(kernel, shape.elements() > 0 ? shape.elements(0, rank > 0 ? rank - 1 : 0) : 0);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_REDUCE_WINDOW_H
