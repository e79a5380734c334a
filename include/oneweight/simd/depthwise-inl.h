// Depthwise convolution, vectorised along channels. Included once per target.
#if defined(ONEWEIGHT_SIMD_DEPTHWISE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_DEPTHWISE_INL_H
#undef ONEWEIGHT_SIMD_DEPTHWISE_INL_H
#else
#define ONEWEIGHT_SIMD_DEPTHWISE_INL_H
#endif

#include <algorithm>
#include <cstring>
#include <utility>

#include "oneweight/simd/product_float-inl.h"
#include "oneweight/simd/product_int8-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- Float

// One vector of channels of neighbouring output pixels. Distances in elements.
template <class W>
struct DepthwiseFloatArgs {
  const float* in;             // tap (0, 0) of the first pixel; taps outside [ky0, ky1) x [kx0, kx1) are not read
  int64_t tap_row, tap_column; // from tap to tap
  int64_t step;                // from pixel to pixel
  const W* w;                  // [ky][kx][channels]
  int64_t channels, kernel_w;
  int64_t ky0, ky1, kx0, kx1;
  const float* bias;           // null: none
  const Epilogue* epilogue;    // its clamp
  float* out;
};

inline constexpr int kDepthwisePixels = 6;
#define ONEWEIGHT_DEPTHWISE_PIXELS(X) X(0) X(1) X(2) X(3) X(4) X(5)

// kPixels pixels, Lanes channels (kPart: only `some` of them). The bias first, then the taps in order.
template <int kPixels, bool kPart, class W>
HWY_INLINE void depthwise_float(const DepthwiseFloatArgs<W>& t, size_t some) {
  const FloatTag d;
  using V = hn::Vec<FloatTag>;
  const auto load = [&](const float* from) HWY_ATTR { return kPart ? hn::LoadN(d, from, some) : hn::LoadU(d, from); };
  const V bias = !t.bias ? hn::Zero(d) : kPart ? load_widened_n(d, t.bias, some) : load_widened(d, t.bias);
#define ONEWEIGHT_DEPTHWISE_DECLARE(p) [[maybe_unused]] V s##p = bias;
  ONEWEIGHT_DEPTHWISE_PIXELS(ONEWEIGHT_DEPTHWISE_DECLARE)
#undef ONEWEIGHT_DEPTHWISE_DECLARE
  for (int64_t ky = t.ky0; ky < t.ky1; ++ky) {
    const float* a = t.in + ky * t.tap_row + t.kx0 * t.tap_column;
    const W* w = t.w + (ky * t.kernel_w + t.kx0) * t.channels;
    for (int64_t kx = t.kx0; kx < t.kx1; ++kx, a += t.tap_column, w += t.channels) {
      const V b = kPart ? load_widened_n(d, w, some) : load_widened(d, w);
#define ONEWEIGHT_DEPTHWISE_STEP(p) \
  if constexpr (p < kPixels) s##p = hn::MulAdd(load(a + p * t.step), b, s##p);
      ONEWEIGHT_DEPTHWISE_PIXELS(ONEWEIGHT_DEPTHWISE_STEP)
#undef ONEWEIGHT_DEPTHWISE_STEP
    }
  }
#define ONEWEIGHT_DEPTHWISE_STORE(p)                                            \
  if constexpr (p < kPixels) {                                                  \
    const V v = clamp_sums(d, s##p, *t.epilogue);                                 \
    if constexpr (kPart) hn::StoreN(v, d, t.out + p * t.channels, some);        \
    else hn::StoreU(v, d, t.out + p * t.channels);                              \
  }
  ONEWEIGHT_DEPTHWISE_PIXELS(ONEWEIGHT_DEPTHWISE_STORE)
#undef ONEWEIGHT_DEPTHWISE_STORE
}
#undef ONEWEIGHT_DEPTHWISE_PIXELS

#if !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR
template <int... I, class F>
HWY_INLINE void unrolled(std::integer_sequence<int, I...>, F f) {
  (f(std::integral_constant<int, I>()), ...);
}

// kPixels pixels of one whole vector of channels, kStride columns apart, with kWidth neighbouring taps a row: each activation
// is read once for all the pixels that need it. The sums are those of depthwise_float.
template <int kWidth, int kStride, int kPixels, class W>
HWY_INLINE void depthwise_float_window(const DepthwiseFloatArgs<W>& t, const float* in, float* out) {
  const FloatTag d;
  using V = hn::Vec<FloatTag>;
  const auto pixels = std::make_integer_sequence<int, kPixels>();
  V s[kPixels], b[kWidth];
  const V bias = t.bias ? load_widened(d, t.bias) : hn::Zero(d);
  unrolled(pixels, [&](auto p) HWY_ATTR { s[p] = bias; });
  for (int64_t ky = t.ky0; ky < t.ky1; ++ky) {
    const W* w = t.w + ky * kWidth * t.channels;
    unrolled(std::make_integer_sequence<int, kWidth>(), [&](auto k) HWY_ATTR { b[k] = load_widened(d, w + k * t.channels); });
    const float* a = in + ky * t.tap_row;
    unrolled(std::make_integer_sequence<int, (kPixels - 1) * kStride + kWidth>(), [&](auto j) HWY_ATTR {
      V v = hn::LoadU(d, a + j * t.tap_column);
      keep_in_register(v);
      unrolled(pixels, [&](auto p) HWY_ATTR {
        constexpr int k = j - p * kStride;
        if constexpr (k >= 0 && k < kWidth) s[p] = hn::MulAdd(v, b[k], s[p]);
      });
    });
  }
  unrolled(pixels, [&](auto p) HWY_ATTR { hn::StoreU(clamp_sums(d, s[p], *t.epilogue), d, out + p * t.channels); });
}

// `pixels` pixels, kDepthwisePixels at least; the last ones are done once more rather than a tail.
template <int kWidth, int kStride, class W>
HWY_NOINLINE void depthwise_float_windows(const DepthwiseFloatArgs<W>& t, int64_t pixels) {
  for (int64_t p = 0;; p += kDepthwisePixels) {
    const int64_t at = std::min(p, pixels - kDepthwisePixels);
    depthwise_float_window<kWidth, kStride, kDepthwisePixels>(t, t.in + at * t.step, t.out + at * t.channels);
    if (p + kDepthwisePixels >= pixels) return;
  }
}

// Does `pixels` pixels with all their columns inside, if there is code for such windows.
template <class W>
HWY_INLINE bool depthwise_float_usual(const DepthwiseFloatArgs<W>& t, int64_t pixels) {
  if (pixels < kDepthwisePixels || t.kx0 != 0 || t.kx1 != t.kernel_w) return false;
  const auto is = [&](int64_t width, int64_t stride) { return t.kernel_w == width && t.step == stride * t.tap_column; };
  if (is(3, 1)) return depthwise_float_windows<3, 1>(t, pixels), true;
  if (is(3, 2)) return depthwise_float_windows<3, 2>(t, pixels), true;
  if (is(5, 1)) return depthwise_float_windows<5, 1>(t, pixels), true;
  if (is(5, 2)) return depthwise_float_windows<5, 2>(t, pixels), true;
  return false;
}
#else
template <class W>
HWY_INLINE bool depthwise_float_usual(const DepthwiseFloatArgs<W>&, int64_t) {
  return false;
}
#endif

// One pixel of four whole vectors of channels: for borders, where neighbours have other taps.
template <class W>
HWY_NOINLINE void depthwise_float_pixel(const DepthwiseFloatArgs<W>& t) {
  const FloatTag d;
  using V = hn::Vec<FloatTag>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  if (t.bias) {
    s0 = load_widened(d, t.bias), s1 = load_widened(d, t.bias + lanes);
    s2 = load_widened(d, t.bias + 2 * lanes), s3 = load_widened(d, t.bias + 3 * lanes);
  }
  for (int64_t ky = t.ky0; ky < t.ky1; ++ky) {
    const float* a = t.in + ky * t.tap_row + t.kx0 * t.tap_column;
    const W* w = t.w + (ky * t.kernel_w + t.kx0) * t.channels;
    for (int64_t kx = t.kx0; kx < t.kx1; ++kx, a += t.tap_column, w += t.channels) {
      s0 = hn::MulAdd(hn::LoadU(d, a), load_widened(d, w), s0);
      s1 = hn::MulAdd(hn::LoadU(d, a + lanes), load_widened(d, w + lanes), s1);
      s2 = hn::MulAdd(hn::LoadU(d, a + 2 * lanes), load_widened(d, w + 2 * lanes), s2);
      s3 = hn::MulAdd(hn::LoadU(d, a + 3 * lanes), load_widened(d, w + 3 * lanes), s3);
    }
  }
  hn::StoreU(clamp_sums(d, s0, *t.epilogue), d, t.out), hn::StoreU(clamp_sums(d, s1, *t.epilogue), d, t.out + lanes);
  hn::StoreU(clamp_sums(d, s2, *t.epilogue), d, t.out + 2 * lanes), hn::StoreU(clamp_sums(d, s3, *t.epilogue), d, t.out + 3 * lanes);
}

// `pixels` neighbouring pixels of one vector of channels with the same taps.
template <class W>
HWY_NOINLINE void depthwise_float_pixels(DepthwiseFloatArgs<W> t, int64_t pixels, size_t some) {
  const auto advance = [&](int64_t n) {
    t.in += n * t.step;
    t.out += n * t.channels;
    pixels -= n;
  };
  if (some < hn::Lanes(FloatTag())) {
    while (pixels >= kDepthwisePixels) {
      depthwise_float<kDepthwisePixels, true>(t, some);
      advance(kDepthwisePixels);
    }
    while (pixels > 0) {
      depthwise_float<1, true>(t, some);
      advance(1);
    }
    return;
  }
  if (depthwise_float_usual(t, pixels)) return;
  while (pixels >= kDepthwisePixels) {
    depthwise_float<kDepthwisePixels, false>(t, some);
    advance(kDepthwisePixels);
  }
  if (pixels == 5) depthwise_float<5, false>(t, some);
  if (pixels == 4) depthwise_float<4, false>(t, some);
  if (pixels == 3) depthwise_float<3, false>(t, some);
  if (pixels == 2) depthwise_float<2, false>(t, some);
  if (pixels == 1) depthwise_float<1, false>(t, some);
}

// ---- Bytes

#if HWY_TARGET != HWY_SCALAR
// Bytes of four taps of Lanes(d8) channels, as one 32-bit lane a channel in four vectors.
template <class D8, class V8, class V32>
HWY_INLINE void interleave_taps(D8 d8, V8 t0, V8 t1, V8 t2, V8 t3, V32* q0, V32* q1, V32* q2, V32* q3) {
  const hn::RepartitionToWide<D8> d16;
  const hn::RepartitionToWide<decltype(d16)> du32;
  const hn::RebindToSigned<decltype(du32)> d32;
  const auto a = hn::BitCast(d16, hn::InterleaveWholeLower(d8, t0, t1)), b = hn::BitCast(d16, hn::InterleaveWholeUpper(d8, t0, t1));
  const auto c = hn::BitCast(d16, hn::InterleaveWholeLower(d8, t2, t3)), e = hn::BitCast(d16, hn::InterleaveWholeUpper(d8, t2, t3));
  *q0 = hn::BitCast(d32, hn::InterleaveWholeLower(d16, a, c));
  *q1 = hn::BitCast(d32, hn::InterleaveWholeUpper(d16, a, c));
  *q2 = hn::BitCast(d32, hn::InterleaveWholeLower(d16, b, e));
  *q3 = hn::BitCast(d32, hn::InterleaveWholeUpper(d16, b, e));
}
#endif

// A block: as many channels as a vector of at most 4 * kLanes bytes holds.
template <size_t kLanes>
inline int64_t depthwise_block() {
#if HWY_TARGET == HWY_SCALAR
  return 16;
#else
  return 4 * static_cast<int64_t>(hn::Lanes(hn::CappedTag<int32_t, kLanes>()));
#endif
}

// Packs the weights of a block ([tap][channels], `some` <= block channels from w on) for depthwise_bytes: as bytes (kQuads), or
// as 16-bit numbers less their zero point.
template <size_t kLanes, bool kQuads>
inline void pack_depthwise(const uint8_t* w, int64_t channels, int64_t taps, size_t some, uint8_t flip, int32_t zero, std::byte* to) {
#if HWY_TARGET == HWY_SCALAR
  int16_t* packed = reinterpret_cast<int16_t*>(to);
  for (int64_t t = 0; t < taps; ++t)
    for (size_t c = 0; c < 16; ++c)
      packed[t * 16 + static_cast<int64_t>(c)] = c < some ? static_cast<int16_t>(static_cast<int8_t>(w[t * channels + static_cast<int64_t>(c)] ^ flip) - zero) : int16_t{0};
#else
  const hn::CappedTag<int32_t, kLanes> d;
  const hn::Repartition<uint8_t, decltype(d)> d8;
  const hn::Repartition<int16_t, decltype(d)> d16;
  const auto mask = hn::Set(d8, flip);
  const auto no_weight = hn::Set(d8, static_cast<uint8_t>(zero));  // becomes 0
  const auto load = [&](int64_t t) HWY_ATTR {
    if (t >= taps) return no_weight;
    return hn::Xor(hn::LoadN(d8, w + t * channels, some), mask);
  };
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int32_t* packed = reinterpret_cast<int32_t*>(to);
  for (int64_t t = 0; t < taps; t += 4) {
    hn::Vec<decltype(d)> q0, q1, q2, q3;
    interleave_taps(d8, load(t), load(t + 1), load(t + 2), load(t + 3), &q0, &q1, &q2, &q3);
    const auto put = [&](auto q) HWY_ATTR {
      if constexpr (kQuads) {
        hn::StoreU(q, d, packed);
        packed += lanes;
      } else {
        const auto pairs = hn::BitCast(d16, q), z = hn::Set(d16, static_cast<int16_t>(zero));
        hn::StoreU(hn::BitCast(d, hn::Sub(hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs)), z)), d, packed);
        hn::StoreU(hn::BitCast(d, hn::Sub(hn::ShiftRight<8>(pairs), z)), d, packed + lanes);
        packed += 2 * lanes;
      }
    };
    put(q0), put(q1), put(q2), put(q3);
  }
#endif
}

// sums[c] = bias[c] + sum over taps of a' w' for a block of channels of one pixel. offsets[tap] (a multiple of four of them):
// from `at` to the bytes of the block, all of which are read.
template <size_t kLanes, bool kQuads>
HWY_INLINE void depthwise_bytes(const uint8_t* at, const int64_t* offsets, int64_t taps, uint8_t flip, const std::byte* weights,
                                const int32_t* bias, int32_t* sums) {
#if HWY_TARGET == HWY_SCALAR
  const int16_t* w = reinterpret_cast<const int16_t*>(weights);
  for (size_t c = 0; c < 16; ++c) sums[c] = bias[c];
  for (int64_t t = 0; t < taps; ++t)
    for (size_t c = 0; c < 16; ++c) sums[c] += (at[offsets[t] + static_cast<int64_t>(c)] ^ flip) * w[t * 16 + static_cast<int64_t>(c)];
#else
  const hn::CappedTag<int32_t, kLanes> d;
  using V = hn::Vec<decltype(d)>;
  const hn::Repartition<uint8_t, decltype(d)> d8;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto mask = hn::Set(d8, flip);
  const int32_t* w = reinterpret_cast<const int32_t*>(weights);
  V s0 = hn::LoadU(d, bias), s1 = hn::LoadU(d, bias + lanes), s2 = hn::LoadU(d, bias + 2 * lanes), s3 = hn::LoadU(d, bias + 3 * lanes);
  const auto load = [&](int64_t t) HWY_ATTR {
    return hn::Xor(hn::LoadU(d8, at + offsets[t]), mask);
  };
  const auto add = [&](V q, V sum) HWY_ATTR {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
    if constexpr (kQuads) {
      const V result = hn::SumOfMulQuadAccumulate(d, hn::BitCast(d8, q), hn::BitCast(hn::RebindToSigned<decltype(d8)>(), hn::LoadU(d, w)), sum);
      w += lanes;
      return result;
    }
#endif
    const hn::Repartition<int16_t, decltype(d)> d16;
    const hn::RebindToUnsigned<decltype(d16)> du16;
    const auto even = hn::And(hn::BitCast(d16, q), hn::Set(d16, 0xff));
    const auto odd = hn::BitCast(d16, hn::ShiftRight<8>(hn::BitCast(du16, q)));
    sum = hn::Add(sum, hn::WidenMulPairwiseAdd(d, even, hn::BitCast(d16, hn::LoadU(d, w))));
    sum = hn::Add(sum, hn::WidenMulPairwiseAdd(d, odd, hn::BitCast(d16, hn::LoadU(d, w + lanes))));
    w += 2 * lanes;
    return sum;
  };
  for (int64_t t = 0; t < taps; t += 4) {
    V q0, q1, q2, q3;
    interleave_taps(d8, load(t), load(t + 1), load(t + 2), load(t + 3), &q0, &q1, &q2, &q3);
    s0 = add(q0, s0), s1 = add(q1, s1), s2 = add(q2, s2), s3 = add(q3, s3);
  }
  hn::StoreU(s0, d, sums), hn::StoreU(s1, d, sums + lanes), hn::StoreU(s2, d, sums + 2 * lanes), hn::StoreU(s3, d, sums + 3 * lanes);
#endif
}

// The same on weights where they lie ([tap][channels], `some` of them from w on), in 32-bit steps: for few pixels, for which packing
// would be most of the work. taps: not padded.
HWY_INLINE void depthwise_bytes_in_place(const uint8_t* at, const int64_t* offsets, int64_t taps, size_t some, uint8_t flip, const uint8_t* w,
                                         int64_t channels, uint8_t w_flip, int32_t w_zero, const int32_t* bias, int32_t* sums) {
  const hn::CappedTag<int32_t, 16> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const hn::RebindToSigned<decltype(d8)> ds8;
  const size_t lanes = hn::Lanes(d);
  for (size_t c = 0; c < some; c += lanes) {
    auto sum = hn::LoadU(d, bias + c);
    for (int64_t t = 0; t < taps; ++t) {
      const uint8_t* from = w + t * channels + c;
      const auto stored = c + lanes <= some ? hn::LoadU(d8, from) : hn::LoadN(d8, from, some - c);
      const auto b = hn::Sub(hn::PromoteTo(d, hn::BitCast(ds8, hn::Xor(stored, hn::Set(d8, w_flip)))), hn::Set(d, w_zero));
      const auto a = hn::PromoteTo(d, hn::Xor(hn::LoadU(d8, at + offsets[t] + c), hn::Set(d8, flip)));
      sum = hn::Add(sum, hn::Mul(a, b));
    }
    hn::StoreU(sum, d, sums + c);
  }
}

// `pixels` pixels of a block, `step` bytes apart.
template <size_t kLanes, bool kQuads>
HWY_NOINLINE void depthwise_bytes_pixels(const uint8_t* at, int64_t step, int64_t pixels, const int64_t* offsets, int64_t taps, uint8_t flip,
                                         const std::byte* weights, const int32_t* bias, int32_t* sums) {
  const int64_t block = depthwise_block<kLanes>();
  for (int64_t p = 0; p < pixels; ++p)
    depthwise_bytes<kLanes, kQuads>(at + p * step, offsets, taps, flip, weights, bias, sums + p * block);
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif  // ONEWEIGHT_SIMD_DEPTHWISE_INL_H
