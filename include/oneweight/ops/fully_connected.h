// FULLY_CONNECTED: float with float weights, or with half weights that are widened in registers.
// Input of M * K elements; weights [N, K], constant or computed; bias N (optional); output [M, N], or the input's shape
// with N in the last place (keep_num_dims). Fused none, relu, relu6, relu_n1_to_1. Sums in float: one multiply-add after
// the other behind the bias, or, where M or N is small, in vector lanes that are added at the end (by the shapes alone).
// Scratch: a part of the weights, transposed (at most 256 KiB); with lanes, less than 1 KiB.
// Rows: M. Blocks of output channels.
#ifndef ONEWEIGHT_OPS_FULLY_CONNECTED_H
#define ONEWEIGHT_OPS_FULLY_CONNECTED_H

#include "oneweight/ops/conv_node.h"
#include "oneweight/simd/product.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// W: storage of the weights, A: of the activations.
template <class W, class A> struct FullyConnected;

struct FullyConnectedFloatParams {
  int64_t rows, terms, channels;
  FusedActivation activation;
};

template <class W>
struct FullyConnected<W, float> {
  static bool accepts(const NodeTypes& t) {
    return t.in(0, TensorType::float32) && t.in(1, tensor_type_of<W>) && t.out(0, TensorType::float32) &&
           (!t.has_input[2] || t.in(2, TensorType::float32));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::fully_connected,
                                .types = sizeof(W) == 2 ? "float, half weights" : "float",
                                .accepts = &accepts,
                                .prepare = &prepare,
                                .stored_inputs = sizeof(W) == 2 ? 1u << 1 : 0u};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_FULLY_CONNECTED_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_FULLY_CONNECTED_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_FULLY_CONNECTED_KERNELS
#undef ONEWEIGHT_OPS_FULLY_CONNECTED_KERNELS
#else
#define ONEWEIGHT_OPS_FULLY_CONNECTED_KERNELS
#endif

#include "oneweight/simd/product_broadcast-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

inline ProductForm fully_connected_float_form(const FullyConnectedFloatParams& p) {
  return product_form(p.rows, p.channels, p.terms, p.terms);
}

template <class W>
void fully_connected_float(const KernelArgs& args) {
  const FullyConnectedFloatParams& p = args.params<FullyConnectedFloatParams>();
  const DenseRows source{args.in<float>(0), p.terms, p.terms};
  const auto [first, last] = args.channels(p.channels);
  const W* w = args.in<W>(1) + first * p.terms;
  const float* bias = args.in<float>(2);
  const Epilogue e = make_epilogue(bias ? bias + first : nullptr, p.activation);
  float* out = args.out<float>(0) + first;
  const int64_t begin = args.rows.begin, end = args.rows.end, count = last - first;
  switch (fully_connected_float_form(p)) {
    case ProductForm::dots: return product_dots(source, begin, end, w, count, p.terms, out, p.channels, e, args.scratch);
    case ProductForm::broadcast:
      return product_broadcast(source, begin, end, w, count, p.terms, out, p.channels, e, plan_broadcast(p.rows, p.terms), args.scratch);
    case ProductForm::panels:
      return product_panels(source, begin, end, w, count, p.terms, out, p.channels, e,
                            plan_panels(p.rows, p.channels, p.terms, false), args.scratch);
  }
}

template <class W>
int64_t fully_connected_float_scratch(const FullyConnectedFloatParams& p) {
  switch (fully_connected_float_form(p)) {
    case ProductForm::dots: return dots_scratch_bytes(p.terms, p.terms, false);
    case ProductForm::broadcast: return broadcast_scratch_bytes<W>(p.rows, p.terms, p.terms, false);
    case ProductForm::panels: return panels_scratch_bytes(plan_panels(p.rows, p.channels, p.terms, false), p.terms, false);
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
Status FullyConnected<W, float>::prepare(Preparation& p) {
  FullyConnectedNode node;
  ONEWEIGHT_RETURN_IF_ERROR(read_fully_connected(p, &node));
  FullyConnectedFloatParams* params = p.make_params<FullyConnectedFloatParams>();
  if (!params) return p.no_memory();
  ONEWEIGHT_RETURN_IF_ERROR(activation_bounds(p, node.activation, &params->activation));
  params->rows = node.rows, params->terms = node.terms, params->channels = node.channels;
  p.offer_activation(&params->activation);
  p.set_scratch(ONEWEIGHT_KERNEL(p.target(), fully_connected_float_scratch<W>)(*params));
  p.set_kernel(ONEWEIGHT_KERNEL(p.target(), fully_connected_float<W>), node.rows);
  const double weights = static_cast<double>(node.channels) * node.terms;
  p.set_work(product_work(static_cast<double>(node.rows), weights, sizeof(W)), kPackWork * weights);
  p.set_channel_blocks(node.channels, 0);
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
