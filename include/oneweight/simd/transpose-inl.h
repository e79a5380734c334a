// Transposes blocks of a matrix of bytes or 16-bit numbers. Included once per target.
#if defined(ONEWEIGHT_SIMD_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_TRANSPOSE_INL_H
#undef ONEWEIGHT_SIMD_TRANSPOSE_INL_H
#else
#define ONEWEIGHT_SIMD_TRANSPOSE_INL_H
#endif

#include <algorithm>

#include "oneweight/simd/config.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// Half of a 16 x 16 transposition: done twice, it is whole.
HWY_INLINE void shuffle_block(const uint8_t* HWY_RESTRICT from, int64_t from_stride, uint8_t* HWY_RESTRICT to, int64_t to_stride) {
  const hn::FixedTag<uint8_t, 16> d;
  for (int64_t i = 0; i < 4; ++i) {
    const auto a = hn::LoadU(d, from + i * from_stride), b = hn::LoadU(d, from + (i + 4) * from_stride);
    const auto c = hn::LoadU(d, from + (i + 8) * from_stride), e = hn::LoadU(d, from + (i + 12) * from_stride);
    const auto low0 = hn::InterleaveLower(d, a, c), low1 = hn::InterleaveLower(d, b, e);
    const auto high0 = hn::InterleaveUpper(d, a, c), high1 = hn::InterleaveUpper(d, b, e);
    uint8_t* at = to + 4 * i * to_stride;
    hn::StoreU(hn::InterleaveLower(d, low0, low1), d, at);
    hn::StoreU(hn::InterleaveUpper(d, low0, low1), d, at + to_stride);
    hn::StoreU(hn::InterleaveLower(d, high0, high1), d, at + 2 * to_stride);
    hn::StoreU(hn::InterleaveUpper(d, high0, high1), d, at + 3 * to_stride);
  }
}
#endif

// to[c * to_stride + r] = from[r * from_stride + c] for r < rows and c < columns.
inline void transpose(const uint8_t* HWY_RESTRICT from, int64_t from_stride, int64_t rows, int64_t columns, uint8_t* HWY_RESTRICT to,
                      int64_t to_stride) {
#if HWY_TARGET != HWY_SCALAR
  if (rows >= 16 && columns >= 16) {
    uint8_t block[256];
    for (int64_t r = 0; r < rows; r += 16) {
      const int64_t top = std::min(r, rows - 16);  // the last ones once more rather than a tail
      for (int64_t c = 0; c < columns; c += 16) {
        const int64_t left = std::min(c, columns - 16);
        shuffle_block(from + top * from_stride + left, from_stride, block, 16);
        shuffle_block(block, 16, to + left * to_stride + top, to_stride);
      }
    }
    return;
  }
#endif
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
}
inline void transpose(const int16_t* HWY_RESTRICT from, int64_t from_stride, int64_t rows, int64_t columns, int16_t* HWY_RESTRICT to,
                      int64_t to_stride) {
  for (int64_t r = 0; r < rows; r += 8) {
    const int64_t bottom = std::min(rows, r + 8);
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t i = r; i < bottom; ++i) to[c * to_stride + i] = from[i * from_stride + c];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif
