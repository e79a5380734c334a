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
