// Vectors of float state and their products with rows of weights, for LSTM, RNN and SVDF: weights are float, half, or int8 with
// one scale (the vectors are then quantised, each by its own scale, and the products are exact). Included once per target.
#if defined(ONEWEIGHT_OPS_RECURRENT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_RECURRENT_INL_H
#undef ONEWEIGHT_OPS_RECURRENT_INL_H
#else
#define ONEWEIGHT_OPS_RECURRENT_INL_H
#endif

#include <cstring>
#include <limits>

#include "oneweight/ops/op.h"
#include "oneweight/simd/elementwise-inl.h"
#include "oneweight/simd/quantize-inl.h"
#include "oneweight/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Memory for int8 weights: sums of all rows for all vectors, scales of the vectors.
struct RowWork {
  int32_t* sums = nullptr;
  float* scales = nullptr;
  bool asymmetric = false;           // how vectors are quantised
};

// n <= Lanes(d) weights as floats; int8 times scale.
template <class D, class W>
HWY_INLINE hn::Vec<D> load_weights(D d, const W* w, size_t n, float scale) {
  if constexpr (sizeof(W) == 1) {
    const hn::RebindToSigned<D> di;
    return hn::Mul(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadN(hn::Rebind<int8_t, D>(), w, n))), hn::Set(d, scale));
  } else {
    (void)scale;
    return row_load_n(d, w, n);
  }
}

// `vectors` rows of y begin as a copy of `from`, or as zeros.
HWY_INLINE void fill_rows(const float* from, int64_t count, int64_t vectors, float* y, int64_t distance) {
  const auto bytes = static_cast<size_t>(count) * sizeof(float);
  for (int64_t v = 0; v < vectors && count > 0; ++v) {
    if (from) std::memcpy(y + v * distance, from, bytes);
    else std::memset(y + v * distance, 0, bytes);
  }
}
template <class T>
HWY_INLINE void copy_rows(const T* from, int64_t from_distance, int64_t count, int64_t vectors, T* to, int64_t to_distance) {
  for (int64_t v = 0; v < vectors && count > 0; ++v)
    std::memcpy(to + v * to_distance, from + v * from_distance, static_cast<size_t>(count) * sizeof(T));
}

// For weights of int8: the vectors as padded int16 around 0, and their scales. Others need nothing.
template <class W>
HWY_INLINE void quantize_rows(const float* from, int64_t distance, int64_t columns, int64_t vectors, const RowWork& work, int16_t* to) {
  if constexpr (sizeof(W) == 1) {
    const int64_t padded = padded_columns(columns);
    for (int64_t v = 0; v < vectors; ++v, from += distance, to += padded) {
      const ByteScale scale = find_byte_scale(from, columns, work.asymmetric);
      quantize_bytes(from, columns, scale, to);
      for (int64_t k = 0; k < columns; ++k) to[k] = static_cast<int16_t>(to[k] - scale.zero);
      for (int64_t k = columns; k < padded; ++k) to[k] = 0;
      work.scales[v] = scale.scale;
    }
  }
}

// y[v][r] += w[r] . from[v], with what quantize_rows left in `bytes` and `work` for weights of int8.
template <class W>
HWY_INLINE void add_rows(const W* w, float scale, int64_t rows, int64_t columns, const float* from, int64_t distance, int64_t vectors,
                         const RowWork& work, const int16_t* bytes, float* y, int64_t y_distance) {
  if constexpr (sizeof(W) == 1) {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto n = static_cast<int64_t>(hn::Lanes(d));
    byte_row_products(w, rows, columns, bytes, padded_columns(columns), vectors, work.sums, rows);
    for (int64_t v = 0; v < vectors; ++v) {
      const auto factor = hn::Set(d, work.scales[v] * scale);
      for (int64_t r = 0; r < rows; r += n) {
        const auto left = static_cast<size_t>(rows - r < n ? rows - r : n);
        const auto sum = hn::ConvertTo(d, hn::LoadN(di, work.sums + v * rows + r, left));
        hn::StoreN(hn::MulAdd(sum, factor, hn::LoadN(d, y + v * y_distance + r, left)), d, y + v * y_distance + r, left);
      }
    }
  } else {
    (void)scale, (void)work, (void)bytes;
    add_row_products(w, rows, columns, from, distance, vectors, y, y_distance);
  }
}

// none, relu, relu_n1_to_1, relu6 (NaN passes) or tanh; in == out is allowed.
HWY_INLINE void activate_floats(Activation activation, const float* in, float* out, int64_t count) {
  const auto n = static_cast<size_t>(count);
  const float infinity = std::numeric_limits<float>::infinity();
  if (activation == Activation::tanh) {
    map_floats(in, out, n, [](auto d, auto x) HWY_ATTR { return tanh_float(d, x); });
    return;
  }
  const float low = activation == Activation::none ? -infinity : activation == Activation::relu_n1_to_1 ? -1.0f : 0.0f;
  const float high = activation == Activation::relu_n1_to_1 ? 1.0f : activation == Activation::relu6 ? 6.0f : infinity;
  map_floats(in, out, n, [low, high](auto d, auto x) HWY_ATTR { return clamp_keep_nan(d, x, hn::Set(d, low), hn::Set(d, high)); });
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif
