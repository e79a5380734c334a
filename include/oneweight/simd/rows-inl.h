// Dot products of a few vectors with rows of weights, for operators that step through time: y += W x with W [rows, columns]
// as it lies in the file (float, half or int8), one product after the other.
#if defined(ONEWEIGHT_SIMD_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_ROWS_INL_H
#undef ONEWEIGHT_SIMD_ROWS_INL_H
#else
#define ONEWEIGHT_SIMD_ROWS_INL_H
#endif

#include "oneweight/base/types.h"
#include "oneweight/simd/config.h"
#include "oneweight/simd/half-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Loads of n <= Lanes(d) stored values as floats; lanes from n on are zero.
template <class D>
HWY_INLINE hn::Vec<D> row_load(D d, const float* p) { return hn::LoadU(d, p); }
template <class D>
HWY_INLINE hn::Vec<D> row_load_n(D d, const float* p, size_t n) { return hn::LoadN(d, p, n); }
template <class D>
HWY_INLINE hn::Vec<D> row_load(D d, const half* p) {
  return widen_half(d, hn::LoadU(hn::Rebind<uint16_t, D>(), reinterpret_cast<const uint16_t*>(p)));
}
template <class D>
HWY_INLINE hn::Vec<D> row_load_n(D d, const half* p, size_t n) {
  return widen_half(d, hn::LoadN(hn::Rebind<uint16_t, D>(), reinterpret_cast<const uint16_t*>(p), n));
}

// The first `left` < Lanes(d) values at p, of an array that ends at `end`; lanes from `left` on are zero.
template <class D, class W>
HWY_INLINE hn::Vec<D> row_load_tail(D d, const W* p, size_t left, const W* end) {
  if (p + hn::Lanes(d) <= end) return hn::IfThenElseZero(hn::FirstN(d, left), row_load(d, p));
  return row_load_n(d, p, left);
}

// Dot product of one row with x, in an order that depends on `columns` alone. `end`: of the array the row lies in.
template <class W>
HWY_INLINE float row_dot(const W* HWY_RESTRICT row, const float* HWY_RESTRICT x, size_t columns, const W* end) {
  const hn::ScalableTag<float> d;
  const size_t n = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = hn::Zero(d);
  size_t k = 0;
  for (; k + 2 * n <= columns; k += 2 * n) {
    s0 = hn::MulAdd(row_load(d, row + k), hn::LoadU(d, x + k), s0);
    s1 = hn::MulAdd(row_load(d, row + k + n), hn::LoadU(d, x + k + n), s1);
  }
  for (; k < columns; k += n) {
    const size_t left = columns - k < n ? columns - k : n;
    s0 = hn::MulAdd(left == n ? row_load(d, row + k) : row_load_tail(d, row + k, left, end), hn::LoadN(d, x + k, left), s0);
  }
  return hn::ReduceSum(d, hn::Add(s0, s1));
}
// The same of four rows that follow one another.
template <class W>
HWY_INLINE void four_row_dots(const W* HWY_RESTRICT rows, const float* HWY_RESTRICT x, size_t columns, const W* end,
    float* HWY_RESTRICT sums) {
  const hn::ScalableTag<float> d;
  const size_t n = hn::Lanes(d);
  const W *r0 = rows, *r1 = r0 + columns, *r2 = r1 + columns, *r3 = r2 + columns;
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  auto t0 = hn::Zero(d), t1 = hn::Zero(d), t2 = hn::Zero(d), t3 = hn::Zero(d);
  size_t k = 0;
  for (; k + 2 * n <= columns; k += 2 * n) {
    const auto x0 = hn::LoadU(d, x + k), x1 = hn::LoadU(d, x + k + n);
    s0 = hn::MulAdd(row_load(d, r0 + k), x0, s0), t0 = hn::MulAdd(row_load(d, r0 + k + n), x1, t0);
    s1 = hn::MulAdd(row_load(d, r1 + k), x0, s1), t1 = hn::MulAdd(row_load(d, r1 + k + n), x1, t1);
    s2 = hn::MulAdd(row_load(d, r2 + k), x0, s2), t2 = hn::MulAdd(row_load(d, r2 + k + n), x1, t2);
    s3 = hn::MulAdd(row_load(d, r3 + k), x0, s3), t3 = hn::MulAdd(row_load(d, r3 + k + n), x1, t3);
  }
  for (; k < columns; k += n) {
    const size_t left = columns - k < n ? columns - k : n;
    const auto x0 = hn::LoadN(d, x + k, left);
    if (left == n) {
      s0 = hn::MulAdd(row_load(d, r0 + k), x0, s0), s1 = hn::MulAdd(row_load(d, r1 + k), x0, s1);
      s2 = hn::MulAdd(row_load(d, r2 + k), x0, s2), s3 = hn::MulAdd(row_load(d, r3 + k), x0, s3);
    } else {
      s0 = hn::MulAdd(row_load_tail(d, r0 + k, left, end), x0, s0), s1 = hn::MulAdd(row_load_tail(d, r1 + k, left, end), x0, s1);
      s2 = hn::MulAdd(row_load_tail(d, r2 + k, left, end), x0, s2), s3 = hn::MulAdd(row_load_tail(d, r3 + k, left, end), x0, s3);
    }
  }
  sums[0] = hn::ReduceSum(d, hn::Add(s0, t0)), sums[1] = hn::ReduceSum(d, hn::Add(s1, t1));
  sums[2] = hn::ReduceSum(d, hn::Add(s2, t2)), sums[3] = hn::ReduceSum(d, hn::Add(s3, t3));
}

// y[v][r] += w[r] . x[v] for `vectors` vectors, `x_distance` and `y_distance` apart.
template <class W>
HWY_NOINLINE void add_row_products(const W* HWY_RESTRICT w, int64_t rows, int64_t columns, const float* HWY_RESTRICT x, int64_t x_distance,
                                   int64_t vectors, float* HWY_RESTRICT y, int64_t y_distance) {
  const W* end = w + rows * columns;
  const auto n = static_cast<size_t>(columns);
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    for (int64_t v = 0; v < vectors; ++v) {
      float sums[4];
      four_row_dots(w + r * columns, x + v * x_distance, n, end, sums);
      for (int i = 0; i < 4; ++i) y[v * y_distance + r + i] += sums[i];
    }
  }
  for (; r < rows; ++r)
    for (int64_t v = 0; v < vectors; ++v) y[v * y_distance + r] += row_dot(w + r * columns, x + v * x_distance, n, end);
}

// Vectors of int16 that meet rows of int8 are padded with zeros to a multiple of this many elements.
inline constexpr int64_t kRowPad = 32;
inline int64_t padded_columns(int64_t columns) { return (columns + kRowPad - 1) / kRowPad * kRowPad; }

// sums[v][r] = w[r] . x[v], exact modulo 2^32; |x| <= 255 or so (pairs of products fit into 32 bits). x is padded.
inline HWY_NOINLINE void byte_row_products(const int8_t* HWY_RESTRICT w, int64_t rows, int64_t columns, const int16_t* HWY_RESTRICT x,
                                           int64_t x_distance, int64_t vectors, int32_t* HWY_RESTRICT sums, int64_t sums_distance) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t v = 0; v < vectors; ++v) {
    for (int64_t r = 0; r < rows; ++r) {
      uint32_t sum = 0;
      for (int64_t k = 0; k < columns; ++k) sum += static_cast<uint32_t>(int32_t{w[r * columns + k]} * x[v * x_distance + k]);
      sums[v * sums_distance + r] = static_cast<int32_t>(sum);
    }
  }
#else
  const hn::CappedTag<int32_t, 16> d32;
  const hn::Repartition<int16_t, decltype(d32)> d16;
  const hn::Rebind<int8_t, decltype(d16)> d8;
  const auto n = static_cast<int64_t>(hn::Lanes(d16));
  const int8_t* end = w + rows * columns;
  // What lies behind a row meets the zeros behind x.
  const auto load = [&](const int8_t* p, int64_t left) HWY_ATTR {
    return hn::PromoteTo(d16, p + n <= end ? hn::LoadU(d8, p) : hn::LoadN(d8, p, static_cast<size_t>(left < n ? left : n)));
  };
  for (int64_t r = 0; r < rows;) {
    const int64_t step = rows - r >= 4 ? 4 : 1;
    const int8_t* row = w + r * columns;
    for (int64_t v = 0; v < vectors; ++v) {
      const int16_t* from = x + v * x_distance;
      int32_t* to = sums + v * sums_distance + r;
      auto s0 = hn::Zero(d32);
      if (step == 4) {
        auto s1 = hn::Zero(d32), s2 = hn::Zero(d32), s3 = hn::Zero(d32);
        for (int64_t k = 0; k < columns; k += n) {
          const auto a = hn::LoadU(d16, from + k);
          s0 = hn::Add(s0, hn::WidenMulPairwiseAdd(d32, a, load(row + k, columns - k)));
          s1 = hn::Add(s1, hn::WidenMulPairwiseAdd(d32, a, load(row + columns + k, columns - k)));
          s2 = hn::Add(s2, hn::WidenMulPairwiseAdd(d32, a, load(row + 2 * columns + k, columns - k)));
          s3 = hn::Add(s3, hn::WidenMulPairwiseAdd(d32, a, load(row + 3 * columns + k, columns - k)));
        }
        to[1] = hn::ReduceSum(d32, s1), to[2] = hn::ReduceSum(d32, s2), to[3] = hn::ReduceSum(d32, s3);
      } else {
        for (int64_t k = 0; k < columns; k += n)
          s0 = hn::Add(s0, hn::WidenMulPairwiseAdd(d32, hn::LoadU(d16, from + k), load(row + k, columns - k)));
      }
      to[0] = hn::ReduceSum(d32, s0);
    }
    r += step;
  }
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif
