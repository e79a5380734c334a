// RNN, UNIDIRECTIONAL_SEQUENCE_RNN, BIDIRECTIONAL_SEQUENCE_RNN and SVDF against plain definitions in double and in integers.
#include "oneweight/base/fixed_point.h"
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

double activate(double x, int kind) {
  switch (kind) {
    case 1: return std::max(x, 0.0);
    case 2: return std::min(std::max(x, -1.0), 1.0);
    case 3: return std::min(std::max(x, 0.0), 6.0);
    case 4: return std::tanh(x);
    default: return x;
  }
}
std::vector<float> numbers(Random& random, int64_t count) {
  std::vector<float> v;
  for (int64_t i = 0; i < count; ++i) v.push_back(static_cast<float>(random.between(-2048, 2048)) / 4096);
  return v;
}
// storage: 0 float, 1 half, 2 int8; values are rounded as stored.
int weights(ModelBuilder& m, int storage, const std::vector<int32_t>& shape, std::vector<float>& v) {
  if (storage == 0) return m.tensor(TensorType::float32, shape).values(v);
  if (storage == 1) {
    std::vector<half> stored;
    for (float& e : v) stored.push_back(float_to_half(e)), e = half_to_float(stored.back());
    const int h = m.tensor(TensorType::float16, shape).values(stored), wide = m.tensor(TensorType::float32, shape);
    m.op(BuiltinOperator::dequantize, {h}, {wide});
    return wide;
  }
  std::vector<int8_t> stored;
  for (float& e : v) stored.push_back(static_cast<int8_t>(std::round(e * 254))), e = static_cast<float>(stored.back()) / 254;
  return m.tensor(TensorType::int8, shape).values(stored).quantized(1.0f / 254, 0);
}

struct Cell {
  int input, units;
  std::vector<float> w, r, b, a;
};
Cell make_cell(Random& random, int input, int units, int aux = 0) {
  return {input, units, numbers(random, units * input), numbers(random, units * units), numbers(random, units),
      numbers(random, units * aux)};
}

// One sequence after the other; step (b, t) lies at at(b, t).
template <class At>
std::vector<float> plain_rnn(const Cell& c, int batch, int time, int kind, const std::vector<float>& x, const std::vector<float>& aux,
    bool reverse, At at) {
  const int extra = c.a.empty() ? 0 : static_cast<int>(aux.size()) / (batch * time);
  std::vector<float> out(static_cast<size_t>(batch * time * c.units));
  for (int b = 0; b < batch; ++b) {
    std::vector<double> h(static_cast<size_t>(c.units));
    for (int step = 0; step < time; ++step) {
      const int row = at(b, reverse ? time - 1 - step : step);
      std::vector<double> next;
      for (int u = 0; u < c.units; ++u) {
        double sum = static_cast<double>(c.b[static_cast<size_t>(u)]);
        const auto dot = [&](const std::vector<float>& m, const auto& v, int from, int columns) {
          for (int k = 0; k < columns; ++k) sum += static_cast<double>(m[static_cast<size_t>(u * columns + k)])
            * static_cast<double>(v[static_cast<size_t>(from + k)]);
        };
        dot(c.w, x, row * c.input, c.input);
        dot(c.r, h, 0, c.units);
        if (extra > 0) dot(c.a, aux, row * extra, extra);
        next.push_back(activate(sum, kind));
      }
      h = next;
      for (int u = 0; u < c.units; ++u) out[static_cast<size_t>(row * c.units + u)] = static_cast<float>(h[static_cast<size_t>(u)]);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("RNNs of one step and of sequences", "[ops][rnn]") {
  Random random(21);
  for (int n = 1; n <= 34; ++n) {
    for (int storage = 0; storage < 3; ++storage) {
      const int batch = 1 + n % 3, units = n % 7 + 1, kind = n % 5;
      const bool sequence = n % 2, time_major = n % 4 == 1;
      const int time = sequence ? 3 : 1;
      Cell c = make_cell(random, n, units);
      ModelBuilder m;
      const std::vector<int32_t> shape = !sequence ? std::vector<int32_t>{batch, n} : time_major ? std::vector<int32_t>{time, batch, n}
          : std::vector<int32_t>{batch, time, n};
      const int x = m.tensor(TensorType::float32, shape, "x"), w = weights(m, storage, {units, n}, c.w),
          r = weights(m, storage, {units, units}, c.r),
                b = m.tensor(TensorType::float32, {units}).values(c.b), h = m.tensor(TensorType::float32, {batch, units}).variable(),
                    y = m.tensor(TensorType::float32, {});
      if (sequence)
        m.op(BuiltinOperator::unidirectional_sequence_rnn, {x, w, r, b, h}, {y}).options(31).field<bool>(0, time_major).field<int8_t>(1,
            static_cast<int8_t>(kind)).field<bool>(2, n % 3 == 0);
      else
        m.op(BuiltinOperator::rnn, {x, w, r, b, h}, {y}).options(7).field<int8_t>(0, static_cast<int8_t>(kind)).field<bool>(1, n % 3 == 0);
      m.inputs({x}).outputs({y});
      const std::vector<float> values = numbers(random, batch * time * n);
      const auto want = plain_rnn(c, batch, time, kind, values, {}, false,
          [&](int s, int t) { return time_major ? t * batch + s : s * time + t; });
      Shape out;
      for (size_t i = 0; i + 1 < shape.size(); ++i) out.push_back(shape[i]);
      out.push_back(units);
      CAPTURE(n, storage);
      check_values(run_on_targets(m, {bytes_of(values)}), out, want, storage == 2 ? 0.03 : 2e-6);
    }
  }
}

TEST_CASE("RNNs in two directions", "[ops][rnn]") {
  Random random(22);
  for (int bits = 0; bits < 24; ++bits) {
    for (int storage = 0; storage < 3; ++storage) {
      const int batch = 2, time = 3, input = 4, other = 5, kind = bits % 5;
      const bool time_major = bits & 1, merge = bits & 2, aux_weights = bits / 8 == 1, apart = bits / 8 == 2;
      Cell f = make_cell(random, input, 3, aux_weights ? other : 0),
          g = make_cell(random, apart ? other : input, 6, aux_weights ? other : 0);
      ModelBuilder m;
      const auto shaped = [&](int last) { return time_major ? std::vector<int32_t>{time, batch, last}
          : std::vector<int32_t>{batch, time, last}; };
      const int x = m.tensor(TensorType::float32, shaped(input), "x");
      std::vector<int32_t> in = {x}, inputs = {x};
      for (Cell* c : {&f, &g}) {
        in.push_back(weights(m, storage, {c->units, c->input}, c->w));
        in.push_back(weights(m, storage, {c->units, c->units}, c->r));
        in.push_back(m.tensor(TensorType::float32, {c->units}).values(c->b));
        in.push_back(m.tensor(TensorType::float32, {batch, c->units}).variable());
      }
      in.resize(12, -1);
      if (aux_weights || apart) inputs.push_back(in[9] = m.tensor(TensorType::float32, shaped(other), "aux"));
      if (aux_weights) in[10] = weights(m, storage, {f.units, other}, f.a), in[11] = weights(m, storage, {g.units, other}, g.a);
      std::vector<int32_t> out = {m.tensor(TensorType::float32, {})};
      if (!merge) out.push_back(m.tensor(TensorType::float32, {}));
      m.op(BuiltinOperator::bidirectional_sequence_rnn, in, out).options(70).field<bool>(0, time_major).field<int8_t>(1,
          static_cast<int8_t>(kind)).field<bool>(2, merge);
      m.inputs(inputs).outputs(out);
      const std::vector<float> first = numbers(random, batch * time * input), second = numbers(random, batch * time * other);
      std::vector<std::vector<uint8_t>> values = {bytes_of(first)};
      if (inputs.size() > 1) values.push_back(bytes_of(second));
      const auto at = [&](int s, int t) { return time_major ? t * batch + s : s * time + t; };
      const auto forward = plain_rnn(f, batch, time, kind, first, second, false, at),
          backward = plain_rnn(g, batch, time, kind, apart ? second : first, second, true, at);
      const auto results = run_on_targets(m, values);
      const double tolerance = storage == 2 ? 0.05 : 2e-6;
      CAPTURE(bits, storage);
      const Shape shape = time_major ? Shape{time, batch} : Shape{batch, time};
      if (merge) {
        std::vector<float> both;
        for (int i = 0; i < batch * time; ++i) {
          both.insert(both.end(), forward.begin() + i * 3, forward.begin() + i * 3 + 3);
          both.insert(both.end(), backward.begin() + i * 6, backward.begin() + i * 6 + 6);
        }
        check_values(results, {shape[0], shape[1], 9}, both, tolerance);
      } else {
        check_values(results, {shape[0], shape[1], 3}, forward, tolerance, 0);
        check_values(results, {shape[0], shape[1], 6}, backward, tolerance, 1);
      }
    }
  }
}

TEST_CASE("RNNs that are wrong", "[ops][rnn]") {
  const auto run = [](std::vector<int32_t> w, std::vector<int32_t> state, bool variable, int8_t activation) {
    ModelBuilder m;
    const auto values = [](const std::vector<int32_t>& s) { return std::vector<float>(static_cast<size_t>(s[0] * s[1])); };
    const int x = m.tensor(TensorType::float32, {2, 3}, "x"), weights = m.tensor(TensorType::float32, w, "w").values(values(w)),
              r = m.tensor(TensorType::float32, {4, 4}, "r").values(values({4, 4})),
                  b = m.tensor(TensorType::float32, {4}, "b").values(std::vector<float>(4));
    auto h = m.tensor(TensorType::float32, state, "h");
    if (variable) h.variable();
    else h.values(values(state));
    const int y = m.tensor(TensorType::float32, {2, 4});
    m.op(BuiltinOperator::rnn, {x, weights, r, b, h}, {y}).options(7).field<int8_t>(0, activation);
    m.inputs({x}).outputs({y});
    return run_on_targets(m, {bytes_of(std::vector<float>(6))});
  };
  check_refused(run({4, 2}, {2, 4}, true, 0), ErrorCode::invalid_model, "weights tensor 'w' float32 [4, 2] must be float32 [4, 3]");
  check_refused(run({4, 3}, {1, 4}, true, 0), ErrorCode::invalid_model, "with as many elements as [2, 4]");
  check_refused(run({4, 3}, {2, 4}, false, 0), ErrorCode::invalid_model, "is not a variable");
  check_refused(run({4, 3}, {2, 4}, true, 5), ErrorCode::unsupported, "fused activation 5");
}

namespace {

// Runs an SVDF several times in one context and compares each run.
template <class T>
void check_runs(const ModelBuilder& m, const std::vector<std::vector<T>>& inputs, const std::vector<std::vector<T>>& want,
    double tolerance) {
  auto owner = std::make_shared<FileBytes>(m.build());
  auto model = ModelView::from_bytes(*owner, owner);
  REQUIRE(model.ok());
  for (int64_t left = available_targets(); left != 0; left &= left - 1) {
    PlanOptions options;
    options.target_mask = left & -left;
    auto plan = make_plan<opset::All>(*model, options);
    INFO(plan.status().message());
    REQUIRE(plan.ok());
    auto context = ExecutionContext::create(*plan);
    for (size_t run = 0; run < inputs.size(); ++run) {
      std::memcpy(context->input_bytes(0).data(), inputs[run].data(), context->input_bytes(0).size());
      REQUIRE(context->run().ok());
      std::vector<T> got(want[run].size());
      std::memcpy(got.data(), context->output_bytes(0).data(), got.size() * sizeof(T));
      for (size_t i = 0; i < got.size(); ++i)
        CHECK(std::fabs(static_cast<double>(got[i]) - static_cast<double>(want[run][i])) <= tolerance);
    }
  }
}

}  // namespace

TEST_CASE("SVDF on floats over several runs", "[ops][svdf]") {
  Random random(23);
  for (int n = 1; n <= 20; ++n) {
    for (int storage = 0; storage < 3; ++storage) {
      const int batch = 1 + n % 2, rank = 1 + n % 3, units = 1 + n % 5, filters = units * rank, input = n + 3, memory = 1 + n % 11,
          kind = n % 5;
      std::vector<float> feature = numbers(random, filters * input), time = numbers(random, filters * memory),
          bias = numbers(random, units);
      ModelBuilder m;
      const int x = m.tensor(TensorType::float32, {batch, input}, "x"), f = weights(m, storage, {filters, input}, feature),
          t = weights(m, storage, {filters, memory}, time);
      const int b = n % 2 ? static_cast<int>(m.tensor(TensorType::float32, {units}).values(bias)) : -1;
      const int s = m.tensor(TensorType::float32, {batch, filters * memory}).variable(), y = m.tensor(TensorType::float32, {batch, units});
      m.op(BuiltinOperator::svdf, {x, f, t, b, s}, {y}).options(6).field<int32_t>(0, rank).field<int8_t>(1,
          static_cast<int8_t>(kind)).field<bool>(2, n % 3 == 0);
      m.inputs({x}).outputs({y});
      std::vector<std::vector<float>> inputs, want;
      std::vector<std::vector<double>> history(static_cast<size_t>(batch * filters));  // of each filter, newest last
      for (int run = 0; run < 5; ++run) {
        inputs.push_back(numbers(random, batch * input));
        want.emplace_back();
        for (int i = 0; i < batch * filters; ++i) {
          double sum = 0;
          for (int k = 0; k < input; ++k)
            sum += static_cast<double>(feature[static_cast<size_t>(i % filters * input +
                k)]) * static_cast<double>(inputs.back()[static_cast<size_t>(i / filters * input + k)]);
          history[static_cast<size_t>(i)].push_back(sum);
        }
        for (int i = 0; i < batch * units; ++i) {
          double sum = b >= 0 ? static_cast<double>(bias[static_cast<size_t>(i % units)]) : 0;
          for (int k = 0; k < rank; ++k) {
            const auto& past = history[static_cast<size_t>(i / units * filters + i % units * rank + k)];
            for (int age = 0; age < memory && age < static_cast<int>(past.size()); ++age)
              sum += past[past.size() - 1
                  - static_cast<size_t>(age)] * static_cast<double>(time[static_cast<size_t>((i % units * rank + k) * memory + memory - 1
                      - age)]);
          }
          want.back().push_back(static_cast<float>(activate(sum, kind)));
        }
      }
      CAPTURE(n, storage);
      check_runs(m, inputs, want, storage == 2 ? 0.05 : 1e-5);
      run_on_targets(m, {bytes_of(inputs[0])});  // between guard pages
    }
  }
}

namespace {

template <class S>
void check_integer_svdf(int state_zero) {
  Random random(24);
  for (int n = 1; n <= 12; ++n) {
    const int batch = 1 + n % 2, rank = 1 + n % 3, units = 2 + n % 4, filters = units * rank, input = 3 + n * 5, memory = 1 + n % 6;
    const float x_scale = 0.02f, f_scale = 0.01f, t_scale = sizeof(S) == 2 ? 0.0001f : 0.01f, s_scale = sizeof(S) == 2 ? 0.0004f : 0.05f,
        y_scale = 0.05f;
    const int x_zero = -7, y_zero = -128;
    const auto feature = random.values<int8_t>(filters * input);
    const auto time = random.values<S>(filters * memory);
    std::vector<int32_t> bias;
    for (int i = 0; i < units; ++i) bias.push_back(static_cast<int32_t>(random.between(-2000, 2000)));
    ModelBuilder m;
    const int x = m.tensor(TensorType::int8, {batch, input}, "x").quantized(x_scale, x_zero),
        f = m.tensor(TensorType::int8, {filters, input}).values(feature).quantized(f_scale, 0);
    const int t = m.tensor(tensor_type_of<S>, {filters, memory}).values(time).quantized(t_scale, 0),
        b = m.tensor(TensorType::int32, {units}).values(bias);
    const int s = m.tensor(tensor_type_of<S>, {batch, filters * memory}).variable().quantized(s_scale, state_zero),
        y = m.tensor(TensorType::int8, {batch, units}).quantized(y_scale, y_zero);
    m.op(BuiltinOperator::svdf, {x, f, t, n % 3 ? b : -1, s}, {y}).options(6).field<int32_t>(0, rank).field<int8_t>(1, 1);
    m.inputs({x}).outputs({y});
    const auto wide = [](float v) { return static_cast<double>(v); };
    const FixedMultiplier to_state =
        quantize_multiplier(sizeof(S) == 2 ? wide(x_scale) * wide(f_scale) / wide(s_scale) : wide(x_scale * f_scale / s_scale)),
                          to_output = quantize_multiplier(sizeof(S) == 2 ? wide(s_scale) * wide(t_scale) / wide(y_scale)
                              : wide(s_scale * t_scale / y_scale));
    std::vector<std::vector<int8_t>> inputs, want;
    std::vector<int> state(static_cast<size_t>(batch * filters * memory), state_zero);
    for (int run = 0; run < 4; ++run) {
      inputs.push_back(random.values<int8_t>(batch * input));
      want.emplace_back();
      for (int i = 0; i < batch * filters; ++i) {
        int32_t sum = 0;
        for (int k = 0; k < input; ++k)
          sum += feature[static_cast<size_t>(i % filters * input + k)] * (inputs.back()[static_cast<size_t>(i / filters * input + k)]
              - x_zero);
        const int newest = std::min<int>(std::max<int>(multiply_by_quantized_multiplier(sum, to_state), std::numeric_limits<S>::min()),
            std::numeric_limits<S>::max());
        auto* past = state.data() + i * memory;
        std::copy(past + 1, past + memory, past);
        past[memory - 1] = static_cast<S>(newest + state_zero);
      }
      for (int i = 0; i < batch * units; ++i) {
        int64_t sum = n % 3 ? bias[static_cast<size_t>(i % units)] : 0;
        const int from = (i / units * filters + i % units * rank) * memory, weight = i % units * rank * memory;
        for (int k = 0; k < rank * memory; ++k)
          sum += time[static_cast<size_t>(weight + k)] * (state[static_cast<size_t>(from + k)] - state_zero);
        const int q = multiply_by_quantized_multiplier(static_cast<int32_t>(sum), to_output) + y_zero;
        want.back().push_back(static_cast<int8_t>(std::min(std::max(q, -128), 127)));
      }
    }
    CAPTURE(n);
    check_runs(m, inputs, want, 0);
    run_on_targets(m, {bytes_of(inputs[0])});
  }
}

}  // namespace

TEST_CASE("SVDF on int8, its state int16 or int8", "[ops][svdf]") {
  check_integer_svdf<int16_t>(0);
  check_integer_svdf<int8_t>(0);
  check_integer_svdf<int8_t>(-20);
}

TEST_CASE("SVDFs that are wrong", "[ops][svdf]") {
  const auto run = [](int32_t rank, int32_t memory, int32_t state, int8_t activation) {
    ModelBuilder m;
    const int x = m.tensor(TensorType::float32, {1, 3}, "x"), f = m.tensor(TensorType::float32, {4, 3}, "f").values(std::vector<float>(12)),
              t = m.tensor(TensorType::float32, {4, memory}, "t").values(std::vector<float>(static_cast<size_t>(4 * memory))),
                  s = m.tensor(TensorType::float32, {1, state}, "s").variable(),
              y = m.tensor(TensorType::float32, {1, 4});
    m.op(BuiltinOperator::svdf, {x, f, t, -1, s}, {y}).options(6).field<int32_t>(0, rank).field<int8_t>(1, activation);
    m.inputs({x}).outputs({y});
    return run_on_targets(m, {bytes_of(std::vector<float>(3))});
  };
  check_refused(run(3, 2, 8, 0), ErrorCode::invalid_model, "has 4 filters of rank 3");
  check_refused(run(0, 2, 8, 0), ErrorCode::invalid_model, "has 4 filters of rank 0");
  check_refused(run(1, 2, 7, 0), ErrorCode::invalid_model, "with as many elements as [1, 8]");
  check_refused(run(1, 0, 0, 0), ErrorCode::invalid_model, "has no memory");
  check_refused(run(1, 2, 8, 5), ErrorCode::unsupported, "fused activation 5");
}

TEST_CASE("quantised values to int32", "[ops][quantize]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::int16, {6}, "x").quantized(0.5f, 0), y = m.tensor(TensorType::int32, {6}).quantized(0.000001f, 7);
  m.op(BuiltinOperator::quantize, {x}, {y});
  m.inputs({x}).outputs({y});
  const std::vector<int16_t> values = {-32768, -1, 0, 1, 100, 32767};
  std::vector<int32_t> want;
  for (int16_t v : values) want.push_back(v < -4000 ? -2147483647 - 1 : v > 4000 ? 2147483647 : v * 500000 + 7);
  // A left shift of the reference kernel wraps; within its range the answer is exact.
  const auto results = run_on_targets(m, {bytes_of(values)});
  for (const RunResult& r : results) {
    REQUIRE(r.status.ok());
    const auto got = r.values<int32_t>();
    for (size_t i = 1; i < 5; ++i) CHECK(std::abs(got[i] - want[i]) <= 1);
  }
}
