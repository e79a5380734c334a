// CONV_2D: float with float weights, or with half weights that are widened in registers.
// Input N,H,W,C; filter O,h,w,C/groups; bias O (optional); output N,H',W',O. SAME or VALID padding, strides, dilation,
// groups (input channels / filter channels), fused none, relu, relu6, relu_n1_to_1. Sums in float: one multiply-add
// after the other behind the bias, in the order (ky, kx, channel); or, where pixels or channels are few, in vector lanes
// that are added at the end. Which of the two depends on the shapes alone.
// Scratch: a part of the weights, transposed (at most 256 KiB; none with lanes), and gathered windows. Rows: N * H'.
// Without groups also blocks of output channels.
#ifndef ONEWEIGHT_OPS_CONV_2D_H
#define ONEWEIGHT_OPS_CONV_2D_H

#include "oneweight/ops/conv_node.h"
#include "oneweight/simd/product.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// W: storage of the weights, A: of the activations.
template <class W, class A> struct Conv2D;

struct ConvFloatParams {
  ConvGeometry geometry;
  int64_t channels, groups, group_inputs;
  FusedActivation activation;
};

template <class W>
struct Conv2D<W, float> {
  static bool accepts(const NodeTypes& t) {
    return t.in(0, TensorType::float32) && t.in(1, tensor_type_of<W>) && t.out(0, TensorType::float32) &&
           (!t.has_input[2] || t.in(2, TensorType::float32));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::conv_2d,
                                .types = sizeof(W) == 2 ? "float, half weights" : "float",
                                .accepts = &accepts,
                                .prepare = &prepare,
                                .stored_inputs = sizeof(W) == 2 ? 1u << 1 : 0u};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_CONV_2D_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_CONV_2D_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_CONV_2D_KERNELS
#undef ONEWEIGHT_OPS_CONV_2D_KERNELS
#else
#define ONEWEIGHT_OPS_CONV_2D_KERNELS
#endif

#include "oneweight/ops/window_rows-inl.h"
#include "oneweight/simd/product_broadcast-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

// How the product of one group is done.
struct ConvFloatMethod {
  int64_t channels, terms;   // of the group
  ProductForm form;
  bool dense;                // rows are read where they lie, pixel by pixel
  bool copies;               // rows are copied
  PanelPlan panel_plan;
  BroadcastPlan broadcast_plan;
  int64_t segment_length;
};
inline ConvFloatMethod conv_2d_float_method(const ConvFloatParams& p) {
  const ConvGeometry& g = p.geometry;
  const int64_t channels = p.channels / p.groups, terms = g.kernel_h * g.kernel_w * p.group_inputs;
  const int64_t segment = g.is_pointwise() ? terms : WindowRows(g, nullptr, 0, p.group_inputs).segment_length();
  const int64_t pixels = g.output_pixels();
  const ProductForm form = product_form(pixels, channels, terms, segment);
  const bool collide = form == ProductForm::panels && rows_collide(g.stride_w * g.in_c);
  const bool dense = g.is_pointwise() && !collide, copies = collide || (form == ProductForm::broadcast && !dense);
  return {channels, terms, form, dense, copies, plan_panels(pixels, channels, terms, !dense), plan_broadcast(pixels, terms), segment};
}

template <class W>
void conv_2d_float(const KernelArgs& args) {
  const ConvFloatParams& p = args.params<ConvFloatParams>();
  const ConvGeometry& g = p.geometry;
  const ConvFloatMethod method = conv_2d_float_method(p);
  const int64_t begin = args.rows.begin * g.out_w, end = args.rows.end * g.out_w;
  const RowRange part = p.groups == 1 ? args.channels(p.channels) : RowRange{0, method.channels};
  const int64_t channels = part.end - part.begin, terms = method.terms;
  for (int64_t group = 0; group < p.groups; ++group) {
    const int64_t first = group * channels + part.begin;
    const float* bias = args.in<float>(2);
    const Epilogue e = make_epilogue(bias ? bias + first : nullptr, p.activation);
    const W* w = args.in<W>(1) + first * terms;
    float* out = args.out<float>(0) + first;
    const auto run = [&](const auto& source) HWY_ATTR {
      switch (method.form) {
        case ProductForm::dots: return product_dots(source, begin, end, w, channels, terms, out, p.channels, e, args.scratch);
        case ProductForm::panels:
          return product_panels(source, begin, end, w, channels, terms, out, p.channels, e, method.panel_plan, args.scratch);
        case ProductForm::broadcast:
          return product_broadcast(source, begin, end, w, channels, terms, out, p.channels, e, method.broadcast_plan, args.scratch);
      }
    };
    const float* in = args.in<float>(0);
    if (method.dense) run(DenseRows{in + group * p.group_inputs, g.in_c, terms});
    else run(WindowRows(g, in, group * p.group_inputs, p.group_inputs, method.copies));
  }
}

template <class W>
int64_t conv_2d_float_scratch(const ConvFloatParams& p) {
  const ConvFloatMethod m = conv_2d_float_method(p);
  switch (m.form) {
    case ProductForm::dots: return dots_scratch_bytes(m.terms, m.segment_length, !m.dense);
    case ProductForm::panels: return panels_scratch_bytes(m.panel_plan, m.segment_length, !m.dense);
    case ProductForm::broadcast: return broadcast_scratch_bytes<W>(p.geometry.output_pixels(), m.terms, m.segment_length, !m.dense);
  }
  return 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <class W>
Status Conv2D<W, float>::prepare(Preparation& p) {
  ConvNode node;
  ONEWEIGHT_RETURN_IF_ERROR(read_conv_2d(p, &node));
  ConvFloatParams* params = p.make_params<ConvFloatParams>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, node.activation, &params->activation));
  params->geometry = node.geometry;
  params->channels = node.channels, params->groups = node.groups, params->group_inputs = node.group_inputs;
  p.offer_activation(&params->activation);
  p.set_scratch(ONEWEIGHT_KERNEL(p.target(), conv_2d_float_scratch<W>)(*params));
  p.set_kernel(ONEWEIGHT_KERNEL(p.target(), conv_2d_float<W>), node.geometry.rows(), &input_rows_of<ConvFloatParams>);
  const auto weights = static_cast<double>(p.input(1).shape.elements());
  const auto pixels = static_cast<double>(node.geometry.output_pixels());
  p.set_work(product_work(pixels, weights, sizeof(W)), kPackWork * weights);
  if (node.groups == 1) p.set_channel_blocks(node.channels, kGatherWork * pixels * weights / static_cast<double>(node.channels));
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
