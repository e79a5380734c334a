// SPLIT, SPLIT_V, PACK and UNPACK.
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

ModelBuilder split_model(const Shape& in, int32_t axis, const std::vector<int32_t>& sizes, int outputs, int32_t told) {
  ModelBuilder m;
  const int x = m.tensor(TensorType::int32, dims(in), "x"),
            a = m.tensor(TensorType::int32, {}, "axis").values<int32_t>({axis});
  std::vector<int32_t> out;
  const int s = sizes.empty()
                    ? -1
                    : int(m.tensor(TensorType::int32, {static_cast<int32_t>(sizes.size())}, "sizes").values(sizes));
  for (int i = 0; i < outputs; ++i) out.push_back(m.tensor(TensorType::int32, {}));
  if (sizes.empty())
    m.op(BuiltinOperator::split, {a, x}, out).options(35).field(0, told);
  else
    m.op(BuiltinOperator::split_v, {x, s, a}, out).options(79).field(0, told);
  m.inputs({x}).outputs(out);
  return m;
}
std::vector<int32_t> counting(int32_t n) {
  std::vector<int32_t> v;
  for (int32_t i = 0; i < n; ++i) v.push_back(i);
  return v;
}

}  // namespace

TEST_CASE("equal and unequal parts along an axis", "[ops][split]") {
  const std::vector<std::vector<uint8_t>> input = {bytes_of(counting(12))};
  const auto equal = run_on_targets(split_model({2, 6}, -1, {}, 3, 3), input);
  check_values<int32_t>(equal, {2, 2}, {0, 1, 6, 7}, 0, 0);
  check_values<int32_t>(equal, {2, 2}, {4, 5, 10, 11}, 0, 2);
  const auto first = run_on_targets(split_model({2, 6}, 0, {}, 2, 2), input);
  check_values<int32_t>(first, {1, 6}, {6, 7, 8, 9, 10, 11}, 0, 1);
  const auto sizes = run_on_targets(split_model({2, 6}, 1, {1, -1, 0, 2}, 4, 4), input);
  check_values<int32_t>(sizes, {2, 1}, {0, 6}, 0, 0);
  check_values<int32_t>(sizes, {2, 3}, {1, 2, 3, 7, 8, 9}, 0, 1);
  check_values<int32_t>(sizes, {2, 0}, {}, 0, 2);
  check_values<int32_t>(sizes, {2, 2}, {4, 5, 10, 11}, 0, 3);
  check_values<int32_t>(run_on_targets(split_model({12}, 0, {}, 1, 1), input), {12}, counting(12));
}

TEST_CASE("splits that do not add up are refused", "[ops][split]") {
  const std::vector<std::vector<uint8_t>> input = {bytes_of(counting(12))};
  check_refused(run_on_targets(split_model({2, 6}, 1, {}, 4, 4), input), ErrorCode::invalid_model,
                "cannot be cut into 4 equal parts");
  check_refused(run_on_targets(split_model({2, 6}, 1, {}, 3, 2), input), ErrorCode::invalid_model,
                "splits into 2 parts, but has 3 outputs");
  check_refused(run_on_targets(split_model({2, 6}, 1, {3, 4}, 2, 2), input), ErrorCode::invalid_model,
                "its parts have 7 elements along axis 1");
  check_refused(run_on_targets(split_model({2, 6}, 1, {-1, -1}, 2, 2), input), ErrorCode::invalid_model,
                "size -1 of part 1");
  check_refused(run_on_targets(split_model({2, 6}, 1, {7, -1}, 2, 2), input), ErrorCode::invalid_model,
                "size 7 of part 0");
  check_refused(run_on_targets(split_model({2, 6}, 2, {}, 2, 2), input), ErrorCode::invalid_model,
                "axis 2 is outside rank 2");
}

TEST_CASE("stacks and their parts", "[ops][pack]") {
  const auto pack = [](const std::vector<Shape>& shapes, int32_t axis, int32_t told) {
    ModelBuilder m;
    std::vector<int32_t> inputs;
    std::vector<std::vector<uint8_t>> values;
    int32_t first = 0;
    for (const Shape& s : shapes) {
      inputs.push_back(m.tensor(TensorType::int32, dims(s)));
      std::vector<int32_t> v = counting(static_cast<int32_t>(s.elements()));
      for (int32_t& e : v) e += first;
      first += 10;
      values.push_back(bytes_of(v));
    }
    const int y = m.tensor(TensorType::int32, {}, "y");
    m.op(BuiltinOperator::pack, inputs, {y}).options(59).field(0, told).field(1, axis);
    m.inputs(inputs).outputs({y});
    return run_on_targets(m, values);
  };
  check_values<int32_t>(pack({{2, 2}, {2, 2}}, 0, 2), {2, 2, 2}, {0, 1, 2, 3, 10, 11, 12, 13});
  check_values<int32_t>(pack({{2, 2}, {2, 2}}, -1, 2), {2, 2, 2}, {0, 10, 1, 11, 2, 12, 3, 13});
  check_values<int32_t>(pack({{2, 2}, {2, 2}}, 1, 2), {2, 2, 2}, {0, 1, 10, 11, 2, 3, 12, 13});
  check_values<int32_t>(pack({{}, {}, {}}, 0, 3), {3}, {0, 10, 20});
  check_values<int32_t>(pack({{0}, {0}}, 0, 2), {2, 0}, {});
  check_refused(pack({{2, 2}, {2, 1}}, 0, 2), ErrorCode::invalid_model, "differs from");
  check_refused(pack({{2}, {2}}, 2, 2), ErrorCode::invalid_model, "axis 2 is outside rank 2");
  check_refused(pack({{2}, {2}}, 0, 3), ErrorCode::invalid_model, "packs 3 values, but has 2 inputs");

  const auto unpack = [](const Shape& in, int32_t axis, int outputs) {
    ModelBuilder m;
    const int x = m.tensor(TensorType::int32, dims(in), "x");
    std::vector<int32_t> out;
    for (int i = 0; i < outputs; ++i) out.push_back(m.tensor(TensorType::int32, {}));
    m.op(BuiltinOperator::unpack, {x}, out).options(64).field<int32_t>(0, outputs).field(1, axis);
    m.inputs({x}).outputs(out);
    return run_on_targets(m, {bytes_of(counting(static_cast<int32_t>(in.elements())))});
  };
  check_values<int32_t>(unpack({2, 3}, 1, 3), {2}, {1, 4}, 0, 1);
  check_values<int32_t>(unpack({2, 3}, -2, 2), {3}, {3, 4, 5}, 0, 1);
  check_values<int32_t>(unpack({3}, 0, 3), {}, {2}, 0, 2);
  check_refused(unpack({2, 3}, 1, 2), ErrorCode::invalid_model,
                "axis 1 of tensor 'x' int32 [2, 3] gives other than 2 outputs");
}
