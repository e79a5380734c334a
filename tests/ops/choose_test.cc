// ARG_MAX, ARG_MIN, TOPK_V2, ONE_HOT, REVERSE_SEQUENCE, DYNAMIC_UPDATE_SLICE, MATRIX_DIAG, FILL, RANGE, SHAPE, RANK.
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {
const float kNaN = std::nanf("");

template <class T>
std::vector<RunResult> arg(BuiltinOperator code, const Shape& in, const std::vector<T>& x, int32_t axis) {
  ModelBuilder m;
  const int input = m.tensor(tensor_type_of<T>, dims(in), "x"),
            a = m.tensor(TensorType::int32, {}, "axis").values<int32_t>({axis});
  const int y = m.tensor(TensorType::int32, {}, "y");
  m.op(code, {input, a}, {y}).options(code == BuiltinOperator::arg_max ? 40 : 57);
  m.inputs({input}).outputs({y});
  return run_on_targets(m, {bytes_of(x)});
}
template <class T>
std::vector<RunResult> top(const Shape& in, const std::vector<T>& x, int32_t k) {
  ModelBuilder m;
  const int input = m.tensor(tensor_type_of<T>, dims(in), "x"),
            n = m.tensor(TensorType::int32, {}, "k").values<int32_t>({k});
  const int v = m.tensor(tensor_type_of<T>, {}, "values"), i = m.tensor(TensorType::int32, {}, "indices");
  m.op(BuiltinOperator::topk_v2, {input, n}, {v, i});
  m.inputs({input}).outputs({v, i});
  return run_on_targets(m, {bytes_of(x)});
}
}  // namespace

TEST_CASE("the place of the first extreme; NaN never wins against a number", "[ops][arg_max]") {
  check_values<int32_t>(
      arg<float>(BuiltinOperator::arg_max, {3, 4}, {kNaN, 1, 3, 3, 2, kNaN, 2, 1, kNaN, kNaN, kNaN, kNaN}, 1), {3},
      {2, 0, 0});
  check_values<int32_t>(
      arg<float>(BuiltinOperator::arg_min, {3, 4}, {kNaN, 1, 3, 1, 2, kNaN, 1, 1, kNaN, kNaN, kNaN, -5}, -1), {3},
      {1, 2, 3});
  check_values<int32_t>(arg<int8_t>(BuiltinOperator::arg_max, {2, 3}, {1, -7, 3, 1, 9, 3}, 0), {3}, {0, 1, 0});
  check_refused(arg<float>(BuiltinOperator::arg_max, {2, 0}, {}, 1), ErrorCode::invalid_model,
                "has no elements to choose from");
  check_refused(arg<float>(BuiltinOperator::arg_max, {2}, {1, 2}, 1), ErrorCode::invalid_model,
                "axis 1 is outside rank 1");
}

TEST_CASE("the k largest, equal ones in their order", "[ops][topk_v2]") {
  const auto some = top<float>({2, 4}, {1, 5, 5, kNaN, 4, 3, 2, 1}, 3);
  check_values<float>(some, {2, 3}, {5, 5, 1, 4, 3, 2}, 0, 0);
  check_values<int32_t>(some, {2, 3}, {1, 2, 0, 0, 1, 2}, 0, 1);
  check_values<int64_t>(top<int64_t>({3}, {1, 2, 3}, 0), {0}, {}, 0, 0);
  check_refused(top<float>({2}, {1, 2}, 3), ErrorCode::invalid_model, "k 3 does not fit tensor 'x' float32 [2]");
}

TEST_CASE("one hot along any axis, nothing for indices outside", "[ops][one_hot]") {
  const auto run = [](int32_t axis, int32_t depth) {
    ModelBuilder m;
    const int i = m.tensor(TensorType::int64, {3}, "indices"),
              d = m.tensor(TensorType::int32, {}, "depth").values<int32_t>({depth});
    const int on = m.tensor(TensorType::float32, {}, "on").values<float>({5}),
              off = m.tensor(TensorType::float32, {}, "off").values<float>({-1});
    const int y = m.tensor(TensorType::float32, {}, "y");
    m.op(BuiltinOperator::one_hot, {i, d, on, off}, {y}).options(61).field(0, axis);
    m.inputs({i}).outputs({y});
    return run_on_targets(m, {bytes_of<int64_t>({1, -1, 0})});
  };
  check_values<float>(run(-1, 2), {3, 2}, {-1, 5, -1, -1, 5, -1});
  check_values<float>(run(0, 2), {2, 3}, {-1, -1, 5, 5, -1, -1});
  check_refused(run(2, 2), ErrorCode::invalid_model, "axis 2 is outside rank 2");
  check_refused(run(0, -2), ErrorCode::invalid_model, "its depth");
}

TEST_CASE("sequences are reversed up to their length", "[ops][reverse_sequence]") {
  const auto run = [](int32_t time, int32_t batch, std::vector<int32_t> lengths) {
    ModelBuilder m;
    const int x = m.tensor(TensorType::int32, {2, 3}, "x"),
              l = m.tensor(TensorType::int32, {static_cast<int32_t>(lengths.size())}, "lengths");
    const int y = m.tensor(TensorType::int32, {}, "y");
    m.op(BuiltinOperator::reverse_sequence, {x, l}, {y}).options(87).field(0, time).field(1, batch);
    m.inputs({x, l}).outputs({y});
    return run_on_targets(m, {bytes_of<int32_t>({0, 1, 2, 3, 4, 5}), bytes_of(lengths)});
  };
  check_values<int32_t>(run(1, 0, {2, 3}), {2, 3}, {1, 0, 2, 5, 4, 3});
  check_values<int32_t>(run(0, 1, {0, 1, 2}), {2, 3}, {0, 1, 5, 3, 4, 2});
  check_refused(run(1, 0, {2, 4}), ErrorCode::invalid_data, "length 4 of sequence 1 is outside [0, 3]");
  check_refused(run(1, 1, {2, 3}), ErrorCode::invalid_model, "axis 1 is both time and batch");
  check_refused(run(1, 0, {2, 3, 1}), ErrorCode::invalid_model, "does not have one length");
}

TEST_CASE("an update is moved so that it fits", "[ops][dynamic_update_slice]") {
  const auto run = [](std::vector<int32_t> update, std::vector<int32_t> start) {
    ModelBuilder m;
    const int x = m.tensor(TensorType::int32, {2, 3}, "x"), u = m.tensor(TensorType::int32, update, "update");
    const int s = m.tensor(TensorType::int32, {2}, "start"), y = m.tensor(TensorType::int32, {}, "y");
    m.op(BuiltinOperator::dynamic_update_slice, {x, u, s}, {y});
    m.inputs({x, u, s}).outputs({y});
    const std::vector<int32_t> values(static_cast<size_t>(update[0] * update[1]), 9);
    return run_on_targets(m, {bytes_of<int32_t>({0, 1, 2, 3, 4, 5}), bytes_of(values), bytes_of(start)});
  };
  check_values<int32_t>(run({1, 2}, {1, 0}), {2, 3}, {0, 1, 2, 9, 9, 5});
  check_values<int32_t>(run({1, 2}, {5, 5}), {2, 3}, {0, 1, 2, 3, 9, 9});
  check_values<int32_t>(run({2, 1}, {-3, -1}), {2, 3}, {9, 1, 2, 9, 4, 5});
  check_refused(run({3, 1}, {0, 0}), ErrorCode::invalid_model, "is larger than tensor 'x' int32 [2, 3]");
}

TEST_CASE("diagonals", "[ops][matrix_diag]") {
  ModelBuilder m;
  const int d = m.tensor(TensorType::int16, {2, 2}, "diagonal"), x = m.tensor(TensorType::int16, {2, 2, 3}, "x");
  const int y = m.tensor(TensorType::int16, {}, "y"), z = m.tensor(TensorType::int16, {}, "z");
  m.op(BuiltinOperator::matrix_diag, {d}, {y});
  m.op(BuiltinOperator::matrix_set_diag, {x, d}, {z});
  m.inputs({d, x}).outputs({y, z});
  const auto results = run_on_targets(m, {bytes_of<int16_t>({1, 2, 3, 4}), bytes_of(std::vector<int16_t>(12, 7))});
  check_values<int16_t>(results, {2, 2, 2}, {1, 0, 0, 2, 3, 0, 0, 4}, 0, 0);
  check_values<int16_t>(results, {2, 2, 3}, {1, 7, 7, 7, 2, 7, 3, 7, 7, 7, 4, 7}, 0, 1);
}

TEST_CASE("filled tensors and ranges of constants", "[ops][fill][range]") {
  ModelBuilder m;
  const int value = m.tensor(TensorType::float32, {}, "value"),
            shape = m.tensor(TensorType::int64, {2}, "shape").values<int64_t>({2, 2});
  const int y = m.tensor(TensorType::float32, {}, "y");
  m.op(BuiltinOperator::fill, {shape, value}, {y});
  m.inputs({value}).outputs({y});
  check_values<float>(run_on_targets(m, {bytes_of<float>({2.5f})}), {2, 2}, {2.5f, 2.5f, 2.5f, 2.5f});

  const auto range = [](auto start, auto limit, auto delta) {
    using T = decltype(start);
    ModelBuilder b;
    const int s = b.tensor(tensor_type_of<T>, {}).template values<T>({start}),
              l = b.tensor(tensor_type_of<T>, {}).template values<T>({limit});
    const int d = b.tensor(tensor_type_of<T>, {}).template values<T>({delta}),
              out = b.tensor(tensor_type_of<T>, {}, "y");
    b.op(BuiltinOperator::range, {s, l, d}, {out});
    b.inputs({}).outputs({out});
    return run_on_targets(b);
  };
  check_values<int32_t>(range(2, 11, 3), {3}, {2, 5, 8});
  check_values<int32_t>(range(5, -4, -2), {5}, {5, 3, 1, -1, -3});
  check_values<int64_t>(range(int64_t{3}, int64_t{3}, int64_t{1}), {0}, {});
  check_values<float>(range(0.0f, 1.0f, 0.25f), {4}, {0, 0.25f, 0.5f, 0.75f});
  check_refused(range(0, 5, 0), ErrorCode::invalid_model, "its delta is not a step");
}

TEST_CASE("shapes and ranks are known before the run", "[ops][shape]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {2, 0, 5}, "x"), s = m.tensor(TensorType::int64, {}, "s"),
            r = m.tensor(TensorType::int32, {}, "r");
  m.op(BuiltinOperator::shape, {x}, {s}).options(55);
  m.op(BuiltinOperator::rank, {x}, {r});
  m.inputs({x}).outputs({s, r});
  const auto results = run_on_targets(m, {{}});
  check_values<int64_t>(results, {3}, {2, 0, 5}, 0, 0);
  check_values<int32_t>(results, {}, {3}, 0, 1);
}
