// BIDIRECTIONAL_SEQUENCE_LSTM: an LSTM (lstm_node.h) over the steps of [time, batch, input], or [batch, time, input] where
// time_major is false, and a second one that begins at the last step. Output 0 is the first one's, output 1 the second one's; with
// merge_outputs output 0 has both behind one another in the last axis. An auxiliary input with weights is added to the gates of
// both; without weights it is the input of the second one. Types: float; float with int8 weights (asymmetric_quantize_inputs).
// No layer normalisation. 48 inputs. Scratch and rows as UNIDIRECTIONAL_SEQUENCE_LSTM.
#ifndef ONEWEIGHT_OPS_BIDIRECTIONAL_SEQUENCE_LSTM_H
#define ONEWEIGHT_OPS_BIDIRECTIONAL_SEQUENCE_LSTM_H

#include "oneweight/ops/lstm_node.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct BidirectionalLstmParams {
  LstmParams forward, backward;
};

// W: storage of the weights.
template <class W>
struct BidirectionalSequenceLstm {
  static constexpr uint32_t kWeights = 0x1feu | 1u << 16 | 0xffu << 18;  // of the inputs an OpRow can name
  static bool accepts(const NodeTypes& t) {
    if (!t.in(0, TensorType::float32) || !t.out(0, TensorType::float32)) return false;
    for (int i = 1; i < t.input_count && i < NodeTypes::kMax; ++i)
      if ((kWeights >> i & 1u) && t.has_input[i] && t.inputs[i] != tensor_type_of<W>) return false;
    return true;
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::bidirectional_sequence_lstm,
                                .types = sizeof(W) == 1 ? "float, int8 weights" : "float",
                                .accepts = &accepts,
                                .prepare = &prepare};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_BIDIRECTIONAL_SEQUENCE_LSTM_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_BIDIRECTIONAL_SEQUENCE_LSTM_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_BIDIRECTIONAL_SEQUENCE_LSTM_KERNELS
#undef ONEWEIGHT_OPS_BIDIRECTIONAL_SEQUENCE_LSTM_KERNELS
#else
#define ONEWEIGHT_OPS_BIDIRECTIONAL_SEQUENCE_LSTM_KERNELS
#endif

#include <algorithm>

#include "oneweight/ops/lstm_float-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

template <class W>
void bidirectional_lstm_kernel(const KernelArgs& args) {
  const auto& p = args.params<BidirectionalLstmParams>();
  run_lstm<W>(args, p.forward, args.rows.begin, args.rows.end);
  run_lstm<W>(args, p.backward, args.rows.begin, args.rows.end);
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// Input numbers of one of the two; `begin`: of its weights, `states`, `aux_begin`: of auxiliary weights.
inline void number_bidirectional_inputs(const Preparation& p, int begin, int states, int aux_begin, LstmParams* l) {
  using namespace lstm;
  for (int8_t& i : l->at) i = -1;
  const auto place = [&](int role, int count, int first) {
    for (int k = 0; k < count; ++k)
      if (p.has_input(first + k)) l->at[role + k] = static_cast<int8_t>(first + k);
  };
  place(x, 1, 0);
  place(input_weights, 4, begin);
  place(recurrent_weights, 4, begin + 4);
  place(peephole, 3, begin + 8);
  place(bias, 4, begin + 11);
  place(projection, 1, begin + 15);
  place(projection_bias, 1, begin + 16);
  place(output_state, 1, states);
  place(cell_state, 1, states + 1);
  place(aux_weights, 4, aux_begin);
}

template <class W>
Status BidirectionalSequenceLstm<W>::prepare(Preparation& p) {
  const OptionsView& o = p.options();
  const bool merge = o.get<bool>(3, false), time_major = o.get<bool>(4, true);
  if (p.input_count() != 48) return p.invalid("has %d inputs, not 48", p.input_count());
  if (p.output_count() != (merge ? 1 : 2)) return p.invalid("has %d outputs, not %d", p.output_count(), merge ? 1 : 2);
  if (!p.has_input(0)) return p.invalid("input 0 is left out");
  const Operand& x = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(x, 3, 3));
  const int64_t time = x.shape[time_major ? 0 : 1], batch = x.shape[time_major ? 1 : 0];
  const int64_t steps = time_major ? batch : 1, sequences = time_major ? 1 : time;
  BidirectionalLstmParams* params = p.make_params<BidirectionalLstmParams>();
  if (!params) return p.no_memory();
  LstmParams &forward = params->forward, &backward = params->backward;
  number_bidirectional_inputs(p, 1, 35, 40, &forward);
  number_bidirectional_inputs(p, 18, 37, 44, &backward);
  backward.reverse = true;
  for (int g = 1; g < 4; ++g)
    if (forward.has(lstm::aux_weights + g) != forward.has(lstm::aux_weights + 1) ||
        backward.has(lstm::aux_weights + g) != forward.has(lstm::aux_weights + 1))
      return p.invalid("has only a part of the auxiliary weights");
  const bool stacked = forward.has(lstm::aux_weights + 1);
  if (stacked && !p.has_input(39)) return p.invalid("has auxiliary weights, but no auxiliary input");
  if (p.has_input(39)) {
    const Operand& other = p.input(39);
    ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(other, 3, 3));
    if (other.type != TensorType::float32 || other.shape[0] != x.shape[0] || other.shape[1] != x.shape[1])
      return p.invalid("%s does not fit %s", p.describe(other).c_str(), p.describe(x).c_str());
  }
  int64_t scratch = 0;
  for (LstmParams* l : {&forward, &backward}) {
    if (stacked) {
      l->at[lstm::aux] = 39;
      l->aux = p.input(39).shape[2];
      if (!l->coupled() && !l->has(lstm::aux_weights)) return p.invalid("has only a part of the auxiliary weights");
    } else if (l == &backward && p.has_input(39)) {
      l->at[lstm::x] = 39;
    }
    l->batch = batch, l->time = time, l->input = p.input(l->at[lstm::x]).shape[2];
    l->activation = static_cast<Activation>(o.get<int8_t>(0, 0));
    l->cell_clip = o.get<float>(1, 0.0f), l->projection_clip = o.get<float>(2, 0.0f);
    l->asymmetric = o.get<bool>(5, false);
    ONEWEIGHT_RETURN_IF_ERROR(read_lstm(p, sizeof(W) == 1 ? kLstmHybrid : kLstmFloat, l));
    ONEWEIGHT_RETURN_IF_ERROR(check_lstm_size(p, *l));
    l->x_time = steps * l->input, l->x_batch = sequences * l->input;
    l->aux_time = steps * l->aux, l->aux_batch = sequences * l->aux;
    scratch = std::max(scratch, lstm_scratch(*l, batch, 4, sizeof(W) == 1).bytes);
  }
  Shape shape = x.shape;
  const int64_t both = forward.output + backward.output;
  shape[2] = merge ? both : forward.output;
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  for (LstmParams* l : {&forward, &backward})
    l->out_time = steps * (merge ? both : l->output), l->out_batch = sequences * (merge ? both : l->output);
  if (merge) {
    backward.out_offset = forward.output;
  } else {
    if (p.output(1).type != TensorType::float32) return p.invalid("output 1 %s is not float", p.describe(p.output(1)).c_str());
    shape[2] = backward.output;
    backward.out = 1;
    ONEWEIGHT_RETURN_IF_ERROR(p.set_output(1, shape));
  }
  p.set_scratch(scratch);
  p.set_kernel(ONEWEIGHT_KERNEL(p.target(), bidirectional_lstm_kernel<W>), batch);
  p.set_not_foldable();
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
