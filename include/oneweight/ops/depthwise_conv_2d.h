// DEPTHWISE_CONV_2D: float with float or half weights read in place; int8 and uint8; hybrid (float activations, quantised for
// each image while running, int8 weights); 16-bit activations with int8 weights. int8 weights may be packed int4.
// Input N,H,W,C; filter 1,h,w,C * M, M from the shapes; output channel c * M + m; bias C * M (optional). SAME or VALID
// padding, strides, dilation, fused none, relu, relu6, relu_n1_to_1. Float: bias first, then taps in order, one multiply-add
// each. Integers: bit by bit those of TFLite's reference kernel. Scratch: weights of integer forms, interleaved. Rows: N * H'.
#ifndef ONEWEIGHT_OPS_DEPTHWISE_CONV_2D_H
#define ONEWEIGHT_OPS_DEPTHWISE_CONV_2D_H

#include "oneweight/ops/quantized_weights.h"
#include "oneweight/simd/product.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// W: storage of the weights, A: of the activations.
template <class W, class A> struct DepthwiseConv2D;

struct DepthwiseParams {
  ConvGeometry geometry;
  int64_t channels, multiplier;  // of the output; output channels of an input channel
  FusedActivation activation;
  // Integer forms
  int bits = 8;
  uint8_t a_flip = 0, w_flip = 0;
  int32_t a_zero = 0;            // of a'
  int32_t w_zero = 0;            // of w'
  const int32_t* bias = nullptr; // folded; null: folded while running (hybrid: always zeros)
  QuantizedScaling scaling;
  // Hybrid
  const float* scales = nullptr;
  const int32_t* weight_sums = nullptr;  // null: summed while running
  bool asymmetric = false;
  // 16-bit activations
  bool bias_is_wide = false;

  int64_t taps() const { return geometry.kernel_h * geometry.kernel_w; }
  ByteWeights weights(const void* data) const { return {static_cast<const uint8_t*>(data), taps(), bits, w_flip}; }
};

namespace detail {
template <class W> Status prepare_depthwise_float(Preparation& p);
Status prepare_depthwise_quantized(Preparation& p);
template <TensorType kWeights>
bool takes_depthwise_float(const NodeTypes& t) {
  return t.in(0, TensorType::float32) && t.in(1, kWeights) && t.out(0, TensorType::float32) &&
         (!t.has_input[2] || t.in(2, TensorType::float32));
}
template <TensorType kActivations>
bool takes_depthwise(const NodeTypes& t) {
  if (!t.in(0, kActivations) || !t.out(0, kActivations)) return false;
  const bool bias_fits = !t.has_input[2] || t.in(2, kActivations == TensorType::float32 ? TensorType::float32 : TensorType::int32) ||
                         (kActivations == TensorType::int16 && t.in(2, TensorType::int64));
  const bool weights_fit = kActivations == TensorType::uint8 ? t.in(1, TensorType::uint8)
                                                             : t.in(1, TensorType::int8) || t.in(1, TensorType::int4);
  return bias_fits && weights_fit;
}
constexpr OpRow depthwise_row(const char* types, bool (*accepts)(const NodeTypes&)) {
  return {.code = BuiltinOperator::depthwise_conv_2d, .types = types, .accepts = accepts, .prepare = &prepare_depthwise_quantized};
}
}  // namespace detail

template <class W>
struct DepthwiseConv2D<W, float> {
  static constexpr OpRow row = {.code = BuiltinOperator::depthwise_conv_2d,
                                .types = sizeof(W) == 2 ? "float, half weights" : "float",
                                .accepts = &detail::takes_depthwise_float<tensor_type_of<W>>,
                                .prepare = &detail::prepare_depthwise_float<W>,
                                .stored_inputs = sizeof(W) == 2 ? 1u << 1 : 0u};
};
template <> struct DepthwiseConv2D<int8_t, float> {
  static constexpr OpRow row = detail::depthwise_row("float, int8 or int4 weights", &detail::takes_depthwise<TensorType::float32>);
};
template <> struct DepthwiseConv2D<int8_t, int8_t> {
  static constexpr OpRow row = detail::depthwise_row("int8, int4 weights", &detail::takes_depthwise<TensorType::int8>);
};
template <> struct DepthwiseConv2D<uint8_t, uint8_t> {
  static constexpr OpRow row = detail::depthwise_row("uint8", &detail::takes_depthwise<TensorType::uint8>);
};
template <> struct DepthwiseConv2D<int8_t, int16_t> {
  static constexpr OpRow row = detail::depthwise_row("int16, int8 or int4 weights", &detail::takes_depthwise<TensorType::int16>);
};

// sum of w' over the taps of channel n.
inline int32_t depthwise_weight_sum(const ByteWeights& w, int64_t channels, int64_t n) {
  int32_t sum = 0;
  for (int64_t t = 0; t < w.terms; ++t) sum += signed_weight(w, t * channels + n);
  return sum;
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_DEPTHWISE_CONV_2D_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_DEPTHWISE_CONV_2D_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_DEPTHWISE_CONV_2D_KERNELS
#undef ONEWEIGHT_OPS_DEPTHWISE_CONV_2D_KERNELS
#else
#define ONEWEIGHT_OPS_DEPTHWISE_CONV_2D_KERNELS
#endif

#include "oneweight/ops/byte_windows-inl.h"
#include "oneweight/simd/depthwise-inl.h"
#include "oneweight/simd/quantize-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

// Whether a vector holds several pixels.
inline bool depthwise_float_repeats(const DepthwiseParams& p) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  return p.multiplier == 1 && p.geometry.stride_w == 1 && p.channels < lanes && lanes % p.channels == 0;
}
// to[lane] = bias, to[(1 + tap) * lanes + lane] = weights of channel lane % channels.
template <class W>
void repeat_depthwise(const DepthwiseParams& p, const W* w, const float* bias, int64_t lanes, float* to) {
  for (int64_t i = 0; i < lanes; ++i) {
    const int64_t c = i % p.channels;
    to[i] = bias ? widen_one(bias + c) : 0.0f;
    for (int64_t t = 0; t < p.taps(); ++t) to[(1 + t) * lanes + i] = widen_one(w + t * p.channels + c);
  }
}
inline int64_t depthwise_float_scratch(const DepthwiseParams& p) {
  if (depthwise_float_repeats(p)) return (1 + p.taps()) * static_cast<int64_t>(hn::Lanes(FloatTag())) * 4;
  return p.multiplier == 1 ? 0 : p.taps() * p.channels * 4;
}

template <class W>
void depthwise_conv_2d_float(const KernelArgs& args) {
  const DepthwiseParams& p = args.params<DepthwiseParams>();
  const ConvGeometry& g = p.geometry;
  const Epilogue e = make_epilogue(nullptr, p.activation);
  const float* const bias = args.in<float>(2);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  const TapRange inner = inner_outputs(g.out_w, g.in_w, g.kernel_w, g.dilation_w, g.stride_w, g.pad_left);
  DepthwiseFloatArgs<W> t;
  t.channels = p.channels, t.kernel_w = g.kernel_w;
  t.epilogue = &e;
  t.tap_row = g.dilation_h * g.in_w * g.in_c, t.tap_column = g.dilation_w * g.in_c;
  t.step = g.stride_w * g.in_c;
  // With a channel multiplier the channels of one input channel are a vector, and its activations repeat.
  float* const spread = reinterpret_cast<float*>(args.scratch);
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int64_t image = row / g.out_h, y0 = row % g.out_h * g.stride_h - g.pad_top;
    const TapRange ky = taps_inside(y0, g.in_h, g.kernel_h, g.dilation_h);
    t.ky0 = ky.first, t.ky1 = ky.last;
    const int64_t origin = ((image * g.in_h + y0) * g.in_w - g.pad_left) * g.in_c;  // of pixel 0; perhaps outside
    const float* const input = args.in<float>(0);
    float* const out = args.out<float>(0) + row * g.out_w * p.channels;
    if (p.multiplier != 1) {
      for (int64_t x = 0; x < g.out_w; ++x) {
        const TapRange kx = taps_inside(x * g.stride_w - g.pad_left, g.in_w, g.kernel_w, g.dilation_w);
        DepthwiseFloatArgs<W> one = t;
        one.tap_row = g.kernel_w * p.channels, one.tap_column = p.channels;
        one.kx0 = kx.first, one.kx1 = kx.last;
        for (int64_t y = ky.first; y < ky.last; ++y)
          for (int64_t k = kx.first; k < kx.last; ++k) {
            const float* from = input + (origin + x * t.step + y * t.tap_row + k * t.tap_column);
            float* to = spread + (y * g.kernel_w + k) * p.channels;
            for (int64_t c = 0; c < g.in_c; ++c)
              for (int64_t m = 0; m < p.multiplier; ++m) *to++ = from[c];
          }
        for (int64_t c = 0; c < p.channels; c += lanes) {
          one.in = spread + c;
          one.w = args.in<W>(1) + c;
          one.bias = bias ? bias + c : nullptr;
          one.out = out + x * p.channels + c;
          depthwise_float_pixels(one, 1, static_cast<size_t>(std::min(lanes, p.channels - c)));
        }
      }
      if (e.after != FusedActivation::none) finish_row(out, g.out_w * p.channels, nullptr, e);
      continue;
    }
    // Several pixels a vector where channels are few: weights and bias repeat, the vectors of a row follow one another.
    const int64_t before = inner.first < inner.last ? inner.first : g.out_w;
    int64_t behind = inner.first < inner.last ? inner.last : g.out_w;
    if (depthwise_float_repeats(p)) {
      if (row == args.rows.begin) repeat_depthwise(p, args.in<W>(1), bias, lanes, spread);
      const int64_t vectors = (behind - before) * p.channels / lanes;
      DepthwiseFloatArgs<float> r;
      r.in = input + origin + before * p.channels;
      r.tap_row = t.tap_row, r.tap_column = t.tap_column, r.step = r.channels = lanes;
      r.w = spread + lanes, r.bias = spread, r.kernel_w = g.kernel_w;
      r.ky0 = ky.first, r.ky1 = ky.last, r.kx0 = 0, r.kx1 = g.kernel_w;
      r.epilogue = &e;
      r.out = out + before * p.channels;
      depthwise_float_pixels(r, vectors, static_cast<size_t>(lanes));
      behind = before + vectors * lanes / p.channels;
    }
    // Four vectors of channels at a time where there are as many.
    for (int64_t c = 0; c < p.channels;) {
      const int64_t vectors = p.channels - c >= 4 * lanes ? 4 : 1;
      const auto run = [&](int64_t x, int64_t pixels, TapRange kx) HWY_ATTR {
        t.kx0 = kx.first, t.kx1 = kx.last;
        for (int64_t v = 0; v < vectors; ++v) {
          const int64_t at = c + v * lanes;
          t.w = args.in<W>(1) + at;
          t.bias = bias ? bias + at : nullptr;
          t.in = input + (origin + x * t.step + at);
          t.out = out + x * p.channels + at;
          if (vectors == 4 && pixels == 1) return depthwise_float_pixel(t);
          depthwise_float_pixels(t, pixels, static_cast<size_t>(std::min(lanes, p.channels - at)));
        }
      };
      const auto border = [&](int64_t first, int64_t last) HWY_ATTR {
        for (int64_t x = first; x < last; ++x)
          run(x, 1, taps_inside(x * g.stride_w - g.pad_left, g.in_w, g.kernel_w, g.dilation_w));
      };
      border(0, before);
      if (!depthwise_float_repeats(p) && before < behind) run(before, behind - before, {0, g.kernel_w});
      border(behind, g.out_w);
      c += vectors * lanes;
    }
    if (e.after != FusedActivation::none) finish_row(out, g.out_w * p.channels, nullptr, e);
  }
}

// Where the integer forms keep their parts of the scratch.
struct DepthwiseScratch {
  uint8_t* rows;           // input rows of an output row, with their padding
  int64_t* row_numbers;    // of each of them
  uint8_t* repeated;       // weights of few channels, as often as they fit a block
  int32_t *multiplier, *shift;  // likewise
  uint8_t* unpacked;       // packed weights as bytes
  std::byte* packed;       // weights, interleaved
  uint8_t* transposed;     // weights, one channel after another
  std::byte* product;
  int32_t* bias;
  int32_t* sums;
  int64_t* offsets;
  // Hybrid
  float* scales;
  int32_t* zeros;
  int32_t* weight_sums;
  uint8_t* quantized;
  int64_t bytes;
};
inline constexpr int64_t kDepthwiseTile = 8;  // pixels finished together

// Output pixels of a row that are computed together, so that the input rows they need stay in the first cache.
inline int64_t depthwise_segment(const DepthwiseParams& p) {
  const ConvGeometry& g = p.geometry;
  const int64_t columns = (24 << 10) / std::max<int64_t>(g.kernel_h * p.channels, 1) - (g.kernel_w - 1) * g.dilation_w;
  return std::min(g.out_w, std::max<int64_t>(columns / g.stride_w, 64) / 64 * 64);
}
// Input columns [first, end) that `pixels` output pixels from x on read. A tap that no pixel has inside the image may lie right
// before or behind it.
struct DepthwiseColumns {
  int64_t first, end, reach;  // reach: of one tap
};
inline DepthwiseColumns depthwise_columns(const ConvGeometry& g, int64_t x, int64_t pixels) {
  const int64_t reach = (pixels - 1) * g.stride_w + 1, first = x * g.stride_w - g.pad_left;
  return {std::max(first, -reach), std::min(first + reach + (g.kernel_w - 1) * g.dilation_w, g.in_w + reach), reach};
}
// Bytes of the columns of a segment, and what vectors read behind them.
inline int64_t depthwise_row_bytes(const DepthwiseParams& p) {
  const ConvGeometry& g = p.geometry;
  const int64_t reach = (depthwise_segment(p) - 1) * g.stride_w + 1;
  const int64_t columns = std::min(reach + (g.kernel_w - 1) * g.dilation_w, g.in_w + 2 * reach);
  return (columns * p.channels + 64 + 63) / 64 * 64;
}

inline DepthwiseScratch lay_out_depthwise(const DepthwiseParams& p, std::byte* base, bool hybrid) {
  const ConvGeometry& g = p.geometry;
  int64_t at = 0;
  const auto take = [&](int64_t bytes) {
    std::byte* from = base + at;
    at += (bytes + 63) / 64 * 64;
    return from;
  };
  const int64_t taps = (p.taps() + 3) / 4 * 4, padded = p.channels + 64;
  DepthwiseScratch s{};
  if (p.bits != 8) s.unpacked = reinterpret_cast<uint8_t*>(take(p.taps() * p.channels));
  if (p.multiplier == 1) {
    s.packed = take(taps * ((p.channels + 63) / 64 * 64) * 2);
    s.rows = reinterpret_cast<uint8_t*>(take(g.kernel_h * depthwise_row_bytes(p)));
    s.row_numbers = reinterpret_cast<int64_t*>(take(g.kernel_h * 8));
    if (p.channels <= 32) {
      s.repeated = reinterpret_cast<uint8_t*>(take(p.taps() * 64));
      s.multiplier = reinterpret_cast<int32_t*>(take((64 + kChannelPad) * 4));
      s.shift = reinterpret_cast<int32_t*>(take((64 + kChannelPad) * 4));
    }
  } else {
    s.transposed = reinterpret_cast<uint8_t*>(take(p.taps() * p.channels));
    s.product = take(byte_product_scratch(g.output_pixels(), p.multiplier, window_layout(g, 1), 8));
  }
  s.bias = reinterpret_cast<int32_t*>(take((padded + kChannelPad) * 4));
  s.sums = reinterpret_cast<int32_t*>(take(kDepthwiseTile * 64 * 4));
  s.offsets = reinterpret_cast<int64_t*>(take(taps * 8));
  if (hybrid) {
    s.scales = reinterpret_cast<float*>(take(g.batch * 4));
    s.zeros = reinterpret_cast<int32_t*>(take(g.batch * 4));
    s.weight_sums = reinterpret_cast<int32_t*>(take(padded * 4));
    s.quantized = reinterpret_cast<uint8_t*>(take(g.in_h * g.in_w * g.in_c));
  }
  s.bytes = at;
  return s;
}
inline int64_t depthwise_scratch(const DepthwiseParams& p, bool hybrid) { return lay_out_depthwise(p, nullptr, hybrid).bytes; }

// The input rows of one output row after another, for the pixels [x, x + count) of the output, copied with their padding: kernels
// then read every pixel alike. Puts into s.offsets where the taps of the first pixel lie in s.rows.
class PaddedRows {
 public:
  PaddedRows(const DepthwiseParams& p, const DepthwiseScratch& s, const uint8_t* image, int64_t x, int64_t count, uint8_t outside)
      : g_(p.geometry), s_(s), image_(image), row_bytes_(depthwise_row_bytes(p)), columns_(depthwise_columns(g_, x, count)),
        first_tap_(x * g_.stride_w - g_.pad_left), from_(std::max<int64_t>(columns_.first, 0)), outside_(outside) {
    const int64_t all = columns_.end - columns_.first, inside = std::max<int64_t>(std::min(columns_.end, g_.in_w) - from_, 0);
    before_ = std::min(from_ - columns_.first, all) * g_.in_c, inside_ = inside * g_.in_c, after_ = all * g_.in_c - before_ - inside_;
    for (int64_t k = 0; k < g_.kernel_h; ++k) s_.row_numbers[k] = kNone;
  }
  void move_to(int64_t y) const {
    for (int64_t ky = 0; ky < g_.kernel_h; ++ky) {
      const int64_t row = y * g_.stride_h - g_.pad_top + ky * g_.dilation_h;
      // Rows that the next output row needs stay, where there is no dilation.
      const int64_t slot = g_.dilation_h == 1 ? (row % g_.kernel_h + g_.kernel_h) % g_.kernel_h : ky;
      uint8_t* to = s_.rows + slot * row_bytes_;
      for (int64_t kx = 0; kx < g_.kernel_w; ++kx) {
        const int64_t column = std::min(std::max(first_tap_ + kx * g_.dilation_w, columns_.first), g_.in_w);
        s_.offsets[ky * g_.kernel_w + kx] = slot * row_bytes_ + (column - columns_.first) * g_.in_c;
      }
      if (s_.row_numbers[slot] == row) continue;
      s_.row_numbers[slot] = row;
      if (row < 0 || row >= g_.in_h) {
        std::memset(to, outside_, static_cast<size_t>(before_ + inside_ + after_));
        continue;
      }
      std::memset(to, outside_, static_cast<size_t>(before_));
      std::memcpy(to + before_, image_ + (row * g_.in_w + from_) * g_.in_c, static_cast<size_t>(inside_));
      std::memset(to + before_ + inside_, outside_, static_cast<size_t>(after_));
    }
    const int64_t taps = g_.kernel_h * g_.kernel_w;
    for (int64_t t = taps; t % 4 != 0; ++t) s_.offsets[t] = s_.offsets[taps - 1];
  }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  const ConvGeometry& g_;
  const DepthwiseScratch& s_;
  const uint8_t* image_;
  int64_t row_bytes_;
  DepthwiseColumns columns_;
  int64_t first_tap_, from_, before_, inside_, after_;  // the last: bytes of padding, input, padding
  uint8_t outside_;
};

// The rows [begin, end) of one image at `input`; s.packed holds the weights.
template <size_t kLanes, bool kQuads, class Epilogue>
void depthwise_bytes_rows(const DepthwiseParams& p, const uint8_t* input, int64_t begin, int64_t end, int64_t image, const DepthwiseScratch& s,
                          const Epilogue& epilogue, uint8_t flip, uint8_t outside) {
  const ConvGeometry& g = p.geometry;
  const int64_t block = depthwise_block<kLanes>(), padded_taps = (p.taps() + 3) / 4 * 4, block_bytes = padded_taps * block * 2;
  const int64_t step = g.stride_w * g.in_c, segment = depthwise_segment(p);
  const int32_t row_sums[kDepthwiseTile] = {};
  for (int64_t left = 0; left < g.out_w; left += segment) {
    const int64_t width = std::min(segment, g.out_w - left);
    const PaddedRows rows(p, s, input, left, width, outside);
    for (int64_t y = begin; y < end; ++y) {
      rows.move_to(y);
      for (int64_t x = 0; x < width; x += kDepthwiseTile) {
        const int64_t pixels = std::min(kDepthwiseTile, width - x);
        for (int64_t number = 0, c = 0; c < p.channels; ++number, c += block) {
          const int64_t first = c + block > p.channels && p.channels >= block ? p.channels - block : c;
          depthwise_bytes_pixels<kLanes, kQuads>(s.rows + x * step + first, step, pixels, s.offsets, padded_taps, flip,
                                                 s.packed + number * block_bytes, s.bias + first, s.sums);
          epilogue.store(s.sums, block, static_cast<int>(pixels), row_sums, (image * g.out_h + y) * g.out_w + left + x, first,
                         std::min(block, p.channels - first));
        }
      }
    }
  }
}

inline bool depthwise_repeats(const DepthwiseParams& p) {
  const int64_t block = depthwise_block<16>();
  return p.geometry.stride_w == 1 && p.channels < block && block % p.channels == 0;
}
// The same for few pixels, on weights that are not packed.
template <class Epilogue>
void depthwise_few_pixels(const DepthwiseParams& p, const uint8_t* weights, const uint8_t* input, int64_t begin, int64_t end, int64_t image,
                          const DepthwiseScratch& s, const Epilogue& epilogue, uint8_t flip, uint8_t outside) {
  const ConvGeometry& g = p.geometry;
  const int32_t row_sums[1] = {};
  const PaddedRows rows(p, s, input, 0, g.out_w, outside);
  for (int64_t y = begin; y < end; ++y) {
    rows.move_to(y);
    for (int64_t x = 0; x < g.out_w; ++x)
      for (int64_t c = 0; c < p.channels; c += 64) {
        const int64_t some = std::min<int64_t>(64, p.channels - c);
        depthwise_bytes_in_place(s.rows + x * g.stride_w * g.in_c + c, s.offsets, p.taps(), static_cast<size_t>(some), flip, weights + c, p.channels,
                                 p.bits == 8 ? p.w_flip : uint8_t{0}, p.w_zero, s.bias + c, s.sums);
        epilogue.store(s.sums, 64, 1, row_sums, (image * g.out_h + y) * g.out_w + x, c, some);
      }
  }
}

// The same with vectors of several pixels, for channels that divide a block, without strides: s.packed, s.bias and the scaling
// repeat those of a pixel.
template <bool kQuads, class Out>
void depthwise_repeated_rows(const DepthwiseParams& p, const uint8_t* input, int64_t begin, int64_t end, int64_t image, const DepthwiseScratch& s,
                             QuantizedStore<Out> store, uint8_t flip, uint8_t outside) {
  const ConvGeometry& g = p.geometry;
  const int64_t block = depthwise_block<16>(), padded_taps = (p.taps() + 3) / 4 * 4, segment = depthwise_segment(p);
  const int32_t row_sums[kDepthwiseTile] = {};
  Out* const out = store.out;
  store.stride = block;
  for (int64_t left = 0; left < g.out_w; left += segment) {
    const int64_t width = std::min(segment, g.out_w - left), bytes = width * p.channels;
    const PaddedRows rows(p, s, input, left, width, outside);
    for (int64_t y = begin; y < end; ++y) {
      rows.move_to(y);
      store.out = out + ((image * g.out_h + y) * g.out_w + left) * p.channels;
      for (int64_t at = 0; at < bytes; at += kDepthwiseTile * block, store.out += kDepthwiseTile * block) {
        const int64_t blocks = std::min(kDepthwiseTile, (bytes - at + block - 1) / block), whole = std::min(blocks, (bytes - at) / block);
        depthwise_bytes_pixels<16, kQuads>(s.rows + at, block, blocks, s.offsets, padded_taps, flip, s.packed, s.bias, s.sums);
        if (whole > 0) store.store(s.sums, block, static_cast<int>(whole), row_sums, 0, 0, block);
        if (whole < blocks) store.store(s.sums + whole * block, block, 1, row_sums, whole, 0, bytes - at - whole * block);
      }
    }
  }
}

template <size_t kLanes, bool kQuads, class Epilogue>
void depthwise_bytes_image(const DepthwiseParams& p, const uint8_t* weights, const uint8_t* input, int64_t begin, int64_t end, int64_t image,
                           const DepthwiseScratch& s, const Epilogue& epilogue, uint8_t flip, uint8_t outside, bool pack) {
  const uint8_t w_flip = p.bits == 8 ? p.w_flip : uint8_t{0};
  const int64_t block = depthwise_block<kLanes>(), block_bytes = (p.taps() + 3) / 4 * 4 * block * 2;
  if constexpr (kLanes == 16 && !std::is_same_v<Epilogue, FloatStore>) {
    if (depthwise_repeats(p)) {
      Epilogue repeated = epilogue;
      repeated.q.multiplier = s.multiplier, repeated.q.shift = s.shift;
      for (int64_t n = 0; n < block; ++n) {
        const int64_t c = n % p.channels;
        if (n >= p.channels) s.bias[n] = s.bias[c];
        s.multiplier[n] = epilogue.q.multiplier[c], s.shift[n] = epilogue.q.shift[c];
        for (int64_t t = 0; pack && t < p.taps(); ++t) s.repeated[t * block + n] = weights[t * p.channels + c];
      }
      if (pack) pack_depthwise<kLanes, kQuads>(s.repeated, block, p.taps(), static_cast<size_t>(block), w_flip, p.w_zero, s.packed);
      return depthwise_repeated_rows<kQuads>(p, input, begin, end, image, s, repeated, flip, outside);
    }
  }
  if (pack) {
    for (int64_t number = 0, c = 0; c < p.channels; ++number, c += block) {
      const int64_t first = c + block > p.channels && p.channels >= block ? p.channels - block : c;
      pack_depthwise<kLanes, kQuads>(weights + first, p.channels, p.taps(), static_cast<size_t>(std::min(block, p.channels - first)),
                                     w_flip, p.w_zero, s.packed + number * block_bytes);
    }
  }
  depthwise_bytes_rows<kLanes, kQuads>(p, input, begin, end, image, s, epilogue, flip, outside);
}

// With a channel multiplier each input channel is a convolution of its own, with `multiplier` outputs.
template <class Epilogue>
void depthwise_products(const DepthwiseParams& p, const uint8_t* weights, const uint8_t* input, int64_t begin, int64_t end, int64_t image,
                        const DepthwiseScratch& s, const Epilogue& epilogue, uint8_t flip, uint8_t outside, bool pack) {
  const ConvGeometry& g = p.geometry;
  const int64_t taps = p.taps();
  if (pack)
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t n = 0; n < p.channels; ++n) s.transposed[n * taps + t] = weights[t * p.channels + n];
  const ByteWeights w{s.transposed, taps, 8, p.bits == 8 ? p.w_flip : uint8_t{0}};
  const int64_t first = image * g.out_h;
  for (int64_t c = 0; c < g.in_c; ++c)
    product_bytes(ByteWindows{g, input + c, 1, flip, static_cast<uint8_t>(outside ^ flip), false, image}, g.output_pixels(), (first + begin) * g.out_w, (first + end) * g.out_w, w,
                  c * p.multiplier, p.multiplier, s.bias, epilogue, s.product);
}

// Picks the width of vectors for the channels there are.
template <class Epilogue>
void run_depthwise(const KernelArgs& args, const DepthwiseParams& p, const uint8_t* input, int64_t begin, int64_t end, int64_t image,
                   const DepthwiseScratch& s, const Epilogue& epilogue, uint8_t flip, uint8_t outside, bool pack) {
  const uint8_t* weights = args.in<uint8_t>(1);
  if (p.bits != 8) {
    const ByteWeights w = p.weights(weights);
    if (pack)
      for (int64_t i = 0; i < p.taps() * p.channels; ++i) s.unpacked[i] = static_cast<uint8_t>(signed_weight(w, i));
    weights = s.unpacked;
  }
  if (p.multiplier != 1) return depthwise_products(p, weights, input, begin, end, image, s, epilogue, flip, outside, pack);
  if (p.geometry.out_h * p.geometry.out_w <= 4) return depthwise_few_pixels(p, weights, input, begin, end, image, s, epilogue, flip, outside);
  const bool bytes_fit = kByteQuads && p.w_zero == 0;
  const bool repeats = depthwise_repeats(p) && !std::is_same_v<Epilogue, FloatStore>;
  if (p.channels <= 16 && !repeats) {
    if (bytes_fit) return depthwise_bytes_image<4, kByteQuads>(p, weights, input, begin, end, image, s, epilogue, flip, outside, pack);
    return depthwise_bytes_image<4, false>(p, weights, input, begin, end, image, s, epilogue, flip, outside, pack);
  }
  if (p.channels <= 32 && !repeats) {
    if (bytes_fit) return depthwise_bytes_image<8, kByteQuads>(p, weights, input, begin, end, image, s, epilogue, flip, outside, pack);
    return depthwise_bytes_image<8, false>(p, weights, input, begin, end, image, s, epilogue, flip, outside, pack);
  }
  if (bytes_fit) return depthwise_bytes_image<16, kByteQuads>(p, weights, input, begin, end, image, s, epilogue, flip, outside, pack);
  return depthwise_bytes_image<16, false>(p, weights, input, begin, end, image, s, epilogue, flip, outside, pack);
}

template <class Out>
void depthwise_conv_2d_quantized(const KernelArgs& args) {
  const DepthwiseParams& p = args.params<DepthwiseParams>();
  const ConvGeometry& g = p.geometry;
  DepthwiseScratch s = lay_out_depthwise(p, args.scratch, false);
  const ByteWeights w = p.weights(args.in<uint8_t>(1));
  const std::byte* given = args.in<std::byte>(2);
  for (int64_t n = 0; n < p.channels; ++n)
    s.bias[n] = p.bias ? p.bias[n]
                       : folded_bias(given ? Preparation::load<int32_t>(given, n) : 0,
                                     depthwise_weight_sum(w, p.channels, n) - static_cast<int32_t>(w.terms) * p.w_zero, w.terms, p.a_zero, 0);
  std::memset(s.bias + p.channels, 0, 64 * 4);
  const uint8_t outside = static_cast<uint8_t>(p.a_zero) ^ p.a_flip;
  QuantizedStore<Out> store{p.scaling, args.out<Out>(0), p.channels};
  if (p.multiplier != 1) store.q.weight_zero = p.w_zero;  // packed weights are less their zero point, others not
  bool pack = true;
  for (int64_t row = args.rows.begin; row < args.rows.end;) {
    const int64_t image = row / g.out_h, first = row % g.out_h, last = std::min(g.out_h, first + args.rows.end - row);
    run_depthwise(args, p, args.in<uint8_t>(0) + image * g.in_h * g.in_w * g.in_c, first, last, image, s, store, p.a_flip, outside, pack);
    pack = false;
    row += last - first;
  }
}

inline void depthwise_conv_2d_hybrid(const KernelArgs& args) {
  const DepthwiseParams& p = args.params<DepthwiseParams>();
  const ConvGeometry& g = p.geometry;
  DepthwiseScratch s = lay_out_depthwise(p, args.scratch, true);
  const ByteWeights w = p.weights(args.in<uint8_t>(1));
  const int32_t* sums = p.weight_sums;
  if (!sums) {
    for (int64_t n = 0; n < p.channels + 64; ++n) s.weight_sums[n] = n < p.channels ? depthwise_weight_sum(w, p.channels, n) : 0;
    sums = s.weight_sums;
  }
  std::memset(s.bias, 0, static_cast<size_t>(p.channels + 64) * 4);
  const FloatStore store{s.scales, s.zeros, g.out_h * g.out_w, p.scales, sums, args.in<float>(2), p.activation.low, p.activation.high,
                         args.out<float>(0), p.channels, p.activation.after};
  bool pack = true;
  const int64_t size = g.in_h * g.in_w * g.in_c;
  for (int64_t row = args.rows.begin; row < args.rows.end;) {
    const int64_t image = row / g.out_h, first = row % g.out_h, last = std::min(g.out_h, first + args.rows.end - row);
    const float* input = args.in<float>(0) + image * size;
    const ByteScale scale = find_byte_scale(input, size, p.asymmetric);
    s.scales[image] = scale.scale, s.zeros[image] = scale.zero;
    const RowRange need = input_rows(g, {row, row + last - first});
    const int64_t skipped = (need.begin - image * g.in_h) * g.in_w * g.in_c;
    if (need.size() > 0) quantize_bytes(input + skipped, need.size() * g.in_w * g.in_c, scale, s.quantized + skipped);
    run_depthwise(args, p, s.quantized, first, last, image, s, store, 0, static_cast<uint8_t>(s.zeros[image]), pack);
    pack = false;
    row += last - first;
  }
}

// 16-bit activations: sums in 64 bits, or with a 32-bit bias in 32 bits that wrap.
inline void depthwise_conv_2d_wide(const KernelArgs& args) {
  const DepthwiseParams& p = args.params<DepthwiseParams>();
  const ConvGeometry& g = p.geometry;
  const ByteWeights w = p.weights(args.in<uint8_t>(1));
  const int16_t* input = args.in<int16_t>(0);
  const std::byte* bias = args.in<std::byte>(2);
  int64_t* const sums = reinterpret_cast<int64_t*>(args.scratch);
  for (int64_t m = args.rows.begin * g.out_w; m < args.rows.end * g.out_w; ++m) {
    const int64_t image = m / (g.out_h * g.out_w), y0 = m / g.out_w % g.out_h * g.stride_h - g.pad_top, x0 = m % g.out_w * g.stride_w - g.pad_left;
    int16_t* out = args.out<int16_t>(0) + m * p.channels;
    std::memset(sums, 0, static_cast<size_t>(p.channels) * 8);
    for (int64_t ky = 0; ky < g.kernel_h; ++ky) {
      const int64_t y = y0 + ky * g.dilation_h;
      if (y < 0 || y >= g.in_h) continue;
      for (int64_t kx = 0; kx < g.kernel_w; ++kx) {
        const int64_t x = x0 + kx * g.dilation_w, tap = (ky * g.kernel_w + kx) * p.channels;
        if (x < 0 || x >= g.in_w) continue;
        const int16_t* a = input + ((image * g.in_h + y) * g.in_w + x) * g.in_c;
        for (int64_t c = 0, n = 0; c < g.in_c; ++c)
          for (int64_t i = 0; i < p.multiplier; ++i, ++n) sums[n] += int64_t{a[c] - p.a_zero} * signed_weight(w, tap + n);
      }
    }
    for (int64_t n = 0; n < p.channels; ++n) {
      const FixedMultiplier f{p.scaling.multiplier[n], p.scaling.shift[n]};
      int64_t scaled;
      if (p.bias_is_wide) {
        scaled = multiply_by_quantized_multiplier(sums[n] + (bias ? Preparation::load<int64_t>(bias, n) : 0), f);
      } else {
        const uint32_t wrapped = static_cast<uint32_t>(sums[n]) + (bias ? Preparation::load<uint32_t>(bias, n) : 0u);
        scaled = multiply_by_quantized_multiplier(static_cast<int32_t>(wrapped), f);
      }
      out[n] = static_cast<int16_t>(std::clamp<int64_t>(scaled + p.scaling.zero, p.scaling.low, p.scaling.high));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace detail {

// Checks the node, takes over a padding in front of it, states the output's shape.
inline Status read_depthwise(Preparation& p, DepthwiseParams* params, Activation* activation) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 3));
  SpatialPadding margins;
  p.absorb_padding(&margins);
  const Operand &input = p.input(0), &filter = p.input(1);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(input, 4, 4));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(filter, 4, 4));
  const OptionsView& o = p.options();
  WindowOptions window;
  window.padding = o.get<int8_t>(0, 0);
  window.stride_w = o.get<int32_t>(1, 0), window.stride_h = o.get<int32_t>(2, 0);
  window.dilation_w = o.get<int32_t>(5, 1), window.dilation_h = o.get<int32_t>(6, 1);
  *activation = static_cast<Activation>(o.get<int8_t>(4, 0));
  params->channels = filter.shape[3];
  const int64_t inputs = input.shape[3];
  if (filter.shape[0] != 1 || inputs <= 0 || params->channels <= 0 || params->channels % inputs != 0)
    return p.invalid("filter %s does not fit input %s", p.describe(filter).c_str(), p.describe(input).c_str());
  params->multiplier = params->channels / inputs;  // the option of this name may be stale
  ONEWEIGHT_RETURN_IF_ERROR(check_bias(p, 2, params->channels));
  ConvGeometry& g = params->geometry;
  ONEWEIGHT_RETURN_IF_ERROR(make_geometry(p, input, margins, filter.shape[1], filter.shape[2], window, &g));
  // Floats whose weights are bytes are quantised: the scale is found anew for every range of rows.
  const bool hybrid = input.type == TensorType::float32 && filter.type != TensorType::float32 && filter.type != TensorType::float16;
  const double finding = hybrid ? static_cast<double>(input.shape.elements()) : 0;
  p.set_work(kShortWork * static_cast<double>(g.output_pixels()) * static_cast<double>(filter.shape.elements()) + 3 * finding, finding);
  return p.set_output(0, {g.batch, g.out_h, g.out_w, params->channels});
}

template <class W>
Status prepare_depthwise_float(Preparation& p) {
  DepthwiseParams* params = p.make_params<DepthwiseParams>();
  if (!params) return p.no_memory();
  Activation activation;
  ONEWEIGHT_RETURN_IF_ERROR(read_depthwise(p, params, &activation));
  ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, activation, &params->activation));
  p.offer_activation(&params->activation);
  p.set_scratch(ONEWEIGHT_KERNEL(p.target(), depthwise_float_scratch)(*params));
  p.set_kernel(ONEWEIGHT_KERNEL(p.target(), depthwise_conv_2d_float<W>), params->geometry.rows(), &input_rows_of<DepthwiseParams>);
  return {};
}

inline Status prepare_depthwise_quantized(Preparation& p) {
  DepthwiseParams* params = p.make_params<DepthwiseParams>();
  if (!params) return p.no_memory();
  Activation activation;
  ONEWEIGHT_RETURN_IF_ERROR(read_depthwise(p, params, &activation));
  const Operand &input = p.input(0), &weights = p.input(1), &output = p.output(0);
  const int64_t channels = params->channels;
  params->bits = weight_bits(weights.type);
  params->w_flip = weights.type == TensorType::uint8 ? 0x80 : 0;
  params->w_zero = weights.zero_point() - (params->w_flip ? 128 : 0);
  if (params->w_zero < -128 || params->w_zero > 127) return p.invalid("%s has zero point %d", p.describe(weights).c_str(), weights.zero_point());
  const ByteWeights w = params->weights(weights.data);
  const bool hybrid = input.type == TensorType::float32;
  if (input.type != TensorType::uint8 && params->w_zero != 0)
    return p.error(ErrorCode::unsupported, "%s has zero point %d", p.describe(weights).c_str(), weights.zero_point());
  if (hybrid) {
    ONEWEIGHT_RETURN_IF_ERROR(check_weight_scales(p, weights, channels, 3));
    ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, activation, &params->activation));
    p.offer_activation(&params->activation);
    const std::vector<float>& given = weights.quantization->scales;
    params->asymmetric = given.size() > 1;
    float* scales = p.derived<float>(channels + kChannelPad);
    if (!scales) return p.no_memory();
    for (int64_t n = 0; n < channels; ++n) scales[n] = given[given.size() > 1 ? static_cast<size_t>(n) : 0];
    params->scales = scales;
    if (weights.data) {
      int32_t* sums = p.derived<int32_t>(channels + kChannelPad);
      if (!sums) return p.no_memory();
      for (int64_t n = 0; n < channels; ++n) sums[n] = depthwise_weight_sum(w, channels, n);
      params->weight_sums = sums;
    }
    p.set_scratch(ONEWEIGHT_KERNEL(p.target(), depthwise_scratch)(*params, true));
    p.set_kernel(ONEWEIGHT_KERNEL(p.target(), depthwise_conv_2d_hybrid), params->geometry.rows());
    return {};
  }
  ONEWEIGHT_RETURN_IF_ERROR(make_scaling(p, input, weights, output, channels, 3, activation, &params->scaling));
  if (input.type == TensorType::int16) {
    params->a_zero = input.zero_point();
    params->bias_is_wide = !p.has_input(2) || p.input(2).type == TensorType::int64;
    p.set_scratch(channels * 8);
    p.set_kernel(ONEWEIGHT_KERNEL(p.target(), depthwise_conv_2d_wide), params->geometry.rows(), &input_rows_of<DepthwiseParams>);
    return {};
  }
  const bool is_signed = input.type == TensorType::int8;
  const int low = is_signed ? -128 : 0;
  params->a_flip = is_signed ? 0x80 : 0;
  params->a_zero = input.zero_point() - low;
  if (!weights.data || (p.has_input(2) && !p.input(2).data)) {
    params->scaling.narrow = false;
  } else {
    int32_t* folded = p.derived<int32_t>(channels + kChannelPad);
    if (!folded) return p.no_memory();
    int64_t largest = 0;
    for (int64_t n = 0; n < channels; ++n) {
      const int32_t bias = p.has_input(2) ? Preparation::load<int32_t>(p.input(2).data, n) : 0;
      largest = std::max<int64_t>(largest, bias < 0 ? -static_cast<int64_t>(bias) : bias);
      folded[n] = folded_bias(bias, depthwise_weight_sum(w, channels, n) - static_cast<int32_t>(w.terms) * params->w_zero, w.terms,
                              params->a_zero, 0);
    }
    if (largest >= (1 << 29) || w.terms >= 8192) params->scaling.narrow = false;
    params->bias = folded;
  }
  p.set_scratch(ONEWEIGHT_KERNEL(p.target(), depthwise_scratch)(*params, false));
  p.set_kernel(is_signed ? ONEWEIGHT_KERNEL(p.target(), depthwise_conv_2d_quantized<int8_t>)
                         : ONEWEIGHT_KERNEL(p.target(), depthwise_conv_2d_quantized<uint8_t>),
               params->geometry.rows(), &input_rows_of<DepthwiseParams>);
  return {};
}

}  // namespace detail
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
