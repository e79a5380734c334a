// Matrix products of 8-bit activations with 8-bit weights that are read where they lie, in exact int32 arithmetic.
// Included once per target.
//
// Activations are taken as unsigned bytes a' (int8 with the sign bit flipped), weights as signed bytes w' (uint8 with the
// sign bit flipped); what zero points contribute is in the constants of the epilogue. Few rows, or long reductions:
// dot products straight on the weights. Else the weights of some channels are transposed into panels in scratch, used
// for all rows, and thrown away. Sums wrap; no intermediate saturates.
#if defined(ONEWEIGHT_SIMD_PRODUCT_INT8_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_SIMD_PRODUCT_INT8_INL_H
#undef ONEWEIGHT_SIMD_PRODUCT_INT8_INL_H
#else
#define ONEWEIGHT_SIMD_PRODUCT_INT8_INL_H
#endif

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "oneweight/simd/keep-inl.h"
#include "oneweight/simd/prefetch.h"
#include "oneweight/simd/product_int8.h"
#include "oneweight/simd/quantized_store-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A group of terms fills a 32-bit lane: four bytes where the processor multiplies and adds quads of bytes, else two
// 16-bit numbers (AVX2's own byte products saturate).
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
inline constexpr bool kByteQuads = true;
#else
inline constexpr bool kByteQuads = false;
#endif
using TileTerm = std::conditional_t<kByteQuads, uint8_t, int16_t>;
inline constexpr int64_t kGroupTerms = kByteQuads ? 4 : 2;

// Rows of a register tile; it is two vectors of channels wide.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
inline constexpr int kByteTileRows = 14;
#else
inline constexpr int kByteTileRows = 6;
#endif
inline constexpr int kByteDotRows = 4;
inline constexpr int64_t kDotChannels = 64;       // channels whose sums are finished together
inline constexpr int64_t kPanelBytes = 320 << 10;

// sum + the products of the terms in each lane.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V add_products(D d, V a, V b, V sum) {
#if HWY_TARGET == HWY_SCALAR
  const int32_t x = hn::GetLane(a), y = hn::GetLane(b);
  const int32_t low = static_cast<int16_t>(x & 0xffff) * static_cast<int16_t>(y & 0xffff), high = (x >> 16) * (y >> 16);
  return hn::Set(d, static_cast<int32_t>(static_cast<uint32_t>(hn::GetLane(sum)) + static_cast<uint32_t>(low) + static_cast<uint32_t>(high)));
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
  return hn::SumOfMulQuadAccumulate(d, hn::BitCast(hn::Repartition<uint8_t, D>(), a), hn::BitCast(hn::Repartition<int8_t, D>(), b), sum);
#else
  const hn::Repartition<int16_t, D> d16;
  return hn::Add(sum, hn::WidenMulPairwiseAdd(d, hn::BitCast(d16, a), hn::BitCast(d16, b)));
#endif
}

// Bytes as terms of a tile.
template <class DT, class V>
HWY_INLINE hn::Vec<DT> widen_terms(DT dt, V bytes) {
  if constexpr (sizeof(hn::TFromD<DT>) == 1) return hn::ResizeBitCast(dt, bytes);
  else return hn::PromoteTo(dt, bytes);
}

// to[i] = from[i] ^ flip for i in [i0, n) in steps of a vector of bytes, the last of which overlaps; n >= Lanes(d8).
template <class D8>
HWY_INLINE void copy_vectors(D8 d8, const uint8_t* HWY_RESTRICT from, int64_t n, uint8_t flip, TileTerm* HWY_RESTRICT to) {
  const hn::Rebind<TileTerm, D8> dt;
  const int64_t step = static_cast<int64_t>(hn::Lanes(d8));
  const auto mask = hn::Set(d8, flip);
  const auto move = [&](int64_t i) HWY_ATTR { hn::StoreU(widen_terms(dt, hn::Xor(hn::LoadU(d8, from + i), mask)), dt, to + i); };
  int64_t i = 0;
  for (; i + step <= n; i += step) move(i);
  if (i < n) move(n - step);
}

// to[i] = from[i] ^ flip, as terms of a tile.
HWY_INLINE void copy_terms(const uint8_t* HWY_RESTRICT from, int64_t n, uint8_t flip, TileTerm* HWY_RESTRICT to) {
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<TileTerm, Int32Tag> dt;
  const hn::Rebind<uint8_t, decltype(dt)> d8;
  if (n >= static_cast<int64_t>(hn::Lanes(d8))) return copy_vectors(d8, from, n, flip, to);
  if constexpr (hn::MaxLanes(dt) > 32) {
    if (n >= 32) return copy_vectors(hn::CappedTag<uint8_t, 32>(), from, n, flip, to);
  }
  if constexpr (hn::MaxLanes(dt) > 16) {
    if (n >= 16) return copy_vectors(hn::CappedTag<uint8_t, 16>(), from, n, flip, to);
  }
  if (n >= 8) return copy_vectors(hn::CappedTag<uint8_t, 8>(), from, n, flip, to);
  if (n >= 4) return copy_vectors(hn::CappedTag<uint8_t, 4>(), from, n, flip, to);
#endif
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<TileTerm>(from[i] ^ flip);
}
HWY_INLINE void fill_terms(TileTerm value, int64_t n, TileTerm* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = value;
}

// ---- Panels: [group of terms][two vectors of channels]

// Transposes the weights of Lanes channels (from row 0 at w, `stride` bytes apart; those at and behind `channels` repeat
// the last) into panel[group * panel_stride + channel]. Terms behind the last are 0.
inline void pack_bytes(const uint8_t* w, int64_t stride, int64_t channels, int64_t terms, uint8_t flip, int32_t* panel,
                       int64_t panel_stride) {
  const Int32Tag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const uint8_t* rows[16];
  for (int64_t c = 0; c < lanes; ++c) rows[c] = w + (c < channels ? c : channels - 1) * stride;
  int64_t quad = 0;  // first not yet packed
#if HWY_TARGET != HWY_SCALAR
  const int64_t whole = terms / 4;
  if (whole >= 4 && lanes >= 4) {
    const hn::Repartition<int64_t, Int32Tag> d64;
    const auto mask = hn::Set(d, static_cast<int32_t>(flip * 0x01010101u));
    const hn::RebindToUnsigned<Int32Tag> du;
    const auto block = hn::ShiftRight<2>(hn::Iota(du, 0));
    const auto load = [&](const uint8_t* const* of, int64_t at) HWY_ATTR {
      auto v = hn::LoadDup128(d, reinterpret_cast<const int32_t*>(of[0] + at));
      for (int64_t b = 1; b < lanes / 4; ++b) {
        const auto is_block = hn::RebindMask(d, hn::Eq(block, hn::Set(du, static_cast<uint32_t>(b))));
        v = hn::IfThenElse(is_block, hn::LoadDup128(d, reinterpret_cast<const int32_t*>(of[4 * b] + at)), v);
      }
      return hn::Xor(v, mask);
    };
    const auto put = [&](auto v, int64_t q) HWY_ATTR {
      if constexpr (kByteQuads) {
        hn::StoreU(hn::BitCast(d, v), d, panel + q * panel_stride);
      } else {
        const hn::Repartition<int16_t, Int32Tag> d16;
        const auto pairs = hn::BitCast(d16, v);
        const auto even = hn::BitCast(d, hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs)));  // terms 0 and 2
        const auto odd = hn::BitCast(d, hn::ShiftRight<8>(pairs));                     // terms 1 and 3
        const auto low = hn::Set(d, 0xffff);
        const auto first = hn::Or(hn::And(even, low), hn::ShiftLeft<16>(odd));
        const auto second = hn::Or(hn::BitCast(d, hn::ShiftRight<16>(hn::BitCast(du, even))), hn::AndNot(low, odd));
        hn::StoreU(first, d, panel + 2 * q * panel_stride);
        hn::StoreU(second, d, panel + (2 * q + 1) * panel_stride);
      }
    };
    for (;; quad += 4) {
      if (quad > whole - 4) {
        if (quad == whole) break;
        quad = whole - 4;  // the last four once more rather than a tail
      }
      const auto r0 = load(rows, 4 * quad), r1 = load(rows + 1, 4 * quad), r2 = load(rows + 2, 4 * quad), r3 = load(rows + 3, 4 * quad);
      const auto a0 = hn::BitCast(d64, hn::InterleaveLower(d, r0, r1)), a1 = hn::BitCast(d64, hn::InterleaveLower(d, r2, r3));
      const auto a2 = hn::BitCast(d64, hn::InterleaveUpper(d, r0, r1)), a3 = hn::BitCast(d64, hn::InterleaveUpper(d, r2, r3));
      put(hn::InterleaveLower(d64, a0, a1), quad);
      put(hn::InterleaveUpper(d64, a0, a1), quad + 1);
      put(hn::InterleaveLower(d64, a2, a3), quad + 2);
      put(hn::InterleaveUpper(d64, a2, a3), quad + 3);
    }
  }
#endif
  for (; 4 * quad < terms; ++quad) {
    const size_t n = static_cast<size_t>(std::min<int64_t>(4, terms - 4 * quad));
    for (int64_t c = 0; c < lanes; ++c) {
      uint8_t bytes[4] = {flip, flip, flip, flip};
      std::memcpy(bytes, rows[c] + 4 * quad, n);
      for (uint8_t& b : bytes) b ^= flip;
      if constexpr (kByteQuads) {
        std::memcpy(panel + quad * panel_stride + c, bytes, 4);
      } else {
        const int16_t terms16[4] = {static_cast<int8_t>(bytes[0]), static_cast<int8_t>(bytes[1]), static_cast<int8_t>(bytes[2]),
                                    static_cast<int8_t>(bytes[3])};
        std::memcpy(panel + 2 * quad * panel_stride + c, terms16, 4);
        std::memcpy(panel + (2 * quad + 1) * panel_stride + c, terms16 + 2, 4);
      }
    }
  }
}

#define ONEWEIGHT_BYTE_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)

// How the activations of the rows of a register tile lie in scratch. Rows may overlap: windows of neighbouring pixels share
// what they have in common. Up to three terms behind a segment are read, times weights of 0. All in terms.
struct TileLayout {
  int64_t row, segment;     // distance of rows, and of the segments of a row
  int64_t segments, terms;  // of a row; of a segment
  int64_t size;             // of a tile of kByteTileRows rows
  bool separate;            // rows share nothing
  int64_t row_terms() const { return segments * terms; }
  int64_t groups() const { return (terms + 3) / 4 * (4 / kGroupTerms); }  // of a segment
};
// One row after another.
inline TileLayout separate_rows(int64_t terms) {
  TileLayout t{0, 0, 1, terms, 0, true};
  int64_t groups = (t.groups() + 15) / 16 * 16;
  if (groups % 256 == 0) groups += 16;  // rows in different sets of the cache
  t.row = groups * kGroupTerms;
  t.size = kByteTileRows * t.row;
  return t;
}

// A group of terms.
HWY_INLINE int32_t load_group(const TileTerm* from) {
  int32_t group;
  std::memcpy(&group, from, sizeof(group));
  return group;
}

// sums[r * 2 * Lanes + n] = bias[n] + the products of row r of the tile with channel n of the panel.
template <int kRows, bool kTwo>
HWY_NOINLINE void byte_tile(const TileTerm* HWY_RESTRICT tile, const TileLayout& layout, const int32_t* HWY_RESTRICT panel,
                            const int32_t* bias, int32_t* HWY_RESTRICT sums) {
  const Int32Tag d;
  using V = hn::Vec<Int32Tag>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), row = layout.row, terms = layout.groups() * kGroupTerms;
  const V bias0 = hn::LoadU(d, bias), bias1 = kTwo ? hn::LoadU(d, bias + lanes) : bias0;
#define ONEWEIGHT_BYTE_DECLARE(r) [[maybe_unused]] V x##r = bias0, y##r = bias1;
  ONEWEIGHT_BYTE_ROWS(ONEWEIGHT_BYTE_DECLARE)
#undef ONEWEIGHT_BYTE_DECLARE
  for (int64_t s = 0; s < layout.segments; ++s, tile += layout.segment) {
    const TileTerm* HWY_RESTRICT p0 = tile;
    [[maybe_unused]] const TileTerm *HWY_RESTRICT p3 = tile + 3 * row, *HWY_RESTRICT p6 = tile + 6 * row;
    [[maybe_unused]] const TileTerm *HWY_RESTRICT p9 = tile + 9 * row, *HWY_RESTRICT p12 = tile + 12 * row;
    for (int64_t k = 0; k < terms; k += kGroupTerms) {
      const V b0 = hn::LoadU(d, panel), b1 = kTwo ? hn::LoadU(d, panel + lanes) : b0;
      panel += kTwo ? 2 * lanes : lanes;
#define ONEWEIGHT_BYTE_STEP(r, p, times)                                \
  if constexpr (r < kRows) {                                            \
    const V a = hn::Set(d, load_group(p + k + times * row));            \
    x##r = add_products(d, a, b0, x##r);                                \
    if constexpr (kTwo) y##r = add_products(d, a, b1, y##r);            \
  }
      ONEWEIGHT_BYTE_STEP(0, p0, 0) ONEWEIGHT_BYTE_STEP(1, p0, 1) ONEWEIGHT_BYTE_STEP(2, p0, 2)
      ONEWEIGHT_BYTE_STEP(3, p3, 0) ONEWEIGHT_BYTE_STEP(4, p3, 1) ONEWEIGHT_BYTE_STEP(5, p3, 2)
      ONEWEIGHT_BYTE_STEP(6, p6, 0) ONEWEIGHT_BYTE_STEP(7, p6, 1) ONEWEIGHT_BYTE_STEP(8, p6, 2)
      ONEWEIGHT_BYTE_STEP(9, p9, 0) ONEWEIGHT_BYTE_STEP(10, p9, 1) ONEWEIGHT_BYTE_STEP(11, p9, 2)
      ONEWEIGHT_BYTE_STEP(12, p12, 0) ONEWEIGHT_BYTE_STEP(13, p12, 1)
#undef ONEWEIGHT_BYTE_STEP
    }
  }
#define ONEWEIGHT_BYTE_STORE(r)                                          \
  if constexpr (r < kRows) {                                             \
    hn::StoreU(x##r, d, sums + 2 * r * lanes);                           \
    if constexpr (kTwo) hn::StoreU(y##r, d, sums + (2 * r + 1) * lanes); \
  }
  ONEWEIGHT_BYTE_ROWS(ONEWEIGHT_BYTE_STORE)
#undef ONEWEIGHT_BYTE_STORE
}
#undef ONEWEIGHT_BYTE_ROWS

// The least tile of at least `rows` rows that is compiled.
template <bool kTwo>
inline void run_byte_tile(int rows, const TileTerm* tile, const TileLayout& t, const int32_t* panel, const int32_t* bias, int32_t* sums) {
  if constexpr (kByteTileRows > 6) {
    if (rows > 12) return byte_tile<14, kTwo>(tile, t, panel, bias, sums);
    if (rows > 10) return byte_tile<12, kTwo>(tile, t, panel, bias, sums);
    if (rows > 8) return byte_tile<10, kTwo>(tile, t, panel, bias, sums);
    if (rows > 6) return byte_tile<8, kTwo>(tile, t, panel, bias, sums);
  }
  if (rows > 4) return byte_tile<6, kTwo>(tile, t, panel, bias, sums);
  if (rows > 2) return byte_tile<4, kTwo>(tile, t, panel, bias, sums);
  return byte_tile<2, kTwo>(tile, t, panel, bias, sums);
}

// ---- Dot products

// Terms a row of activations takes in scratch for dot products: whole vectors, and one more with the terms behind the last
// whole vector at its end (so that the weights need no partial load).
inline int64_t dot_step() { return static_cast<int64_t>(hn::Lanes(Int32Tag())) * kGroupTerms; }
inline int64_t dot_row_terms(int64_t terms) { return (terms + dot_step() - 1) / dot_step() * dot_step() + dot_step(); }

template <class D>
HWY_INLINE int32_t lane_sum(D d, hn::Vec<D> v) {
  return hn::ReduceSum(d, v);
}
#if !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR
// Adds the 128-bit blocks of v.
template <class D>
HWY_INLINE auto add_blocks(D, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) > 4) {
    const hn::Half<D> half;
    return add_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}
#endif
template <class D, class V = hn::Vec<D>>
HWY_INLINE void store_lane_sums(D d, V a, V b, V c, V e, int32_t* to) {
#if !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR
  const hn::Repartition<int64_t, D> d64;
  const auto ab = hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  const auto ce = hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e)));
  const auto all = hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, ab, ce)), hn::BitCast(d, hn::InterleaveUpper(d64, ab, ce)));
  hn::StoreU(add_blocks(d, all), hn::FixedTag<int32_t, 4>(), to);
#else
  to[0] = lane_sum(d, a), to[1] = lane_sum(d, b), to[2] = lane_sum(d, c), to[3] = lane_sum(d, e);
#endif
}

// sums[r * kDotChannels + n] for kRows rows of activations (a, a_stride terms apart) and `channels` channels, 4 * kQuads at a time:
// those behind the last one are computed from it, and ignored. kFetches: also fetches the weights of the next ones into the cache.
template <int kRows, int kQuads, bool kFlips, bool kFetches>
HWY_NOINLINE void byte_dots(const TileTerm* HWY_RESTRICT a, int64_t a_stride, const uint8_t* w, int64_t w_stride, int64_t channels,
                            int64_t terms, uint8_t flip, int32_t* sums) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t n = 0; n < channels; ++n) {
    const uint8_t* of = w + n * w_stride;
    for (int r = 0; r < kRows; ++r) {
      uint32_t sum = 0;
      for (int64_t k = 0; k < terms; ++k)
        sum += static_cast<uint32_t>(a[r * a_stride + k] * static_cast<int8_t>(of[k] ^ flip));
      sums[r * kDotChannels + n] = static_cast<int32_t>(sum);
    }
  }
#else
  const Int32Tag d;
  using V = hn::Vec<Int32Tag>;
  const hn::Repartition<TileTerm, Int32Tag> dt;
  const hn::Rebind<uint8_t, decltype(dt)> d8;
  const int64_t step = static_cast<int64_t>(hn::Lanes(dt));
  [[maybe_unused]] const auto mask = hn::Set(d8, flip);
  const auto widen = [&](auto v) HWY_ATTR {
    if constexpr (kFlips) v = hn::Xor(v, mask);
    return hn::BitCast(d, widen_terms(dt, hn::BitCast(hn::RebindToSigned<decltype(d8)>(), v)));
  };
#define ONEWEIGHT_DOT_STEP(n)                                                        \
  if constexpr (n < 4 * kQuads) {                                                    \
    const V b = load(w##n);                                                          \
    if constexpr (kFetches) prefetch_later(w##n + k + 4 * kQuads * w_stride);        \
    s##n##_0 = add_products(d, a0, b, s##n##_0);                                     \
    if constexpr (kRows > 1) s##n##_1 = add_products(d, a1, b, s##n##_1);            \
    if constexpr (kRows > 2) s##n##_2 = add_products(d, a2, b, s##n##_2);            \
    if constexpr (kRows > 3) s##n##_3 = add_products(d, a3, b, s##n##_3);            \
  }
#define ONEWEIGHT_DOT_KEEP(n)                                  \
  if constexpr (n < 4 * kQuads) {                              \
    keep_in_register(s##n##_0);                                \
    if constexpr (kRows > 1) keep_in_register(s##n##_1);       \
    if constexpr (kRows > 2) keep_in_register(s##n##_2);       \
    if constexpr (kRows > 3) keep_in_register(s##n##_3);       \
  }
#define ONEWEIGHT_DOT_ACTIVATIONS(at)                                                            \
  const V a0 = hn::BitCast(d, hn::LoadU(dt, a + (at)));                                          \
  [[maybe_unused]] const V a1 = kRows > 1 ? hn::BitCast(d, hn::LoadU(dt, a + a_stride + (at))) : a0;     \
  [[maybe_unused]] const V a2 = kRows > 2 ? hn::BitCast(d, hn::LoadU(dt, a + 2 * a_stride + (at))) : a0; \
  [[maybe_unused]] const V a3 = kRows > 3 ? hn::BitCast(d, hn::LoadU(dt, a + 3 * a_stride + (at))) : a0;
  for (int64_t c = 0; c < channels; c += 4 * kQuads, sums += 4 * kQuads, w += 4 * kQuads * w_stride) {
    const int64_t last = channels - 1 - c;
#define ONEWEIGHT_DOT_ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define ONEWEIGHT_DOT_DECLARE(n) [[maybe_unused]] V s##n##_0 = hn::Zero(d), s##n##_1 = s##n##_0, s##n##_2 = s##n##_0, s##n##_3 = s##n##_0;
    ONEWEIGHT_DOT_ALL(ONEWEIGHT_DOT_DECLARE)
#undef ONEWEIGHT_DOT_DECLARE
    const uint8_t* const w0 = w;
#define ONEWEIGHT_DOT_POINTER(n, before) [[maybe_unused]] const uint8_t* const w##n = w##before + (n <= last ? w_stride : 0);
    ONEWEIGHT_DOT_POINTER(1, 0) ONEWEIGHT_DOT_POINTER(2, 1) ONEWEIGHT_DOT_POINTER(3, 2) ONEWEIGHT_DOT_POINTER(4, 3)
    ONEWEIGHT_DOT_POINTER(5, 4) ONEWEIGHT_DOT_POINTER(6, 5) ONEWEIGHT_DOT_POINTER(7, 6)
#undef ONEWEIGHT_DOT_POINTER
    int64_t k = 0;
    for (; k + step <= terms; k += step) {
      ONEWEIGHT_DOT_ACTIVATIONS(k)
      const auto load = [&](const uint8_t* from) HWY_ATTR { return widen(hn::LoadU(d8, from + k)); };
      ONEWEIGHT_DOT_ALL(ONEWEIGHT_DOT_STEP)
      ONEWEIGHT_DOT_ALL(ONEWEIGHT_DOT_KEEP)
    }
    if (k < terms && terms >= step) {
      ONEWEIGHT_DOT_ACTIVATIONS(k + step)
      const auto load = [&](const uint8_t* from) HWY_ATTR { return widen(hn::LoadU(d8, from + (terms - step))); };
      ONEWEIGHT_DOT_ALL(ONEWEIGHT_DOT_STEP)
    } else if (k < terms) {
      ONEWEIGHT_DOT_ACTIVATIONS(0)
      const auto load = [&](const uint8_t* from) HWY_ATTR { return widen(hn::LoadN(d8, from, static_cast<size_t>(terms))); };
      ONEWEIGHT_DOT_ALL(ONEWEIGHT_DOT_STEP)
    }
#undef ONEWEIGHT_DOT_ACTIVATIONS
#undef ONEWEIGHT_DOT_KEEP
#undef ONEWEIGHT_DOT_STEP
#undef ONEWEIGHT_DOT_ALL
#define ONEWEIGHT_DOT_STORE(r)                                                                                   \
  if constexpr (r < kRows) {                                                                                     \
    store_lane_sums(d, s0_##r, s1_##r, s2_##r, s3_##r, sums + r * kDotChannels);                                 \
    if constexpr (kQuads > 1) store_lane_sums(d, s4_##r, s5_##r, s6_##r, s7_##r, sums + r * kDotChannels + 4);   \
  }
    ONEWEIGHT_DOT_STORE(0) ONEWEIGHT_DOT_STORE(1) ONEWEIGHT_DOT_STORE(2) ONEWEIGHT_DOT_STORE(3)
#undef ONEWEIGHT_DOT_STORE
  }
#endif
}

template <int kRows>
inline void byte_dot_rows(const TileTerm* a, int64_t a_stride, const uint8_t* w, int64_t w_stride, int64_t channels, int64_t terms,
                          uint8_t flip, bool streams, int32_t* sums) {
  constexpr int kQuads = kRows == 1 || (kRows == 2 && kByteTileRows > 6) ? 2 : 1;
  const auto run = [&](auto dots) { dots(a, a_stride, w, w_stride, channels, terms, flip, sums); };
  constexpr bool kFetches = kRows == 1;
  if (flip) streams ? run(byte_dots<kRows, kQuads, true, kFetches>) : run(byte_dots<kRows, kQuads, true, false>);
  else streams ? run(byte_dots<kRows, kQuads, false, kFetches>) : run(byte_dots<kRows, kQuads, false, false>);
}

// ---- Weights

// Rows [first, first + count) of the weights as bytes, *stride apart; sub-byte weights are widened into `unpacked`.
inline const uint8_t* weight_rows(const ByteWeights& w, int64_t first, int64_t count, uint8_t* unpacked, int64_t* stride) {
  *stride = w.terms;
  if (w.bits == 8) return w.data + first * w.terms;
  const int per_byte = 8 / w.bits;
  for (int64_t i = 0, k = first * w.terms; i < count * w.terms; ++i, ++k) {
    const int left = 8 - w.bits - static_cast<int>(k % per_byte) * w.bits;
    unpacked[i] = static_cast<uint8_t>(static_cast<int8_t>(w.data[k / per_byte] << left) >> (8 - w.bits));
  }
  return unpacked;
}

// sums[n] = sum of w' over the terms of channel n.
inline void weight_sums(const ByteWeights& w, int64_t channels, int32_t* sums) {
  for (int64_t n = 0; n < channels; ++n) {
    int64_t sum = 0, k = 0;
    if (w.bits == 8) {
      const uint8_t* row = w.data + n * w.terms;
#if HWY_TARGET != HWY_SCALAR
      const hn::ScalableTag<uint8_t> d;
      const hn::Repartition<uint64_t, decltype(d)> d64;
      const int64_t step = static_cast<int64_t>(hn::Lanes(d));
      const auto mask = hn::Set(d, static_cast<uint8_t>(w.flip ^ 0x80));  // w' + 128
      auto sum0 = hn::Zero(d64), sum1 = sum0;
      for (; k + 2 * step <= w.terms; k += 2 * step) {
        sum0 = hn::Add(sum0, hn::SumsOf8(hn::Xor(hn::LoadU(d, row + k), mask)));
        sum1 = hn::Add(sum1, hn::SumsOf8(hn::Xor(hn::LoadU(d, row + k + step), mask)));
      }
      sum = static_cast<int64_t>(hn::ReduceSum(d64, hn::Add(sum0, sum1))) - 128 * k;
#endif
      for (; k < w.terms; ++k) sum += static_cast<int8_t>(row[k] ^ w.flip);
    } else {
      for (; k < w.terms; ++k) sum += signed_weight(w, n * w.terms + k);
    }
    sums[n] = static_cast<int32_t>(sum);
  }
}

// ---- Drivers

// Whether all of an operator's rows are computed by dot products.
inline bool prefers_byte_dots(int64_t rows, int64_t terms) { return rows < 8 || terms > 8192; }

struct BytePlan {
  bool dots;
  int64_t width, panel, panels;  // channels and int32s of a panel, panels at a time
};
inline BytePlan plan_bytes(int64_t rows, int64_t channels, const TileLayout& t) {
  BytePlan p{};
  p.dots = prefers_byte_dots(rows, t.row_terms());
  p.width = 2 * static_cast<int64_t>(hn::Lanes(Int32Tag()));
  if (p.dots) return p;
  p.panel = p.width * t.segments * t.groups();
  p.panels = std::clamp<int64_t>(kPanelBytes / std::max<int64_t>(1, 4 * p.panel), 1, (channels + p.width - 1) / p.width);
  return p;
}
inline int64_t byte_product_scratch(int64_t rows, int64_t channels, const TileLayout& t, int bits) {
  const BytePlan p = plan_bytes(rows, channels, t);
  const int64_t terms = t.row_terms(), tile = p.dots ? kByteDotRows * dot_row_terms(terms) : t.size + 4;
  int64_t bytes = 4 * (p.dots ? kByteDotRows * kDotChannels : kByteTileRows * p.width) + 128;
  bytes += static_cast<int64_t>(sizeof(TileTerm)) * tile + 4 * p.panel * p.panels;
  if (bits < 8) bytes += (p.dots ? 8 : p.width) * terms + 64;
  return bytes;
}

// Computes rows [begin, end) of channels [first, first + channels) in `w`; epilogue.store(sums, stride, rows, row_sums, m, n, count)
// takes `rows` rows of `count` int32 sums (bias[n] + sum of a' w') from row m and channel n on. rows_in_all decides the method.
// bias may be read up to 32 elements behind the last channel. The source: gather_rows(row, rows, to, stride) writes the terms
// of rows one after another, gather(row, rows, to) as in layout(), of which at most rows_together(row) go together.
template <class Source, class Epilogue>
void product_bytes(const Source& source, int64_t rows_in_all, int64_t begin, int64_t end, const ByteWeights& w, int64_t first,
                   int64_t channels, const int32_t* bias, const Epilogue& epilogue, std::byte* scratch) {
  const int64_t terms = w.terms;
  const TileLayout layout = source.layout();
  const BytePlan p = plan_bytes(rows_in_all, channels, layout);
  int32_t row_sums[kByteTileRows] = {};
  const auto sum_terms = [](const TileTerm* row, int64_t count) HWY_ATTR {
    int32_t sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += row[k];
    return sum;
  };
  int32_t* const sums = reinterpret_cast<int32_t*>(scratch);
  int64_t stride = 0;
  if (p.dots) {
    TileTerm* const a = reinterpret_cast<TileTerm*>(sums + kByteDotRows * kDotChannels);
    const int64_t row_terms = dot_row_terms(terms), step = dot_step(), rest = terms % step;
    uint8_t* const unpacked = reinterpret_cast<uint8_t*>(a + kByteDotRows * row_terms);
    // Weights that do not stay in the second-level cache from run to run.
    const bool streams = w.bits == 8 && channels * terms > kCacheBytes;
    for (int64_t m = begin; m < end;) {
      const int rows = static_cast<int>(std::min<int64_t>(kByteDotRows, end - m));
      source.gather_rows(m, rows, a, row_terms);
      for (int r = 0; r < rows; ++r) {
        TileTerm* row = a + r * row_terms;
        if (epilogue.needs_row_sums()) row_sums[r] = sum_terms(row, terms);
        if (terms < step) {
          fill_terms(0, step - terms, row + terms);
        } else if (rest > 0) {
          TileTerm* const behind = row + (terms - rest) + step;
          fill_terms(0, step, behind);
          std::memcpy(behind + step - rest, row + terms - rest, static_cast<size_t>(rest) * sizeof(TileTerm));
        }
      }
      for (int64_t n = first; n < first + channels; n += kDotChannels) {
        const int64_t count = std::min(kDotChannels, first + channels - n);
        for (int64_t part = 0; part < count; part += 8) {
          const int64_t some = w.bits == 8 ? count : std::min<int64_t>(8, count - part);
          const uint8_t* from = weight_rows(w, n + part, some, unpacked, &stride);
          if (rows == 1) byte_dot_rows<1>(a, row_terms, from, stride, some, terms, w.flip, streams, sums + part);
          if (rows == 2) byte_dot_rows<2>(a, row_terms, from, stride, some, terms, w.flip, streams, sums + part);
          if (rows == 3) byte_dot_rows<3>(a, row_terms, from, stride, some, terms, w.flip, streams, sums + part);
          if (rows == 4) byte_dot_rows<4>(a, row_terms, from, stride, some, terms, w.flip, streams, sums + part);
          if (w.bits == 8) break;
        }
        const Int32Tag d;
        const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
        for (int r = 0; r < rows; ++r)
          for (int64_t i = 0; i < count; i += lanes) {
            int32_t* at = sums + r * kDotChannels + i;
            hn::StoreU(hn::Add(hn::LoadU(d, at), hn::LoadU(d, bias + n + i)), d, at);
          }
        epilogue.store(sums, kDotChannels, rows, row_sums, m, n, count);
      }
      m += rows;
    }
    return;
  }
  const int64_t lanes = p.width / 2;
  int32_t* const panels = sums + kByteTileRows * p.width;
  TileTerm* const tile = reinterpret_cast<TileTerm*>(panels + p.panel * p.panels);
  uint8_t* const unpacked = reinterpret_cast<uint8_t*>(tile + layout.size + 4);
  for (int64_t n0 = 0; n0 < channels; n0 += p.panels * p.width) {
    const int64_t n1 = std::min(channels, n0 + p.panels * p.width);
    for (int64_t n = n0; n < n1; n += p.width) {
      int32_t* panel = panels + (n - n0) / p.width * p.panel;
      const int64_t vectors = n1 - n > lanes ? 2 : 1;
      const uint8_t* from = weight_rows(w, first + n, std::min(p.width, n1 - n), unpacked, &stride);
      for (int64_t s = 0; s < layout.segments; ++s, from += layout.terms, panel += vectors * lanes * layout.groups())
        for (int64_t v = 0; v < vectors; ++v)
          pack_bytes(from + v * lanes * stride, stride, n1 - n - v * lanes, layout.terms, w.flip, panel + v * lanes, vectors * lanes);
    }
    for (int64_t m = begin; m < end;) {
      const int64_t together = std::min(end - m, source.rows_together(m));
      const int rows = static_cast<int>(together / ((together + kByteTileRows - 1) / kByteTileRows));
      source.gather(m, rows, tile);
      if (epilogue.needs_row_sums()) {
        for (int r = 0; r < rows; ++r) {
          row_sums[r] = 0;
          for (int64_t s = 0; s < layout.segments; ++s) row_sums[r] += sum_terms(tile + r * layout.row + s * layout.segment, layout.terms);
        }
      }
      for (int64_t n = n0; n < n1; n += p.width) {
        const int32_t* panel = panels + (n - n0) / p.width * p.panel;
        if (n1 - n > lanes) run_byte_tile<true>(rows, tile, layout, panel, bias + first + n, sums);
        else run_byte_tile<false>(rows, tile, layout, panel, bias + first + n, sums);
        epilogue.store(sums, p.width, rows, row_sums, m, first + n, std::min(p.width, n1 - n));
      }
      m += rows;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif  // ONEWEIGHT_SIMD_PRODUCT_INT8_INL_H
