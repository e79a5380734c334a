// Steps of an LSTM that is int8 from end to end, with int16 gates (Q3.12 before, Q0.15 behind their function) and int16 cell
// state, bit by bit as TFLite's reference kernels compute them, with two of their habits: with a projection the zero point of
// the hidden values is used negated, and peephole weights reach the first batch * output cells only. Included once per target.
#if defined(ONEWEIGHT_OPS_LSTM_INTEGER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_LSTM_INTEGER_INL_H
#undef ONEWEIGHT_OPS_LSTM_INTEGER_INL_H
#else
#define ONEWEIGHT_OPS_LSTM_INTEGER_INL_H
#endif

#include <algorithm>

#include "oneweight/ops/fixed_functions.h"
#include "oneweight/ops/lstm_node.h"
#include "oneweight/ops/recurrent-inl.h"
#include "oneweight/simd/int16_functions-inl.h"
#include "oneweight/simd/requantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline int16_t saturate_int16(int32_t x) { return static_cast<int16_t>(std::min(std::max(x, -32768), 32767)); }

// Vectors of int8 as padded int16 less their zero point.
HWY_INLINE void widen_rows(const int8_t* from, int64_t distance, int64_t columns, int64_t vectors, int32_t zero, int16_t* to) {
  const int64_t padded = padded_columns(columns);
  for (int64_t v = 0; v < vectors; ++v, from += distance, to += padded) {
    for (int64_t k = 0; k < columns; ++k) to[k] = static_cast<int16_t>(from[k] - zero);
    for (int64_t k = columns; k < padded; ++k) to[k] = 0;
  }
}

// gate = saturated(gate + factor * (sums + bias)); bias may be null, `begin`: the gate was 0.
HWY_INLINE void add_to_gate(const int32_t* HWY_RESTRICT sums, const int32_t* HWY_RESTRICT bias, int64_t count, FixedMultiplier factor,
                            bool begin, int16_t* HWY_RESTRICT gate) {
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<int16_t, decltype(d)> d16;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += n) {
    const auto left = static_cast<size_t>(count - i < n ? count - i : n);
    auto sum = hn::LoadN(d, sums + i, left);
    if (bias) sum = hn::Add(sum, hn::LoadN(d, bias + i, left));
    auto y = requantize(d, sum, factor);
    // Bounds that change no answer and keep the sum within 32 bits.
    if (!begin) y = hn::Add(hn::Min(hn::Max(y, hn::Set(d, -(1 << 30))), hn::Set(d, 1 << 30)),
        hn::PromoteTo(d, hn::LoadN(d16, gate + i, left)));
    hn::StoreN(hn::DemoteTo(d16, y), d16, gate + i, left);
  }
}

// Rounds like the reference kernel, whose integers are taken for real numbers times 2^10 in between.
inline void normalize_int16_gate(const int16_t* coefficients, const int32_t* bias, int64_t count, FixedMultiplier factor,
                                 int32_t variance_guard, int16_t* gate) {
  if (count == 0) return;
  int64_t sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) sum += gate[i], squares += int32_t{gate[i]} * gate[i];
  const auto mean = static_cast<int32_t>(sum * 1024 / count);
  const int64_t spread = squares * ((1 << 20) / count) - int64_t{mean} * mean;
  auto variance = static_cast<int32_t>(spread / (1 << 20));
  if (variance < 1) variance = variance_guard;
  const FixedMultiplier inverse = fixed::inverse_square_root(variance);
  FixedMultiplier last = factor;
  last.shift += 12;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t rescaled = multiply_by_quantized_multiplier(1024 * gate[i] - mean, inverse);
    const auto weighted = static_cast<int32_t>(static_cast<uint32_t>(rescaled) * static_cast<uint32_t>(int32_t{coefficients[i]}) +
        static_cast<uint32_t>(bias[i]));
    const auto scaled = static_cast<int32_t>((int64_t{weighted} + (weighted > 0 ? 512 : -512)) / 1024);
    gate[i] = saturate_int16(multiply_by_quantized_multiplier(scaled, last));
  }
}

template <class F>
HWY_INLINE void map_int16(const int16_t* in, int16_t* out, int64_t count, F f) {
  const hn::ScalableTag<int16_t> d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += n) {
    const auto left = static_cast<size_t>(count - i < n ? count - i : n);
    hn::StoreN(f(d, hn::LoadN(d, in + i, left)), d, out + i, left);
  }
}
// tanh of the cell state, whose scale is 2^exponent: 0 to 6 integer bits.
HWY_INLINE void tanh_of_cells(const int16_t* in, int64_t count, int exponent, int16_t* out) {
  switch (15 + exponent) {
    case 0: map_int16(in, out, count, [](auto d, auto x) HWY_ATTR { return tanh_int16<0>(d, x); }); break;
    case 1: map_int16(in, out, count, [](auto d, auto x) HWY_ATTR { return tanh_int16<1>(d, x); }); break;
    case 2: map_int16(in, out, count, [](auto d, auto x) HWY_ATTR { return tanh_int16<2>(d, x); }); break;
    case 3: map_int16(in, out, count, [](auto d, auto x) HWY_ATTR { return tanh_int16<3>(d, x); }); break;
    case 4: map_int16(in, out, count, [](auto d, auto x) HWY_ATTR { return tanh_int16<4>(d, x); }); break;
    case 5: map_int16(in, out, count, [](auto d, auto x) HWY_ATTR { return tanh_int16<5>(d, x); }); break;
    default: map_int16(in, out, count, [](auto d, auto x) HWY_ATTR { return tanh_int16<6>(d, x); }); break;
  }
}

// cell = saturated(forget * cell / 2^15 + input * update / 2^(30 + exponent)), clipped.
HWY_INLINE void update_int16_cell(const int16_t* HWY_RESTRICT input, const int16_t* HWY_RESTRICT forget, const int16_t* HWY_RESTRICT update,
                                  int64_t count, bool coupled, int exponent, int32_t clip, int16_t* HWY_RESTRICT cell) {
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<int16_t, decltype(d)> d16;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  const auto high = hn::Set(d, clip > 0 ? clip : 32767), low = hn::Set(d, clip > 0 ? -clip : -32768);
  for (int64_t i = 0; i < count; i += n) {
    const auto left = static_cast<size_t>(count - i < n ? count - i : n);
    const auto f = hn::PromoteTo(d, hn::LoadN(d16, forget + i, left)), c = hn::PromoteTo(d, hn::LoadN(d16, cell + i, left));
    const auto in = coupled ? hn::Sub(hn::Set(d, 32767), f) : hn::PromoteTo(d, hn::LoadN(d16, input + i, left));
    const auto u = hn::PromoteTo(d, hn::LoadN(d16, update + i, left));
    const auto sum = hn::Add(rounding_shift_right(d, hn::Mul(f, c), 15), rounding_shift_right(d, hn::Mul(in, u), 30 + exponent));
    hn::StoreN(hn::DemoteTo(d16, hn::Min(hn::Max(sum, low), high)), d16, cell + i, left);
  }
}

// All steps of the sequences [first, last).
inline void run_integer_lstm(const KernelArgs& args, const LstmIntegerParams& q, int64_t first, int64_t last) {
  using namespace lstm;
  const LstmParams& p = q.node;
  const int64_t batch = last - first, cells = p.cell, outputs = p.output;
  const LstmScratch areas = lstm_scratch(p, p.batch, 2, true);
  auto* gates = reinterpret_cast<int16_t*>(args.scratch + areas.gates);
  auto* sums = reinterpret_cast<int32_t*>(args.scratch + areas.sums);
  const auto area = [&](int64_t at) { return reinterpret_cast<int16_t*>(args.scratch + at); };
  int8_t* h = const_cast<int8_t*>(args.in<int8_t>(p.at[output_state])) + first * outputs;
  int16_t* c = const_cast<int16_t*>(args.in<int16_t>(p.at[cell_state])) + first * cells;
  const int first_gate = p.coupled() ? 1 : 0;
  for (int64_t t = 0; t < p.time; ++t) {
    const int8_t* in = args.in<int8_t>(p.at[x]) + t * p.x_time + first * p.x_batch;
    widen_rows(in, p.x_batch, p.input, batch, q.input_zero, area(areas.x));
    widen_rows(h, outputs, outputs, batch, q.output_zero, area(areas.output));
    for (int g = first_gate; g < 4; ++g) {
      const int32_t* b = p.normalized() ? nullptr : args.in<int32_t>(p.at[bias + g]);
      byte_row_products(args.in<int8_t>(p.at[input_weights + g]), cells, p.input, area(areas.x), padded_columns(p.input), batch, sums,
          cells);
      for (int64_t v = 0; v < batch; ++v) add_to_gate(sums + v * cells, b, cells, q.input[g], true, gates + (g * batch + v) * cells);
      byte_row_products(args.in<int8_t>(p.at[recurrent_weights + g]), cells, outputs, area(areas.output), padded_columns(outputs), batch,
          sums, cells);
      for (int64_t v = 0; v < batch; ++v)
        add_to_gate(sums + v * cells, nullptr, cells, q.recurrent[g], false, gates + (g * batch + v) * cells);
    }
    // A gate of all sequences, from its sums to its values.
    const auto finish = [&](int g, int hole) HWY_ATTR {
      int16_t* gate = gates + g * batch * cells;
      if (hole >= 0 && p.has(peephole + hole)) {
        const int16_t* w = args.in<int16_t>(p.at[peephole + hole]);
        const int64_t reach = std::min(outputs, cells);
        const int64_t together = q.peephole_runs_on ? batch : 1;
        for (int64_t v = 0; v < batch; v += together)
          for (int64_t i = 0; i < together * reach; ++i) {
            const int64_t at = v * cells + i;
            gate[at] = saturate_int16(multiply_by_quantized_multiplier(int32_t{w[i % reach]} * c[at], q.peephole[g]) + gate[at]);
          }
      }
      if (p.normalized())
        for (int64_t v = 0; v < batch; ++v)
          normalize_int16_gate(args.in<int16_t>(p.at[norm + g]), args.in<int32_t>(p.at[bias + g]), cells, q.norm[g], q.variance_guard[g],
              gate + v * cells);
      if (g == 2) map_int16(gate, gate, batch * cells, [](auto d, auto y) HWY_ATTR { return tanh_int16<3>(d, y); });
      else map_int16(gate, gate, batch * cells, [](auto d, auto y) HWY_ATTR { return logistic_int16(d, y); });
    };
    if (!p.coupled()) finish(0, 0);
    finish(1, 1);
    finish(2, -1);
    update_int16_cell(gates, gates + batch * cells, gates + 2 * batch * cells, batch * cells, p.coupled(), q.cell_exponent, q.cell_clip, c);
    finish(3, 2);
    int16_t *output_gate = gates + 3 * batch * cells, *activated = gates + 2 * batch * cells;
    tanh_of_cells(c, batch * cells, q.cell_exponent, activated);
    const auto hidden = [&](int64_t i, int32_t zero) {
      const int32_t y = multiply_by_quantized_multiplier(int32_t{output_gate[i]} * activated[i], q.hidden) + zero;
      return std::min(std::max(y, -128), 127);
    };
    if (p.has(projection)) {
      const int64_t padded = padded_columns(cells);
      for (int64_t v = 0; v < batch; ++v) {
        int16_t* to = area(areas.hidden) + v * padded;
        for (int64_t i = 0; i < cells; ++i) to[i] = static_cast<int16_t>(hidden(v * cells + i, -q.hidden_zero) + q.hidden_zero);
        for (int64_t i = cells; i < padded; ++i) to[i] = 0;
      }
      byte_row_products(args.in<int8_t>(p.at[projection]), outputs, cells, area(areas.hidden), padded, batch, sums, outputs);
      const int32_t* b = p.has(projection_bias) ? args.in<int32_t>(p.at[projection_bias]) : nullptr;
      const int32_t high = q.projection_clip > 0 ? q.projection_clip : 127, low = q.projection_clip > 0 ? -q.projection_clip : -128;
      for (int64_t i = 0; i < batch * outputs; ++i) {
        const auto sum = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + static_cast<uint32_t>(b ? b[i % outputs] : 0));
        const int64_t y = int64_t{multiply_by_quantized_multiplier(sum, q.projection)} + q.output_zero;
        h[i] = static_cast<int8_t>(std::min<int64_t>(std::max<int64_t>(y, low), high));
      }
    } else {
      for (int64_t i = 0; i < batch * cells; ++i) h[i] = static_cast<int8_t>(hidden(i, q.hidden_zero));
    }
    copy_rows(h, outputs, outputs, batch, args.out<int8_t>(p.out) + t * p.out_time + first * p.out_batch, p.out_batch);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();
#endif
