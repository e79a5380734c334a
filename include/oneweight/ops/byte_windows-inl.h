// The windows of a convolution over bytes as rows of a product. Included once per target.
#if defined(ONEWEIGHT_OPS_BYTE_WINDOWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_BYTE_WINDOWS_INL_H
#undef ONEWEIGHT_OPS_BYTE_WINDOWS_INL_H
#else
#define ONEWEIGHT_OPS_BYTE_WINDOWS_INL_H
#endif

#include <algorithm>

#include "oneweight/ops/conv_geometry.h"
#include "oneweight/simd/product_int8-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

// How windows lie in a tile: those of neighbouring pixels share what they have in common, where their taps follow one another.
inline TileLayout window_layout(const ConvGeometry& g, int64_t channels) {
  const int64_t row = g.stride_w * channels;
  const bool joined = channels == g.in_c && g.dilation_w == 1;
  const bool apart = row % 2048 == 0;  // rows in the same sets of the cache
  if (joined && !apart && g.is_pointwise()) return {channels, 0, 1, channels, kByteTileRows * channels, false};
  if (!joined || apart || g.stride_w > g.kernel_w || g.out_w < 6) return separate_rows(g.kernel_h * g.kernel_w * channels);
  const int64_t terms = g.kernel_w * channels, segment = (kByteTileRows - 1) * row + terms + 4;
  return {row, segment, g.kernel_h, terms, g.kernel_h * segment, false};
}

// A source for product_bytes: row m is the window of output pixel m (of all images).
struct ByteWindows {
  const ConvGeometry& g;
  const uint8_t* input;      // first channel of the group
  int64_t channels;          // of the group
  uint8_t flip;              // makes bytes unsigned
  uint8_t outside;           // what is where there is no image, flipped
  bool pointwise;
  int64_t first_image = 0;   // the number of the image at `input`

  TileLayout layout() const { return window_layout(g, channels); }
  int64_t rows_together(int64_t m) const { return pointwise || layout().separate ? int64_t{1} << 40 : g.out_w - m % g.out_w; }

  void gather_rows(int64_t m, int rows, TileTerm* to, int64_t stride) const {
    if (pointwise) {
      for (int r = 0; r < rows; ++r) copy_terms(input + (m + r) * g.in_c, channels, flip, to + r * stride);
      return;
    }
    int64_t image = m / (g.out_h * g.out_w) - first_image, oy = m / g.out_w % g.out_h, ox = m % g.out_w;
    for (int r = 0; r < rows; ++r) {
      gather_window(image, oy * g.stride_h - g.pad_top, ox * g.stride_w - g.pad_left, to + r * stride);
      if (++ox == g.out_w) {
        ox = 0;
        if (++oy == g.out_h) oy = 0, ++image;
      }
    }
  }
  void gather(int64_t m, int rows, TileTerm* to) const {
    const TileLayout t = layout();
    if (t.separate) return gather_rows(m, rows, to, t.row);
    if (pointwise) return copy_terms(input + m * g.in_c, rows * channels, flip, to);
    const int64_t image = m / (g.out_h * g.out_w) - first_image, y0 = m / g.out_w % g.out_h * g.stride_h - g.pad_top;
    const int64_t x0 = m % g.out_w * g.stride_w - g.pad_left, columns = (rows - 1) * g.stride_w + g.kernel_w;
    const int64_t before = std::clamp<int64_t>(-x0, 0, columns), inside = std::clamp<int64_t>(g.in_w - x0, before, columns) - before;
    for (int64_t ky = 0; ky < g.kernel_h; ++ky, to += t.segment) {
      const int64_t y = y0 + ky * g.dilation_h;
      if (y < 0 || y >= g.in_h || inside == 0) {
        fill_terms(outside, columns * channels, to);
        continue;
      }
      fill_terms(outside, before * channels, to);
      copy_terms(input + ((image * g.in_h + y) * g.in_w + x0 + before) * channels, inside * channels, flip, to + before * channels);
      fill_terms(outside, (columns - before - inside) * channels, to + (before + inside) * channels);
    }
  }

 private:
  void gather_window(int64_t image, int64_t y0, int64_t x0, TileTerm* to) const {
    const TapRange inside = taps_inside(x0, g.in_w, g.kernel_w, g.dilation_w);
    const int64_t row_terms = g.kernel_w * channels;
    const bool joined = channels == g.in_c && g.dilation_w == 1;
    for (int64_t ky = 0; ky < g.kernel_h; ++ky, to += row_terms) {
      const int64_t y = y0 + ky * g.dilation_h;
      if (y < 0 || y >= g.in_h || inside.first == inside.last) {
        fill_terms(outside, row_terms, to);
        continue;
      }
      const uint8_t* from = input + ((image * g.in_h + y) * g.in_w + x0) * g.in_c;
      fill_terms(outside, inside.first * channels, to);
      if (joined) {
        copy_terms(from + inside.first * channels, (inside.last - inside.first) * channels, flip, to + inside.first * channels);
      } else {
        for (int64_t kx = inside.first; kx < inside.last; ++kx)
          copy_terms(from + kx * g.dilation_w * g.in_c, channels, flip, to + kx * channels);
      }
      fill_terms(outside, (g.kernel_w - inside.last) * channels, to + inside.last * channels);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif  // ONEWEIGHT_OPS_BYTE_WINDOWS_INL_H
