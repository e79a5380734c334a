// Float activations of hybrid operators to bytes, and sums of 16-bit activations. Included once per target.
#if defined(ONEWEIGHT_SIMD_QUANTIZE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_QUANTIZE_INL_H
#undef ONEWEIGHT_SIMD_QUANTIZE_INL_H
#else
#define ONEWEIGHT_SIMD_QUANTIZE_INL_H
#endif

#include <algorithm>
#include <cmath>

#include "oneweight/simd/config.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How floats become bytes: value i is about scale * (byte - zero).
struct ByteScale {
  float scale = 1.0f, inverse = 0.0f;
  int32_t zero = 128;
  float floor = 1.0f;  // least byte
};

// The bytes are int8 with the sign bit flipped. Symmetric: -127 .. 127 around 128, scaled by the largest magnitude.
// Asymmetric: -128 .. 127, scaled by the range of the values and 0.
HWY_NOINLINE inline ByteScale find_byte_scale(const float* HWY_RESTRICT from, int64_t n, bool asymmetric) {
  const hn::CappedTag<float, 16> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto least = hn::Zero(d), most = hn::Zero(d);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto v = i + lanes <= n ? hn::LoadU(d, from + i) : hn::LoadN(d, from + i, static_cast<size_t>(n - i));
    least = hn::Min(least, v), most = hn::Max(most, v);
  }
  const float low = hn::ReduceMin(d, least), high = hn::ReduceMax(d, most);
  ByteScale result;
  if (!asymmetric) {
    const float range = std::max(-low, high);
    if (range > 0) result.scale = range / 127.0f, result.inverse = 127.0f / range;
    return result;
  }
  result.floor = 0.0f;
  if (high > low) {
    const double step = (static_cast<double>(high) - low) / 255.0;
    const double from_low = -128.0 - low / step, from_high = 127.0 - high / step;
    const double low_error = 128.0 + std::fabs(low / step), high_error = 127.0 + std::fabs(high / step);
    const double point = low_error < high_error ? from_low : from_high;
    result.zero = 128 + static_cast<int32_t>(point <= -128 ? -128 : point >= 127 ? 127 : std::round(point));
    result.scale = static_cast<float>(step);
    result.inverse = 1.0f / result.scale;
  }
  return result;
}

// n floats as bytes, each in a T (uint8_t or int16_t); halves away from zero.
template <class T>
HWY_NOINLINE void quantize_bytes(const float* HWY_RESTRICT from, int64_t n, const ByteScale& s, T* HWY_RESTRICT to) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<T, decltype(d)> d_to;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, s.inverse), shift = hn::Set(d, static_cast<float>(s.zero)), bottom = hn::Set(d, s.floor);
  const auto top = hn::Set(d, 255.0f), half = hn::Set(d, 0.5f);
  for (int64_t i = 0; i < n; i += lanes) {
    const bool whole = i + lanes <= n;
    const auto v = whole ? hn::LoadU(d, from + i) : hn::LoadN(d, from + i, static_cast<size_t>(n - i));
    const auto scaled = hn::Mul(v, factor);
    const auto rounded = hn::Trunc(hn::Add(scaled, hn::CopySign(half, scaled)));
    const auto clamped = hn::Min(hn::Max(hn::Add(rounded, shift), bottom), top);
    const auto bytes = hn::DemoteTo(d_to, hn::ConvertTo(di, clamped));
    if (whole) hn::StoreU(bytes, d_to, to + i);
    else hn::StoreN(bytes, d_to, to + i, static_cast<size_t>(n - i));
  }
}

// sum of a[k] * w[k], exact.
inline int64_t wide_dot(const int16_t* HWY_RESTRICT a, const int8_t* HWY_RESTRICT w, int64_t n) {
  int64_t sum = 0, k = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<int16_t, 32> d16;
  const hn::RepartitionToWide<decltype(d16)> d32;
  const hn::Rebind<int8_t, decltype(d16)> d8;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d16));
  while (k + lanes <= n) {
    // A lane of the partial sum gets at most 2 * 2^22 a step; lanes together must fit into 32 bits as well.
    auto part = hn::Zero(d32);
    const int64_t end = std::min(n, k + 256);
    for (; k + lanes <= end; k += lanes)
      part = hn::Add(part, hn::WidenMulPairwiseAdd(d32, hn::LoadU(d16, a + k), hn::PromoteTo(d16, hn::LoadU(d8, w + k))));
    sum += hn::ReduceSum(d32, part);
  }
#endif
  for (; k < n; ++k) sum += int32_t{a[k]} * w[k];
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif
