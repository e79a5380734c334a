// TRANSPOSE_CONV, and MediaPipe's custom operator Convolution2DTransposeBias: float with float weights, or with half weights that
// are widened in registers.
// Input N,H,W,C; filter O,h,w,C; bias O (optional); output N,H',W',O: a constant, or (custom) what SAME or VALID makes of the input.
// SAME or VALID padding, strides, fused none, relu, relu6, relu_n1_to_1. Every output pixel gathers the taps that reach it,
// in one sequence of multiply-adds behind the bias; or, where channels are few, in vector lanes that are added at the end.
// Scratch: a part of the weights, transposed (at most 256 KiB; with lanes, copied), and gathered windows. Rows: N * H'.
#ifndef ONEWEIGHT_OPS_TRANSPOSE_CONV_H
#define ONEWEIGHT_OPS_TRANSPOSE_CONV_H

#include "oneweight/ops/transpose_conv_node.h"
#include "oneweight/simd/product.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// W: storage of the weights, A: of the activations.
template <class W, class A> struct TransposeConv;

struct TransposeConvFloatParams {
  TransposeConvGeometry geometry;
  int input, filter, bias;
  FusedActivation activation;
};

namespace detail {
// Types of a node whose input, filter and bias have these numbers.
template <class W>
bool takes_transpose_conv(const NodeTypes& t, int input, int filter, int bias) {
  return t.in(input, TensorType::float32) && t.in(filter, tensor_type_of<W>) && t.out(0, TensorType::float32) &&
         (t.input_count <= bias || !t.has_input[bias] || t.in(bias, TensorType::float32));
}
}  // namespace detail

template <class W>
struct TransposeConv<W, float> {
  static bool accepts(const NodeTypes& t) { return detail::takes_transpose_conv<W>(t, 2, 1, 3); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::transpose_conv,
                                .types = sizeof(W) == 2 ? "float, half weights" : "float",
                                .accepts = &accepts,
                                .prepare = &prepare,
                                .stored_inputs = sizeof(W) == 2 ? 1u << 1 : 0u};
};

template <class W>
struct Convolution2DTransposeBias {
  static bool accepts(const NodeTypes& t) { return detail::takes_transpose_conv<W>(t, 0, 1, 2); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::custom,
                                .custom_code = "Convolution2DTransposeBias",
                                .types = sizeof(W) == 2 ? "float, half weights" : "float",
                                .accepts = &accepts,
                                .prepare = &prepare,
                                .stored_inputs = sizeof(W) == 2 ? 1u << 1 : 0u};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_TRANSPOSE_CONV_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_TRANSPOSE_CONV_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_TRANSPOSE_CONV_KERNELS
#undef ONEWEIGHT_OPS_TRANSPOSE_CONV_KERNELS
#else
#define ONEWEIGHT_OPS_TRANSPOSE_CONV_KERNELS
#endif

#include "oneweight/ops/window_rows-inl.h"
#include "oneweight/simd/product_float-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

// The weights of a part, for panels.
template <class W>
struct PartWeights {
  const TransposeConvGeometry& g;
  const TransposePart& part;
  const W* filter;
  void pack(int64_t n, int64_t left, int64_t k0, int64_t count, const PanelShape& shape, float* panel) const {
    for (int64_t k = k0; k < k0 + count;) {
      const int64_t tap = k / g.in_c, input = k % g.in_c, some = std::min(g.in_c - input, k0 + count - k);
      const W* from = filter + part_tap(g, part, tap / part.x.taps, tap % part.x.taps) + input;
      ChannelWeights<W>{from, g.filter_terms()}.pack(n, left, 0, some, shape, panel);
      panel += some * shape.width();
      k += some;
    }
  }
};

// How the product of one part is done.
struct TransposeConvMethod {
  int64_t terms, segment_length;
  bool dots;
  int64_t block;             // dots: channels whose weights are copied together
  PanelPlan panels;
};
inline TransposeConvMethod transpose_conv_method(const TransposeConvGeometry& g, const TransposePart& part, int64_t weight_bytes) {
  TransposeConvMethod m{};
  const int64_t pixels = part.conv.output_pixels();
  m.terms = part.terms();
  m.segment_length = part.conv.is_pointwise() ? m.terms : WindowRows(part.conv, nullptr, 0, g.in_c).segment_length();
  m.dots = g.channels <= static_cast<int64_t>(kMaxFloatLanes) && prefers_dots(pixels, g.channels, m.terms, std::max<int64_t>(m.segment_length, 1));
  m.block = std::clamp<int64_t>(kCacheBytes / weight_bytes / (m.terms + 1), 1, g.channels);
  m.panels = plan_panels(pixels, g.channels, m.terms, true);
  return m;
}

template <class W>
void transpose_conv_float(const KernelArgs& args) {
  const TransposeConvFloatParams& p = args.params<TransposeConvFloatParams>();
  const TransposeConvGeometry& g = p.geometry;
  const float* const in = args.in<float>(p.input);
  const W* const filter = args.in<W>(p.filter);
  const Epilogue e = make_epilogue(args.in<float>(p.bias), p.activation);
  for_each_part(g, [&](const TransposePart& part) HWY_ATTR {
    const RowRange rows = part_rows(g, part, args.rows);
    const int64_t begin = rows.begin * part.x.count, end = rows.end * part.x.count;
    if (begin >= end) return;
    const PartPixels<float> pixels(args.out<float>(0), g, part);
    if (part.terms() == 0) {  // no tap comes here
      for (int64_t m = begin; m < end; ++m) {
        std::memset(pixels.at(m), 0, static_cast<size_t>(g.channels) * sizeof(float));
        finish_row(pixels.at(m), g.channels, e.bias, e);
      }
      return;
    }
    const TransposeConvMethod method = transpose_conv_method(g, part, sizeof(W));
    const auto run = [&](const auto& source) HWY_ATTR {
      if (!method.dots)
        return product_panels(source, begin, end, PartWeights<W>{g, part, filter}, g.channels, method.terms, pixels, e, method.panels, args.scratch);
      W* const weights = reinterpret_cast<W*>(args.scratch);
      std::byte* const rest = args.scratch + (method.block * method.terms * static_cast<int64_t>(sizeof(W)) + 63) / 64 * 64;
      for (int64_t n = 0; n < g.channels; n += method.block) {
        const int64_t count = std::min(method.block, g.channels - n);
        copy_part_weights(g, part, filter, n, count, weights);
        Epilogue some = e;
        if (e.bias) some.bias += n;
        product_dots(source, begin, end, weights, count, method.terms, PartPixels<float>(args.out<float>(0) + n, g, part), some, rest);
      }
    };
    if (part.conv.is_pointwise()) run(DenseRows{in, g.in_c, g.in_c});
    else run(WindowRows(part.conv, in, 0, g.in_c));
  });
}

template <class W>
int64_t transpose_conv_float_scratch(const TransposeConvGeometry& g) {
  return most_of_parts(g, [&](const TransposePart& part) {
    const TransposeConvMethod m = transpose_conv_method(g, part, sizeof(W));
    if (!m.dots) return panels_scratch_bytes(m.panels, m.segment_length, true);
    return m.block * m.terms * static_cast<int64_t>(sizeof(W)) + 64 + dots_scratch_bytes(m.terms, m.segment_length, true);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

namespace detail {
template <class W>
Status prepare_transpose_conv_float(Preparation& p, const TransposeConvNode& node) {
  TransposeConvFloatParams* params = p.make_params<TransposeConvFloatParams>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, node.activation, &params->activation));
  params->geometry = node.geometry;
  params->input = node.input, params->filter = node.filter, params->bias = node.bias;
  p.offer_activation(&params->activation);
  p.set_scratch(ONEWEIGHT_KERNEL(p.target(), transpose_conv_float_scratch<W>)(node.geometry));
  p.set_kernel(ONEWEIGHT_KERNEL(p.target(), transpose_conv_float<W>), node.geometry.rows(), &input_rows_of<TransposeConvFloatParams>, node.input);
  p.set_work(node.geometry.work(), kPackWork * node.geometry.weights());
  return {};
}
}  // namespace detail

template <class W>
Status TransposeConv<W, float>::prepare(Preparation& p) {
  TransposeConvNode node;
  ONEWEIGHT_RETURN_IF_ERROR(read_transpose_conv(p, &node));
  return detail::prepare_transpose_conv_float<W>(p, node);
}
template <class W>
Status Convolution2DTransposeBias<W>::prepare(Preparation& p) {
  TransposeConvNode node;
  ONEWEIGHT_RETURN_IF_ERROR(read_transpose_bias(p, &node));
  return detail::prepare_transpose_conv_float<W>(p, node);
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
