// TRANSPOSE_CONV on 8-bit weights: int8 and uint8 (integers from end to end), int16 activations, hybrid (float activations, quantised
// for each image while running). Shapes as in transpose_conv.h. One scale, or one for each channel of the filter.
// Integer answers are those of TFLite's reference kernels, bit by bit. The bias may be left out.
// Derived: 8 bytes an output channel. Scratch: the weights of some taps and channels (at most 256 KiB, or one channel's), their
// panels and a tile of activations; hybrid: one quantised image besides. Rows: N * H'.
#ifndef ONEWEIGHT_OPS_QUANTIZED_TRANSPOSE_CONV_H
#define ONEWEIGHT_OPS_QUANTIZED_TRANSPOSE_CONV_H

#include "oneweight/ops/quantized_weights.h"
#include "oneweight/ops/transpose_conv_node.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <class W, class A> struct TransposeConv;

struct QuantizedTransposeConvParams {
  TransposeConvGeometry geometry;
  uint8_t a_flip = 0, w_flip = 0;
  int32_t a_zero = 0;              // of a'
  QuantizedScaling scaling;
  const float* scales = nullptr;   // hybrid: of the channels
  FusedActivation activation;
  bool bias_is_wide = false;       // int16
  int64_t image_bytes() const { return geometry.in_h * geometry.in_w * geometry.in_c; }
};

namespace detail {
Status prepare_quantized_transpose_conv(Preparation& p);
inline bool takes_quantized_transpose(const NodeTypes& t, TensorType a, TensorType w, std::initializer_list<TensorType> biases) {
  bool bias_fits = t.input_count <= 3 || !t.has_input[3];
  for (TensorType b : biases) bias_fits |= t.in(3, b);
  return t.in(2, a) && t.in(1, w) && t.out(0, a) && bias_fits;
}
inline bool takes_int8_transpose(const NodeTypes& t) { return takes_quantized_transpose(t, TensorType::int8, TensorType::int8, {TensorType::int32}); }
inline bool takes_uint8_transpose(const NodeTypes& t) { return takes_quantized_transpose(t, TensorType::uint8, TensorType::uint8, {TensorType::int32}); }
inline bool takes_hybrid_transpose(const NodeTypes& t) { return takes_quantized_transpose(t, TensorType::float32, TensorType::int8, {TensorType::float32}); }
inline bool takes_int16_transpose(const NodeTypes& t) {
  return takes_quantized_transpose(t, TensorType::int16, TensorType::int8, {TensorType::int64, TensorType::int32});
}
constexpr OpRow transpose_conv_row(const char* types, bool (*accepts)(const NodeTypes&)) {
  return {.code = BuiltinOperator::transpose_conv, .types = types, .accepts = accepts, .prepare = &prepare_quantized_transpose_conv};
}
}  // namespace detail

template <> struct TransposeConv<int8_t, int8_t> { static constexpr OpRow row = detail::transpose_conv_row("int8", &detail::takes_int8_transpose); };
template <> struct TransposeConv<uint8_t, uint8_t> { static constexpr OpRow row = detail::transpose_conv_row("uint8", &detail::takes_uint8_transpose); };
template <> struct TransposeConv<int8_t, float> {
  static constexpr OpRow row = detail::transpose_conv_row("float, int8 weights", &detail::takes_hybrid_transpose);
};
template <> struct TransposeConv<int8_t, int16_t> {
  static constexpr OpRow row = detail::transpose_conv_row("int16, int8 weights", &detail::takes_int16_transpose);
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_QUANTIZED_TRANSPOSE_CONV_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_QUANTIZED_TRANSPOSE_CONV_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_QUANTIZED_TRANSPOSE_CONV_KERNELS
#undef ONEWEIGHT_OPS_QUANTIZED_TRANSPOSE_CONV_KERNELS
#else
#define ONEWEIGHT_OPS_QUANTIZED_TRANSPOSE_CONV_KERNELS
#endif

#include "oneweight/ops/byte_windows-inl.h"
#include "oneweight/simd/quantize-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

// An epilogue that puts rows where the pixels of a part lie. make(row 0 of some rows that follow one another).
template <class T, class Make>
struct PartStore {
  PartPixels<T> pixels;
  Make make;
  bool row_sums;
  bool needs_row_sums() const { return row_sums; }
  void store(const int32_t* sums, int64_t sums_stride, int rows, const int32_t* sums_of_rows, int64_t m, int64_t n, int64_t count) const {
    while (rows > 0) {
      const int some = static_cast<int>(std::min<int64_t>(rows, pixels.together(m)));
      make(pixels.at(m), pixels.stride).store(sums, sums_stride, some, sums_of_rows, 0, n, count);
      sums += some * sums_stride, sums_of_rows += some, m += some, rows -= some;
    }
  }
};
template <class T, class Make>
HWY_INLINE PartStore<T, Make> part_store(const PartPixels<T>& pixels, const Make& make, bool row_sums) {
  return {pixels, make, row_sums};
}

// Channels whose weights are copied together.
inline int64_t transpose_conv_block(const TransposeConvGeometry& g, const TransposePart& part) {
  const int64_t fits = (int64_t{256} << 10) / (part.terms() + 1);
  return std::clamp<int64_t>(fits >= 32 ? fits / 32 * 32 : fits, 1, g.channels);
}

// One part's product for channels [n, n + count), whose weights are in w.
template <class Epilogue>
void run_transpose_part(const ByteWindows& windows, const ByteWeights& w, int64_t begin, int64_t end, int64_t count, const int32_t* bias,
                        const Epilogue& store, std::byte* scratch) {
  if (w.terms > 0) return product_bytes(windows, windows.g.output_pixels(), begin, end, w, 0, count, bias, store, scratch);
  const int32_t nothing = 0;  // no tap comes here
  for (int64_t m = begin; m < end; ++m) store.store(bias, 0, 1, &nothing, m, 0, count);
}

template <class T>
void transpose_conv_bytes(const KernelArgs& args) {
  const QuantizedTransposeConvParams& p = args.params<QuantizedTransposeConvParams>();
  const TransposeConvGeometry& g = p.geometry;
  const std::byte* given = args.in<std::byte>(3);
  for_each_part(g, [&](const TransposePart& part) HWY_ATTR {
    const RowRange rows = part_rows(g, part, args.rows);
    if (rows.size() <= 0) return;
    const int64_t block = transpose_conv_block(g, part), terms = part.terms();
    ScratchParts parts{args.scratch};
    int32_t* const bias = parts.take<int32_t>(block + kChannelPad);
    uint8_t* const weights = parts.take<uint8_t>(block * terms);
    const ByteWindows windows{part.conv, args.in<uint8_t>(2), g.in_c, p.a_flip, static_cast<uint8_t>(p.a_zero), part.conv.is_pointwise()};
    for (int64_t n = 0; n < g.channels; n += block) {
      const int64_t count = std::min(block, g.channels - n);
      copy_part_weights(g, part, args.in<uint8_t>(1), n, count, weights);
      const ByteWeights w{weights, terms, 8, p.w_flip};
      weight_sums(w, count, bias);
      for (int64_t i = 0; i < count; ++i)
        bias[i] = folded_bias(given ? Preparation::load<int32_t>(given, n + i) : 0, bias[i], terms, p.a_zero, p.scaling.weight_zero);
      for (int64_t i = count; i < count + kChannelPad; ++i) bias[i] = 0;
      QuantizedScaling q = p.scaling;
      q.multiplier += n, q.shift += n;
      const auto make = [&q](T* out, int64_t stride) HWY_ATTR { return QuantizedStore<T>{q, out, stride}; };
      const auto store = part_store(PartPixels<T>(args.out<T>(0) + n, g, part), make, q.weight_zero != 0);
      run_transpose_part(windows, w, rows.begin * part.x.count, rows.end * part.x.count, count, bias, store, parts.next);
    }
  });
}

inline void transpose_conv_hybrid(const KernelArgs& args) {
  const QuantizedTransposeConvParams& p = args.params<QuantizedTransposeConvParams>();
  const TransposeConvGeometry& g = p.geometry;
  const int64_t size = p.image_bytes();
  ScratchParts image_parts{args.scratch};
  uint8_t* const image = image_parts.take<uint8_t>(size);
  const float* const given = args.in<float>(3);
  if (args.rows.size() <= 0) return;
  for (int64_t i = args.rows.begin / g.out_h; i <= (args.rows.end - 1) / g.out_h; ++i) {
    const RowRange image_rows{std::max(args.rows.begin, i * g.out_h), std::min(args.rows.end, (i + 1) * g.out_h)};
    const float* const in = args.in<float>(2) + i * size;
    const ByteScale found = find_byte_scale(in, size, false);
    quantize_bytes(in, size, found, image);
    const float scale = found.scale;
    const int32_t zero = found.zero;
    for_each_part(g, [&](const TransposePart& part) HWY_ATTR {
      const RowRange rows = part_rows(g, part, image_rows);
      if (rows.size() <= 0) return;
      const int64_t block = transpose_conv_block(g, part), terms = part.terms();
      ScratchParts parts = image_parts;
      int32_t* const nothing = parts.take<int32_t>(block + kChannelPad);
      int32_t* const sums = parts.take<int32_t>(block + kChannelPad);
      uint8_t* const weights = parts.take<uint8_t>(block * terms);
      std::memset(nothing, 0, static_cast<size_t>(block + kChannelPad) * 4);
      const ByteWindows windows{part.conv, image, g.in_c, 0, static_cast<uint8_t>(zero), false, i};
      for (int64_t n = 0; n < g.channels; n += block) {
        const int64_t count = std::min(block, g.channels - n);
        copy_part_weights(g, part, args.in<uint8_t>(1), n, count, weights);
        const ByteWeights w{weights, terms, 8, 0};
        weight_sums(w, count, sums);
        for (int64_t k = count; k < count + kChannelPad; ++k) sums[k] = 0;
        const auto make = [&](float* out, int64_t stride) HWY_ATTR {
          return FloatStore{&scale, &zero, int64_t{1} << 40, p.scales + n, sums, given ? given + n : nullptr, p.activation.low, p.activation.high, out, stride};
        };
        const auto store = part_store(PartPixels<float>(args.out<float>(0) + n, g, part), make, false);
        run_transpose_part(windows, w, rows.begin * part.x.count, rows.end * part.x.count, count, nothing, store, parts.next);
      }
    });
  }
}

// 16-bit activations: exact sums, in 64 bits or, with a 32-bit bias, in 32 bits that wrap.
inline void transpose_conv_wide(const KernelArgs& args) {
  const QuantizedTransposeConvParams& p = args.params<QuantizedTransposeConvParams>();
  const TransposeConvGeometry& g = p.geometry;
  const std::byte* bias = args.in<std::byte>(3);
  const int16_t* const in = args.in<int16_t>(2);
  for_each_part(g, [&](const TransposePart& part) HWY_ATTR {
    const RowRange rows = part_rows(g, part, args.rows);
    if (rows.size() <= 0) return;
    const ConvGeometry& c = part.conv;
    const int64_t block = transpose_conv_block(g, part), terms = part.terms();
    ScratchParts parts{args.scratch};
    int16_t* const patch = parts.take<int16_t>(terms);
    int8_t* const weights = parts.take<int8_t>(block * terms);
    const PartPixels<int16_t> pixels(args.out<int16_t>(0), g, part);
    for (int64_t n = 0; n < g.channels; n += block) {
      const int64_t count = std::min(block, g.channels - n);
      copy_part_weights(g, part, args.in<int8_t>(1), n, count, weights);
      for (int64_t m = rows.begin * c.out_w; m < rows.end * c.out_w; ++m) {
        const int64_t image = m / (c.out_h * c.out_w), y0 = m / c.out_w % c.out_h - c.pad_top, x0 = m % c.out_w - c.pad_left;
        const TapRange inside = taps_inside(x0, c.in_w, c.kernel_w, 1);
        std::memset(patch, 0, static_cast<size_t>(terms) * 2);
        for (int64_t ky = 0; ky < c.kernel_h; ++ky) {
          if (const int64_t y = y0 + ky; y >= 0 && y < c.in_h && inside.first < inside.last)
            std::memcpy(patch + (ky * c.kernel_w + inside.first) * c.in_c, in + ((image * c.in_h + y) * c.in_w + x0 + inside.first) * c.in_c,
                        static_cast<size_t>((inside.last - inside.first) * c.in_c) * 2);
        }
        int16_t* const to = pixels.at(m);
        for (int64_t i = n; i < n + count; ++i) {
          const int64_t sum = wide_dot(patch, weights + (i - n) * terms, terms);
          const FixedMultiplier f{p.scaling.multiplier[i], p.scaling.shift[i]};
          int64_t scaled;
          if (p.bias_is_wide) {
            scaled = multiply_by_quantized_multiplier(static_cast<int64_t>(static_cast<uint64_t>(sum) + (bias ? Preparation::load<uint64_t>(bias, i) : 0)), f);
          } else {
            const uint32_t wrapped = static_cast<uint32_t>(sum) + Preparation::load<uint32_t>(bias, i);
            scaled = multiply_by_quantized_multiplier(static_cast<int32_t>(wrapped), f);
          }
          to[i] = static_cast<int16_t>(std::clamp<int64_t>(scaled, p.scaling.low, p.scaling.high));
        }
      }
    }
  });
}

inline int64_t quantized_transpose_conv_scratch(const QuantizedTransposeConvParams& p, TensorType activations) {
  const TransposeConvGeometry& g = p.geometry;
  const int64_t parts = most_of_parts(g, [&](const TransposePart& part) {
    const int64_t block = transpose_conv_block(g, part), weights = block * part.terms();
    if (activations == TensorType::int16) return weights + part.terms() * 2;
    int64_t bytes = weights + 2 * (block + kChannelPad) * 4;
    if (part.terms() > 0) bytes += byte_product_scratch(part.conv.output_pixels(), block, window_layout(part.conv, g.in_c), 8);
    return bytes;
  });
  return parts + (activations == TensorType::float32 ? p.image_bytes() : 0) + 4 * 64;
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace detail {

inline Status prepare_quantized_transpose_conv(Preparation& p) {
  TransposeConvNode node;
  ONEWEIGHT_RETURN_IF_ERROR(read_transpose_conv(p, &node));
  QuantizedTransposeConvParams* params = p.make_params<QuantizedTransposeConvParams>();
  if (!params) return p.no_memory();
  const Operand &input = p.input(2), &filter = p.input(1), &output = p.output(0);
  const int64_t channels = node.geometry.channels;
  params->geometry = node.geometry;
  KernelFn kernel = nullptr;
  if (input.type == TensorType::float32) {
    ONEWEIGHT_RETURN_IF_ERROR(check_weight_scales(p, filter, channels, 0));
    if (filter.zero_point() != 0) return p.error(ErrorCode::unsupported, "%s has zero point %d", p.describe(filter).c_str(), filter.zero_point());
    ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, node.activation, &params->activation));
    float* scales = p.derived<float>(channels + kChannelPad);
    if (!scales) return p.no_memory();
    const std::vector<float>& given = filter.quantization->scales;
    for (int64_t n = 0; n < channels; ++n) scales[n] = given[given.size() > 1 ? static_cast<size_t>(n) : 0];
    params->scales = scales;
    kernel = ONEWEIGHT_KERNEL(p.target(), transpose_conv_hybrid);
  } else {
    ONEWEIGHT_RETURN_IF_ERROR(make_scaling(p, input, filter, output, channels, 0, node.activation, &params->scaling));
    if (input.type == TensorType::int16) {
      for (const Operand* t : {&input, &filter, &output})
        if (t->zero_point() != 0) return p.error(ErrorCode::unsupported, "%s has zero point %d", p.describe(*t).c_str(), t->zero_point());
      params->bias_is_wide = !p.has_input(3) || p.input(3).type == TensorType::int64;
      kernel = ONEWEIGHT_KERNEL(p.target(), transpose_conv_wide);
    } else {
      const bool is_signed = input.type == TensorType::int8;
      params->a_flip = is_signed ? 0x80 : 0, params->w_flip = is_signed ? 0 : 0x80;
      params->a_zero = input.zero_point() + (is_signed ? 128 : 0);
      params->scaling.weight_zero = filter.zero_point() - (is_signed ? 0 : 128);
      // Sums stay below 2^30 when the bias is known to be small.
      const TransposeConvGeometry& g = node.geometry;
      const int64_t terms = ((g.kernel_h - 1) / g.stride_h + 1) * ((g.kernel_w - 1) / g.stride_w + 1) * g.in_c;
      int64_t largest = 0;
      if (p.has_input(3)) {
        const std::byte* bias = p.input(3).data;
        if (!bias) largest = int64_t{1} << 31;
        for (int64_t n = 0; bias && n < channels; ++n) {
          const int64_t b = Preparation::load<int32_t>(bias, n);
          largest = std::max(largest, b < 0 ? -b : b);
        }
      }
      if (terms >= 8192 || largest + terms * 65536 >= (1 << 30)) params->scaling.narrow = false;
      kernel = is_signed ? ONEWEIGHT_KERNEL(p.target(), transpose_conv_bytes<int8_t>) : ONEWEIGHT_KERNEL(p.target(), transpose_conv_bytes<uint8_t>);
    }
  }
  p.set_scratch(ONEWEIGHT_KERNEL(p.target(), quantized_transpose_conv_scratch)(*params, input.type));
  // Hybrid: the scale of an image comes from all of it.
  p.set_kernel(kernel, node.geometry.rows(), input.type == TensorType::float32 ? nullptr : &input_rows_of<QuantizedTransposeConvParams>, node.input);
  p.set_work(kQuadWork * node.geometry.work(), kPackWork / 4 * node.geometry.weights());
  return {};
}

}  // namespace detail
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
