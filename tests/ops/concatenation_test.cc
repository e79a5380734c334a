#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

template <class T>
ModelBuilder concatenation_model(const std::vector<Shape>& parts, int32_t axis,
                                 const std::vector<std::pair<float, int64_t>>& scales = {}) {
  ModelBuilder m;
  std::vector<int32_t> inputs;
  for (size_t i = 0; i < parts.size(); ++i) {
    auto x = m.tensor(tensor_type_of<T>, dims(parts[i]));
    if (i < scales.size()) x.quantized(scales[i].first, scales[i].second);
    inputs.push_back(x);
  }
  auto y = m.tensor(tensor_type_of<T>, {}, "y");
  if (!scales.empty()) y.quantized(scales.back().first, scales.back().second);
  const int output = y;
  m.op(BuiltinOperator::concatenation, inputs, {output}).options(10).field<int32_t>(0, axis);
  m.inputs(inputs).outputs({output});
  return m;
}

template <class T>
void check_concatenation(const std::vector<Shape>& parts, int32_t axis) {
  const int a = axis < 0 ? axis + parts[0].rank() : axis;
  Random random(9);
  std::vector<std::vector<T>> values;
  std::vector<std::vector<uint8_t>> inputs;
  Shape out = parts[0];
  out[a] = 0;
  for (const Shape& part : parts) {
    values.push_back(random.values<T>(part.elements()));
    inputs.push_back(bytes_of(values.back()));
    out[a] += part[a];
  }
  std::vector<T> want;
  for (int64_t i = 0; i < out.elements(); ++i) {
    auto at = unravel(out, i);
    size_t part = 0;
    while (at[a] >= parts[part][a]) at[a] -= parts[part++][a];
    want.push_back(values[part][ravel(parts[part], at)]);
  }
  check_values(run_on_targets(concatenation_model<T>(parts, axis), inputs), out, want);
}

}  // namespace

TEST_CASE("joins along every axis, empty parts and many parts", "[ops][concatenation]") {
  check_concatenation<float>({{2, 3, 4, 5}, {2, 3, 4, 2}}, 3);
  check_concatenation<float>({{2, 3, 4, 5}, {2, 3, 1, 5}, {2, 3, 2, 5}}, -2);
  check_concatenation<int8_t>({{2, 3}, {2, 0}, {2, 1}}, 1);
  check_concatenation<int64_t>({{1}, {4}}, -1);
  check_concatenation<int16_t>({{3, 2, 2}, {1, 2, 2}}, 0);
  check_concatenation<float>(std::vector<Shape>(40, Shape{2, 1, 2}), 1);
  check_concatenation<float>({{2, 3}}, 0);
}

TEST_CASE("uint8 parts of another scale are rescaled", "[ops][concatenation]") {
  const auto results = run_on_targets(concatenation_model<uint8_t>({{4}, {2}}, 0, {{0.5f, 10}, {0.25f, 20}}),
                                      {{10, 11, 9, 255}, {1, 2}});
  check_values<uint8_t>(results, {6}, {20, 22, 18, 255, 1, 2});
  check_refused(run_on_targets(concatenation_model<int8_t>({{1}, {1}}, 0, {{0.5f, 0}, {0.25f, 0}}), {{0}, {0}}),
                ErrorCode::unsupported, "must be equal");
}

TEST_CASE("parts that do not fit are refused", "[ops][concatenation]") {
  const auto zeros = [](int64_t n) { return bytes_of(std::vector<float>(static_cast<size_t>(n))); };
  check_refused(run_on_targets(concatenation_model<float>({{2, 3}, {3, 3}}, 1), {zeros(6), zeros(9)}),
                ErrorCode::invalid_model, "does not fit");
  check_refused(run_on_targets(concatenation_model<float>({{2, 3}, {6}}, 1), {zeros(6), zeros(6)}),
                ErrorCode::invalid_model, "does not fit");
  check_refused(run_on_targets(concatenation_model<float>({{2, 3}}, 2), {zeros(6)}), ErrorCode::invalid_model,
                "axis 2 is outside rank 2");
  check_refused(run_on_targets(concatenation_model<float>({{}}, 0), {zeros(1)}), ErrorCode::invalid_model,
                "axis 0 is outside rank 0");
}

namespace {

// y = concatenation of x's rows before `sizes[0]`, the rows given, and x's rows from `starts[0]` on; the inputs are x, rows, sizes, starts.
// in_place: x is computed, so that it may be written over.
template <class I>
ModelBuilder written_rows_model(int64_t rows, bool in_place, bool read_elsewhere = false, int32_t axis = 0) {
  ModelBuilder m;
  const TensorType integer = tensor_type_of<I>;
  const int given = m.tensor(TensorType::float32, {5, 2}, "x"), item = m.tensor(TensorType::float32, {static_cast<int32_t>(rows), 2}, "rows");
  const int sizes = m.tensor(integer, {2}, "sizes"), starts = m.tensor(integer, {2}, "starts");
  const int none = m.tensor(integer, {2}, "none").values(std::vector<I>{0, 0}), rest = m.tensor(integer, {2}, "rest").values(std::vector<I>{-1, -1});
  const int before = m.tensor(TensorType::float32, {}, "before"), behind = m.tensor(TensorType::float32, {}, "behind");
  const int y = m.tensor(TensorType::float32, {}, "y");
  int x = given;
  if (in_place) {
    x = m.tensor(TensorType::float32, {5, 2}, "computed");
    m.op(BuiltinOperator::neg, {given}, {x});
  }
  m.op(BuiltinOperator::slice, {x, none, sizes}, {before});
  m.op(BuiltinOperator::slice, {x, starts, rest}, {behind});
  m.op(BuiltinOperator::concatenation, {before, item, behind}, {y}).options(10).field<int32_t>(0, axis);
  std::vector<int32_t> outputs = {y};
  if (read_elsewhere) {
    const int z = m.tensor(TensorType::float32, {}, "z");
    m.op(BuiltinOperator::neg, {before}, {z});
    outputs.push_back(z);
  }
  m.inputs({given, item, sizes, starts}).outputs(outputs);
  return m;
}

}  // namespace

TEST_CASE("rows between computed slices of one tensor are written into it", "[ops][concatenation]") {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  for (const bool in_place : {false, true})
    for (const int64_t rows : {1, 2})
      for (int64_t k = 0; k + rows <= 5; ++k) {
        std::vector<float> want = x, item;
        for (float& v : want) v = in_place ? -v : v;
        for (int64_t i = 0; i < 2 * rows; ++i) item.push_back(100.0f + static_cast<float>(i)), want[static_cast<size_t>(2 * k + i)] = item.back();
        const auto narrow = [&](int64_t a, int64_t b) { return bytes_of(std::vector<int32_t>{static_cast<int32_t>(a), static_cast<int32_t>(b)}); };
        check_values(run_on_targets(written_rows_model<int32_t>(rows, in_place), {bytes_of(x), bytes_of(item), narrow(k, -1), narrow(k + rows, 0)}), {5, 2}, want);
        const std::vector<int64_t> sizes = {k, 2}, starts = {k + rows, 0};
        check_values(run_on_targets(written_rows_model<int64_t>(rows, in_place), {bytes_of(x), bytes_of(item), bytes_of(sizes), bytes_of(starts)}), {5, 2}, want);
      }
}

TEST_CASE("computed slices that do not make up the tensor are errors", "[ops][concatenation][errors]") {
  const std::vector<float> x(10);
  std::vector<float> item(2);
  const auto run = [&](const ModelBuilder& m, std::vector<int32_t> sizes, std::vector<int32_t> starts) {
    return run_on_targets(m, {bytes_of(x), bytes_of(item), bytes_of(sizes), bytes_of(starts)});
  };
  const ModelBuilder m = written_rows_model<int32_t>(1, false);
  check_refused(run(m, {2, -1}, {4, 0}), ErrorCode::unsupported, "rows before 2, 1 rows, and rows from 4 on, which are not 5 rows");
  check_refused(run(m, {5, -1}, {6, 0}), ErrorCode::unsupported, "rows before 5");
  check_refused(run(m, {-1, -1}, {0, 0}), ErrorCode::unsupported, "rows before -1");
  check_refused(run(m, {2, 1}, {3, 0}), ErrorCode::unsupported, "not 5 rows");
  check_refused(run(m, {2, -1}, {3, 1}), ErrorCode::unsupported, "not 5 rows");
  check_refused(run(written_rows_model<int32_t>(1, false, true), {2, -1}, {3, 0}), ErrorCode::unsupported,
                "operator 2 CONCATENATION: joins parts whose shapes depend on values");
  check_refused(run(written_rows_model<int32_t>(1, false, false, 1), {2, -1}, {3, 0}), ErrorCode::unsupported, "shapes depend on values");
  item.resize(12);
  check_refused(run(written_rows_model<int32_t>(6, false), {2, -1}, {3, 0}), ErrorCode::unsupported, "not 5 rows");
}
