// The LSTM that is int8 from end to end against a plain definition in integers: every combination of optional parts, bit by bit.
#include "oneweight/base/fixed_point.h"
#include "tests/support/int16_functions.h"
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

struct Quantized {
  int batch = 2, time = 3, input = 5, cell = 7, output = 7;
  bool coupled = false, peephole = false, norm = false, projection = false, time_major = false, clips = false, whole = false;
  int cell_exponent = -12;
  float x_scale = 0.0078f, h_scale = 0.0062f, hidden_scale = 0.0062f, gate_scale = 0.00006f;
  int x_zero = -3, h_zero = 5, hidden_zero = 5;
  std::vector<int8_t> w[4], r[4], projection_weights;
  std::vector<int16_t> p[4], n[4];
  std::vector<int32_t> b[4], projection_bias;
  float w_scale = 0.004f, p_scale = 0.00001f, n_scale = 0.00004f;
};

Quantized make(Random& random, int bits) {
  Quantized q;
  q.coupled = bits & 1, q.peephole = bits & 2, q.norm = bits & 4, q.projection = bits & 8, q.time_major = bits & 16, q.clips = bits & 32;
  q.whole = bits % 5 == 4;
  if (q.whole) q.time = 1, q.time_major = true;
  q.cell_exponent = -15 + bits % 7;
  if (q.projection) q.output = 4, q.hidden_scale = 0.004f, q.hidden_zero = -2;
  const auto bytes = [&](int64_t count) { return random.values<int8_t>(count); };
  for (int g = q.coupled ? 1 : 0; g < 4; ++g) {
    q.w[g] = bytes(q.cell * q.input), q.r[g] = bytes(q.cell * q.output);
    if (q.peephole && g != 2) q.p[g] = random.values<int16_t>(q.cell);
    if (q.norm) q.n[g] = random.values<int16_t>(q.cell);
    for (int i = 0; i < q.cell; ++i) q.b[g].push_back(static_cast<int32_t>(random.between(-20000, 20000)));
  }
  if (q.projection) {
    q.projection_weights = bytes(q.output * q.cell);
    for (int i = 0; i < q.output; ++i) q.projection_bias.push_back(static_cast<int32_t>(random.between(-3000, 3000)));
  }
  return q;
}

ModelBuilder model_of(const Quantized& q, float cell_scale) {
  ModelBuilder m;
  const auto steps = [&](int last) {
    return q.whole ? std::vector<int32_t>{q.batch, last} : q.time_major ? std::vector<int32_t>{q.time, q.batch, last}
        : std::vector<int32_t>{q.batch, q.time, last};
  };
  const int x = m.tensor(TensorType::int8, steps(q.input), "x").quantized(q.x_scale, q.x_zero);
  std::vector<int32_t> in(24, -1);
  in[0] = x;
  for (int g = q.coupled ? 1 : 0; g < 4; ++g) {
    const auto k = static_cast<size_t>(g);
    in[1 + k] = m.tensor(TensorType::int8, {q.cell, q.input}).values(q.w[g]).quantized(q.w_scale, 0);
    in[5 + k] = m.tensor(TensorType::int8, {q.cell, q.output}).values(q.r[g]).quantized(q.w_scale, 0);
    if (!q.p[g].empty()) in[g == 3 ? 11 : 9 + k] = m.tensor(TensorType::int16, {q.cell}).values(q.p[g]).quantized(q.p_scale, 0);
    in[12 + k] = m.tensor(TensorType::int32, {q.cell}).values(q.b[g]);
    if (q.norm) in[20 + k] = m.tensor(TensorType::int16, {q.cell}).values(q.n[g]).quantized(q.n_scale, 0);
  }
  if (q.projection) {
    in[16] = m.tensor(TensorType::int8, {q.output, q.cell}).values(q.projection_weights).quantized(q.w_scale, 0);
    in[17] = m.tensor(TensorType::int32, {q.output}).values(q.projection_bias);
  }
  in[18] = m.tensor(TensorType::int8, {q.batch, q.output}, "h").variable().quantized(q.h_scale, q.h_zero);
  in[19] = m.tensor(TensorType::int16, {q.batch, q.cell}, "c").variable().quantized(cell_scale, 0);
  const int y = m.tensor(TensorType::int8, steps(q.output), "y").quantized(q.h_scale, q.h_zero);
  std::vector<int32_t> between;
  for (int i = 0; i < 4; ++i) between.push_back(m.tensor(TensorType::int16, {0}).quantized(q.gate_scale, 0));
  between.push_back(m.tensor(TensorType::int8, {0}).quantized(q.hidden_scale, q.hidden_zero));
  const float cell_clip = q.clips ? 0.75f * std::ldexp(1.0f, 14 + q.cell_exponent) : 0,
      projection_clip = q.clips && q.projection ? 0.3f : 0;
  if (q.whole)
    m.op(BuiltinOperator::lstm, in, {y}).options(14).field<int8_t>(0, 4).field<float>(1, cell_clip).field<float>(2,
        projection_clip).intermediates(between);
  else
    m.op(BuiltinOperator::unidirectional_sequence_lstm, in, {y}).options(71).field<int8_t>(0, 4).field<float>(1, cell_clip).field<float>(2,
        projection_clip)
        .field<bool>(3, q.time_major).intermediates(between);
  m.inputs({x}).outputs({y});
  return m;
}

int scaled(int64_t x, float factor) { return
    multiply_by_quantized_multiplier(static_cast<int32_t>(x), quantize_multiplier(static_cast<double>(factor))); }
int clamp16(int64_t x) { return static_cast<int>(std::min<int64_t>(std::max<int64_t>(x, -32768), 32767)); }

std::vector<int8_t> plain(const Quantized& q, const std::vector<int8_t>& x) {
  std::vector<int8_t> out(static_cast<size_t>(q.batch * q.time * q.output));
  const int cells = q.batch * q.cell;
  std::vector<int> h(static_cast<size_t>(q.batch * q.output), q.h_zero), c(static_cast<size_t>(cells));
  const float before = q.norm ? q.gate_scale : 1.0f / 4096;
  for (int t = 0; t < q.time; ++t) {
    const auto at = [&](int b) { return q.time_major ? t * q.batch + b : b * q.time + t; };
    const auto gate = [&](int g) {
      std::vector<int> y(static_cast<size_t>(cells));
      for (int i = 0; i < cells; ++i) {
        const int b = i / q.cell, k = i % q.cell;
        int64_t input = q.norm ? 0 : q.b[g][static_cast<size_t>(k)], recurrent = 0;
        for (int j = 0; j < q.input; ++j)
          input += q.w[g][static_cast<size_t>(k * q.input + j)] * (x[static_cast<size_t>(at(b) * q.input + j)] - q.x_zero);
        for (int j = 0; j < q.output; ++j)
          recurrent += q.r[g][static_cast<size_t>(k * q.output + j)] * (h[static_cast<size_t>(b * q.output + j)] - q.h_zero);
        y[static_cast<size_t>(i)] =
            clamp16(clamp16(scaled(input, q.w_scale * q.x_scale / before)) + int64_t{scaled(recurrent, q.w_scale * q.h_scale / before)});
      }
      if (!q.p[g].empty()) {
        const auto factor = static_cast<float>(std::ldexp(1.0,
            q.cell_exponent) * static_cast<double>(q.p_scale) / static_cast<double>(before));
        const int together = q.time_major ? q.batch : 1;
        for (int b = 0; b < q.batch; b += together)
          for (int i = 0; i < together * q.output; ++i) {
            const auto k = static_cast<size_t>(b * q.cell + i);
            y[k] = clamp16(int64_t{scaled(q.p[g][static_cast<size_t>(i % q.output)] * c[k], factor)} + y[k]);
          }
      }
      if (q.norm) {
        for (int b = 0; b < q.batch; ++b) {
          int64_t sum = 0, squares = 0;
          for (int k = 0; k < q.cell; ++k)
            sum += y[static_cast<size_t>(b * q.cell + k)],
                squares += int64_t{y[static_cast<size_t>(b * q.cell + k)]} * y[static_cast<size_t>(b * q.cell + k)];
          const int64_t mean = sum * 1024 / q.cell;
          int64_t variance = (squares * ((1 << 20) / q.cell) - mean * mean) / (1 << 20);
          if (variance < 1) variance = std::max(1, static_cast<int>(10000 * q.n_scale));
          // 2^31 / sqrt(variance) as the kernel's iteration gives it, within its error.
          for (int k = 0; k < q.cell; ++k) {
            int& v = y[static_cast<size_t>(b * q.cell + k)];
            const double rescaled = std::round((1024.0 * v - static_cast<double>(mean)) / std::sqrt(static_cast<double>(variance)));
            const double weighted = rescaled * q.n[g][static_cast<size_t>(k)] + q.b[g][static_cast<size_t>(k)];
            v = clamp16(scaled(static_cast<int64_t>(std::round(weighted / 1024)), q.n_scale * 4096));
          }
        }
      }
      for (int& v : y) v = g == 2 ? plain16::tanh(v, 3) : plain16::logistic(v);
      return y;
    };
    const std::vector<int> forget = gate(1), update = gate(2), input = q.coupled ? std::vector<int>() : gate(0);
    for (int i = 0; i < cells; ++i) {
      const auto k = static_cast<size_t>(i);
      const int in = q.coupled ? 32767 - forget[k] : input[k];
      const double kept = std::round(static_cast<double>(forget[k]) * c[k] / 32768),
          added = std::round(static_cast<double>(in) * update[k] / std::ldexp(1.0, 30 + q.cell_exponent));
      const int limit = q.clips ? static_cast<int>(0.75 * 16384) : 32767;
      c[k] = std::min(std::max(clamp16(static_cast<int64_t>(kept + added)), q.clips ? -limit : -32768), limit);
    }
    const std::vector<int> output = gate(3);
    const auto hidden = [&](int i, int zero) {
      const int y = output[static_cast<size_t>(i)] * plain16::tanh(c[static_cast<size_t>(i)], 15 + q.cell_exponent);
      const auto factor = static_cast<float>(std::ldexp(1.0, -15) / static_cast<double>(q.hidden_scale) * std::ldexp(1.0, -15));
      return std::min(std::max(scaled(y, factor) + zero, -128), 127);
    };
    for (int b = 0; b < q.batch; ++b)
      for (int i = 0; i < q.output; ++i) {
        int& to = h[static_cast<size_t>(b * q.output + i)];
        if (q.projection) {
          int64_t sum = q.projection_bias[static_cast<size_t>(i)];
          for (int k = 0; k < q.cell; ++k)
            sum += q.projection_weights[static_cast<size_t>(i * q.cell + k)] * (hidden(b * q.cell + k, -q.hidden_zero) + q.hidden_zero);
          to = std::min(std::max(scaled(sum, q.w_scale * q.hidden_scale / q.h_scale) + q.h_zero, -128), 127);
          if (const int limit = static_cast<int>(0.3f / q.h_scale); q.clips) to = std::min(std::max(to, -limit), limit);
        } else {
          to = hidden(b * q.cell + i, q.hidden_zero);
        }
        out[static_cast<size_t>(at(b) * q.output + i)] = static_cast<int8_t>(to);
      }
  }
  return out;
}

}  // namespace

TEST_CASE("every form of the integer LSTM", "[ops][lstm_integer]") {
  Random random(11);
  for (int bits = 0; bits < 64; ++bits) {
    const Quantized q = make(random, bits);
    const std::vector<int8_t> x = random.values<int8_t>(q.batch * q.time * q.input);
    CAPTURE(bits, q.coupled, q.peephole, q.norm, q.projection, q.time_major, q.whole);
    const Shape shape = q.whole ? Shape{q.batch, q.output} : q.time_major ? Shape{q.time, q.batch, q.output}
        : Shape{q.batch, q.time, q.output};
    // Normalised gates are compared within a step: the definition here divides by the true deviation.
    check_values(run_on_targets(model_of(q, std::ldexp(1.0f, q.cell_exponent)), {bytes_of(x)}), shape, plain(q, x), q.norm ? 1 : 0);
  }
}

TEST_CASE("nodes of LSTMs that are wrong", "[ops][lstm_integer]") {
  Random random(12);
  const Quantized q = make(random, 0);
  const std::vector<std::vector<uint8_t>> x = {bytes_of(random.values<int8_t>(q.batch * q.time * q.input))};
  const auto refused = [&](const std::string& words, auto change, ErrorCode code = ErrorCode::invalid_model) {
    ModelBuilder m = model_of(q, std::ldexp(1.0f, q.cell_exponent));
    change(m.spec.subgraphs[0].tensors, m.spec.subgraphs[0].operators[0]);
    check_refused(run_on_targets(m, x), code, words);
  };
  using Tensors = std::vector<TensorSpec>;
  const auto tensor = [](Tensors& all, const OperatorSpec& op,
      int input) -> TensorSpec& { return all[static_cast<size_t>(op.inputs[static_cast<size_t>(input)])]; };
  check_refused(run_on_targets(model_of(q, 0.0003f), x), ErrorCode::invalid_model, "not a power of two within 2^-15 and 2^-9");
  refused("has 4 intermediate tensors, not 5", [](Tensors&, OperatorSpec& op) { op.intermediates.pop_back(); });
  refused("has int8 gates", [](Tensors&, OperatorSpec& op) { op.intermediates.resize(12, op.intermediates[0]); }, ErrorCode::unsupported);
  refused("cell state tensor 'c' int16 [2, 7] is not a variable", [&](Tensors& all, OperatorSpec& op) {
    tensor(all, op, 19).is_variable = false;
    tensor(all, op, 19).data = std::vector<uint8_t>(28);
  });
  refused("must be int8 with as many elements as [2, 7]", [&](Tensors& all, OperatorSpec& op) { tensor(all, op, 18).shape = {3, 7}; });
  refused("only a part of input weights, recurrent weights and bias of the input gate",
      [](Tensors&, OperatorSpec& op) { op.inputs[12] = -1; });
  refused("has no weights, bias or state", [](Tensors&, OperatorSpec& op) { op.inputs[2] = -1; });
  refused("only a part of the peephole weights", [](Tensors&, OperatorSpec& op) { op.inputs[10] = op.inputs[12]; });
  refused("must be int16 [7]", [](Tensors&, OperatorSpec& op) { op.inputs[9] = op.inputs[10] = op.inputs[11] = op.inputs[12]; });
  refused("only a part of the layer normalisation's coefficients", [](Tensors&, OperatorSpec& op) { op.inputs[21] = op.inputs[12]; });
  refused("a bias for a projection that is not there", [](Tensors&, OperatorSpec& op) { op.inputs[17] = op.inputs[12]; });
  refused("has 23 inputs, not 20 or 24", [](Tensors&, OperatorSpec& op) { op.inputs.pop_back(); });
  refused("must be int8 [7, 5]", [&](Tensors& all, OperatorSpec& op) { tensor(all, op, 3).shape = {5, 7}; });
  refused("has zero point 3, not 0", [&](Tensors& all, OperatorSpec& op) { tensor(all, op, 3).zero_points = {3}; }, ErrorCode::unsupported);
  refused("has rank 2, not 3 to 3", [&](Tensors& all, OperatorSpec&) { all[0].shape = {6, 5}; });
  refused("differ in scale or zero point", [&](Tensors& all, OperatorSpec& op) { tensor(all, op, 18).zero_points = {6}; });
  refused("cell state tensor 'h' int8 [2, 7] must be int16", [](Tensors&, OperatorSpec& op) { op.inputs[19] = op.inputs[18]; });
  refused("clips at -1 and 0", [](Tensors&, OperatorSpec& op) { op.options.fields[1].bytes = bytes_of<float>({-1.0f}); });
}
