// Steps of an LSTM with float state: weights float, half, or int8 (activations are then quantised, each vector by its own
// scale; products are exact). Sums in float, in an order that depends on the shapes alone. Included once per target.
#if defined(ONEWEIGHT_OPS_LSTM_FLOAT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_LSTM_FLOAT_INL_H
#undef ONEWEIGHT_OPS_LSTM_FLOAT_INL_H
#else
#define ONEWEIGHT_OPS_LSTM_FLOAT_INL_H
#endif

#include <cmath>

#include "oneweight/ops/lstm_node.h"
#include "oneweight/ops/recurrent-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// gate += peephole * cell
template <class W>
HWY_INLINE void add_peephole(const W* HWY_RESTRICT w, float scale, const float* HWY_RESTRICT cell, int64_t count,
    float* HWY_RESTRICT gate) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += n) {
    const auto left = static_cast<size_t>(count - i < n ? count - i : n);
    const auto product = hn::MulAdd(load_weights(d, w + i, left, scale), hn::LoadN(d, cell + i, left), hn::LoadN(d, gate + i, left));
    hn::StoreN(product, d, gate + i, left);
  }
}

// Mean and deviation of the gate become 0 and 1; then coefficient and bias.
HWY_INLINE void normalize_gate(const float* HWY_RESTRICT coefficients, const float* HWY_RESTRICT bias, int64_t count,
    float* HWY_RESTRICT gate) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d), squares = hn::Zero(d);
  for (int64_t i = 0; i < count; i += n) sum = hn::Add(sum, hn::LoadN(d, gate + i, static_cast<size_t>(count - i < n ? count - i : n)));
  const auto mean = hn::Set(d, hn::ReduceSum(d, sum) / static_cast<float>(count));
  for (int64_t i = 0; i < count; i += n) {
    const auto left = static_cast<size_t>(count - i < n ? count - i : n);
    const auto rest = hn::IfThenElseZero(hn::FirstN(d, left), hn::Sub(hn::LoadN(d, gate + i, left), mean));
    squares = hn::MulAdd(rest, rest, squares);
  }
  const float variance = hn::ReduceSum(d, squares) / static_cast<float>(count);
  const auto factor = hn::Set(d, 1.0f / std::sqrt(variance + 1e-8f));
  for (int64_t i = 0; i < count; i += n) {
    const auto left = static_cast<size_t>(count - i < n ? count - i : n);
    const auto y = hn::Mul(hn::Sub(hn::LoadN(d, gate + i, left), mean), factor);
    hn::StoreN(hn::MulAdd(y, hn::LoadN(d, coefficients + i, left), hn::LoadN(d, bias + i, left)), d, gate + i, left);
  }
}

HWY_INLINE void logistic_floats(float* values, int64_t count) {
  map_floats(values, values, static_cast<size_t>(count), [](auto d, auto x) HWY_ATTR { return logistic_float(d, x); });
}

// cell = forget * cell + input * update
HWY_INLINE void update_cell(const float* HWY_RESTRICT input, const float* HWY_RESTRICT forget, const float* HWY_RESTRICT update,
                            int64_t count, bool coupled, float clip, float* HWY_RESTRICT cell) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1.0f), high = hn::Set(d, clip > 0 ? clip : std::numeric_limits<float>::infinity()), low = hn::Neg(high);
  for (int64_t i = 0; i < count; i += n) {
    const auto left = static_cast<size_t>(count - i < n ? count - i : n);
    const auto f = hn::LoadN(d, forget + i, left);
    const auto in = coupled ? hn::Sub(one, f) : hn::LoadN(d, input + i, left);
    const auto y = hn::MulAdd(hn::LoadN(d, update + i, left), in, hn::Mul(f, hn::LoadN(d, cell + i, left)));
    hn::StoreN(clamp_keep_nan(d, y, low, high), d, cell + i, left);
  }
}

// All steps of the sequences [first, last).
template <class W>
void run_lstm(const KernelArgs& args, const LstmParams& p, int64_t first, int64_t last) {
  using namespace lstm;
  constexpr bool kBytes = sizeof(W) == 1;
  const int64_t batch = last - first, cells = p.cell, outputs = p.output;
  const LstmScratch areas = lstm_scratch(p, p.batch, 4, kBytes);
  auto* gates = reinterpret_cast<float*>(args.scratch + areas.gates);
  const RowWork work{reinterpret_cast<int32_t*>(args.scratch + areas.sums), reinterpret_cast<float*>(args.scratch + areas.scales),
      p.asymmetric};
  const auto area = [&](int64_t at) { return reinterpret_cast<int16_t*>(args.scratch + at); };
  float* h = const_cast<float*>(args.in<float>(p.at[output_state])) + first * outputs;
  float* c = const_cast<float*>(args.in<float>(p.at[cell_state])) + first * cells;
  const int first_gate = p.coupled() ? 1 : 0;
  for (int64_t step = 0; step < p.time; ++step) {
    const int64_t t = p.reverse ? p.time - 1 - step : step;
    for (int g = first_gate; g < 4; ++g)
      fill_rows(p.normalized() ? nullptr : args.in<float>(p.at[bias + g]), cells, batch, gates + g * batch * cells, cells);
    // x, aux and h, each meets the weights of all gates.
    const auto add = [&](const float* v, int64_t distance, int64_t columns, int weights, int16_t* bytes) HWY_ATTR {
      quantize_rows<W>(v, distance, columns, batch, work, bytes);
      for (int g = first_gate; g < 4; ++g)
        add_rows(args.in<W>(p.at[weights + g]), p.scales[weights + g], cells, columns, v, distance, batch, work, bytes,
            gates + g * batch * cells, cells);
    };
    add(args.in<float>(p.at[x]) + t * p.x_time + first * p.x_batch, p.x_batch, p.input, input_weights, area(areas.x));
    if (p.has(aux)) add(args.in<float>(p.at[aux]) + t * p.aux_time + first * p.aux_batch, p.aux_batch, p.aux, aux_weights, area(areas.aux));
    add(h, outputs, outputs, recurrent_weights, area(areas.output));

    float* hidden = gates + 3 * batch * cells;
    for (int64_t b = 0; b < batch; ++b) {
      float* cell = c + b * cells;
      const auto gate = [&](int g) { return gates + (g * batch + b) * cells; };
      const auto finish = [&](int g, int hole) HWY_ATTR {
        if (hole >= 0 && p.has(peephole + hole)) {
          if constexpr (kBytes) add_peephole(args.in<int8_t>(p.at[peephole + hole]), p.scales[peephole + hole], cell, cells, gate(g));
          else add_peephole(args.in<float>(p.at[peephole + hole]), 1.0f, cell, cells, gate(g));
        }
        if (p.normalized()) normalize_gate(args.in<float>(p.at[norm + g]), args.in<float>(p.at[bias + g]), cells, gate(g));
        if (g == 2) activate_floats(p.activation, gate(g), gate(g), cells);
        else logistic_floats(gate(g), cells);
      };
      if (!p.coupled()) finish(0, 0);
      finish(1, 1);
      finish(2, -1);
      update_cell(gate(0), gate(1), gate(2), cells, p.coupled(), p.cell_clip, cell);
      finish(3, 2);
      activate_floats(p.activation, cell, gate(2), cells);
      map_floats(gate(3), 1, gate(2), 1, gate(3), static_cast<size_t>(cells), [](auto, auto o, auto a) HWY_ATTR { return hn::Mul(o, a); });
    }
    float* out = args.out<float>(p.out) + t * p.out_time + first * p.out_batch + p.out_offset;
    if (p.has(projection)) {
      fill_rows(p.has(projection_bias) ? args.in<float>(p.at[projection_bias]) : nullptr, outputs, batch, h, outputs);
      quantize_rows<W>(hidden, cells, cells, batch, work, area(areas.hidden));
      add_rows(args.in<W>(p.at[projection]), p.scales[projection], outputs, cells, hidden, cells, batch, work, area(areas.hidden), h,
          outputs);
      if (p.projection_clip > 0) {
        const float clip = p.projection_clip;
        map_floats(h, h, static_cast<size_t>(batch * outputs),
                   [clip](auto d, auto v) HWY_ATTR { return clamp_keep_nan(d, v, hn::Set(d, -clip), hn::Set(d, clip)); });
      }
    } else {
      copy_rows(hidden, cells, outputs, batch, h, outputs);
    }
    copy_rows(h, outputs, outputs, batch, out, p.out_batch);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif
