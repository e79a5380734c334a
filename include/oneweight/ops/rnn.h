// RNN: h = act(W x + A aux + R h + b) on [batch, input]; UNIDIRECTIONAL_SEQUENCE_RNN: the same over the steps of [batch, time,
// input] ([time, batch, input] with time_major); BIDIRECTIONAL_SEQUENCE_RNN: one cell forwards and one backwards, whose outputs
// are apart or, with merge_outputs, behind one another in the last axis. An auxiliary input with weights is added to both cells;
// without weights it is the input of the backward cell. Types: float; float with half or int8 weights (activations are then
// quantised by vector; asymmetric_quantize_inputs). act: none, relu, relu_n1_to_1, relu6, tanh. h is a variable [batch, units].
// Scratch: h of one step; with int8 weights also vectors as int16. Rows: sequences.
#ifndef ONEWEIGHT_OPS_RNN_H
#define ONEWEIGHT_OPS_RNN_H

#include "oneweight/ops/lstm_node.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// Input numbers of one cell.
struct RnnCell {
  int8_t x, weights, recurrent, bias, state, aux = -1, aux_weights = -1;
};
struct RnnParams {
  struct Cell {
    RnnCell at;
    int8_t out = 0;                  // output number
    bool reverse = false;
    int64_t input = 0, aux = 0, units = 0;
    // Distances in elements of one step in time and of one sequence.
    int64_t x_time = 0, x_batch = 0, aux_time = 0, aux_batch = 0, out_time = 0, out_batch = 0, out_offset = 0;
    float scale = 0, recurrent_scale = 0, aux_scale = 0;
  };
  Cell cells[2];
  int count = 1;
  int64_t batch = 0, time = 1;
  Activation activation = Activation::none;
  bool asymmetric = false;
};

template <class W>
struct RnnTypes {
  static constexpr const char* types = sizeof(W) == 2 ? "float, half weights" : sizeof(W) == 1 ? "float, int8 weights" : "float";
  static bool accepts(const NodeTypes& t) { return t.in(0, TensorType::float32) && t.in(1, tensor_type_of<W>) && t.in(2, tensor_type_of<W>)
      && t.out(0, TensorType::float32); }
};
template <class W>
struct Rnn {
  static Status prepare(Preparation& p);
  static constexpr OpRow row =
      {.code = BuiltinOperator::rnn, .types = RnnTypes<W>::types, .accepts = &RnnTypes<W>::accepts, .prepare = &prepare,
          .stored_inputs = sizeof(W) == 2 ? 6u : 0u};
};
template <class W>
struct UnidirectionalSequenceRnn {
  static Status prepare(Preparation& p);
  static constexpr OpRow row =
      {.code = BuiltinOperator::unidirectional_sequence_rnn, .types = RnnTypes<W>::types, .accepts = &RnnTypes<W>::accepts,
          .prepare = &prepare, .stored_inputs = sizeof(W) == 2 ? 6u : 0u};
};
template <class W>
struct BidirectionalSequenceRnn {
  static bool accepts(const NodeTypes& t) {
    if (!RnnTypes<W>::accepts(t)) return false;
    for (int i : {5, 6, 10, 11})
      if (i < t.input_count && t.has_input[i] && t.inputs[i] != tensor_type_of<W>) return false;
    return true;
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row =
      {.code = BuiltinOperator::bidirectional_sequence_rnn, .types = RnnTypes<W>::types, .accepts = &accepts, .prepare = &prepare,
          .stored_inputs = sizeof(W) == 2 ? 0xc66u : 0u};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_RNN_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_RNN_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_RNN_KERNELS
#undef ONEWEIGHT_OPS_RNN_KERNELS
#else
#define ONEWEIGHT_OPS_RNN_KERNELS
#endif

#include "oneweight/ops/recurrent-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

template <class W>
void rnn_kernel(const KernelArgs& args) {
  const auto& p = args.params<RnnParams>();
  const int64_t first = args.rows.begin, batch = args.rows.size();
  for (int k = 0; k < p.count; ++k) {
    const RnnParams::Cell& c = p.cells[k];
    const int64_t units = c.units, step_bytes = (4 * p.batch * units + 63) / 64 * 64;
    auto* next = reinterpret_cast<float*>(args.scratch);
    auto* sums = reinterpret_cast<int32_t*>(args.scratch + step_bytes);
    const RowWork work{sums, reinterpret_cast<float*>(args.scratch + 2 * step_bytes), p.asymmetric};
    auto* bytes = reinterpret_cast<int16_t*>(args.scratch + 2 * step_bytes + (4 * p.batch + 63) / 64 * 64);
    float* h = const_cast<float*>(args.in<float>(c.at.state)) + first * units;
    for (int64_t step = 0; step < p.time; ++step) {
      const int64_t t = c.reverse ? p.time - 1 - step : step;
      const auto add = [&](const float* v, int64_t distance, int64_t columns, int weights, float scale) HWY_ATTR {
        quantize_rows<W>(v, distance, columns, batch, work, bytes);
        add_rows(args.in<W>(weights), scale, units, columns, v, distance, batch, work, bytes, next, units);
      };
      fill_rows(args.in<float>(c.at.bias), units, batch, next, units);
      add(args.in<float>(c.at.x) + t * c.x_time + first * c.x_batch, c.x_batch, c.input, c.at.weights, c.scale);
      if (c.at.aux >= 0) add(args.in<float>(c.at.aux) + t * c.aux_time + first * c.aux_batch, c.aux_batch, c.aux, c.at.aux_weights,
          c.aux_scale);
      add(h, units, units, c.at.recurrent, c.recurrent_scale);
      activate_floats(p.activation, next, h, batch * units);
      copy_rows(h, units, units, batch, args.out<float>(c.out) + t * c.out_time + first * c.out_batch + c.out_offset, c.out_batch);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// Checks one cell whose operands are numbered in c->at; its sizes and scales.
template <class W>
Status read_rnn_cell(const Preparation& p, int rank, const RnnParams& params, bool time_major, RnnParams::Cell* c) {
  const RnnCell& at = c->at;
  const Operand &x = p.input(at.x), &weights = p.input(at.weights);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(x, rank, rank));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(weights, 2, 2));
  c->input = x.shape[rank - 1], c->units = weights.shape[0];
  const auto fits_input = [&](const Operand& t) {
    return t.type == TensorType::float32 && t.shape[rank == 3 && time_major ? 1 : 0] == params.batch &&
        (rank == 2 || t.shape[time_major ? 0 : 1] == params.time);
  };
  if (!fits_input(x)) return p.invalid("%s does not fit input 0", p.describe(x).c_str());
  const auto matrix = [&](int i, int64_t columns, const char* what, float* scale) -> Status {
    ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, p.input(i), tensor_type_of<W>, {c->units, columns}, what));
    if (sizeof(W) == 1) {
      ONEWEIGHT_RETURN_IF_ERROR(expect_quantized(p, p.input(i)));
      if (p.input(i).zero_point() != 0)
        return p.error(ErrorCode::unsupported, "%s has zero point %d, not 0", p.describe(p.input(i)).c_str(), p.input(i).zero_point());
      *scale = p.input(i).scale();
    }
    return {};
  };
  ONEWEIGHT_RETURN_IF_ERROR(matrix(at.weights, c->input, "weights", &c->scale));
  ONEWEIGHT_RETURN_IF_ERROR(matrix(at.recurrent, c->units, "recurrent weights", &c->recurrent_scale));
  ONEWEIGHT_RETURN_IF_ERROR(expect_recurrent_operand(p, p.input(at.bias), TensorType::float32, {c->units}, "bias"));
  ONEWEIGHT_RETURN_IF_ERROR(expect_state(p, p.input(at.state), TensorType::float32, {params.batch, c->units}, "state"));
  const int64_t steps = time_major ? params.batch : 1, sequences = time_major ? 1 : params.time;
  if (at.aux >= 0) {
    const Operand& aux = p.input(at.aux);
    ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(aux, rank, rank));
    if (!fits_input(aux)) return p.invalid("%s does not fit input 0", p.describe(aux).c_str());
    c->aux = aux.shape[rank - 1];
    ONEWEIGHT_RETURN_IF_ERROR(matrix(at.aux_weights, c->aux, "auxiliary weights", &c->aux_scale));
    c->aux_time = steps * c->aux, c->aux_batch = sequences * c->aux;
  }
  for (int64_t extent : {c->units, c->input, c->aux})
    if (params.batch > 0 && extent > (int64_t{1} << 34) / params.batch) return p.invalid("is too large");
  c->x_time = steps * c->input, c->x_batch = sequences * c->input;
  c->out_time = steps * c->units, c->out_batch = sequences * c->units;
  return {};
}

template <class W>
Status prepare_rnn(Preparation& p, bool sequence, bool bidirectional, bool time_major, bool merge, Activation activation, bool asymmetric) {
  if (activation < Activation::none || activation > Activation::tanh)
    return p.error(ErrorCode::unsupported, "fused activation %d is not supported", static_cast<int>(activation));
  if (bidirectional) ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(9, 12, merge ? 1 : 2));
  else ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(5, 5));
  const Operand& x = p.input(0);
  const int rank = sequence ? 3 : 2;
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(x, rank, rank));
  RnnParams* params = p.make_params<RnnParams>();
  if (!params) return p.no_memory();
  params->batch = x.shape[sequence && time_major ? 1 : 0];
  params->time = sequence ? x.shape[time_major ? 0 : 1] : 1;
  params->activation = activation, params->asymmetric = asymmetric;
  params->count = bidirectional ? 2 : 1;
  params->cells[0].at = {0, 1, 2, 3, 4};
  RnnParams::Cell &forward = params->cells[0], &backward = params->cells[1];
  if (bidirectional) {
    backward.at = {0, 5, 6, 7, 8};
    backward.reverse = true;
    if (p.has_input(10) != p.has_input(11)) return p.invalid("has auxiliary weights of one cell alone");
    if (p.has_input(10)) {
      if (!p.has_input(9)) return p.invalid("has auxiliary weights, but no auxiliary input");
      forward.at.aux = backward.at.aux = 9;
      forward.at.aux_weights = 10, backward.at.aux_weights = 11;
    } else if (p.has_input(9)) {
      backward.at.x = 9;
    }
  }
  int64_t scratch = 0;
  for (int k = 0; k < params->count; ++k) {
    RnnParams::Cell& c = params->cells[k];
    ONEWEIGHT_RETURN_IF_ERROR(read_rnn_cell<W>(p, rank, *params, time_major, &c));
    const int64_t widest = std::max({c.input, c.aux, c.units}), step = (4 * params->batch * c.units + 63) / 64 * 64;
    const int64_t bytes = sizeof(W) == 1 ? step + (4 * params->batch + 63) / 64 * 64 + 2 * params->batch * padded_lstm_columns(widest) : 0;
    scratch = std::max(scratch, step + bytes);
  }
  Shape shape = x.shape;
  shape[rank - 1] = forward.units + (bidirectional && merge ? backward.units : 0);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  if (bidirectional && merge) {
    for (RnnParams::Cell* c : {&forward, &backward}) {
      c->out_time = (time_major ? params->batch : 1) * shape[2], c->out_batch = (time_major ? 1 : params->time) * shape[2];
    }
    backward.out_offset = forward.units;
  } else if (bidirectional) {
    if (p.output(1).type != TensorType::float32) return p.invalid("output 1 %s is not float", p.describe(p.output(1)).c_str());
    backward.out = 1;
    shape[rank - 1] = backward.units;
    ONEWEIGHT_RETURN_IF_ERROR(p.set_output(1, shape));
  }
  p.set_scratch(scratch);
  p.set_kernel(ONEWEIGHT_KERNEL(p.target(), rnn_kernel<W>), params->batch);
  p.set_not_foldable();
  return {};
}

template <class W>
Status Rnn<W>::prepare(Preparation& p) {
  const OptionsView& o = p.options();
  return prepare_rnn<W>(p, false, false, false, false, static_cast<Activation>(o.get<int8_t>(0, 0)), o.get<bool>(1, false));
}
template <class W>
Status UnidirectionalSequenceRnn<W>::prepare(Preparation& p) {
  const OptionsView& o = p.options();
  return prepare_rnn<W>(p, true, false, o.get<bool>(0, false), false, static_cast<Activation>(o.get<int8_t>(1, 0)), o.get<bool>(2, false));
}
template <class W>
Status BidirectionalSequenceRnn<W>::prepare(Preparation& p) {
  const OptionsView& o = p.options();
  return prepare_rnn<W>(p, true, true, o.get<bool>(0, false), o.get<bool>(2, false), static_cast<Activation>(o.get<int8_t>(1, 0)),
      o.get<bool>(3, false));
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
