// What every CONV_2D and FULLY_CONNECTED checks and states, whatever its storage types.
#ifndef ONEWEIGHT_OPS_CONV_NODE_H
#define ONEWEIGHT_OPS_CONV_NODE_H

#include "oneweight/ops/conv_geometry.h"

namespace oneweight {
inline namespace v1 {

// A CONV_2D: input N,H,W,C; filter O,h,w,C / groups; output channel o belongs to group o / (channels / groups).
struct ConvNode {
  ConvGeometry geometry;
  int64_t channels = 1;        // of the output
  int64_t groups = 1;
  int64_t group_inputs = 1;    // input channels of one group
  Activation activation = Activation::none;

  // Length of the reduction: the weights of one output channel.
  int64_t terms() const { return geometry.kernel_h * geometry.kernel_w * group_inputs; }
};

// The bias of `channels` elements at input `i`, if it is there.
inline Status check_bias(const Preparation& p, int i, int64_t channels) {
  if (!p.has_input(i) || p.input(i).shape.elements() == channels) return {};
  return p.invalid("its bias %s must have %lld elements", p.describe(p.input(i)).c_str(), static_cast<long long>(channels));
}

// Checks the node, takes over a padding in front of it and states the output's shape.
inline Status read_conv_2d(Preparation& p, ConvNode* node) {
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
  window.dilation_w = o.get<int32_t>(4, 1), window.dilation_h = o.get<int32_t>(5, 1);
  node->activation = static_cast<Activation>(o.get<int8_t>(3, 0));
  const int64_t inputs = input.shape[3];
  node->channels = filter.shape[0];
  node->group_inputs = filter.shape[3];
  if (node->channels <= 0 || node->group_inputs <= 0 || inputs <= 0 || inputs % node->group_inputs != 0)
    return p.invalid("filter %s does not fit input %s", p.describe(filter).c_str(), p.describe(input).c_str());
  node->groups = inputs / node->group_inputs;
  if (node->channels % node->groups != 0)
    return p.invalid("%lld output channels cannot be divided into %lld groups", static_cast<long long>(node->channels),
                     static_cast<long long>(node->groups));
  ONEWEIGHT_RETURN_IF_ERROR(check_bias(p, 2, node->channels));
  ConvGeometry& g = node->geometry;
  ONEWEIGHT_RETURN_IF_ERROR(make_geometry(p, input, margins, filter.shape[1], filter.shape[2], window, &g));
  return p.set_output(0, {g.batch, g.out_h, g.out_w, node->channels});
}

// A FULLY_CONNECTED: `rows` vectors of `terms` elements, weights [channels, terms].
struct FullyConnectedNode {
  int64_t rows = 0;
  int64_t terms = 1;
  int64_t channels = 1;
  Activation activation = Activation::none;
};

// Checks the node and states the output's shape.
inline Status read_fully_connected(Preparation& p, FullyConnectedNode* node) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 3));
  const Operand &input = p.input(0), &weights = p.input(1);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(weights, 2, 2));
  const OptionsView& o = p.options();
  node->activation = static_cast<Activation>(o.get<int8_t>(0, 0));
  if (const int format = o.get<int8_t>(1, 0); format != 0)
    return p.error(ErrorCode::unsupported, "its weights have the shuffled format %d", format);
  const bool keep_rank = o.get<bool>(2, false);
  node->channels = weights.shape[0];
  node->terms = weights.shape[1];
  const int64_t elements = input.shape.elements();
  const int last = input.shape.rank() - 1;
  const bool empty = node->terms == 0 && last >= 0 && input.shape[last] == 0;  // sums of no terms
  if (node->channels <= 0 || elements < 0 || (!empty && (node->terms <= 0 || elements % node->terms != 0)))
    return p.invalid("weights %s do not fit input %s", p.describe(weights).c_str(), p.describe(input).c_str());
  node->rows = empty ? input.shape.elements(0, last) : elements / node->terms;
  ONEWEIGHT_RETURN_IF_ERROR(check_bias(p, 2, node->channels));
  Shape shape{node->rows, node->channels};
  if (keep_rank) {
    shape = input.shape;
    if (last < 0 || shape[last] != node->terms)
      return p.invalid("weights %s do not fit the last axis of %s", p.describe(weights).c_str(), p.describe(input).c_str());
    shape[last] = node->channels;
  }
  return p.set_output(0, shape);
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_CONV_NODE_H
