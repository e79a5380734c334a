// The STABLEHLO operators, REDUCE_WINDOW and DILATE.
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {
const float kNaN = std::nanf("");

template <class T>
std::vector<RunResult> binary(BuiltinOperator code, const std::vector<T>& a, const std::vector<T>& b, int32_t second = 0) {
  ModelBuilder m;
  const auto n = static_cast<int32_t>(a.size());
  const int x = m.tensor(tensor_type_of<T>, {n}, "a"), z = m.tensor(tensor_type_of<T>, {second ? second : n}, "b"),
            y = m.tensor(tensor_type_of<T>, {}, "y");
  m.op(code, {x, z}, {y});
  m.inputs({x, z}).outputs({y});
  std::vector<T> wide = b;
  wide.resize(static_cast<size_t>(second ? second : n));
  return run_on_targets(m, {bytes_of(a), bytes_of(wide)});
}

template <class T>
std::vector<RunResult> pad(const Shape& in, const std::vector<T>& x, const std::vector<int64_t>& low, const std::vector<int64_t>& high,
                           const std::vector<int64_t>& gaps) {
  ModelBuilder m;
  const int input = m.tensor(tensor_type_of<T>, dims(in), "x"), fill = m.tensor(tensor_type_of<T>, {}, "fill").values(std::vector<T>{T(9)});
  const int y = m.tensor(tensor_type_of<T>, {}, "y");
  m.op(BuiltinOperator::stablehlo_pad, {input, fill}, {y}).options_2(10).vector(0, low).vector(1, high).vector(2, gaps);
  m.inputs({input}).outputs({y});
  return run_on_targets(m, {bytes_of(x)});
}
template <class T>
void check_pad(const Shape& in, const std::vector<int64_t>& low, const std::vector<int64_t>& high, const std::vector<int64_t>& gaps) {
  Random random(4);
  const auto x = random.values<T>(in.elements());
  Shape out;
  for (int i = 0; i < in.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    out.push_back(low[k] + high[k] + in[i] + (in[i] > 0 ? (in[i] - 1) * gaps[k] : 0));
  }
  std::vector<T> want;
  for (int64_t o = 0; o < out.elements(); ++o) {
    auto at = unravel(out, o);
    bool inside = true;
    for (size_t i = 0; i < at.size(); ++i) {
      const int64_t place = at[i] - low[i];
      inside = inside && place >= 0 && place % (gaps[i] + 1) == 0 && place / (gaps[i] + 1) < in[static_cast<int>(i)];
      at[i] = place / (gaps[i] + 1);
    }
    want.push_back(inside ? x[static_cast<size_t>(ravel(in, at))] : T(9));
  }
  check_values(pad(in, x, low, high, gaps), out, want);
}

// A subgraph of one operator on two scalars; code 0 with no operator: the second one itself.
void add_body(ModelBuilder* m, TensorType type, BuiltinOperator code, bool replace = false) {
  m->add_subgraph("body");
  const int a = m->tensor(type, {}, "a"), b = m->tensor(type, {}, "b");
  if (replace) {
    m->inputs({a, b}).outputs({b});
    return;
  }
  const int y = m->tensor(type, {}, "sum");
  m->op(code, {a, b}, {y});
  m->inputs({a, b}).outputs({y});
}

struct Windows {
  std::vector<int64_t> window, strides, gaps, dilations, margins;  // margins: pairs
};
template <class T, class Join>
void check_windows(BuiltinOperator body, const Shape& in, const Windows& w, T first, Join join, bool stablehlo = true) {
  Random random(6);
  const auto x = random.values<T>(in.elements());
  const auto rank = static_cast<size_t>(in.rank());
  Shape out, window;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t extent = (in[static_cast<int>(i)] - 1) * w.gaps[i] + 1 + w.margins[2 * i] + w.margins[2 * i + 1];
    out.push_back((extent - (w.window[i] - 1) * w.dilations[i] - 1) / w.strides[i] + 1);
    window.push_back(w.window[i]);
  }
  std::vector<T> want;
  for (int64_t o = 0; o < out.elements(); ++o) {
    T state = first;
    for (int64_t t = 0; t < window.elements(); ++t) {
      const auto at = unravel(out, o), tap = unravel(window, t);
      std::vector<int64_t> from(rank);
      bool inside = true;
      for (size_t i = 0; i < rank; ++i) {
        const int64_t place = at[i] * w.strides[i] + tap[i] * w.dilations[i] - w.margins[2 * i];
        inside = inside && place >= 0 && place % w.gaps[i] == 0 && place / w.gaps[i] < in[static_cast<int>(i)];
        from[i] = place / w.gaps[i];
      }
      state = join(state, inside ? x[static_cast<size_t>(ravel(in, from))] : first);
    }
    want.push_back(state);
  }
  ModelBuilder m;
  const int input = m.tensor(tensor_type_of<T>, dims(in), "x"), f = m.tensor(tensor_type_of<T>, {}, "first").values(std::vector<T>{first});
  const int y = m.tensor(tensor_type_of<T>, {}, "y");
  if (stablehlo) {
    m.op(BuiltinOperator::stablehlo_reduce_window, {input, f}, {y})
        .options_2(13)
        .vector(0, w.window)
        .vector(1, w.strides)
        .vector(2, w.gaps)
        .vector(3, w.dilations)
        .vector(4, w.margins)
        .template field<int32_t>(5, 1);
  } else {
    std::vector<int32_t> inputs{input, f};
    for (const auto* list : {&w.window, &w.strides, &w.dilations})
      inputs.push_back(m.tensor(TensorType::int64, {static_cast<int32_t>(rank)}).values(*list));
    const int32_t code = body == BuiltinOperator::add ? 1 : body == BuiltinOperator::mul ? 2 : body == BuiltinOperator::minimum ? 3 : 4;
    m.op(BuiltinOperator::reduce_window, inputs, {y}).options_2(20).field(0, code);
  }
  m.inputs({input}).outputs({y});
  if (stablehlo) add_body(&m, tensor_type_of<T>, body);
  check_values(run_on_targets(m, {bytes_of(x)}), out, want, 1e-5);
}

}  // namespace

TEST_CASE("plain arithmetic on equal shapes", "[ops][stablehlo]") {
  check_values<float>(binary<float>(BuiltinOperator::stablehlo_add, {1, 2.5f}, {4, -1}), {2}, {5, 1.5f});
  check_values<int8_t>(binary<int8_t>(BuiltinOperator::stablehlo_add, {100, -3}, {100, 1}), {2}, {-56, -2});
  check_values<int64_t>(binary<int64_t>(BuiltinOperator::stablehlo_multiply, {int64_t{1} << 62, -3}, {6, 5}), {2},
                        {static_cast<int64_t>(uint64_t{1} << 63), -15});
  check_values<float>(binary<float>(BuiltinOperator::stablehlo_maximum, {1, kNaN, 3, -0.5f}, {2, 1, kNaN, -1}), {4},
                      {2, kNaN, kNaN, -0.5f});
  check_values<uint32_t>(binary<uint32_t>(BuiltinOperator::stablehlo_minimum, {1, 4000000000u}, {2, 7}), {2}, {1, 7});
  check_values<int32_t>(binary<int32_t>(BuiltinOperator::stablehlo_and, {-1, 12}, {5, 10}), {2}, {5, 8});
  check_values<int8_t>(binary<int8_t>(BuiltinOperator::stablehlo_shift_left, {36, 11, 31, -1, 5}, {0, 2, 3, 8, -1}), {5},
                       {36, 44, -8, 0, 0});
  const auto halves =
      binary<half>(BuiltinOperator::stablehlo_multiply, {float_to_half(1.5f), float_to_half(-2)}, {float_to_half(3), float_to_half(0.25f)});
  for (const RunResult& r : halves) CHECK(half_to_float(r.values<half>()[0]) == 4.5f);
  ModelBuilder m;
  const int a = m.tensor(TensorType::boolean, {4}), b = m.tensor(TensorType::boolean, {4}), y = m.tensor(TensorType::boolean, {}),
            z = m.tensor(TensorType::boolean, {});
  m.op(BuiltinOperator::stablehlo_add, {a, b}, {y});
  m.op(BuiltinOperator::stablehlo_and, {a, b}, {z});
  m.inputs({a, b}).outputs({y, z});
  const auto logic = run_on_targets(m, {{0, 0, 1, 1}, {0, 1, 0, 1}});
  check_values<uint8_t>(logic, {4}, {0, 1, 1, 1}, 0, 0);
  check_values<uint8_t>(logic, {4}, {0, 0, 0, 1}, 0, 1);
  check_refused(binary<float>(BuiltinOperator::stablehlo_add, {1, 2}, {1}, 1), ErrorCode::invalid_model, "differ in shape");
}

TEST_CASE("margins, crops and gaps", "[ops][stablehlo]") {
  check_pad<int32_t>({2, 3}, {1, 0}, {1, 1}, {0, 1});
  check_pad<int8_t>({3, 4}, {-1, 0}, {0, -1}, {0, 0});
  check_pad<int16_t>({3, 4}, {-3, 2}, {4, -5}, {2, 1});
  check_pad<int64_t>({4}, {-2}, {-2}, {3});
  check_pad<float>({2, 1, 5}, {0, -1, -20}, {0, 3, 30}, {1, 0, 2});
  check_pad<int32_t>({0, 2}, {1, 0}, {1, 0}, {4, 0});
  check_refused(pad<float>({2}, {1, 2}, {-1}, {-2}, {0}), ErrorCode::invalid_model,
                "crops axis 0 of tensor 'x' float32 [2] to -1 elements");
  check_refused(pad<float>({2}, {1, 2}, {0}, {0}, {-1}), ErrorCode::invalid_model, "gaps of -1 along axis 0");
  check_refused(pad<float>({2}, {1, 2}, {0, 0}, {0}, {0}), ErrorCode::invalid_model, "its option 0 has 2 numbers");
  check_refused(pad<float>({2}, {1, 2}, {int64_t{1} << 62}, {0}, {0}), ErrorCode::invalid_model, "is not valid");

  const auto dilate = [](const std::vector<int32_t>& by) {
    ModelBuilder m;
    const int x = m.tensor(TensorType::int16, {2, 3}, "x"),
              d = m.tensor(TensorType::int32, {static_cast<int32_t>(by.size())}, "by").values(by);
    const int fill = m.tensor(TensorType::int16, {}, "fill").values<int16_t>({7}), y = m.tensor(TensorType::int16, {}, "y");
    m.op(BuiltinOperator::dilate, {x, d, fill}, {y}).options_2(18);
    m.inputs({x}).outputs({y});
    return run_on_targets(m, {bytes_of<int16_t>({1, 2, 3, 4, 5, 6})});
  };
  check_values<int16_t>(dilate({2, 1}), {3, 3}, {1, 2, 3, 7, 7, 7, 4, 5, 6});
  check_values<int16_t>(dilate({1, 3}), {2, 7}, {1, 7, 7, 2, 7, 7, 3, 4, 7, 7, 5, 7, 7, 6});
  check_refused(dilate({0, 1}), ErrorCode::invalid_model, "dilation 0 of axis 0 is not valid");
  check_refused(dilate({1}), ErrorCode::invalid_model, "there are 1 dilations");
}

TEST_CASE("windows reduced by a function", "[ops][reduce_window]") {
  const auto sum = [](auto a, auto b) { return static_cast<decltype(a)>(a + b); };
  const auto most = [](auto a, auto b) { return std::max(a, b); };
  const auto least = [](auto a, auto b) { return std::min(a, b); };
  const auto product = [](auto a, auto b) { return static_cast<decltype(a)>(a * b); };
  check_windows<float>(BuiltinOperator::stablehlo_add, {4, 5}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}}, 0.0f, sum);
  check_windows<int32_t>(BuiltinOperator::add, {4, 5}, {{2, 3}, {2, 1}, {2, 1}, {1, 2}, {1, 0, 2, -1}}, 3, sum);
  check_windows<int8_t>(BuiltinOperator::stablehlo_maximum, {3, 2, 7}, {{1, 2, 3}, {1, 1, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 1, 1, -1, 0}},
                        int8_t{-128}, most);
  check_windows<int64_t>(BuiltinOperator::stablehlo_minimum, {9}, {{4}, {3}, {1}, {2}, {0, 0}}, int64_t{1} << 40, least);
  check_windows<float>(BuiltinOperator::mul, {4, 4}, {{2, 2}, {1, 2}, {1, 1}, {1, 1}, {0, 0, 0, 0}}, 1.0f, product, false);
  check_windows<float>(BuiltinOperator::maximum, {4, 5}, {{2, 2}, {1, 2}, {1, 1}, {2, 1}, {0, 0, 0, 0}}, -9.0f, most, false);
  check_windows<int16_t>(BuiltinOperator::minimum, {5}, {{3}, {1}, {1}, {1}, {0, 0}}, int16_t{0}, least, false);
  const auto refused = [](std::vector<int64_t> window, BuiltinOperator body) {
    ModelBuilder m;
    const int x = m.tensor(TensorType::float32, {4}, "x"), f = m.tensor(TensorType::float32, {}, "f").values<float>({0}),
              y = m.tensor(TensorType::float32, {});
    m.op(BuiltinOperator::stablehlo_reduce_window, {x, f}, {y}).options_2(13).vector(0, window).field<int32_t>(5, 1);
    m.inputs({x}).outputs({y});
    add_body(&m, TensorType::float32, body);
    return run_on_targets(m, {bytes_of<float>({1, 2, 3, 4})});
  };
  check_refused(refused({0}, BuiltinOperator::add), ErrorCode::invalid_model, "0 is not a valid size");
  check_refused(refused({2, 2}, BuiltinOperator::add), ErrorCode::invalid_model, "has 2 window sizes for 1 axes");
  check_refused(refused({2}, BuiltinOperator::sub), ErrorCode::unsupported, "is not one known operator");
}

namespace {
std::vector<RunResult> gather(const Shape& in, const Shape& at, const std::vector<int32_t>& indices, const std::vector<int64_t>& offsets,
                              const std::vector<int64_t>& collapsed, const std::vector<int64_t>& map, int64_t vector_axis,
                              const std::vector<int64_t>& sizes) {
  ModelBuilder m;
  std::vector<int16_t> x;
  for (int16_t i = 0; i < in.elements(); ++i) x.push_back(i);
  const int input = m.tensor(TensorType::int16, dims(in), "x"), i = m.tensor(TensorType::int32, dims(at), "indices"),
            y = m.tensor(TensorType::int16, {}, "y");
  m.op(BuiltinOperator::stablehlo_gather, {input, i}, {y})
      .options_2(16)
      .vector(0, offsets)
      .vector(1, collapsed)
      .vector(2, map)
      .field(3, vector_axis)
      .vector(4, sizes);
  m.inputs({input, i}).outputs({y});
  return run_on_targets(m, {bytes_of(x), bytes_of(indices)});
}
std::vector<RunResult> scatter(BuiltinOperator body, bool replace, const Shape& updates, const std::vector<int32_t>& values,
                               const std::vector<int64_t>& windows, const std::vector<int64_t>& inserted) {
  ModelBuilder m;
  const int input = m.tensor(TensorType::int32, {4, 2}, "x"), i = m.tensor(TensorType::int64, {3, 1}, "indices"),
            u = m.tensor(TensorType::int32, dims(updates), "updates");
  const int y = m.tensor(TensorType::int32, {}, "y");
  m.op(BuiltinOperator::stablehlo_scatter, {input, i, u}, {y})
      .options_2(7)
      .vector(1, windows)
      .vector(2, inserted)
      .vector(3, std::vector<int64_t>{0})
      .field<int64_t>(4, 1)
      .field<int32_t>(6, 1);
  m.inputs({input, i, u}).outputs({y});
  add_body(&m, TensorType::int32, body, replace);
  return run_on_targets(m, {bytes_of<int32_t>({1, 2, 3, 4, 5, 6, 7, 8}), bytes_of<int64_t>({2, 0, 2}), bytes_of(values)});
}
}  // namespace

TEST_CASE("blocks at clamped indices", "[ops][stablehlo_gather]") {
  check_values<int16_t>(gather({3, 4}, {2, 1}, {0, 2}, {1}, {0}, {0}, 1, {1, 4}), {2, 4}, {0, 1, 2, 3, 8, 9, 10, 11});
  check_values<int16_t>(gather({3, 4}, {3}, {1, -5, 9}, {1}, {0}, {0}, 1, {1, 2}), {3, 2}, {4, 5, 0, 1, 8, 9});
  // Index vectors along the first axis, turned; blocks of 2 x 2 in front of the batch axis.
  check_values<int16_t>(gather({3, 4}, {2, 2}, {2, 9, 0, 1}, {0, 1}, {}, {1, 0}, 0, {2, 2}), {2, 2, 2}, {2, 6, 3, 7, 6, 10, 7, 11});
  check_values<int16_t>(gather({3, 4}, {0, 1}, {}, {1}, {0}, {0}, 1, {1, 4}), {0, 4}, {});
  check_refused(gather({3, 4}, {2, 1}, {0, 2}, {1}, {0}, {0}, 1, {2, 4}), ErrorCode::invalid_model, "slice size 2 of axis 0 does not fit");
  check_refused(gather({3, 4}, {2, 1}, {0, 2}, {1}, {0}, {0, 1}, 1, {1, 4}), ErrorCode::invalid_model,
                "index vectors of 1 elements for 2 axes");
  check_refused(gather({3, 4}, {2, 1}, {0, 2}, {1}, {7}, {0}, 1, {1, 4}), ErrorCode::invalid_model, "collapsed axis 7 is not valid");
  check_refused(gather({3, 4}, {2, 1}, {0, 2}, {5}, {0}, {0}, 1, {1, 4}), ErrorCode::invalid_model, "window axis 5 is not valid");
  check_refused(gather({3, 4}, {2, 1}, {0, 2}, {1}, {0}, {0}, 4, {1, 4}), ErrorCode::invalid_model, "index axis 4 is outside of");
}

TEST_CASE("blocks joined to an operand", "[ops][stablehlo_scatter]") {
  const std::vector<int32_t> u{10, 20, 30, 40, 50, -60};
  check_values<int32_t>(scatter(BuiltinOperator::stablehlo_add, false, {3, 2}, u, {1}, {0}), {4, 2}, {31, 42, 3, 4, 65, -34, 7, 8});
  check_values<int32_t>(scatter(BuiltinOperator::maximum, false, {3, 2}, u, {1}, {0}), {4, 2}, {30, 40, 3, 4, 50, 20, 7, 8});
  check_values<int32_t>(scatter(BuiltinOperator::add, true, {3, 2}, u, {1}, {0}), {4, 2}, {30, 40, 3, 4, 50, -60, 7, 8});
  // Windows of three rows: those of indices 2 reach outside.
  check_values<int32_t>(scatter(BuiltinOperator::stablehlo_add, false, {3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2}, {}), {4, 2},
                        {5, 2, 8, 4, 19, 6, 17, 8});
  check_refused(scatter(BuiltinOperator::sub, false, {3, 2}, u, {1}, {0}), ErrorCode::unsupported, "is not one known operator");
  check_refused(scatter(BuiltinOperator::add, false, {2, 3}, u, {1}, {0}), ErrorCode::invalid_model, "do not fit");
}

TEST_CASE("calls of subgraphs", "[ops][stablehlo_case]") {
  for (const auto& [index, want] : std::vector<std::pair<int32_t, float>>{{0, 5}, {1, 6}, {7, 6}, {-1, 6}}) {
    ModelBuilder m;
    const int i = m.tensor(TensorType::int32, {}, "i"), x = m.tensor(TensorType::float32, {1}, "x"),
              y = m.tensor(TensorType::float32, {}, "y");
    m.op(BuiltinOperator::stablehlo_case, {i, x}, {y}).options_2(23).vector(0, std::vector<int32_t>{1, 2});
    m.inputs({i, x}).outputs({y});
    for (const BuiltinOperator code : {BuiltinOperator::add, BuiltinOperator::mul}) {
      m.add_subgraph("branch");
      const int a = m.tensor(TensorType::float32, {1}, "a"),
                c = m.tensor(TensorType::float32, {1}, "c").values<float>({code == BuiltinOperator::add ? 2.0f : 2.0f});
      const int s = m.tensor(TensorType::float32, {1}, "s");
      m.op(code, {a, c}, {s});
      m.inputs({a}).outputs({s});
    }
    check_values<float>(run_on_targets(m, {bytes_of<int32_t>({index}), bytes_of<float>({3})}), {1}, {want});
  }
  ModelBuilder m;
  const int a = m.tensor(TensorType::float32, {2}, "a"), b = m.tensor(TensorType::float32, {2}, "b"),
            y = m.tensor(TensorType::float32, {}, "y");
  m.op(BuiltinOperator::stablehlo_composite, {a, b}, {y}).options_2(21).text(0, "my.sum").field<int32_t>(1, 1);
  m.inputs({a, b}).outputs({y});
  m.add_subgraph("decomposition");
  const int c = m.tensor(TensorType::float32, {2}, "c"), d = m.tensor(TensorType::float32, {2}, "d"),
            s = m.tensor(TensorType::float32, {2}, "s");
  m.op(BuiltinOperator::add, {c, d}, {s});
  m.inputs({c, d}).outputs({s});
  check_values<float>(run_on_targets(m, {bytes_of<float>({1, 2}), bytes_of<float>({10, 20})}), {2}, {11, 22});
}

TEST_CASE("random bits of a key and a counter", "[ops][rng_bit_generator]") {
  const auto run = [](int8_t algorithm, const std::vector<uint64_t>& state, int32_t count) {
    ModelBuilder m;
    const int s = m.tensor(TensorType::uint64, {static_cast<int32_t>(state.size())}, "state"),
              next = m.tensor(TensorType::uint64, {}, "next"), y = m.tensor(TensorType::uint32, {count}, "y");
    m.op(BuiltinOperator::stablehlo_rng_bit_generator, {s}, {next, y}).options_2(19).field(0, algorithm);
    m.inputs({s}).outputs({next, y});
    return run_on_targets(m, {bytes_of(state)});
  };
  // Answers of the generators' own test vectors: keys and counters of zeros.
  const auto philox = run(1, {0, 0, 0}, 5);
  check_values<uint64_t>(philox, {3}, {0, 2, 0}, 0, 0);
  for (const RunResult& r : philox) {
    const auto words = r.values<uint32_t>(1);
    CHECK(std::vector<uint32_t>(words.begin(), words.begin() + 4) == std::vector<uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  }
  const auto threefry = run(2, {0, 0}, 2);
  check_values<uint64_t>(threefry, {2}, {0, 1}, 0, 0);
  check_values<uint32_t>(threefry, {2}, {0x6b200159, 0x99ba4efe}, 0, 1);
  const auto carried = run(1, {1, ~uint64_t{0}, 4}, 4);
  check_values<uint64_t>(carried, {3}, {1, 0, 5}, 0, 0);
  check_refused(run(2, {0, 0, 0}, 2), ErrorCode::invalid_model, "does not fit algorithm 2");
  check_refused(run(3, {0, 0}, 2), ErrorCode::unsupported, "algorithm 3");
}
