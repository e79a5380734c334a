// What every TRANSPOSE_CONV checks and states, and how it becomes convolutions: output pixels whose rows leave the same rest
// divided by the stride, and so their columns, are reached by the same taps from neighbouring input pixels.
#ifndef ONEWEIGHT_OPS_TRANSPOSE_CONV_NODE_H
#define ONEWEIGHT_OPS_TRANSPOSE_CONV_NODE_H

#include <algorithm>

#include "oneweight/ops/conv_node.h"

namespace oneweight {
inline namespace v1 {

// Input pixel (y, x) adds tap (ky, kx) of the filter to output pixel (y * stride_h - pad_top + ky, x * stride_w - pad_left + kx).
struct TransposeConvGeometry {
  int64_t batch = 1;
  int64_t in_h = 1, in_w = 1, in_c = 1;
  int64_t out_h = 1, out_w = 1, channels = 1;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0;

  int64_t rows() const { return batch * out_h; }
  int64_t filter_terms() const { return kernel_h * kernel_w * in_c; }  // weights of an output channel
  double weights() const { return static_cast<double>(filter_terms()) * channels; }
  double work() const { return weights() * batch * in_h * in_w; }
  int64_t phases_h() const { return std::min(stride_h, out_h); }
  int64_t phases_w() const { return std::min(stride_w, out_w); }
};

// Rows batch * in_h + y of the input that reach the output rows batch * out_h + y.
inline RowRange input_rows(const TransposeConvGeometry& g, RowRange rows) {
  if (rows.size() <= 0 || g.out_h <= 0 || g.in_h <= 0) return {};
  const int64_t first = rows.begin, last = rows.end - 1;
  const int64_t before = first % g.out_h + g.pad_top - g.kernel_h + g.stride_h;  // of the first tap, and as many more as round up
  const int64_t top = before > 0 ? before / g.stride_h : 0, bottom = (last % g.out_h + g.pad_top) / g.stride_h + 1;
  const RowRange need{first / g.out_h * g.in_h + std::min(top, g.in_h), last / g.out_h * g.in_h + std::min(bottom, g.in_h)};
  return need.begin < need.end ? need : RowRange{};
}

// Outputs first, first + stride, ... along one axis as a convolution with stride 1: number i reads inputs i - pad + j for j in
// [0, taps), with tap last - j * stride of the filter.
struct TransposePhase {
  int64_t first, count, taps, last, pad;
};
inline TransposePhase transpose_phase(int64_t first, int64_t out, int64_t kernel, int64_t stride, int64_t pad) {
  const int64_t rest = (first + pad) % stride, taps = rest < kernel ? (kernel - rest + stride - 1) / stride : 0;
  return {first, (out - first + stride - 1) / stride, taps, rest + (taps - 1) * stride, taps - 1 - (first + pad) / stride};
}
// Of outputs [0, end), how many belong to the phase.
inline int64_t phase_outputs_before(const TransposePhase& p, int64_t stride, int64_t end) {
  return end <= p.first ? 0 : (end - p.first + stride - 1) / stride;
}

// A phase along both axes.
struct TransposePart {
  TransposePhase y, x;
  ConvGeometry conv;
  int64_t terms() const { return conv.kernel_h * conv.kernel_w * conv.in_c; }
};
inline TransposePart transpose_part(const TransposeConvGeometry& g, int64_t first_y, int64_t first_x) {
  TransposePart part{transpose_phase(first_y, g.out_h, g.kernel_h, g.stride_h, g.pad_top),
                     transpose_phase(first_x, g.out_w, g.kernel_w, g.stride_w, g.pad_left), {}};
  ConvGeometry& c = part.conv;
  c.batch = g.batch, c.in_h = g.in_h, c.in_w = g.in_w, c.in_c = g.in_c;
  c.out_h = part.y.count, c.out_w = part.x.count;
  c.kernel_h = part.y.taps, c.kernel_w = part.x.taps;
  c.pad_top = part.y.pad, c.pad_left = part.x.pad;
  return part;
}
// The rows of the part (batch * its out_h + y) among these rows of the output.
inline RowRange part_rows(const TransposeConvGeometry& g, const TransposePart& part, RowRange rows) {
  const auto before = [&](int64_t row) { return row / g.out_h * part.y.count + phase_outputs_before(part.y, g.stride_h, row % g.out_h); };
  return {before(rows.begin), before(rows.end)};
}

// Element of the filter, in channel 0, where the weights of tap (y, x) of the part's convolution begin.
inline int64_t part_tap(const TransposeConvGeometry& g, const TransposePart& part, int64_t y, int64_t x) {
  return ((part.y.last - y * g.stride_h) * g.kernel_w + part.x.last - x * g.stride_w) * g.in_c;
}
// The part's weights of channels [n, n + count), one channel after another.
template <class W>
void copy_part_weights(const TransposeConvGeometry& g, const TransposePart& part, const W* filter, int64_t n, int64_t count, W* to) {
  for (int64_t i = n; i < n + count; ++i)
    for (int64_t y = 0; y < part.y.taps; ++y)
      for (int64_t x = 0; x < part.x.taps; ++x, to += g.in_c)
        std::memcpy(to, filter + i * g.filter_terms() + part_tap(g, part, y, x), static_cast<size_t>(g.in_c) * sizeof(W));
}

// Calls body(part) for every part.
template <class Body>
void for_each_part(const TransposeConvGeometry& g, const Body& body) {
  for (int64_t y = 0; y < g.phases_h(); ++y)
    for (int64_t x = 0; x < g.phases_w(); ++x) body(transpose_part(g, y, x));
}
// The most of bytes_of(part): of all parts, of which there are few kinds.
template <class BytesOf>
int64_t most_of_parts(const TransposeConvGeometry& g, const BytesOf& bytes_of) {
  const auto firsts = [](int64_t phases, int64_t out, int64_t kernel, int64_t stride, int64_t pad, int64_t* kinds) {
    int n = 0;
    for (int64_t i = 0; i < phases && n < 8; ++i) {
      const TransposePhase p = transpose_phase(i, out, kernel, stride, pad);
      bool fresh = true;
      for (int k = 0; k < n && fresh; ++k) {
        const TransposePhase q = transpose_phase(kinds[k], out, kernel, stride, pad);
        fresh = q.taps != p.taps || q.count != p.count || q.pad != p.pad;
      }
      if (fresh) kinds[n++] = i;
    }
    return n;
  };
  int64_t ys[8], xs[8], most = 0;
  const int ny = firsts(g.phases_h(), g.out_h, g.kernel_h, g.stride_h, g.pad_top, ys);
  const int nx = firsts(g.phases_w(), g.out_w, g.kernel_w, g.stride_w, g.pad_left, xs);
  for (int i = 0; i < ny; ++i)
    for (int k = 0; k < nx; ++k) most = std::max<int64_t>(most, bytes_of(transpose_part(g, ys[i], xs[k])));
  return most;
}

// Where a part's pixels lie in the output (T: its elements). A Place of product_panels.
template <class T>
struct PartPixels {
  T* out;                      // of channel 0, or of the first of some
  const TransposeConvGeometry& g;
  const TransposePart& part;
  int64_t stride;              // of pixels that follow one another in a row

  PartPixels(T* to, const TransposeConvGeometry& geometry, const TransposePart& p)
      : out(to), g(geometry), part(p), stride(geometry.stride_w * geometry.channels) {}
  T* at(int64_t m) const {
    const int64_t row = m / part.x.count, x = part.x.first + m % part.x.count * g.stride_w;
    const int64_t y = row / part.y.count * g.out_h + part.y.first + row % part.y.count * g.stride_h;
    return out + (y * g.out_w + x) * g.channels;
  }
  int64_t together(int64_t m) const { return part.x.count - m % part.x.count; }
};

// A TRANSPOSE_CONV, and which of its inputs is which.
struct TransposeConvNode {
  TransposeConvGeometry geometry;
  int input = 2, filter = 1, bias = 3;
  Activation activation = Activation::none;
};

// Checks what both forms of the operator have in common; the shape of the output is known. `same`: padding SAME.
inline Status finish_transpose_conv(Preparation& p, bool same, const Shape& out, TransposeConvNode* node) {
  const Operand &input = p.input(node->input), &filter = p.input(node->filter);
  TransposeConvGeometry& g = node->geometry;
  g.batch = out[0], g.out_h = out[1], g.out_w = out[2], g.channels = out[3];
  g.in_h = input.shape[1], g.in_w = input.shape[2], g.in_c = input.shape[3];
  if (g.batch != input.shape[0] || g.channels != filter.shape[0])
    return p.invalid("output %s does not fit input %s and filter %s", out.to_string().c_str(), p.describe(input).c_str(), p.describe(filter).c_str());
  ONEWEIGHT_RETURN_IF_ERROR(check_bias(p, node->bias, g.channels));
  const auto pad = [same](int64_t extent, int64_t kernel, int64_t stride) {
    const int64_t steps = (extent + stride - 1) / stride;
    return same && steps > 0 ? std::max<int64_t>((steps - 1) * stride + kernel - extent, 0) / 2 : 0;
  };
  g.pad_top = pad(g.out_h, g.kernel_h, g.stride_h), g.pad_left = pad(g.out_w, g.kernel_w, g.stride_w);
  return p.set_output(0, out);
}
// Ranks, filter and strides.
inline Status check_transpose_conv(const Preparation& p, int64_t stride_h, int64_t stride_w, TransposeConvNode* node) {
  const Operand &input = p.input(node->input), &filter = p.input(node->filter);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(input, 4, 4));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(filter, 4, 4));
  TransposeConvGeometry& g = node->geometry;
  constexpr int64_t kMax = int64_t{1} << 31;
  if (stride_h <= 0 || stride_w <= 0 || stride_h >= kMax || stride_w >= kMax)
    return p.invalid("strides %lld x %lld are not valid", static_cast<long long>(stride_h), static_cast<long long>(stride_w));
  g.stride_h = stride_h, g.stride_w = stride_w;
  g.kernel_h = filter.shape[1], g.kernel_w = filter.shape[2];
  if (g.kernel_h <= 0 || g.kernel_w <= 0 || filter.shape[0] <= 0 || filter.shape[3] <= 0 || filter.shape[3] != input.shape[3] ||
      g.kernel_h >= kMax || g.kernel_w >= kMax)
    return p.invalid("filter %s does not fit input %s", p.describe(filter).c_str(), p.describe(input).c_str());
  return {};
}

// TRANSPOSE_CONV: output shape, filter, input, bias.
inline Status read_transpose_conv(Preparation& p, TransposeConvNode* node) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(3, 4));
  const OptionsView& o = p.options();
  node->activation = static_cast<Activation>(o.get<int8_t>(3, 0));
  ONEWEIGHT_RETURN_IF_ERROR(check_transpose_conv(p, o.get<int32_t>(2, 0), o.get<int32_t>(1, 0), node));
  const int padding = o.get<int8_t>(0, 0);
  if (padding != 0 && padding != 1) return p.invalid("padding %d is neither SAME (0) nor VALID (1)", padding);
  std::vector<int64_t> extents;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(0, &extents));
  if (extents.size() != 4) return p.invalid("its output shape has %zu extents, not 4", extents.size());
  Shape out;
  for (int64_t extent : extents) {
    if (extent < 0 || extent >= int64_t{1} << 31) return p.invalid("extent %lld of its output shape is not valid", static_cast<long long>(extent));
    out.push_back(extent);
  }
  return finish_transpose_conv(p, padding == 0, out, node);
}

// The custom operator Convolution2DTransposeBias: input, filter, bias; options of three int32: padding (1 SAME, 2 VALID), stride
// of columns, stride of rows.
inline Status read_transpose_bias(Preparation& p, TransposeConvNode* node) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 3));
  node->input = 0, node->filter = 1, node->bias = 2;
  const std::vector<std::byte>& bytes = p.op().custom_options;
  if (bytes.size() < 12) return p.invalid("has %zu bytes of options, not 12", bytes.size());
  const int padding = Preparation::load<int32_t>(bytes.data(), 0);
  if (padding != 1 && padding != 2) return p.invalid("padding %d is neither SAME (1) nor VALID (2)", padding);
  ONEWEIGHT_RETURN_IF_ERROR(check_transpose_conv(p, Preparation::load<int32_t>(bytes.data(), 2), Preparation::load<int32_t>(bytes.data(), 1), node));
  const TransposeConvGeometry& g = node->geometry;
  const Shape& in = p.input(0).shape;
  if (in[1] >= int64_t{1} << 31 || in[2] >= int64_t{1} << 31) return p.invalid("%s is too large", p.describe(p.input(0)).c_str());
  const auto extent = [padding](int64_t n, int64_t kernel, int64_t stride) {
    return n <= 0 ? 0 : padding == 1 ? n * stride : (n - 1) * stride + kernel;
  };
  const int64_t out_h = extent(in[1], g.kernel_h, g.stride_h), out_w = extent(in[2], g.kernel_w, g.stride_w);
  if (out_h >= int64_t{1} << 31 || out_w >= int64_t{1} << 31) return p.invalid("its output would be %lld x %lld", static_cast<long long>(out_h), static_cast<long long>(out_w));
  return finish_transpose_conv(p, padding == 1, {in[0], out_h, out_w, p.input(1).shape[0]}, node);
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_TRANSPOSE_CONV_NODE_H
