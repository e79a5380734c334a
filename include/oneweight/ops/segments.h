// SEGMENT_SUM and UNSORTED_SEGMENT_SUM, _PROD, _MAX, _MIN: slices of input 0 (float, int32) joined by the ids of input 1
// (int32), which are checked while running. Sums and products of integers wrap.
// SEGMENT_SUM: ids of the first axis, from 0 upwards without gaps; as many segments as the last id tells when the ids are
// constant, else as many as the file gives the output, which the ids must then fit. UNSORTED_*: ids of the leading axes;
// input 2 (constant, or fitting the file's output) is the number of segments; negative ids are left out; segments without
// slices hold 0, 1, the lowest or the highest number.
#ifndef ONEWEIGHT_OPS_SEGMENTS_H
#define ONEWEIGHT_OPS_SEGMENTS_H

#include <algorithm>
#include <limits>

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

enum class Segments { sorted_sum, sum, product, maximum, minimum };

struct SegmentsParams {
  int64_t slices = 0, slice = 0, segments = 0;  // slice: elements
};

template <Segments kKind>
struct SegmentsBy {
  static constexpr bool kSorted = kKind == Segments::sorted_sum;
  static constexpr BuiltinOperator code() {
    switch (kKind) {
      case Segments::sorted_sum: return BuiltinOperator::segment_sum;
      case Segments::sum: return BuiltinOperator::unsorted_segment_sum;
      case Segments::product: return BuiltinOperator::unsorted_segment_prod;
      case Segments::maximum: return BuiltinOperator::unsorted_segment_max;
      default: return BuiltinOperator::unsorted_segment_min;
    }
  }
  static bool accepts(const NodeTypes& t) {
    return t.input_count == (kSorted ? 2 : 3) && (t.in(0, TensorType::float32) || t.in(0, TensorType::int32)) && t.out(0, t.inputs[0]) &&
           t.in(1, TensorType::int32) && (kSorted || t.in(2, TensorType::int32));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = code(), .types = "float, int32", .accepts = &accepts, .prepare = &prepare};
};
using SegmentSum = SegmentsBy<Segments::sorted_sum>;
using UnsortedSegmentSum = SegmentsBy<Segments::sum>;
using UnsortedSegmentProd = SegmentsBy<Segments::product>;
using UnsortedSegmentMax = SegmentsBy<Segments::maximum>;
using UnsortedSegmentMin = SegmentsBy<Segments::minimum>;

#if ONEWEIGHT_HAS_KERNELS
namespace segments {
template <Segments kKind, class T>
constexpr T start() {
  switch (kKind) {
    case Segments::product: return T{1};
    case Segments::maximum: return std::numeric_limits<T>::lowest();
    case Segments::minimum: return std::numeric_limits<T>::max();
    default: return T{0};
  }
}
template <Segments kKind, class T>
T join(T state, T x) {
  if constexpr (kKind == Segments::maximum)
    return state < x ? x : state;
  else if constexpr (kKind == Segments::minimum)
    return x < state ? x : state;
  else if constexpr (std::is_floating_point_v<T>)
    return kKind == Segments::product ? state * x : state + x;
  else if constexpr (kKind == Segments::product)
    return static_cast<T>(static_cast<uint32_t>(state) * static_cast<uint32_t>(x));
  else
    return static_cast<T>(static_cast<uint32_t>(state) + static_cast<uint32_t>(x));
}

template <Segments kKind, class T>
void kernel(const KernelArgs& args) {
  const auto& p = args.params<SegmentsParams>();
  T* out = args.out<T>(0);
  if constexpr (kKind != Segments::sorted_sum) {
    if (const int32_t wanted = Preparation::load<int32_t>(args.in<std::byte>(2), 0); wanted != p.segments)
      return args.run->fail(ErrorCode::invalid_data, "makes %d segments, its output has room for %lld", wanted,
                            static_cast<long long>(p.segments));
  }
  std::fill(out, out + p.segments * p.slice, start<kKind, T>());
  int64_t last = -1;
  for (int64_t i = 0; i < p.slices; ++i) {
    const int64_t id = Preparation::load<int32_t>(args.in<std::byte>(1), i);
    if constexpr (kKind == Segments::sorted_sum) {
      if (id < 0 || (id != last && id != last + 1))
        return args.run->fail(ErrorCode::invalid_data, "id %lld (number %lld) follows %lld: ids must rise from 0 without gaps",
                              static_cast<long long>(id), static_cast<long long>(i), static_cast<long long>(last));
      last = id;
    }
    if (kKind != Segments::sorted_sum && id < 0) continue;
    if (id < 0 || id >= p.segments)
      return args.run->fail(ErrorCode::invalid_data, "id %lld (number %lld) is outside the %lld segments of its output",
                            static_cast<long long>(id), static_cast<long long>(i), static_cast<long long>(p.segments));
    T* to = out + id * p.slice;
    const std::byte* from = args.in<std::byte>(0) + i * p.slice * static_cast<int64_t>(sizeof(T));
    for (int64_t k = 0; k < p.slice; ++k) to[k] = join<kKind, T>(to[k], Preparation::load<T>(from, k));
  }
  if (kKind == Segments::sorted_sum && last + 1 != p.segments)
    args.run->fail(ErrorCode::invalid_data, "its ids make %lld segments, its output has %lld", static_cast<long long>(last + 1),
                   static_cast<long long>(p.segments));
}
}  // namespace segments

template <Segments kKind>
Status SegmentsBy<kKind>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(kSorted ? 2 : 3, kSorted ? 2 : 3));
  const Operand &data = p.input(0), &ids = p.input(1), &output = p.output(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(ids, kSorted ? 1 : 0, kSorted ? 1 : kMaxRank));
  const int lead = ids.shape.rank();
  bool fits = lead <= data.shape.rank();
  for (int i = 0; fits && i < lead; ++i) fits = ids.shape[i] == data.shape[i];
  if (!fits) return p.invalid("ids %s do not fit %s", p.describe(ids).c_str(), p.describe(data).c_str());
  SegmentsParams* params = p.make_params<SegmentsParams>();
  if (!params) return p.no_memory();
  params->slices = ids.shape.elements();
  params->slice = data.shape.elements(lead, data.shape.rank());
  const Operand& told = p.input(kSorted ? 1 : 2);  // what tells the number of segments
  if (!kSorted && told.shape.elements() != 1) return p.invalid("its number of segments %s is not one element", p.describe(told).c_str());
  if (told.is_constant || told.shape.elements() == 0) {
    std::vector<int64_t> values;
    ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(kSorted ? 1 : 2, &values));
    params->segments = values.empty() ? 0 : kSorted ? values.back() + 1 : values.back();
    if (params->segments < 0) return p.invalid("makes %lld segments", static_cast<long long>(params->segments));
    if (kSorted && params->segments > params->slices)
      return p.invalid("its last id is %lld, but it has only %lld slices", static_cast<long long>(values.back()),
                       static_cast<long long>(params->slices));
  } else {
    if (output.shape.rank() < 1)
      return p.error(ErrorCode::unsupported, "needs the values of %s before the run, but they are computed", p.describe(told).c_str());
    params->segments = output.shape[0];
  }
  Shape shape{params->segments};
  if (1 + data.shape.rank() - lead > kMaxRank) return p.invalid("makes more than %d axes", kMaxRank);
  for (int i = lead; i < data.shape.rank(); ++i) shape.push_back(data.shape[i]);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  p.set_kernel(data.type == TensorType::float32 ? &segments::kernel<kKind, float> : &segments::kernel<kKind, int32_t>);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_SEGMENTS_H
