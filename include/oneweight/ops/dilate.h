// DILATE: copies of a fill value (input 2) between the elements along each axis, by the constant dilations of input 1 (n
// elements become (n - 1) d + 1). STABLEHLO_PAD: margins (negative ones crop) and gaps by its options, filled with input 1.
// All types of whole bytes.
#ifndef ONEWEIGHT_OPS_DILATE_H
#define ONEWEIGHT_OPS_DILATE_H

#include "oneweight/ops/pad.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct DilateParams {
  StridedCopy copy;
  int64_t element = 1, elements = 0;
  int fill = 0;  // number of the input with the fill value
};

struct Dilate {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 3 && accepts_moved<0>(t) && t.in(2, t.inputs[0]) && (t.in(1, TensorType::int32) || t.in(1, TensorType::int64));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::dilate, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};
struct StablehloPad {
  static bool accepts(const NodeTypes& t) { return t.input_count == 2 && accepts_moved<0>(t) && t.in(1, t.inputs[0]); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::stablehlo_pad, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void dilate_kernel(const KernelArgs& args) {
  const auto& p = args.params<DilateParams>();
  pad::fill_elements(args.out<std::byte>(0), args.in<std::byte>(p.fill), p.element, p.elements);
  copy_strided(p.copy, args.in<std::byte>(0), args.out<std::byte>(0), {0, p.copy.rows()});
}

// The same numbers for every axis: what lies in front, behind (less than nothing: cropped) and between two elements.
inline Status prepare_dilate(Preparation& p, int fill, const int64_t* before, const int64_t* behind, const int64_t* between) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const Operand& input = p.input(0);
  if (p.input(fill).shape.elements() != 1) return p.invalid("the fill value %s is not one element", p.describe(p.input(fill)).c_str());
  DilateParams* params = p.make_params<DilateParams>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &params->element));
  Shape shape;
  for (int i = 0; i < input.shape.rank(); ++i) {
    const int64_t extent = input.shape[i];
    const auto shown = [](int64_t n) { return static_cast<long long>(n); };
    if (before[i] < -kMost || before[i] > kMost || behind[i] < -kMost || behind[i] > kMost || between[i] < 0 ||
        between[i] > kMost / (extent > 0 ? extent : 1))
      return p.invalid("padding %lld, %lld with gaps of %lld along axis %d is not valid", shown(before[i]), shown(behind[i]),
                       shown(between[i]), i);
    const int64_t result = before[i] + behind[i] + extent + (extent > 0 ? (extent - 1) * between[i] : 0);
    if (result < 0) return p.invalid("crops axis %d of %s to %lld elements", i, p.describe(input).c_str(), shown(result));
    shape.push_back(result);
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  int64_t from[kMaxRank], to[kMaxRank];
  dense_strides(input.shape, params->element, from);
  dense_strides(shape, params->element, to);
  for (int i = 0; i < input.shape.rank(); ++i) {
    // Elements first..last - 1 of the input stay inside.
    const int64_t step = between[i] + 1;
    const int64_t first = before[i] < 0 ? (-before[i] + step - 1) / step : 0;
    const int64_t room = shape[i] - before[i];
    const int64_t last = std::min(input.shape[i], room <= 0 ? 0 : (room + step - 1) / step);
    params->copy.add_axis(std::max<int64_t>(last - first, 0), from[i], to[i] * step);
    if (last > first) params->copy.from_offset += first * from[i], params->copy.to_offset += (before[i] + first * step) * to[i];
  }
  params->copy.finish(params->element);
  params->elements = shape.elements();
  params->fill = fill;
  p.set_kernel(&dilate_kernel);
  return {};
}

ONEWEIGHT_INLINE Status Dilate::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(3, 3));
  std::vector<int64_t> dilations;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &dilations));
  const int rank = p.input(0).shape.rank();
  if (dilations.size() != static_cast<size_t>(rank))
    return p.invalid("%s has rank %d, but there are %zu dilations", p.describe(p.input(0)).c_str(), rank, dilations.size());
  int64_t none[kMaxRank] = {}, between[kMaxRank] = {};
  for (int i = 0; i < rank; ++i) {
    if (dilations[i] < 1) return p.invalid("dilation %lld of axis %d is not valid", static_cast<long long>(dilations[i]), i);
    between[i] = dilations[i] - 1;
  }
  return prepare_dilate(p, 2, none, none, between);
}

ONEWEIGHT_INLINE Status StablehloPad::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const int rank = p.input(0).shape.rank();
  int64_t values[3][kMaxRank] = {};
  for (int n = 0; n < 3; ++n) {
    const std::vector<int64_t>* numbers = p.options().vector(n);
    const size_t size = numbers ? numbers->size() : 0;
    if (size != static_cast<size_t>(rank))
      return p.invalid("%s has rank %d, but its option %d has %zu numbers", p.describe(p.input(0)).c_str(), rank, n, size);
    for (int i = 0; i < rank; ++i) values[n][i] = (*numbers)[i];
  }
  return prepare_dilate(p, 1, values[0], values[1], values[2]);
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_DILATE_H
