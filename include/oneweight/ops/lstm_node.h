// What the LSTM operators share: their operands by role, the checks of a node, parameters. The steps through time are in
// lstm_float-inl.h and lstm_integer-inl.h.
//
// One step, for gates g = input, forget, cell (the new value) and output:
//   g = act(W_g x + A_g aux + R_g h [+ P_g c] + b_g), act = logistic; of the cell gate the fused activation
//   c = forget * c + input * cell, clipped; h = output * act(c); h = W_p h + b_p, clipped, where there is a projection.
// Without weights of the input gate it is 1 - forget (CIFG). Peephole weights P see the new c in the output gate and are never
// there for the cell gate. Layer normalisation: the sum without b has its mean and deviation (epsilon 1e-8) taken off, is
// multiplied by a coefficient, and b is added then. h and c are variables: they stay from run to run, until reset().
#ifndef ONEWEIGHT_OPS_LSTM_NODE_H
#define ONEWEIGHT_OPS_LSTM_NODE_H

#include <algorithm>
#include <cmath>
#include <utility>

#include "oneweight/base/fixed_point.h"
#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace v1 {

// Roles of the operands. Gates in the order input, forget, cell, output; the peephole has none for the cell gate.
namespace lstm {
enum Role {
  input_weights = 0,
  recurrent_weights = 4,
  peephole = 8,  // input, forget, output
  bias = 11,
  projection = 15,
  projection_bias,
  output_state,
  cell_state,
  norm = 19,
  aux_weights = 23,
  x = 27,
  aux,
  kRoles
};
inline constexpr const char* kGates[] = {"input", "forget", "cell", "output"};
}  // namespace lstm

struct LstmParams {
  int8_t at[lstm::kRoles];           // input numbers, -1: not there
  int8_t out = 0;                    // output number
  int64_t batch = 0, time = 1, input = 0, aux = 0, cell = 0, output = 0;
  // Distances in elements of one step in time and of one sequence.
  int64_t x_time = 0, x_batch = 0, aux_time = 0, aux_batch = 0, out_time = 0, out_batch = 0, out_offset = 0;
  bool reverse = false;              // from the last step to the first
  Activation activation = Activation::tanh;
  float cell_clip = 0, projection_clip = 0;  // 0: none
  // Int8 weights with float activations
  bool asymmetric = false;
  float scales[lstm::kRoles] = {};

  bool has(int role) const { return at[role] >= 0; }
  bool coupled() const { return !has(lstm::input_weights); }
  bool normalized() const { return has(lstm::norm + 1); }
};

// The parameters of the form that is int8 from end to end, with int16 gates and cell state.
struct LstmIntegerParams {
  LstmParams node;
  FixedMultiplier input[4], recurrent[4], peephole[4], norm[4], projection, hidden;
  int32_t variance_guard[4] = {};
  int32_t input_zero = 0, output_zero = 0, hidden_zero = 0;
  int32_t cell_exponent = 0;         // the scale of the cell state is 2^cell_exponent
  int32_t cell_clip = 0, projection_clip = 0;
  // TFLite counts the elements that meet peephole weights through all sequences together, not for each of them.
  bool peephole_runs_on = false;
};

// Types of the operands of a form.
struct LstmTypes {
  TensorType weights, peephole, bias, norm, output_state, cell_state;
};
inline constexpr LstmTypes kLstmFloat = {TensorType::float32, TensorType::float32, TensorType::float32, TensorType::float32,
                                         TensorType::float32, TensorType::float32};
inline constexpr LstmTypes kLstmHalf = {TensorType::float16, TensorType::float32, TensorType::float32, TensorType::float32,
                                        TensorType::float32, TensorType::float32};
inline constexpr LstmTypes kLstmHybrid = {TensorType::int8, TensorType::int8, TensorType::float32, TensorType::float32,
                                          TensorType::float32, TensorType::float32};
// Int8 activations: see lstm_integer-inl.h.
inline constexpr LstmTypes kLstmInteger = {TensorType::int8, TensorType::int16, TensorType::int32, TensorType::int16,
                                           TensorType::int8, TensorType::int16};

// Input numbers of LSTM (full kernel) and UNIDIRECTIONAL_SEQUENCE_LSTM; 20 of them without layer normalisation.
inline void number_lstm_inputs(const Preparation& p, LstmParams* l) {
  for (int8_t& i : l->at) i = -1;
  const auto place = [&](int role, int count, int first) {
    for (int k = 0; k < count; ++k)
      if (p.has_input(first + k)) l->at[role + k] = static_cast<int8_t>(first + k);
  };
  place(lstm::x, 1, 0);
  place(lstm::input_weights, 4, 1);
  place(lstm::recurrent_weights, 4, 5);
  place(lstm::peephole, 3, 9);
  place(lstm::bias, 4, 12);
  place(lstm::projection, 1, 16);
  place(lstm::projection_bias, 1, 17);
  place(lstm::output_state, 1, 18);
  place(lstm::cell_state, 1, 19);
  place(lstm::norm, 4, 20);
}

// Inputs that hold matrices of weights, as bits.
inline constexpr uint32_t kLstmWeightInputs = 0x1feu | 1u << 16;

// The types of LSTM (full kernel) and UNIDIRECTIONAL_SEQUENCE_LSTM.
inline bool takes_lstm(const NodeTypes& t, TensorType weights, TensorType data) {
  if (!t.in(0, data) || !t.out(0, data)) return false;
  for (int i = 1; i < t.input_count && i <= 16; ++i)
    if ((kLstmWeightInputs >> i & 1u) && t.has_input[i] && t.inputs[i] != weights) return false;
  return true;
}

inline Status expect_recurrent_operand(const Preparation& p, const Operand& t, TensorType type, const Shape& shape, const char* what) {
  if (t.type == type && t.shape == shape) return {};
  return p.invalid("%s %s must be %s %s", what, p.describe(t).c_str(), tensor_type_name(type), shape.to_string().c_str());
}
// State: a variable of that many elements in any shape.
inline Status expect_state(const Preparation& p, const Operand& t, TensorType type, const Shape& shape, const char* what) {
  if (!t.is_variable || t.is_constant) return p.invalid("%s %s is not a variable", what, p.describe(t).c_str());
  if (t.type == type && shape.elements() >= 0 && t.shape.elements() == shape.elements()) return {};
  return p.invalid("%s %s must be %s with as many elements as %s", what, p.describe(t).c_str(), tensor_type_name(type),
      shape.to_string().c_str());
}

// Checks every operand but x and aux against l->batch, input and aux, finds cell and output, reads scales.
inline Status read_lstm(const Preparation& p, const LstmTypes& types, LstmParams* l) {
  using namespace lstm;
  const auto operand = [&](int role) -> const Operand& { return p.input(l->at[role]); };
  for (int role : {input_weights + 1, input_weights + 2, input_weights + 3, recurrent_weights + 1, recurrent_weights + 2,
                   recurrent_weights + 3, bias + 1, bias + 2, bias + 3, +output_state, +cell_state})
    if (!l->has(role)) return p.invalid("has no weights, bias or state where it needs them (role %d)", role);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(operand(input_weights + 3), 2, 2));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(operand(recurrent_weights + 3), 2, 2));
  l->cell = operand(input_weights + 3).shape[0];
  l->output = operand(recurrent_weights + 3).shape[1];
  if (!l->has(projection) && l->output != l->cell)
    return p.invalid("has %lld cells and %lld outputs, but no projection", static_cast<long long>(l->cell),
        static_cast<long long>(l->output));
  if (l->coupled() != !l->has(recurrent_weights) || l->coupled() != !l->has(bias))
    return p.invalid("has only a part of input weights, recurrent weights and bias of the input gate");
  const int first = l->coupled() ? 1 : 0;
  if (l->has(peephole + 1) != l->has(peephole + 2) || (!l->coupled() && l->has(peephole) != l->has(peephole + 1)))
    return p.invalid("has only a part of the peephole weights");
  for (int g = first; g < 4; ++g)
    if (l->has(norm + g) != l->normalized()) return p.invalid("has only a part of the layer normalisation's coefficients");
  if (l->coupled()) l->at[peephole] = l->at[norm] = -1;
  if (l->has(projection_bias) && !l->has(projection)) return p.invalid("has a bias for a projection that is not there");
  for (int g = first; g < 4; ++g) {
    ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, operand(input_weights + g), types.weights, {l->cell, l->input}, "weights"));
    ONEWEIGHT_RETURN_IF_ERROR(
        expect_recurrent_operand(p, operand(recurrent_weights + g), types.weights, {l->cell, l->output}, "recurrent weights"));
    ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, operand(bias + g), types.bias, {l->cell}, "bias"));
    if (l->normalized())
      ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, operand(norm + g), types.norm, {l->cell}, "layer normalisation"));
    if (l->has(aux) && l->has(aux_weights + g))
      ONEWEIGHT_RETURN_IF_ERROR(
          expect_recurrent_operand(p, operand(aux_weights + g), types.weights, {l->cell, l->aux}, "auxiliary weights"));
  }
  for (int k = 0; k < 3; ++k)
    if (l->has(peephole + k))
      ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, operand(peephole + k), types.peephole, {l->cell}, "peephole weights"));
  if (l->has(projection))
    ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, operand(projection), types.weights, {l->output, l->cell}, "projection"));
  if (l->has(projection_bias))
    ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, operand(projection_bias), types.bias, {l->output}, "projection bias"));
  ONEWEIGHT_RETURN_IF_ERROR(expect_state(p, operand(output_state), types.output_state, {l->batch, l->output}, "output state"));
  ONEWEIGHT_RETURN_IF_ERROR(expect_state(p, operand(cell_state), types.cell_state, {l->batch, l->cell}, "cell state"));
  if (operand(output_state).name.data() == operand(cell_state).name.data())  // one tensor
    return p.invalid("uses tensor '%.*s' as both states", static_cast<int>(operand(cell_state).name.size()),
        operand(cell_state).name.data());
  if (!(l->cell_clip >= 0) || !(l->projection_clip >= 0))
    return p.invalid("clips at %g and %g", static_cast<double>(l->cell_clip), static_cast<double>(l->projection_clip));
  if (l->activation < Activation::none || l->activation > Activation::tanh)
    return p.error(ErrorCode::unsupported, "fused activation %d is not supported", static_cast<int>(l->activation));
  if (types.weights == TensorType::int8) {
    for (int role = 0; role < kRoles; ++role) {
      if (!l->has(role) || (role >= bias && role < projection) || role == projection_bias) continue;
      const Operand& t = operand(role);
      if (t.type == TensorType::float32) continue;
      ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, t));
      const bool symmetric = role != x && role != output_state;
      if (symmetric && t.zero_point() != 0)
        return p.error(ErrorCode::unsupported, "%s has zero point %d, not 0", p.describe(t).c_str(), t.zero_point());
      l->scales[role] = t.scale();
    }
  }
  return {};
}

// x [batch, input], or [batch, time, input] ([time, batch, input]) when `sequence`; states the output's shape.
inline Status read_lstm_input(Preparation& p, const LstmTypes& types, bool sequence, bool time_major, LstmParams* l) {
  if (!l->has(lstm::x)) return p.invalid("input 0 is left out");
  const Operand& x = p.input(l->at[lstm::x]);
  const int rank = sequence ? 3 : 2;
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(x, rank, rank));
  l->input = x.shape[rank - 1];
  l->batch = x.shape[sequence && time_major ? 1 : 0];
  l->time = sequence ? x.shape[time_major ? 0 : 1] : 1;
  ONEWEIGHT_RETURN_IF_ERROR(read_lstm(p, types, l));
  Shape shape = x.shape;
  shape[rank - 1] = l->output;
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  const int64_t steps = time_major ? l->batch : 1, sequences = time_major ? 1 : l->time;
  l->x_time = steps * l->input, l->x_batch = sequences * l->input;
  l->out_time = steps * l->output, l->out_batch = sequences * l->output;
  return {};
}

// Scales of the integer form from those of the operands and the five intermediate tensors, in float as TFLite computes them.
inline Status read_integer_lstm(Preparation& p, bool sequence, bool time_major, LstmIntegerParams* q) {
  using namespace lstm;
  LstmParams& l = q->node;
  ONEWEIGHT_RETURN_IF_ERROR(read_lstm_input(p, kLstmInteger, sequence, time_major, &l));
  ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, p.output(0)));
  const Operand &state = p.input(l.at[output_state]), &cell = p.input(l.at[cell_state]);
  if (state.scale() != p.output(0).scale() || state.zero_point() != p.output(0).zero_point())
    return p.invalid("%s and %s differ in scale or zero point", p.describe(state).c_str(), p.describe(p.output(0)).c_str());
  int exponent = 0;
  const float log2 = std::log(cell.scale()) * (1.0f / std::log(2.0f)), nearest = std::round(log2);
  exponent = static_cast<int>(nearest);
  if (!(std::fabs(log2 - nearest) < 1e-3f) || exponent < -15 || exponent > -9)
    return p.invalid("%s has the scale %g, not a power of two within 2^-15 and 2^-9", p.describe(cell).c_str(),
        static_cast<double>(cell.scale()));
  q->cell_exponent = exponent;
  if (p.intermediate_count() == 12) return p.error(ErrorCode::unsupported, "has int8 gates (12 intermediate tensors)");
  if (p.intermediate_count() != 5) return p.invalid("has %d intermediate tensors, not 5", p.intermediate_count());
  float between[5];                  // scales of the gates before their function, and of hidden values
  for (int i = 0; i < 5; ++i) {
    const Quantization& t = p.intermediate(i);
    if ((i == 4 || l.normalized()) && (t.scales.empty() || !(t.scales[0] > 0))) return p.invalid("intermediate tensor %d has no scale", i);
    between[i] = i < 4 && !l.normalized() ? 1.0f / 4096 : t.scales[0];
  }
  const auto factor = [](float scale) { return quantize_multiplier(static_cast<double>(scale)); };
  for (int g = 0; g < 4; ++g) {
    if (g == 0 && l.coupled()) continue;
    q->input[g] = factor(l.scales[input_weights + g] * l.scales[x] / between[g]);
    q->recurrent[g] = factor(l.scales[recurrent_weights + g] * l.scales[output_state] / between[g]);
    if (l.normalized()) {
      q->norm[g] = factor(l.scales[norm + g]);
      if (q->norm[g].shift > 16) return p.invalid("has layer normalisation with the scale %g", static_cast<double>(l.scales[norm + g]));
      q->variance_guard[g] = std::max(1, static_cast<int32_t>(10000 * l.scales[norm + g]));
    }
  }
  const double cell_scale = std::ldexp(1.0, exponent);
  for (const auto& [gate, hole] : {std::pair{0, 0}, {1, 1}, {3, 2}})
    if (l.has(peephole + hole))
      q->peephole[gate] =
          factor(static_cast<float>(cell_scale * static_cast<double>(l.scales[peephole + hole]) / static_cast<double>(between[gate])));
  q->hidden = factor(static_cast<float>(std::ldexp(1.0, -15) / static_cast<double>(between[4]) * std::ldexp(1.0, -15)));
  if (l.has(projection)) q->projection = factor(l.scales[projection] * between[4] / l.scales[output_state]);
  const Quantization& hidden = p.intermediate(4);
  const int64_t zero = hidden.zero_points.empty() ? 0 : hidden.zero_points[0];
  if (zero < -128 || zero > 127) return p.invalid("intermediate tensor 4 has zero point %lld", static_cast<long long>(zero));
  q->hidden_zero = static_cast<int32_t>(zero);
  q->input_zero = p.input(l.at[x]).zero_point(), q->output_zero = state.zero_point();
  if (l.cell_clip > 0) q->cell_clip = static_cast<int32_t>(std::min(l.cell_clip / cell.scale(), 32767.0f));
  if (l.projection_clip > 0) q->projection_clip = static_cast<int32_t>(std::min(l.projection_clip / p.output(0).scale(), 127.0f));
  q->peephole_runs_on = l.has(peephole + 1) && l.output < l.cell && (time_major || !sequence) && l.batch > 1;
  return {};
}

// Vectors that meet rows of bytes are padded with zeros to this many elements.
inline int64_t padded_lstm_columns(int64_t columns) { return (columns + 31) / 32 * 32; }

// Scratch of the forms, for `batch` sequences; each area begins at a multiple of 64 bytes.
struct LstmScratch {
  int64_t gates, sums, scales, x, aux, output, hidden, bytes;
};
// gate_bytes: of an element of a gate; `bytes`: weights are int8.
inline LstmScratch lstm_scratch(const LstmParams& l, int64_t batch, int gate_bytes, bool bytes) {
  LstmScratch s;
  int64_t at = 0;
  const auto take = [&](int64_t size) {
    const int64_t here = at;
    at += (size + 63) / 64 * 64;
    return here;
  };
  s.gates = take(4 * batch * l.cell * gate_bytes);
  s.sums = take(bytes ? 4 * batch * (l.cell > l.output ? l.cell : l.output) : 0);
  s.scales = take(bytes ? 4 * batch : 0);
  s.x = take(bytes ? 2 * batch * padded_lstm_columns(l.input) : 0);
  s.aux = take(bytes ? 2 * batch * padded_lstm_columns(l.aux) : 0);
  s.output = take(bytes ? 2 * batch * padded_lstm_columns(l.output) : 0);
  s.hidden = take(bytes && l.has(lstm::projection) ? 2 * batch * padded_lstm_columns(l.cell) : 0);
  s.bytes = at;
  return s;
}
// No product in lstm_scratch overflows.
inline Status check_lstm_size(const Preparation& p, const LstmParams& l) {
  constexpr int64_t kMost = int64_t{1} << 40;
  for (int64_t extent : {l.cell, l.output, l.input, l.aux})
    if (extent > kMost || (l.batch > 0 && extent > kMost / 64 / l.batch)) return p.invalid("is too large");
  return {};
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_LSTM_NODE_H
