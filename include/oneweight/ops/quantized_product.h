// CONV_2D and FULLY_CONNECTED on 8-bit weights: int8 and uint8 (integers from end to end), hybrid (float activations, quantised
// for each image or row while running), 16-bit activations with 8-bit weights. Weights of int8, int4, int2, uint8.
// Integer answers are those of TFLite's reference kernels, bit by bit. The bias may be left out.
// Derived: 12 bytes an output channel. Scratch: a part of the weights, transposed, and a tile of activations (at most
// 512 KiB for reductions of less than 8192 terms); hybrid convolutions of more than a pixel: one quantised image besides. Rows as in the float forms.
#ifndef ONEWEIGHT_OPS_QUANTIZED_PRODUCT_H
#define ONEWEIGHT_OPS_QUANTIZED_PRODUCT_H

#include "oneweight/ops/quantized_weights.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <class W, class A> struct Conv2D;
template <class W, class A> struct FullyConnected;

// A product over the windows of `geometry`; a FULLY_CONNECTED has M images of one pixel.
struct QuantizedProductParams {
  ConvGeometry geometry;
  int64_t channels, groups, group_inputs;
  int bits;
  uint8_t a_flip = 0, w_flip = 0;
  int32_t a_zero = 0;            // of a'
  const int32_t* bias = nullptr; // folded; null: folded while running
  QuantizedScaling scaling;
  // Hybrid
  const float* scales = nullptr;
  const int32_t* weight_sums = nullptr;  // null: summed while running
  bool asymmetric = false;
  FusedActivation activation;
  // 16-bit activations
  bool bias_is_wide = false;
  int64_t image_bytes() const { return geometry.in_h * geometry.in_w * geometry.in_c; }
  int64_t terms() const { return geometry.kernel_h * geometry.kernel_w * group_inputs; }
};

namespace detail {
inline bool takes_quantized(const NodeTypes& t, TensorType activations, std::initializer_list<TensorType> weights,
                            std::initializer_list<TensorType> biases) {
  if (!t.in(0, activations) || !t.out(0, activations)) return false;
  bool weights_fit = false, bias_fits = !t.has_input[2];
  for (TensorType w : weights) weights_fit |= t.in(1, w);
  for (TensorType b : biases) bias_fits |= t.in(2, b);
  return weights_fit && bias_fits;
}
Status prepare_quantized_conv_2d(Preparation& p);
Status prepare_quantized_fully_connected(Preparation& p);
using TT = TensorType;
inline bool takes_int8(const NodeTypes& t) { return takes_quantized(t, TT::int8, {TT::int8, TT::int4}, {TT::int32}); }
inline bool takes_uint8(const NodeTypes& t) { return takes_quantized(t, TT::uint8, {TT::uint8}, {TT::int32}); }
inline bool takes_hybrid(const NodeTypes& t) {
  return takes_quantized(t, TT::float32, {TT::int8, TT::int4, TT::int2, TT::uint8}, {TT::float32});
}
inline bool takes_int16(const NodeTypes& t) { return takes_quantized(t, TT::int16, {TT::int8, TT::int4}, {TT::int64, TT::int32}); }
constexpr OpRow conv_row(const char* types, bool (*accepts)(const NodeTypes&)) {
  return {.code = BuiltinOperator::conv_2d, .types = types, .accepts = accepts, .prepare = &prepare_quantized_conv_2d};
}
constexpr OpRow fully_connected_row(const char* types, bool (*accepts)(const NodeTypes&)) {
  return {.code = BuiltinOperator::fully_connected, .types = types, .accepts = accepts, .prepare = &prepare_quantized_fully_connected};
}
}  // namespace detail

template <> struct Conv2D<int8_t, int8_t> { static constexpr OpRow row = detail::conv_row("int8, int4 weights", &detail::takes_int8); };
template <> struct Conv2D<uint8_t, uint8_t> { static constexpr OpRow row = detail::conv_row("uint8", &detail::takes_uint8); };
template <> struct Conv2D<int8_t, float> {
  static constexpr OpRow row = detail::conv_row("float, int8, int4 or int2 weights", &detail::takes_hybrid);
};
template <> struct Conv2D<int8_t, int16_t> { static constexpr OpRow row = detail::conv_row("int16, int8 or int4 weights", &detail::takes_int16); };
template <> struct FullyConnected<int8_t, int8_t> {
  static constexpr OpRow row = detail::fully_connected_row("int8, int4 weights", &detail::takes_int8);
};
template <> struct FullyConnected<uint8_t, uint8_t> { static constexpr OpRow row = detail::fully_connected_row("uint8", &detail::takes_uint8); };
template <> struct FullyConnected<int8_t, float> {
  static constexpr OpRow row = detail::fully_connected_row("float, int8, int4 or int2 weights", &detail::takes_hybrid);
};
template <> struct FullyConnected<int8_t, int16_t> {
  static constexpr OpRow row = detail::fully_connected_row("int16, int8 or int4 weights", &detail::takes_int16);
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_QUANTIZED_PRODUCT_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_QUANTIZED_PRODUCT_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_QUANTIZED_PRODUCT_KERNELS
#undef ONEWEIGHT_OPS_QUANTIZED_PRODUCT_KERNELS
#else
#define ONEWEIGHT_OPS_QUANTIZED_PRODUCT_KERNELS
#endif

#include "oneweight/ops/byte_windows-inl.h"
#include "oneweight/simd/quantize-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

// Rows of a product whose windows are single pixels of float, quantised while they are gathered.
struct FloatPixels {
  const float* input;        // first channel of the group
  int64_t distance, channels;
  const ByteScale* scales;   // of row / rows_per_scale
  int64_t rows_per_scale;

  TileLayout layout() const { return separate_rows(channels); }
  int64_t rows_together(int64_t) const { return int64_t{1} << 40; }
  void gather_rows(int64_t row, int rows, TileTerm* to, int64_t stride) const {
    for (int r = 0; r < rows; ++r)
      quantize_bytes(input + (row + r) * distance, channels, scales[(row + r) / rows_per_scale], to + r * stride);
  }
  void gather(int64_t row, int rows, TileTerm* to) const { gather_rows(row, rows, to, layout().row); }
};

// All groups of the part that args ask for. make_source(first channel of a group).
template <class MakeSource, class Epilogue>
void run_quantized_product(const KernelArgs& args, const QuantizedProductParams& p, const MakeSource& make_source, const int32_t* bias,
                           const Epilogue& epilogue, std::byte* scratch) {
  const ConvGeometry& g = p.geometry;
  const ByteWeights w{args.in<uint8_t>(1), p.terms(), p.bits, p.w_flip};
  const RowRange part = p.groups == 1 ? args.channels(p.channels) : RowRange{0, p.channels / p.groups};
  const int64_t channels = part.end - part.begin;
  for (int64_t group = 0; group < p.groups; ++group)
    product_bytes(make_source(group * p.group_inputs), g.output_pixels(), args.rows.begin * g.out_w, args.rows.end * g.out_w, w,
                  group * channels + part.begin, channels, bias, epilogue, scratch);
}

template <class Out>
void quantized_product(const KernelArgs& args) {
  const QuantizedProductParams& p = args.params<QuantizedProductParams>();
  std::byte* scratch = args.scratch;
  const int32_t* bias = p.bias;
  if (!bias) {
    int32_t* folded = reinterpret_cast<int32_t*>(scratch);
    scratch += (p.channels + kChannelPad) * 4;
    const ByteWeights w{args.in<uint8_t>(1), p.terms(), p.bits, p.w_flip};
    const std::byte* given = args.in<std::byte>(2);
    weight_sums(w, p.channels, folded);
    for (int64_t n = 0; n < p.channels; ++n)
      folded[n] = folded_bias(given ? Preparation::load<int32_t>(given, n) : 0, folded[n], w.terms, p.a_zero, p.scaling.weight_zero);
    for (int64_t n = p.channels; n < p.channels + kChannelPad; ++n) folded[n] = 0;
    bias = folded;
  }
  const QuantizedStore<Out> store{p.scaling, args.out<Out>(0), p.channels};
  const auto windows = [&](int64_t channel) {
    return ByteWindows{p.geometry, args.in<uint8_t>(0) + channel, p.group_inputs, p.a_flip, static_cast<uint8_t>(p.a_zero),
                       p.geometry.is_pointwise()};
  };
  run_quantized_product(args, p, windows, bias, store, scratch);
}

inline void hybrid_product(const KernelArgs& args) {
  const QuantizedProductParams& p = args.params<QuantizedProductParams>();
  const ConvGeometry& g = p.geometry;
  if (args.rows.size() <= 0) return;
  // Images (rows of a FULLY_CONNECTED) this call needs.
  const int64_t first = args.rows.begin / g.out_h, last = (args.rows.end - 1) / g.out_h + 1;
  const int64_t size = p.image_bytes();
  std::byte* at = args.scratch;
  const auto take = [&at](int64_t bytes) {
    std::byte* from = at;
    at += (bytes + 63) / 64 * 64;
    return from;
  };
  ByteScale* found = reinterpret_cast<ByteScale*>(take(g.batch * static_cast<int64_t>(sizeof(ByteScale))));
  float* scales = reinterpret_cast<float*>(take(g.batch * 4));
  int32_t* zeros = reinterpret_cast<int32_t*>(take(g.batch * 4));
  int32_t* nothing = reinterpret_cast<int32_t*>(take((p.channels + kChannelPad) * 4));
  const int32_t* sums = p.weight_sums;
  if (!sums) {
    int32_t* summed = reinterpret_cast<int32_t*>(take((p.channels + kChannelPad) * 4));
    const ByteWeights w{args.in<uint8_t>(1), p.terms(), p.bits, p.w_flip};
    weight_sums(w, p.channels, summed);
    for (int64_t n = p.channels; n < p.channels + kChannelPad; ++n) summed[n] = 0;
    sums = summed;
  }
  std::memset(nothing, 0, static_cast<size_t>(p.channels + kChannelPad) * 4);
  const float* const input = args.in<float>(0);
  for (int64_t i = first; i < last; ++i) {
    found[i] = find_byte_scale(input + i * size, size, p.asymmetric);
    scales[i] = found[i].scale, zeros[i] = found[i].zero;
  }
  const FloatStore store{scales, zeros, g.out_h * g.out_w, p.scales, sums, args.in<float>(2), p.activation.low, p.activation.high,
                         args.out<float>(0), p.channels, p.activation.after};
  if (g.is_pointwise()) {
    const auto pixels = [&](int64_t channel) { return FloatPixels{input + channel, g.in_c, p.group_inputs, found, g.out_h * g.out_w}; };
    return run_quantized_product(args, p, pixels, nothing, store, at);
  }
  // One image at a time: each has a zero of its own for what lies outside.
  uint8_t* quantized = reinterpret_cast<uint8_t*>(take(size));
  for (int64_t i = first; i < last; ++i) {
    KernelArgs part = args;
    part.rows.begin = std::max(args.rows.begin, i * g.out_h);
    part.rows.end = std::min(args.rows.end, (i + 1) * g.out_h);
    const RowRange need = input_rows(g, part.rows);
    const int64_t row = g.in_w * g.in_c, skipped = (need.begin - i * g.in_h) * row;
    if (need.size() > 0) quantize_bytes(input + need.begin * row, need.size() * row, found[i], quantized + skipped);
    const auto windows = [&](int64_t channel) {
      return ByteWindows{g, quantized + channel, p.group_inputs, 0, static_cast<uint8_t>(zeros[i]), false, i};
    };
    run_quantized_product(part, p, windows, nothing, store, at);
  }
}

// 16-bit activations: exact sums, in 64 bits or, with a 32-bit bias, in 32 bits that wrap.
inline void wide_product(const KernelArgs& args) {
  const QuantizedProductParams& p = args.params<QuantizedProductParams>();
  const ConvGeometry& g = p.geometry;
  const ByteWeights w{args.in<uint8_t>(1), p.terms(), p.bits, p.w_flip};
  const int16_t* input = args.in<int16_t>(0);
  const std::byte* bias = args.in<std::byte>(2);
  int16_t* out = args.out<int16_t>(0);
  const int64_t terms = w.terms, row_terms = g.kernel_w * p.group_inputs, channels = p.channels / p.groups;
  int16_t* const patch = reinterpret_cast<int16_t*>(args.scratch);
  int8_t* const row = reinterpret_cast<int8_t*>(patch + (terms + 31) / 32 * 32);
  for (int64_t m = args.rows.begin * g.out_w; m < args.rows.end * g.out_w; ++m) {
    const int64_t image = m / (g.out_h * g.out_w), oy = m / g.out_w % g.out_h, ox = m % g.out_w;
    const int64_t y0 = oy * g.stride_h - g.pad_top, x0 = ox * g.stride_w - g.pad_left;
    for (int64_t group = 0; group < p.groups; ++group) {
      for (int64_t ky = 0; ky < g.kernel_h; ++ky) {
        for (int64_t kx = 0; kx < g.kernel_w; ++kx) {
          const int64_t y = y0 + ky * g.dilation_h, x = x0 + kx * g.dilation_w;
          int16_t* to = patch + ky * row_terms + kx * p.group_inputs;
          if (y < 0 || x < 0 || y >= g.in_h || x >= g.in_w) {
            for (int64_t c = 0; c < p.group_inputs; ++c) to[c] = static_cast<int16_t>(p.a_zero);
          } else {
            std::memcpy(to, input + ((image * g.in_h + y) * g.in_w + x) * g.in_c + group * p.group_inputs, static_cast<size_t>(p.group_inputs) * 2);
          }
        }
      }
      for (int64_t n = group * channels; n < (group + 1) * channels; ++n) {
        const int8_t* weights = reinterpret_cast<const int8_t*>(w.data + n * terms);
        if (w.bits != 8) {
          for (int64_t k = 0; k < terms; ++k) row[k] = static_cast<int8_t>(signed_weight(w, n * terms + k));
          weights = row;
        }
        int64_t sum = wide_dot(patch, weights, terms);
        if (p.a_zero != 0)
          for (int64_t k = 0; k < terms; ++k) sum -= int64_t{p.a_zero} * weights[k];
        const FixedMultiplier f{p.scaling.multiplier[n], p.scaling.shift[n]};
        int64_t scaled;
        if (p.scaling.once) {
          scaled = multiply_rounding_once(sum + (!bias ? 0 : p.bias_is_wide ? Preparation::load<int64_t>(bias, n) : Preparation::load<int32_t>(bias, n)), f);
        } else if (p.bias_is_wide) {
          scaled = multiply_by_quantized_multiplier(sum + (bias ? Preparation::load<int64_t>(bias, n) : 0), f);
        } else {
          const uint32_t wrapped = static_cast<uint32_t>(sum) + (bias ? Preparation::load<uint32_t>(bias, n) : 0u);
          scaled = multiply_by_quantized_multiplier(static_cast<int32_t>(wrapped), f);
        }
        const int64_t shifted = scaled + p.scaling.zero;
        out[m * p.channels + n] = static_cast<int16_t>(std::clamp<int64_t>(shifted, p.scaling.low, p.scaling.high));
      }
    }
  }
}

inline int64_t quantized_product_scratch(const QuantizedProductParams& p, TensorType activations) {
  const ConvGeometry& g = p.geometry;
  if (activations == TensorType::int16) return p.terms() * 3 + 128;
  const bool float_pixels = activations == TensorType::float32 && g.is_pointwise();
  const TileLayout layout = float_pixels ? separate_rows(p.group_inputs) : window_layout(g, p.group_inputs);
  int64_t bytes = byte_product_scratch(g.output_pixels(), p.channels / p.groups, layout, p.bits);
  if (!p.bias) bytes += (p.channels + kChannelPad) * 4;
  if (activations == TensorType::float32)
    bytes += g.batch * (8 + static_cast<int64_t>(sizeof(ByteScale))) + 2 * (p.channels + kChannelPad) * 4 + 6 * 64 +
             (g.is_pointwise() ? 0 : p.image_bytes());
  return bytes;
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace detail {

// Scales, zero points, sums and kernel; geometry, channels, groups and block are set.
inline Status finish_quantized(Preparation& p, QuantizedProductParams* params, Activation activation, bool asymmetric) {
  const Operand &input = p.input(0), &weights = p.input(1), &output = p.output(0);
  const int64_t channels = params->channels;
  params->bits = weight_bits(weights.type);
  params->w_flip = weights.type == TensorType::uint8 ? 0x80 : 0;
  const ByteWeights w{reinterpret_cast<const uint8_t*>(weights.data), params->terms(), params->bits, params->w_flip};
  const bool hybrid = input.type == TensorType::float32, wide = input.type == TensorType::int16;
  KernelFn kernel = nullptr;
  if (hybrid) {
    ONEWEIGHT_RETURN_IF_ERROR(check_weight_scales(p, weights, channels, 0));
    if (weights.zero_point() != (weights.type == TensorType::uint8 ? 128 : 0))
      return p.error(ErrorCode::unsupported, "%s has zero point %d", p.describe(weights).c_str(), weights.zero_point());
    ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, activation, &params->activation));
    p.offer_activation(&params->activation);
    params->asymmetric = asymmetric;
    float* scales = p.derived<float>(channels + kChannelPad);
    if (!scales) return p.no_memory();
    const std::vector<float>& given = weights.quantization->scales;
    for (int64_t n = 0; n < channels; ++n) scales[n] = given[given.size() > 1 ? static_cast<size_t>(n) : 0];
    params->scales = scales;
    if (weights.data) {
      int32_t* sums = p.derived<int32_t>(channels + kChannelPad);
      if (!sums) return p.no_memory();
      ONEWEIGHT_KERNEL(p.target(), weight_sums)(w, channels, sums);
      params->weight_sums = sums;
    }
    kernel = ONEWEIGHT_KERNEL(p.target(), hybrid_product);
  } else {
    ONEWEIGHT_RETURN_IF_ERROR(make_scaling(p, input, weights, output, channels, 0, activation, &params->scaling));
    if (wide) {
      params->a_zero = input.zero_point();
      params->bias_is_wide = !p.has_input(2) || p.input(2).type == TensorType::int64;
      if (weights.zero_point() != 0) return p.error(ErrorCode::unsupported, "%s has zero point %d", p.describe(weights).c_str(), weights.zero_point());
      kernel = ONEWEIGHT_KERNEL(p.target(), wide_product);
    } else {
      const bool is_signed = input.type == TensorType::int8;
      const int low = is_signed ? -128 : 0;
      params->a_flip = is_signed ? 0x80 : 0;
      params->a_zero = input.zero_point() - low;
      params->scaling.weight_zero = weights.zero_point() - (params->w_flip ? 128 : 0);
      ONEWEIGHT_RETURN_IF_ERROR(fold_biases(p, w, weights, channels, params->a_zero, ONEWEIGHT_KERNEL(p.target(), weight_sums),
                                            &params->scaling, &params->bias));
      kernel = is_signed ? ONEWEIGHT_KERNEL(p.target(), quantized_product<int8_t>) : ONEWEIGHT_KERNEL(p.target(), quantized_product<uint8_t>);
    }
  }
  p.set_scratch(ONEWEIGHT_KERNEL(p.target(), quantized_product_scratch)(*params, input.type));
  p.set_kernel(kernel, params->geometry.rows(), hybrid ? nullptr : &input_rows_of<QuantizedProductParams>);
  const double terms = static_cast<double>(params->terms()), all = terms * static_cast<double>(channels);
  const auto pixels = static_cast<double>(params->geometry.output_pixels());
  // Floats are quantised: ranges of rows find the scale of an image each, ranges of channels quantise all of it as well.
  const double finding = hybrid ? static_cast<double>(params->geometry.batch * params->image_bytes()) : 0;
  const double summing = (hybrid ? params->weight_sums : params->bias) ? 0 : all;
  p.set_work(product_work(pixels, all, 1, wide ? kShortWork : kQuadWork) + 4 * finding, kPackWork / 4 * all + finding);
  if (params->groups == 1 && !wide) p.set_channel_blocks(channels, kQuadWork * pixels * terms + 4 * finding + summing);
  return {};
}

inline Status prepare_quantized_conv_2d(Preparation& p) {
  ConvNode node;
  ONEWEIGHT_RETURN_IF_ERROR(read_conv_2d(p, &node));
  QuantizedProductParams* params = p.make_params<QuantizedProductParams>();
  if (!params) return p.no_memory();
  params->geometry = node.geometry;
  params->channels = node.channels, params->groups = node.groups, params->group_inputs = node.group_inputs;
  const bool per_channel = p.input(1).quantization->scales.size() > 1;
  return finish_quantized(p, params, node.activation, per_channel);
}

inline Status prepare_quantized_fully_connected(Preparation& p) {
  FullyConnectedNode node;
  ONEWEIGHT_RETURN_IF_ERROR(read_fully_connected(p, &node));
  QuantizedProductParams* params = p.make_params<QuantizedProductParams>();
  if (!params) return p.no_memory();
  params->geometry.batch = node.rows, params->geometry.in_c = node.terms;
  params->channels = node.channels, params->groups = 1, params->group_inputs = node.terms;
  params->scaling.once = true;
  return finish_quantized(p, params, node.activation, p.options().get<bool>(3, false));
}

}  // namespace detail
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
