// The activations under the windows of a convolution as rows of a matrix product, without an im2col matrix: windows
// inside the image are read where they lie, those across its border are gathered, one part of the reduction at a time.
// Included once per target.
#if defined(ONEWEIGHT_OPS_WINDOW_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_WINDOW_ROWS_INL_H
#undef ONEWEIGHT_OPS_WINDOW_ROWS_INL_H
#else
#define ONEWEIGHT_OPS_WINDOW_ROWS_INL_H
#endif

#include <cstring>

#include "oneweight/ops/conv_geometry.h"
#include "oneweight/simd/product_float-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

// A source for product_panels and product_dots: row number i is output pixel i (of all images), its terms are
// (ky, kx, channel) of channels [first, first + channels).
class WindowRows {
 public:
  static constexpr bool kGathers = true;

  // copies: gathers all rows.
  WindowRows(const ConvGeometry& geometry, const float* input, int64_t first, int64_t channels, bool copies = false)
      : g_(geometry), input_(input + first), channels_(channels), segment_(channels), copies_(copies) {
    // Neighbouring taps are joined where their channels follow one another in memory.
    if (channels == g_.in_c && g_.dilation_w == 1) {
      segment_ *= g_.kernel_w;
      by_row_ = true;
      if (g_.kernel_w == g_.in_w && g_.dilation_h == 1) segment_ *= g_.kernel_h;
    }
  }
  int64_t segment_length() const { return segment_; }

  void locate(int64_t row, int rows, int64_t k0, int64_t k1, float* patch, const float** table, int64_t* first_length) const {
    const float* origin[kTileRows];
    bool inside[kTileRows], all_inside = true;
    const int64_t limit = g_.in_w - (g_.kernel_w - 1) * g_.dilation_w;  // tap 0 of windows inside lies before it
    Pixel at = pixel(row);
    for (int r = 0; r < rows;) {
      const bool row_inside = at.y >= 0 && at.y + (g_.kernel_h - 1) * g_.dilation_h < g_.in_h;
      const int64_t base = (at.image * g_.in_h + at.y) * g_.in_w;
      for (; r < rows && at.ox < g_.out_w; ++r, ++at.ox, at.x += g_.stride_w) {
        inside[r] = !copies_ && row_inside && at.x >= 0 && at.x < limit;
        if (inside[r]) {
          origin[r] = input_ + (base + at.x) * g_.in_c;
        } else {
          all_inside = false;
          float* const to = patch + r * (k1 - k0 + kPatchPad);
          origin[r] = to - k0;
          gather(at, k0, k1, to);
        }
      }
      next_row(&at);
    }
    int64_t k = k0, segment = k0 / segment_;
    *first_length = (segment + 1) * segment_ - k0;
    int64_t ky = 0, kx = 0;
    if (by_row_) ky = segment;  // stays 0 when all rows are one segment
    else ky = segment / g_.kernel_w, kx = segment % g_.kernel_w;
    while (k < k1) {
      const int64_t start = segment * segment_;
      const int64_t offset = (ky * g_.dilation_h * g_.in_w + kx * g_.dilation_w) * g_.in_c + (k - start);
      if (all_inside) {
        for (int r = 0; r < rows; ++r) table[r] = origin[r] + offset;
      } else {
        for (int r = 0; r < rows; ++r) table[r] = origin[r] + (inside[r] ? offset : k);
      }
      table += kTileRows;
      k = ++segment * segment_;
      if (by_row_ || ++kx == g_.kernel_w) ++ky, kx = 0;
    }
  }

 private:
  struct Pixel {
    int64_t image, oy, ox;
    int64_t y, x;  // of tap (0, 0), perhaps outside
  };
  void place(Pixel* at) const {
    at->y = at->oy * g_.stride_h - g_.pad_top;
    at->x = at->ox * g_.stride_w - g_.pad_left;
  }
  Pixel pixel(int64_t row) const {
    Pixel at{row / (g_.out_h * g_.out_w), row / g_.out_w % g_.out_h, row % g_.out_w, 0, 0};
    place(&at);
    return at;
  }
  void next_row(Pixel* at) const {
    at->ox = 0;
    if (++at->oy == g_.out_h) at->oy = 0, ++at->image;
    place(at);
  }
  const float* address(const Pixel& at, int64_t ky, int64_t kx) const {
    return input_ + ((at.image * g_.in_h + at.y + ky * g_.dilation_h) * g_.in_w + at.x + kx * g_.dilation_w) * g_.in_c;
  }
  // Terms [k0, k1) of a window, zeros outside the image.
  void gather(const Pixel& at, int64_t k0, int64_t k1, float* to) const {
    const TapRange inside = taps_inside(at.x, g_.in_w, g_.kernel_w, g_.dilation_w);
    const int64_t row_terms = g_.kernel_w * channels_;
    for (int64_t k = k0; k < k1;) {
      const int64_t ky = k / row_terms, start = ky * row_terms;
      const int64_t end = start + row_terms < k1 ? start + row_terms : k1;
      const int64_t y = at.y + ky * g_.dilation_h;
      if (y < 0 || y >= g_.in_h || inside.first == inside.last) {
        k = put_zeros(k, end, k0, to);
        continue;
      }
      const auto cut = [end](int64_t term) { return term < end ? term : end; };
      k = put_zeros(k, cut(start + inside.first * channels_), k0, to);
      if (by_row_) {
        k = put(address(at, ky, 0) - start, k, cut(start + inside.last * channels_), k0, to);
      } else {
        for (int64_t kx = (k - start) / channels_; kx < inside.last && k < end; ++kx) {
          const int64_t tap = start + kx * channels_;
          k = put(address(at, ky, kx) - tap, k, cut(tap + channels_), k0, to);
        }
      }
      k = put_zeros(k, end, k0, to);
    }
  }
  // Terms [k, end): each answers the first term that is still missing.
  static int64_t put_zeros(int64_t k, int64_t end, int64_t k0, float* to) {
    if (end <= k) return k;
    std::memset(to + (k - k0), 0, static_cast<size_t>(end - k) * sizeof(float));
    return end;
  }
  static int64_t put(const float* terms, int64_t k, int64_t end, int64_t k0, float* to) {
    if (end <= k) return k;
    std::memcpy(to + (k - k0), terms + k, static_cast<size_t>(end - k) * sizeof(float));
    return end;
  }

  const ConvGeometry& g_;
  const float* input_;
  int64_t channels_;
  int64_t segment_;
  bool by_row_ = false;
  bool copies_;
};

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif  // ONEWEIGHT_OPS_WINDOW_ROWS_INL_H
