// RANGE: start, start + delta, ... before limit; start, limit and delta are constants.
#ifndef ONEWEIGHT_OPS_RANGE_H
#define ONEWEIGHT_OPS_RANGE_H

#include <cmath>

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct Range {
  static bool accepts(const NodeTypes& t) {
    const TensorType type = t.inputs[0];
    return t.input_count == 3 && t.in(0, type) && t.in(1, type) && t.in(2, type) && t.out(0, type) &&
           (type == TensorType::float32 || type == TensorType::int32 || type == TensorType::int64);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::range, .types = "float, int32, int64", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
template <class T>
struct RangeParams {
  T start, delta;
  int64_t count;
};
template <class T>
void range_kernel(const KernelArgs& args) {
  const auto& p = args.params<RangeParams<T>>();
  T* out = args.out<T>(0);
  for (int64_t i = args.rows.begin; i < args.rows.end; ++i) {
    if constexpr (std::is_floating_point_v<T>)
      out[i] = p.start + static_cast<T>(i) * p.delta;
    else
      out[i] =
          static_cast<T>(static_cast<uint64_t>(p.start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(p.delta));
  }
}

template <class T>
Status prepare_range(Preparation& p) {
  T values[3];
  for (int i = 0; i < 3; ++i) {
    const Operand& t = p.input(i);
    if (t.shape.elements() != 1) return p.invalid("%s is not one number", p.describe(t).c_str());
    if (!t.is_constant)
      return p.error(ErrorCode::unsupported, "needs the value of %s before the run, but it is computed",
                     p.describe(t).c_str());
    values[i] = Preparation::load<T>(t.data, 0);
  }
  const T start = values[0], limit = values[1], delta = values[2];
  int64_t count = 0;
  if (delta == 0 || delta != delta) return p.invalid("its delta is not a step");
  if (delta > 0 ? start < limit : limit < start) {
    if constexpr (std::is_floating_point_v<T>) {
      const double steps =
          std::ceil(std::fabs((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta)));
      if (!(steps < 1e15))
        return p.invalid("%g to %g in steps of %g is too long", static_cast<double>(start), static_cast<double>(limit),
                         static_cast<double>(delta));
      count = static_cast<int64_t>(steps);
    } else {
      const uint64_t span = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                      : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
      const uint64_t step =
          delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(static_cast<int64_t>(delta));
      const uint64_t steps = (span - 1) / step + 1;
      if (steps > uint64_t{1} << 46)
        return p.invalid("its %llu elements are too many", static_cast<unsigned long long>(steps));
      count = static_cast<int64_t>(steps);
    }
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, Shape{count}));
  RangeParams<T>* params = p.make_params<RangeParams<T>>();
  if (!params) return p.no_memory();
  *params = {start, delta, count};
  p.set_kernel(&range_kernel<T>, count);
  return {};
}

ONEWEIGHT_INLINE Status Range::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(3, 3));
  switch (p.input(0).type) {
    case TensorType::float32: return prepare_range<float>(p);
    case TensorType::int32: return prepare_range<int32_t>(p);
    default: return prepare_range<int64_t>(p);
  }
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_RANGE_H
