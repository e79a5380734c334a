// Loops over float elements: an operator brings a function on vectors, the drivers bring loads, tails and broadcasting.
#if defined(ONEWEIGHT_SIMD_ELEMENTWISE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_ELEMENTWISE_INL_H
#undef ONEWEIGHT_SIMD_ELEMENTWISE_INL_H
#else
#define ONEWEIGHT_SIMD_ELEMENTWISE_INL_H
#endif

#include "oneweight/simd/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// out[i] = f(d, in[i]) for i < count; in == out is allowed. Nothing behind the ends is touched.
template <class F>
HWY_INLINE void map_floats(const float* in, float* out, size_t count, F f) {
  const hn::ScalableTag<float> d;
  const size_t n = hn::Lanes(d);
  size_t i = 0;
  for (; i + n <= count; i += n) hn::StoreU(f(d, hn::LoadU(d, in + i)), d, out + i);
  if (i < count) hn::StoreN(f(d, hn::LoadN(d, in + i, count - i)), d, out + i, count - i);
}

// out[i] = f(d, a[i * step_a], b[i * step_b]); steps are 0 or 1 for vectors, others go element by element.
template <class F>
HWY_INLINE void map_floats(const float* a, int64_t step_a, const float* b, int64_t step_b, float* out, size_t count, F f) {
  const hn::ScalableTag<float> d;
  const size_t n = hn::Lanes(d);
  size_t i = 0;
  if (step_a == 1 && step_b == 1) {
    for (; i + n <= count; i += n) hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
    if (i < count) hn::StoreN(f(d, hn::LoadN(d, a + i, count - i), hn::LoadN(d, b + i, count - i)), d, out + i, count - i);
  } else if (step_a == 1 && step_b == 0) {
    const auto vb = hn::Set(d, *b);
    for (; i + n <= count; i += n) hn::StoreU(f(d, hn::LoadU(d, a + i), vb), d, out + i);
    if (i < count) hn::StoreN(f(d, hn::LoadN(d, a + i, count - i), vb), d, out + i, count - i);
  } else if (step_a == 0 && step_b == 1) {
    const auto va = hn::Set(d, *a);
    for (; i + n <= count; i += n) hn::StoreU(f(d, va, hn::LoadU(d, b + i)), d, out + i);
    if (i < count) hn::StoreN(f(d, va, hn::LoadN(d, b + i, count - i)), d, out + i, count - i);
  } else {
    const hn::CappedTag<float, 1> one;
    for (; i < count; ++i)
      hn::StoreU(f(one, hn::LoadU(one, a + static_cast<int64_t>(i) * step_a), hn::LoadU(one, b + static_cast<int64_t>(i) * step_b)), one, out + i);
  }
}

// out[i] = f(d, a, b) for the output elements [begin, end) of a broadcast plan of two operands (see ops/broadcast.h).
template <class Plan, class F>
HWY_INLINE void map_broadcast(const Plan& plan, int64_t begin, int64_t end, const float* a, const float* b, float* out, F f) {
  const hn::ScalableTag<float> d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d)), channels = plan.rank == 2 ? plan.extents[1] : 0;
  const bool by_channel = channels > 0 && plan.strides[0][0] == channels && plan.strides[0][1] == 1 && plan.strides[1][0] == 0 && plan.strides[1][1] == 1;
  if (by_channel && channels <= n && n % channels == 0 && end - begin >= n) {
    // Runs shorter than a vector: b repeats within one.
    float repeated[HWY_MAX_BYTES / sizeof(float)];
    for (int64_t i = 0; i < n; ++i) repeated[i] = b[(begin + i) % channels];
    const auto vb = hn::LoadU(d, repeated);
    map_floats(a + begin, out + begin, static_cast<size_t>(end - begin), [vb, &f](auto dd, auto x) HWY_ATTR { return f(dd, x, vb); });
    return;
  }
  for_each_run(plan, begin, end, [&](int64_t o, const int64_t* at, int64_t count, const int64_t* step) HWY_ATTR {
    map_floats(a + at[0], step[0], b + at[1], step[1], out + o, static_cast<size_t>(count), f);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif
