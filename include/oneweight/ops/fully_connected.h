// FULLY_CONNECTED: float with float weights, or with half weights that are widened in registers.
// Input of M * K elements; weights [N, K], constant or computed; bias N (optional); output [M, N], or the input's shape
// with N in the last place (keep_num_dims). Fused none, relu, relu6, relu_n1_to_1. Sums in float: one multiply-add after
// the other behind the bias, or, where M or N is small, in vector lanes that are added at the end (by the shapes alone).
// Scratch: a part of the weights, transposed (at most 256 KiB); with lanes, less than 1 KiB.
// Rows: M; with lanes, blocks of 64 output channels.
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
  int64_t block = 0;           // output channels of a unit of work; 0: a unit is a row
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

template <class W>
void fully_connected_float(const KernelArgs& args) {
  const FullyConnectedFloatParams& p = args.params<FullyConnectedFloatParams>();
  const DenseRows source{args.in<float>(0), p.terms, p.terms};
  const W* w = args.in<W>(1);
  const float* bias = args.in<float>(2);
  float* out = args.out<float>(0);
  if (p.block > 0) {
    const int64_t first = args.rows.begin * p.block, last = std::min(args.rows.end * p.block, p.channels);
    product_dots(source, 0, p.rows, w + first * p.terms, last - first, p.terms, out + first, p.channels,
                 make_epilogue(bias ? bias + first : nullptr, p.activation), args.scratch);
  } else if (prefers_broadcast(p.rows, p.channels, p.terms)) {
    product_broadcast(source, args.rows.begin, args.rows.end, w, p.channels, p.terms, out, p.channels, make_epilogue(bias, p.activation),
                      plan_broadcast(p.rows, p.terms), args.scratch);
  } else {
    product_panels(source, args.rows.begin, args.rows.end, w, p.channels, p.terms, out, p.channels,
                   make_epilogue(bias, p.activation), plan_panels(p.rows, p.channels, p.terms, false), args.scratch);
  }
}

inline int64_t fully_connected_float_block(const FullyConnectedFloatParams& p) {
  return !prefers_broadcast(p.rows, p.channels, p.terms) && prefers_dots(p.rows, p.channels, p.terms, p.terms) ? 64 : 0;
}
template <class W>
int64_t fully_connected_float_scratch(const FullyConnectedFloatParams& p) {
  if (p.block > 0) return dots_scratch_bytes(p.terms, p.terms, false);
  if (prefers_broadcast(p.rows, p.channels, p.terms)) return broadcast_scratch_bytes<W>(p.rows, p.terms, p.terms, false);
  return panels_scratch_bytes(plan_panels(p.rows, p.channels, p.terms, false), p.terms, false);
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
  params->block = ONEWEIGHT_KERNEL(p.target(), fully_connected_float_block)(*params);
  p.offer_activation(&params->activation);
  p.set_scratch(ONEWEIGHT_KERNEL(p.target(), fully_connected_float_scratch<W>)(*params));
  p.set_kernel(ONEWEIGHT_KERNEL(p.target(), fully_connected_float<W>),
               params->block > 0 ? (node.channels + params->block - 1) / params->block : node.rows);
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
