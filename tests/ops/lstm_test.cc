// LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM, BIDIRECTIONAL_SEQUENCE_LSTM: every combination of optional parts against plain definitions
// in double and in exact integers; tails of every length; state from run to run; wrong nodes.
#include "tests/support/int16_functions.h"
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

using Numbers = std::vector<double>;

struct Sizes {
  int batch = 2, time = 3, input = 5, cell = 7, output = 7;
  bool coupled = false, peephole = false, norm = false, projection = false, projection_bias = false, time_major = false;
  float cell_clip = 0, projection_clip = 0;
};

// Parameters of one LSTM, by gate: input, forget, cell, output.
struct Weights {
  Numbers input[4], recurrent[4], aux[4], peephole[4], bias[4], norm[4], projection, projection_bias;
};
Numbers numbers(Random& random, int64_t count, double low, double high) {
  Numbers v;
  for (int64_t i = 0; i < count; ++i)
    v.push_back(static_cast<double>(static_cast<float>(low + (high - low) * static_cast<double>(random.between(0, 4096)) / 4096)));
  return v;
}
Weights make_weights(Random& random, const Sizes& s, int aux = 0) {
  Weights w;
  for (int g = s.coupled ? 1 : 0; g < 4; ++g) {
    w.input[g] = numbers(random, s.cell * s.input, -0.5, 0.5);
    w.recurrent[g] = numbers(random, s.cell * s.output, -0.5, 0.5);
    if (aux > 0) w.aux[g] = numbers(random, s.cell * aux, -0.5, 0.5);
    w.bias[g] = numbers(random, s.cell, -0.5, 0.5);
    if (s.peephole && g != 2) w.peephole[g] = numbers(random, s.cell, -0.5, 0.5);
    if (s.norm) w.norm[g] = numbers(random, s.cell, 0.5, 1.5);
  }
  if (s.projection) w.projection = numbers(random, s.output * s.cell, -0.5, 0.5);
  if (s.projection_bias) w.projection_bias = numbers(random, s.output, -0.5, 0.5);
  return w;
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double clip(double x, double limit) { return limit > 0 ? std::min(std::max(x, -limit), limit) : x; }

// h of every step of one sequence, from zero state; x [time][input], aux [time][aux].
Numbers plain_lstm(const Sizes& s, const Weights& w, const Numbers& x, const Numbers& aux, bool reverse) {
  const int columns_of_aux = aux.empty() ? 0 : static_cast<int>(aux.size()) / s.time;
  Numbers h(static_cast<size_t>(s.output)), c(static_cast<size_t>(s.cell)), all(static_cast<size_t>(s.time * s.output));
  for (int step = 0; step < s.time; ++step) {
    const int t = reverse ? s.time - 1 - step : step;
    const auto dot = [](const Numbers& m, int row, const Numbers& v, int at, int columns) {
      double sum = 0;
      for (int k = 0; k < columns; ++k) sum += m[static_cast<size_t>(row * columns + k)] * v[static_cast<size_t>(at + k)];
      return sum;
    };
    const auto gate = [&](int g) {
      Numbers y(static_cast<size_t>(s.cell));
      for (int i = 0; i < s.cell; ++i) {
        const auto k = static_cast<size_t>(i);
        y[k] = dot(w.input[g], i, x, t * s.input, s.input) + dot(w.recurrent[g], i, h, 0, s.output);
        if (columns_of_aux > 0) y[k] += dot(w.aux[g], i, aux, t * columns_of_aux, columns_of_aux);
        if (!w.peephole[g].empty()) y[k] += w.peephole[g][k] * c[k];
        if (!s.norm) y[k] += w.bias[g][k];
      }
      if (s.norm) {
        double mean = 0, variance = 0;
        for (double v : y) mean += v / s.cell;
        for (double v : y) variance += (v - mean) * (v - mean) / s.cell;
        for (size_t k = 0; k < y.size(); ++k) y[k] = (y[k] - mean) / std::sqrt(variance + 1e-8) * w.norm[g][k] + w.bias[g][k];
      }
      for (double& v : y) v = g == 2 ? std::tanh(v) : logistic(v);
      return y;
    };
    const Numbers forget = gate(1), update = gate(2), input = s.coupled ? Numbers() : gate(0);
    for (size_t k = 0; k < c.size(); ++k) c[k] = clip(forget[k] * c[k] + (s.coupled ? 1 - forget[k] : input[k]) * update[k], s.cell_clip);
    const Numbers output = gate(3);
    Numbers hidden(c.size());
    for (size_t k = 0; k < c.size(); ++k) hidden[k] = output[k] * std::tanh(c[k]);
    if (s.projection) {
      for (int i = 0; i < s.output; ++i)
        h[static_cast<size_t>(i)] =
            clip(dot(w.projection, i, hidden, 0, s.cell) + (s.projection_bias ? w.projection_bias[static_cast<size_t>(i)] : 0),
                s.projection_clip);
    } else {
      h = hidden;
    }
    std::copy(h.begin(), h.end(), all.begin() + t * s.output);
  }
  return all;
}
// The same for all sequences of a tensor; sequences and steps are apart by these distances in steps.
Numbers plain_sequences(const Sizes& s, const Weights& w, const std::vector<float>& x, const std::vector<float>& aux = {},
    bool reverse = false) {
  const int columns_of_aux = static_cast<int>(aux.size()) / (s.batch * s.time);
  Numbers result(static_cast<size_t>(s.batch * s.time * s.output));
  for (int b = 0; b < s.batch; ++b) {
    const auto at = [&](int t) { return s.time_major ? t * s.batch + b : b * s.time + t; };
    const auto sequence = [&](const std::vector<float>& from, int columns) {
      Numbers one;
      for (int t = 0; t < s.time; ++t)
        for (int k = 0; k < columns; ++k) one.push_back(static_cast<double>(from[static_cast<size_t>(at(t) * columns + k)]));
      return one;
    };
    const Numbers h = plain_lstm(s, w, sequence(x, s.input), sequence(aux, columns_of_aux), reverse);
    for (int t = 0; t < s.time; ++t)
      std::copy(h.begin() + t * s.output, h.begin() + (t + 1) * s.output, result.begin() + at(t) * s.output);
  }
  return result;
}

enum class Storage { floats, halves, bytes };

// Adds tensors of weights; those of int8 are rounded in `values`, too.
struct Tensors {
  ModelBuilder& m;
  Storage storage;
  int floats(const std::vector<int32_t>& shape, const Numbers& v) {
    return m.tensor(TensorType::float32, shape).values(std::vector<float>(v.begin(), v.end()));
  }
  int weights(const std::vector<int32_t>& shape, Numbers& v) {
    if (storage == Storage::floats) return floats(shape, v);
    if (storage == Storage::halves) {
      std::vector<half> stored;
      for (double& e : v) stored.push_back(float_to_half(static_cast<float>(e))), e = static_cast<double>(half_to_float(stored.back()));
      const int h = m.tensor(TensorType::float16, shape).values(stored), wide = m.tensor(TensorType::float32, shape);
      m.op(BuiltinOperator::dequantize, {h}, {wide});
      return wide;
    }
    const float scale = 0.5f / 127;
    std::vector<int8_t> stored;
    for (double& e : v) stored.push_back(static_cast<int8_t>(std::round(e / static_cast<double>(scale)))), e = stored.back()
      * static_cast<double>(scale);
    return m.tensor(TensorType::int8, shape).values(stored).quantized(scale, 0);
  }
  // 17 inputs from the input weights on: weights, peephole, bias, projection.
  std::vector<int32_t> all(const Sizes& s, Weights& w) {
    std::vector<int32_t> in(17, -1);
    for (int g = s.coupled ? 1 : 0; g < 4; ++g) {
      in[static_cast<size_t>(g)] = weights({s.cell, s.input}, w.input[g]);
      in[static_cast<size_t>(4 + g)] = weights({s.cell, s.output}, w.recurrent[g]);
      in[static_cast<size_t>(11 + g)] = floats({s.cell}, w.bias[g]);
    }
    if (s.peephole)
      for (int g : {0, 1, 3}) {
        if (s.coupled && g == 0) continue;
        in[static_cast<size_t>(8 + (g == 3 ? 2 : g))] = storage == Storage::bytes ? weights({s.cell}, w.peephole[g])
            : floats({s.cell}, w.peephole[g]);
      }
    if (s.projection) in[15] = weights({s.output, s.cell}, w.projection);
    if (s.projection_bias) in[16] = floats({s.output}, w.projection_bias);
    return in;
  }
};

// x is input 0; `whole`: LSTM, one step.
ModelBuilder lstm_model(const Sizes& s, Weights& w, Storage storage, bool whole = false, bool asymmetric = false) {
  ModelBuilder m;
  const std::vector<int32_t> steps = whole ? std::vector<int32_t>{s.batch} : s.time_major ? std::vector<int32_t>{s.time, s.batch}
      : std::vector<int32_t>{s.batch, s.time};
  std::vector<int32_t> x_shape = steps, y_shape = steps;
  x_shape.push_back(s.input), y_shape.push_back(s.output);
  const int x = m.tensor(TensorType::float32, x_shape, "x"), y = m.tensor(TensorType::float32, y_shape, "y");
  Tensors t{m, storage};
  std::vector<int32_t> in = {x};
  for (int32_t i : t.all(s, w)) in.push_back(i);
  in.push_back(m.tensor(TensorType::float32, {s.batch, s.output}, "h").variable());
  in.push_back(m.tensor(TensorType::float32, {s.batch, s.cell}, "c").variable());
  for (int g = 0; g < 4; ++g) in.push_back(s.norm && !(s.coupled && g == 0) ? t.floats({s.cell}, w.norm[g]) : -1);
  if (whole)
    m.op(BuiltinOperator::lstm, in, {y}).options(14).field<int8_t>(0, 4).field<float>(1, s.cell_clip).field<float>(2,
        s.projection_clip).field<bool>(4, asymmetric);
  else
    m.op(BuiltinOperator::unidirectional_sequence_lstm, in, {y}).options(71).field<int8_t>(0, 4).field<float>(1, s.cell_clip)
        .field<float>(2, s.projection_clip).field<bool>(3, s.time_major).field<bool>(4, asymmetric);
  m.inputs({x}).outputs({y});
  return m;
}
std::vector<float> floats_of(const Numbers& v) { return {v.begin(), v.end()}; }
Shape output_shape(const Sizes& s) { return s.time_major ? Shape{s.time, s.batch, s.output} : Shape{s.batch, s.time, s.output}; }
std::vector<float> input_of(Random& random, const Sizes& s) { return floats_of(numbers(random, s.batch * s.time * s.input, -1, 1)); }

// All combinations of the optional parts.
std::vector<Sizes> combinations() {
  std::vector<Sizes> all;
  for (int bits = 0; bits < 64; ++bits) {
    Sizes s;
    s.coupled = bits & 1, s.peephole = bits & 2, s.norm = bits & 4, s.projection = bits & 8, s.projection_bias = s.projection && (bits & 1);
    s.time_major = bits & 16;
    if (s.projection) s.output = 4;
    if (bits & 32) s.cell_clip = 0.25f, s.projection_clip = s.projection ? 0.125f : 0;
    all.push_back(s);
  }
  return all;
}

}  // namespace

TEST_CASE("every form of a float LSTM", "[ops][lstm]") {
  Random random(1);
  for (const Sizes& s : combinations()) {
    for (Storage storage : {Storage::floats, Storage::halves, Storage::bytes}) {
      Weights w = make_weights(random, s);
      const std::vector<float> x = input_of(random, s);
      const ModelBuilder m = lstm_model(s, w, storage, false, s.time_major);
      CAPTURE(s.coupled, s.peephole, s.norm, s.projection, s.time_major, s.cell_clip, static_cast<int>(storage));
      check_values(run_on_targets(m, {bytes_of(x)}), output_shape(s), floats_of(plain_sequences(s, w, x)),
          storage == Storage::bytes ? 0.03 : 2e-6);
    }
  }
}

TEST_CASE("an LSTM with tails of every length", "[ops][lstm]") {
  Random random(2);
  for (int n = 1; n <= 36; ++n) {
    for (Storage storage : {Storage::floats, Storage::halves, Storage::bytes}) {
      Sizes s;
      s.batch = 1 + n % 3, s.time = 2, s.input = n, s.cell = 37 - n, s.output = s.cell;
      if (n % 2) s.projection = true, s.output = n;
      Weights w = make_weights(random, s);
      const std::vector<float> x = input_of(random, s);
      const ModelBuilder m = lstm_model(s, w, storage);
      CAPTURE(n, static_cast<int>(storage));
      check_values(run_on_targets(m, {bytes_of(x)}), output_shape(s), floats_of(plain_sequences(s, w, x)),
          storage == Storage::bytes ? 0.04 : 4e-6);
    }
  }
}

TEST_CASE("the state of an LSTM stays from run to run, until reset", "[ops][lstm]") {
  Random random(3);
  Sizes s;
  s.time = 1;
  Weights w = make_weights(random, s);
  auto owner = std::make_shared<FileBytes>(lstm_model(s, w, Storage::floats, true).build());
  auto plan = make_plan<opset::All>(*ModelView::from_bytes(*owner, owner));
  REQUIRE(plan.ok());
  auto context = ExecutionContext::create(*plan);
  Sizes steps = s;
  steps.time = 3, steps.time_major = true;
  const std::vector<float> x = input_of(random, steps);
  const Numbers want = plain_sequences(steps, w, x);
  for (int round = 0; round < 2; ++round) {
    for (int t = 0; t < steps.time; ++t) {
      std::memcpy(context->input_bytes(0).data(), x.data() + t * s.batch * s.input, context->input_bytes(0).size());
      REQUIRE(context->run().ok());
      float got[14];
      std::memcpy(got, context->output_bytes(0).data(), sizeof(got));
      for (int i = 0; i < 14; ++i) CHECK(std::fabs(static_cast<double>(got[i]) - want[static_cast<size_t>(t * 14 + i)]) < 1e-6);
    }
    context->reset();
  }
}

TEST_CASE("one tensor cannot be both states", "[ops][lstm]") {
  Random random(7);
  const Sizes s;
  Weights w = make_weights(random, s);
  ModelBuilder m = lstm_model(s, w, Storage::floats);
  auto& inputs = m.spec.subgraphs[0].operators[0].inputs;
  inputs[19] = inputs[18];
  check_refused(run_on_targets(m, {bytes_of(input_of(random, s))}), ErrorCode::invalid_model, "uses tensor 'h' as both states");
}

TEST_CASE("converters widen the zeros that states begin with", "[ops][lstm]") {
  Random random(6);
  const Sizes s;
  Weights w = make_weights(random, s);
  const std::vector<float> x = input_of(random, s);
  const std::vector<float> want = floats_of(plain_sequences(s, w, x));
  for (float initial : {0.0f, 1.0f}) {
    ModelBuilder m = lstm_model(s, w, Storage::floats);
    const int32_t cell_state = m.spec.subgraphs[0].operators[0].inputs[19];
    const std::vector<half> values(static_cast<size_t>(s.batch * s.cell), float_to_half(initial));
    const int stored = m.tensor(TensorType::float16, {s.batch, s.cell}).values(values);
    m.op(BuiltinOperator::dequantize, {stored}, {cell_state});
    auto& operators = m.spec.subgraphs[0].operators;
    std::swap(operators[0], operators[1]);
    const auto results = run_on_targets(m, {bytes_of(x)});
    if (initial == 0) check_values(results, output_shape(s), want, 2e-6);
    else check_refused(results, ErrorCode::unsupported, "begins the variable 'c' with another value than 0");
  }
}

TEST_CASE("two directions, together and apart, with an auxiliary input", "[ops][bidirectional_lstm]") {
  Random random(4);
  for (int bits = 0; bits < 48; ++bits) {
    Sizes s, back;
    s.time_major = bits & 1, s.coupled = bits & 2, s.peephole = bits & 4;
    const bool merge = bits & 8;
    const int kind = bits / 16;  // no auxiliary input, one with weights, one for the second direction
    back = s;
    if (bits & 2) back.projection = true, back.output = 3;
    const int aux_columns = kind == 0 ? 0 : 6;
    if (kind == 2) back.input = aux_columns;
    for (Storage storage : {Storage::floats, Storage::bytes}) {
      Weights w = make_weights(random, s, kind == 1 ? aux_columns : 0), v = make_weights(random, back, kind == 1 ? aux_columns : 0);
      ModelBuilder m;
      Tensors t{m, storage};
      const auto shaped = [&](int last) { return s.time_major ? std::vector<int32_t>{s.time, s.batch, last}
          : std::vector<int32_t>{s.batch, s.time, last}; };
      const int x = m.tensor(TensorType::float32, shaped(s.input), "x");
      std::vector<int32_t> in = {x};
      for (int32_t i : t.all(s, w)) in.push_back(i);
      for (int32_t i : t.all(back, v)) in.push_back(i);
      for (int32_t n : {s.output, s.cell, back.output, back.cell}) in.push_back(m.tensor(TensorType::float32, {s.batch, n}).variable());
      std::vector<int32_t> inputs = {x};
      in.resize(48, -1);
      if (kind > 0) inputs.push_back(in[39] = m.tensor(TensorType::float32, shaped(aux_columns), "aux"));
      if (kind == 1)
        for (int g = s.coupled ? 1 : 0; g < 4; ++g) {
          in[static_cast<size_t>(40 + g)] = t.weights({s.cell, aux_columns}, w.aux[g]);
          in[static_cast<size_t>(44 + g)] = t.weights({s.cell, aux_columns}, v.aux[g]);
        }
      std::vector<int32_t> out = {m.tensor(TensorType::float32, {})};
      if (!merge) out.push_back(m.tensor(TensorType::float32, {}));
      m.op(BuiltinOperator::bidirectional_sequence_lstm, in, out).options(69).field<int8_t>(0, 4).field<bool>(3, merge).field<bool>(4,
          s.time_major);
      m.inputs(inputs).outputs(out);
      const std::vector<float> first = input_of(random, s), second = floats_of(numbers(random, s.batch * s.time * aux_columns, -1, 1));
      std::vector<std::vector<uint8_t>> values = {bytes_of(first)};
      if (kind > 0) values.push_back(bytes_of(second));
      const auto forward = floats_of(plain_sequences(s, w, first, kind == 1 ? second : std::vector<float>{}));
      const auto backward = floats_of(plain_sequences(back, v, kind == 2 ? second : first, kind == 1 ? second : std::vector<float>{},
          true));
      const double tolerance = storage == Storage::bytes ? 0.03 : 2e-6;
      CAPTURE(bits, static_cast<int>(storage));
      const auto results = run_on_targets(m, values);
      if (merge) {
        std::vector<float> both;
        for (int i = 0; i < s.batch * s.time; ++i) {
          both.insert(both.end(), forward.begin() + i * s.output, forward.begin() + (i + 1) * s.output);
          both.insert(both.end(), backward.begin() + i * back.output, backward.begin() + (i + 1) * back.output);
        }
        Shape shape = output_shape(s);
        shape[2] = s.output + back.output;
        check_values(results, shape, both, tolerance);
      } else {
        check_values(results, output_shape(s), forward, tolerance, 0);
        check_values(results, output_shape(back), backward, tolerance, 1);
      }
    }
  }
}

TEST_CASE("the basic LSTM", "[ops][lstm]") {
  Random random(5);
  for (int cells : {1, 5, 16, 19}) {
    for (bool halves : {false, true}) {
      const int batch = 3, input = 6, joined = input + cells;
      ModelBuilder m;
      Tensors t{m, halves ? Storage::halves : Storage::floats};
      Numbers w = numbers(random, 4 * cells * joined, -0.5, 0.5), bias = numbers(random, 4 * cells, -0.5, 0.5);
      const int x = m.tensor(TensorType::float32, {batch, input}, "x"), h = m.tensor(TensorType::float32, {batch, cells}, "h"),
          c = m.tensor(TensorType::float32, {batch, cells}, "c");
      const int weights = t.weights({4 * cells, joined}, w), b = t.floats({4 * cells}, bias);
      std::vector<int32_t> out;
      for (int i = 0; i < 4; ++i) out.push_back(m.tensor(TensorType::float32, {}));
      m.op(BuiltinOperator::lstm, {x, h, weights, b, c}, out).options(14).field<int8_t>(0, 4).field<int8_t>(3, 1);
      m.inputs({x, h, c}).outputs({out[0], out[1]});
      const Numbers xs = numbers(random, batch * input, -1, 1), hs = numbers(random, batch * cells, -1, 1),
          cs = numbers(random, batch * cells, -1, 1);
      std::vector<float> want_h, want_c;
      for (int s = 0; s < batch; ++s)
        for (int i = 0; i < cells; ++i) {
          double g[4];  // input, new value, forget, output
          for (int k = 0; k < 4; ++k) {
            g[k] = bias[static_cast<size_t>(k * cells + i)];
            for (int j = 0; j < joined; ++j)
              g[k] += w[static_cast<size_t>((k * cells + i) * joined + j)] * (j < input ? xs[static_cast<size_t>(s * input + j)]
                  : hs[static_cast<size_t>(s * cells + j - input)]);
          }
          const double state = logistic(g[0]) * std::tanh(g[1]) + logistic(g[2]) * cs[static_cast<size_t>(s * cells + i)];
          want_c.push_back(static_cast<float>(state)), want_h.push_back(static_cast<float>(logistic(g[3]) * std::tanh(state)));
        }
      const auto results = run_on_targets(m, {bytes_of(floats_of(xs)), bytes_of(floats_of(hs)), bytes_of(floats_of(cs))});
      check_values(results, {batch, cells}, want_h, 2e-6, 0);
      check_values(results, {batch, cells}, want_c, 2e-6, 1);
    }
  }
}
