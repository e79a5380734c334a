// Operators that step through time and keep state. (Included once per target: see opset/all.h.)
#include "oneweight/ops/bidirectional_sequence_lstm.h"
#include "oneweight/ops/lstm.h"
#include "oneweight/ops/rnn.h"
#include "oneweight/ops/svdf.h"
#include "oneweight/ops/unidirectional_sequence_lstm.h"

#ifndef ONEWEIGHT_OPSET_RECURRENT_H
#define ONEWEIGHT_OPSET_RECURRENT_H
#include "oneweight/opset/opset.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using Recurrent =
    OpSet<UnidirectionalSequenceLstm<half, float>, UnidirectionalSequenceLstm<float, float>, UnidirectionalSequenceLstm<int8_t, float>,
          UnidirectionalSequenceLstm<int8_t, int8_t>, Svdf<half, float, half>, Svdf<float, float, float>, Svdf<int8_t, float, int8_t>,
          Svdf<int8_t, int8_t, int16_t>, Svdf<int8_t, int8_t, int8_t>, Lstm<half, float>, Lstm<float, float>, Lstm<int8_t, float>,
          Lstm<int8_t, int8_t>, BasicLstm<half>, BasicLstm<float>, Rnn<half>, Rnn<float>, Rnn<int8_t>, UnidirectionalSequenceRnn<half>,
          UnidirectionalSequenceRnn<float>, UnidirectionalSequenceRnn<int8_t>, BidirectionalSequenceRnn<half>,
          BidirectionalSequenceRnn<float>, BidirectionalSequenceRnn<int8_t>, BidirectionalSequenceLstm<float>,
          BidirectionalSequenceLstm<int8_t>>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_RECURRENT_H
