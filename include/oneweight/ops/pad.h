// PAD and PADV2: constant margins around a tensor, filled with the real value 0 (the zero point) or with the scalar of
// input 2. Margins are constant; rows: indices over all axes but the last two.
#ifndef ONEWEIGHT_OPS_PAD_H
#define ONEWEIGHT_OPS_PAD_H

#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct PadParams {
  int outer = 0;  // axes before the last two
  int64_t element = 1;
  int64_t in[kMaxRank] = {}, before[kMaxRank] = {}, out[kMaxRank] = {};  // of all axes; rank is outer + 2
  bool fill_is_input = false;                                            // input 2, else `fill`
  std::byte fill[16] = {};
};

template <bool kV2>
struct PadBy {
  static bool accepts(const NodeTypes& t) { return accepts_moved<0>(t) && (!kV2 || t.in(2, t.inputs[0])); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kV2 ? BuiltinOperator::padv2 : BuiltinOperator::pad,
                                .types = "all of whole bytes",
                                .accepts = &accepts,
                                .prepare = &prepare};
};
using Pad = PadBy<false>;
using PadV2 = PadBy<true>;

#if ONEWEIGHT_HAS_KERNELS
namespace pad {
// `count` copies of an element of `size` bytes.
inline void fill_elements(std::byte* to, const std::byte* value, int64_t size, int64_t count) {
  bool same = true;
  for (int64_t i = 1; i < size; ++i) same = same && value[i] == value[0];
  if (same) {
    if (count > 0) std::memset(to, static_cast<int>(value[0]), static_cast<size_t>(count * size));
    return;
  }
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * size, value, static_cast<size_t>(size));
}

inline void kernel(const KernelArgs& args) {
  const auto& p = args.params<PadParams>();
  const int a = p.outer, b = p.outer + 1;  // the last two axes
  const std::byte* fill = p.fill_is_input ? args.in<std::byte>(2) : p.fill;
  const int64_t row_elements = p.out[a] * p.out[b];
  std::byte* to = args.out<std::byte>(0) + args.rows.begin * row_elements * p.element;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row, to += row_elements * p.element) {
    int64_t source = 0, rest = row, weight = 1;
    bool inside = p.in[a] > 0 && p.in[b] > 0;
    for (int i = a - 1; i >= 0; --i) {
      const int64_t at = rest % p.out[i] - p.before[i];
      rest /= p.out[i];
      inside = inside && at >= 0 && at < p.in[i];
      source += at * weight;
      weight *= p.in[i];
    }
    if (!inside) {
      fill_elements(to, fill, p.element, row_elements);
      continue;
    }
    const std::byte* from = args.in<std::byte>(0) + source * p.in[a] * p.in[b] * p.element;
    const int64_t left = p.before[b], right = p.out[b] - p.in[b] - p.before[b], run = p.in[b] * p.element;
    std::byte* at = to;
    const auto fill_next = [&](int64_t count) { fill_elements(at, fill, p.element, count), at += count * p.element; };
    fill_next(p.before[a] * p.out[b]);
    if (left == 0 && right == 0) {
      std::memcpy(at, from, static_cast<size_t>(p.in[a] * run));
      at += p.in[a] * run;
    } else {
      for (int64_t k = 0; k < p.in[a]; ++k) {
        fill_next(left);
        std::memcpy(at, from + k * run, static_cast<size_t>(run));
        at += run;
        fill_next(right);
      }
    }
    fill_next((p.out[a] - p.in[a] - p.before[a]) * p.out[b]);
  }
}

// Rows batch * height + y of a rank-4 tensor.
inline RowRange input_rows(const void* params, RowRange rows) {
  const auto& p = *static_cast<const PadParams*>(params);
  if (rows.size() <= 0 || p.in[0] <= 0 || p.in[1] <= 0) return {};
  const auto source = [&](int64_t row, int64_t behind) {
    const int64_t n = row / p.out[1] - p.before[0], y = row % p.out[1] - p.before[1] + behind;
    if (n < 0) return int64_t{0};
    if (n >= p.in[0]) return p.in[0] * p.in[1];
    return n * p.in[1] + std::clamp(y, int64_t{0}, p.in[1]);
  };
  const RowRange need{source(rows.begin, 0), source(rows.end - 1, 1)};
  return need.begin < need.end ? need : RowRange{};
}
}  // namespace pad

template <bool kV2>
Status PadBy<kV2>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(kV2 ? 3 : 2, kV2 ? 3 : 2));
  const Operand &input = p.input(0), &output = p.output(0);
  const int rank = input.shape.rank();
  std::vector<int64_t> margins;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &margins));
  if (margins.size() != static_cast<size_t>(2 * rank))
    return p.invalid("%s has rank %d, but its paddings have %zu numbers", p.describe(input).c_str(), rank,
                     margins.size());
  if (kV2 && p.input(2).shape.elements() != 1)
    return p.invalid("the fill value %s is not one element", p.describe(p.input(2)).c_str());
  PadParams* params = p.make_params<PadParams>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &params->element));
  Shape shape;
  const int lead = rank < 2 ? 2 - rank : 0;
  for (int i = 0; i < lead; ++i) params->in[i] = params->out[i] = 1;
  SpatialPadding spatial;
  bool any = false;
  for (int i = 0; i < rank; ++i) {
    const int64_t before = margins[2 * i], behind = margins[2 * i + 1];
    if (before < 0 || behind < 0 || before > (int64_t{1} << 46) || behind > (int64_t{1} << 46))
      return p.invalid("padding %lld, %lld of axis %d is not valid", static_cast<long long>(before),
                       static_cast<long long>(behind), i);
    shape.push_back(input.shape[i] + before + behind);
    params->in[lead + i] = input.shape[i];
    params->before[lead + i] = before;
    params->out[lead + i] = shape[i];
    any = any || before > 0 || behind > 0;
    if (rank == 4) spatial.before[i] = before, spatial.behind[i] = behind;
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  params->outer = rank + lead - 2;
  // The stored form of the real value 0 (little-endian: the low bytes come first).
  const int64_t zero = output.quantized() ? output.zero_point() : 0;
  std::byte real_zero[16] = {};
  std::memcpy(real_zero, &zero, static_cast<size_t>(std::min<int64_t>(params->element, 8)));
  bool is_zero = true;
  if constexpr (kV2) {
    const Operand& fill = p.input(2);
    params->fill_is_input = !fill.is_constant;
    if (fill.is_constant) std::memcpy(params->fill, fill.data, static_cast<size_t>(params->element));
    is_zero = fill.is_constant && std::memcmp(params->fill, real_zero, static_cast<size_t>(params->element)) == 0;
  } else {
    std::memcpy(params->fill, real_zero, sizeof(real_zero));
  }
  p.set_kernel(&pad::kernel, shape.elements() > 0 ? shape.elements(0, std::max(rank - 2, 0)) : 0,
               rank == 4 ? &pad::input_rows : nullptr);
  if (!any) p.allow_alias(0);
  const bool same_scale = input.quantization->scales == output.quantization->scales &&
                          input.quantization->zero_points == output.quantization->zero_points;
  if (is_zero && rank == 4 && same_scale) p.set_padding(spatial);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_PAD_H
