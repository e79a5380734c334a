// UNIDIRECTIONAL_SEQUENCE_LSTM: an LSTM (lstm_node.h) over the steps of [batch, time, input], or [time, batch, input] with
// time_major. Types: float; float with half or int8 weights (asymmetric_quantize_inputs); int8 with int16 cell state.
// 20 or 24 inputs, optional ones left out. The states are variables; sequences are independent of one another.
// Scratch: the gates of one step; with int8 weights also its vectors as int16. Rows: sequences (where TFLite's integer
// kernel mixes them, one row).
#ifndef ONEWEIGHT_OPS_UNIDIRECTIONAL_SEQUENCE_LSTM_H
#define ONEWEIGHT_OPS_UNIDIRECTIONAL_SEQUENCE_LSTM_H

#include "oneweight/ops/lstm_node.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// W: storage of the weights, A: of the activations.
template <class W, class A>
struct UnidirectionalSequenceLstm {
  static bool accepts(const NodeTypes& t) { return takes_lstm(t, tensor_type_of<W>, tensor_type_of<A>); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::unidirectional_sequence_lstm,
                                .types = sizeof(A) == 1   ? "int8"
                                         : sizeof(W) == 2 ? "float, half weights"
                                         : sizeof(W) == 1 ? "float, int8 weights" : "float",
                                .accepts = &accepts,
                                .prepare = &prepare,
                                .stored_inputs = sizeof(W) == 2 ? kLstmWeightInputs : 0u};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_UNIDIRECTIONAL_SEQUENCE_LSTM_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_UNIDIRECTIONAL_SEQUENCE_LSTM_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_UNIDIRECTIONAL_SEQUENCE_LSTM_KERNELS
#undef ONEWEIGHT_OPS_UNIDIRECTIONAL_SEQUENCE_LSTM_KERNELS
#else
#define ONEWEIGHT_OPS_UNIDIRECTIONAL_SEQUENCE_LSTM_KERNELS
#endif

#include "oneweight/ops/lstm_kernels-inl.h"

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

template <class W, class A>
Status UnidirectionalSequenceLstm<W, A>::prepare(Preparation& p) {
  const OptionsView& o = p.options();
  LstmOptions options;
  options.activation = static_cast<Activation>(o.get<int8_t>(0, 0));
  options.cell_clip = o.get<float>(1, 0.0f), options.projection_clip = o.get<float>(2, 0.0f);
  options.sequence = true, options.time_major = o.get<bool>(3, false);
  options.asymmetric = o.get<bool>(4, false);
  return prepare_lstm<W, A>(p, options);
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
