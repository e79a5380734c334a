// LSTM, the full kernel: one step of an LSTM (lstm_node.h) on [batch, input]. Types, optional inputs, states, scratch and rows
// as UNIDIRECTIONAL_SEQUENCE_LSTM. The BASIC kernel (5 inputs, float): weights of all gates in one matrix [4 cells, input + cells]
// that meets x and the previous output behind one another, gates in the order input, new value, forget, output; the state comes
// in as an input and goes out as output 1. Outputs 2 (x and previous output) and 3 (sums of the gates) are computed, too.
#ifndef ONEWEIGHT_OPS_LSTM_H
#define ONEWEIGHT_OPS_LSTM_H

#include "oneweight/ops/lstm_node.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// W: storage of the weights, A: of the activations.
template <class W, class A>
struct Lstm {
  static bool accepts(const NodeTypes& t) { return t.input_count != 5 && takes_lstm(t, tensor_type_of<W>, tensor_type_of<A>); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::lstm,
                                .types = sizeof(A) == 1   ? "int8"
                                         : sizeof(W) == 2 ? "float, half weights"
                                         : sizeof(W) == 1 ? "float, int8 weights" : "float",
                                .accepts = &accepts,
                                .prepare = &prepare,
                                .stored_inputs = sizeof(W) == 2 ? kLstmWeightInputs : 0u};
};

struct BasicLstmParams {
  int64_t input = 0, cell = 0;
};

template <class W>
struct BasicLstm {
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 5 && t.in(0, TensorType::float32) && t.in(2, tensor_type_of<W>) && t.out(0, TensorType::float32);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::lstm,
                                .types = sizeof(W) == 2 ? "float, half weights (basic kernel)" : "float (basic kernel)",
                                .accepts = &accepts,
                                .prepare = &prepare,
                                .stored_inputs = sizeof(W) == 2 ? 1u << 2 : 0u};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_LSTM_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_LSTM_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_LSTM_KERNELS
#undef ONEWEIGHT_OPS_LSTM_KERNELS
#else
#define ONEWEIGHT_OPS_LSTM_KERNELS
#endif

#include "oneweight/ops/lstm_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class W>
void basic_lstm_kernel(const KernelArgs& args) {
  const auto& p = args.params<BasicLstmParams>();
  const int64_t joined = p.input + p.cell, batch = args.rows.size(), first = args.rows.begin, cells = p.cell;
  float *h = args.out<float>(0) + first * cells, *c = args.out<float>(1) + first * cells;
  float *both = args.out<float>(2) + first * joined, *sums = args.out<float>(3) + first * 4 * cells;
  auto* activated = reinterpret_cast<float*>(args.scratch);
  copy_rows(args.in<float>(0) + first * p.input, p.input, p.input, batch, both, joined);
  copy_rows(args.in<float>(1) + first * cells, cells, cells, batch, both + p.input, joined);
  fill_rows(args.in<float>(3), 4 * cells, batch, sums, 4 * cells);
  add_row_products(args.in<W>(2), 4 * cells, joined, both, joined, batch, sums, 4 * cells);
  for (int64_t b = 0; b < batch; ++b) {
    const float *gates = sums + b * 4 * cells, *before = args.in<float>(4) + (first + b) * cells;
    float *input = activated, *update = activated + cells, *forget = activated + 2 * cells, *output = activated + 3 * cells;
    if (cells > 0) std::memcpy(activated, gates, static_cast<size_t>(4 * cells) * sizeof(float));
    logistic_floats(input, cells);
    activate_floats(Activation::tanh, update, update, cells);
    logistic_floats(forget, 2 * cells);
    copy_rows(before, cells, cells, 1, c + b * cells, cells);
    update_cell(input, forget, update, cells, false, 0, c + b * cells);
    activate_floats(Activation::tanh, c + b * cells, update, cells);
    map_floats(output, 1, update, 1, h + b * cells, static_cast<size_t>(cells),
        [](auto, auto o, auto a) HWY_ATTR { return hn::Mul(o, a); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <class W, class A>
Status Lstm<W, A>::prepare(Preparation& p) {
  const OptionsView& o = p.options();
  if (o.get<int8_t>(3, 0) != 0) return p.invalid("names the basic kernel, but has %d inputs, not 5", p.input_count());
  LstmOptions options;
  options.activation = static_cast<Activation>(o.get<int8_t>(0, 0));
  options.cell_clip = o.get<float>(1, 0.0f), options.projection_clip = o.get<float>(2, 0.0f);
  options.asymmetric = o.get<bool>(4, false);
  return prepare_lstm<W, A>(p, options);
}

template <class W>
Status BasicLstm<W>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(5, 5, 4));
  const OptionsView& o = p.options();
  if (o.get<int8_t>(3, 0) != 1) return p.invalid("has 5 inputs, but does not name the basic kernel");
  if (const int activation = o.get<int8_t>(0, 0); activation != static_cast<int>(Activation::tanh))
    return p.error(ErrorCode::unsupported, "fused activation %d is not supported", activation);
  if (o.get<float>(1, 0.0f) != 0 || o.get<float>(2, 0.0f) != 0) return p.error(ErrorCode::unsupported, "clips in the basic kernel");
  const Operand& x = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(x, 2, 4));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(p.input(1), 2, 4));
  const int last = x.shape.rank() - 1, last_cell = p.input(1).shape.rank() - 1;
  BasicLstmParams* params = p.make_params<BasicLstmParams>();
  if (!params) return p.no_memory();
  params->input = x.shape[last], params->cell = p.input(1).shape[last_cell];
  const int64_t batch = x.shape.elements(0, last), cells = params->cell, joined = params->input + cells;
  if (cells > (int64_t{1} << 32)) return p.invalid("is too large");
  if (p.input(1).shape.elements(0, last_cell) != batch)
    return p.invalid("%s and %s differ in their batch", p.describe(x).c_str(), p.describe(p.input(1)).c_str());
  ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, p.input(1), TensorType::float32, p.input(1).shape, "previous output"));
  ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, p.input(2), tensor_type_of<W>, {4 * cells, joined}, "weights"));
  ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, p.input(3), TensorType::float32, {4 * cells}, "bias"));
  ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, p.input(4), TensorType::float32, p.input(1).shape, "previous state"));
  for (int i = 0; i < 4; ++i)
    if (p.output(i).type != TensorType::float32) return p.invalid("output %d %s is not float", i, p.describe(p.output(i)).c_str());
  Shape both = x.shape, gates = p.input(1).shape;
  both[last] = joined, gates[last_cell] = 4 * cells;
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, p.input(1).shape));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(1, p.input(1).shape));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(2, both));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(3, gates));
  p.set_scratch(16 * cells);
  p.set_kernel(ONEWEIGHT_KERNEL(p.target(), basic_lstm_kernel<W>), batch);
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
