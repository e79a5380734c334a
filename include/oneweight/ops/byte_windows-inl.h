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

// A source for product_bytes: windows gathered one after another; `outside` where there is no image.
struct ByteWindows {
  const ConvGeometry& g;
  const uint8_t* input;      // first channel of the group
  int64_t channels;          // of the group
  uint8_t flip;              // makes bytes unsigned
  uint8_t outside;           // what is where there is no image, flipped
  bool pointwise;
  int64_t first_image = 0;   // the number of the image at `input`

  // Terms of rows [row, row + rows), `stride` apart.
  void gather(int64_t row, int rows, TileTerm* to, int64_t stride) const {
    if (pointwise) {
      for (int r = 0; r < rows; ++r) copy_terms(input + (row + r) * g.in_c, channels, flip, to + r * stride);
      return;
    }
    int64_t image = row / (g.out_h * g.out_w) - first_image, oy = row / g.out_w % g.out_h, ox = row % g.out_w;
    const int64_t row_terms = g.kernel_w * channels, tap_row = g.dilation_h * g.in_w * g.in_c;
    const bool joined = channels == g.in_c && g.dilation_w == 1;
    while (rows > 0) {
      const int64_t y0 = oy * g.stride_h - g.pad_top, last = std::min(g.out_w, ox + rows);
      const bool whole = joined && y0 >= 0 && y0 + (g.kernel_h - 1) * g.dilation_h < g.in_h;
      const uint8_t* const from = input + (image * g.in_h + y0) * g.in_w * g.in_c;
      rows -= static_cast<int>(last - ox);
      for (; ox < last; ++ox, to += stride) {
        const int64_t x0 = ox * g.stride_w - g.pad_left;
        if (whole && x0 >= 0 && x0 + g.kernel_w <= g.in_w) {
          const uint8_t* at = from + x0 * g.in_c;
          for (int64_t ky = 0; ky < g.kernel_h; ++ky, at += tap_row) copy_terms(at, row_terms, flip, to + ky * row_terms);
        } else {
          gather_window(image, y0, x0, to);
        }
      }
      ox = 0;
      if (++oy == g.out_h) oy = 0, ++image;
    }
  }

 private:
  HWY_NOINLINE void gather_window(int64_t image, int64_t y0, int64_t x0, TileTerm* to) const {
    const bool inside_row = x0 >= 0 && x0 + (g.kernel_w - 1) * g.dilation_w < g.in_w;
    const TapRange inside = inside_row ? TapRange{0, g.kernel_w} : taps_inside(x0, g.in_w, g.kernel_w, g.dilation_w);
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
