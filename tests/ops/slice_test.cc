#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

template <class T>
ModelBuilder slice_model(const Shape& in, const std::vector<int32_t>& begin, const std::vector<int32_t>& size) {
  ModelBuilder m;
  const int rank = in.rank();
  const int x = m.tensor(tensor_type_of<T>, dims(in), "x");
  const int b = m.tensor(TensorType::int32, {rank}, "begin").values(begin),
            s = m.tensor(TensorType::int32, {rank}, "size").values(size);
  const int y = m.tensor(tensor_type_of<T>, {}, "y");
  m.op(BuiltinOperator::slice, {x, b, s}, {y});
  m.inputs({x}).outputs({y});
  return m;
}

struct Strided {
  std::vector<int32_t> begin, end, step;
  int32_t begin_mask = 0, end_mask = 0, ellipsis = 0, new_axis = 0, shrink = 0;
  bool offset = false;
};
ModelBuilder strided_model(const Shape& in, const Strided& s) {
  ModelBuilder m;
  const auto n = static_cast<int32_t>(s.begin.size());
  const int x = m.tensor(TensorType::int32, dims(in), "x");
  const int b = m.tensor(TensorType::int32, {n}, "begin").values(s.begin),
            e = m.tensor(TensorType::int32, {n}, "end").values(s.end);
  const int st = m.tensor(TensorType::int32, {n}, "step").values(s.step), y = m.tensor(TensorType::int32, {}, "y");
  m.op(BuiltinOperator::strided_slice, {x, b, e, st}, {y})
      .options(32)
      .field<int32_t>(0, s.begin_mask)
      .field<int32_t>(1, s.end_mask)
      .field<int32_t>(2, s.ellipsis)
      .field<int32_t>(3, s.new_axis)
      .field<int32_t>(4, s.shrink)
      .field(5, s.offset);
  m.inputs({x}).outputs({y});
  return m;
}
std::vector<int32_t> counting(int64_t n) {
  std::vector<int32_t> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(static_cast<int32_t>(i));
  return v;
}

template <class T>
void check_slice(const Shape& in, const std::vector<int32_t>& begin, const std::vector<int32_t>& size) {
  Random random(3);
  const auto x = random.values<T>(in.elements());
  Shape out;
  for (int i = 0; i < in.rank(); ++i) out.push_back(size[i] < 0 ? in[i] - begin[i] : size[i]);
  std::vector<T> want;
  for (int64_t i = 0; i < out.elements(); ++i) {
    auto at = unravel(out, i);
    for (int k = 0; k < in.rank(); ++k) at[k] += begin[k];
    want.push_back(x[ravel(in, at)]);
  }
  check_values(run_on_targets(slice_model<T>(in, begin, size), {bytes_of(x)}), out, want);
}

}  // namespace

TEST_CASE("slices of every element size and rank", "[ops][slice]") {
  check_slice<int8_t>({7}, {2}, {3});
  check_slice<int16_t>({5, 6}, {1, 2}, {-1, 3});
  check_slice<float>({3, 4, 5}, {0, 1, 0}, {2, 2, 5});
  check_slice<int64_t>({2, 3, 4, 5}, {1, 0, 2, 1}, {1, 3, -1, 2});
  check_slice<float>({2, 1, 3, 2, 2, 1, 2, 3}, {0, 0, 1, 0, 1, 0, 0, 1}, {2, 1, 2, 2, 1, 1, 2, 2});
  check_slice<float>({3, 4}, {1, 2}, {2, 0});  // nothing
  check_slice<float>({}, {}, {});
}

TEST_CASE("slices outside the tensor are refused", "[ops][slice]") {
  check_refused(run_on_targets(slice_model<float>({3, 4}, {1, 2}, {3, 1}), {bytes_of(std::vector<float>(12))}),
                ErrorCode::invalid_model, "start 1 and size 3 along axis 0 lie outside tensor 'x' float32 [3, 4]");
  check_refused(run_on_targets(slice_model<float>({3, 4}, {-1, 2}, {1, 1}), {bytes_of(std::vector<float>(12))}),
                ErrorCode::invalid_model, "start -1");
  check_refused(run_on_targets(slice_model<float>({3, 4}, {1, 2}, {1, -2}), {bytes_of(std::vector<float>(12))}),
                ErrorCode::invalid_model, "size -2");
}

TEST_CASE("a computed start is checked while running", "[ops][slice]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {4, 3}, "x"), b = m.tensor(TensorType::int64, {2}, "begin");
  const int s = m.tensor(TensorType::int32, {2}, "size").values<int32_t>({2, 2}),
            y = m.tensor(TensorType::float32, {}, "y");
  m.op(BuiltinOperator::slice, {x, b, s}, {y});
  m.inputs({x, b}).outputs({y});
  const std::vector<float> values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  check_values<float>(run_on_targets(m, {bytes_of(values), bytes_of<int64_t>({2, 1})}), {2, 2}, {7, 8, 10, 11});
  check_refused(run_on_targets(m, {bytes_of(values), bytes_of<int64_t>({3, 1})}), ErrorCode::invalid_data,
                "start 3 along axis 0 is outside [0, 2]");
  check_refused(run_on_targets(m, {bytes_of(values), bytes_of<int64_t>({0, -1})}), ErrorCode::invalid_data,
                "start -1 along axis 1");
}

TEST_CASE("strided slices: strides both ways, clamped ends, masks", "[ops][strided_slice]") {
  const auto run = [](const Shape& in, const Strided& s) {
    return run_on_targets(strided_model(in, s), {bytes_of(counting(in.elements()))});
  };
  check_values<int32_t>(run({6}, {{1}, {6}, {2}}), {3}, {1, 3, 5});
  check_values<int32_t>(run({6}, {{-1}, {-7}, {-2}}), {3}, {5, 3, 1});
  check_values<int32_t>(run({6}, {{100}, {-100}, {-1}}), {6}, {5, 4, 3, 2, 1, 0});
  check_values<int32_t>(run({6}, {{4}, {2}, {1}}), {0}, {});
  check_values<int32_t>(run({2, 3}, {{0, 0}, {0, 0}, {1, -1}, 3, 3}), {2, 3}, {2, 1, 0, 5, 4, 3});
  check_values<int32_t>(run({2, 3}, {{1}, {2}, {1}}), {1, 3}, {3, 4, 5});  // fewer entries than axes
  check_values<int32_t>(run({2, 3}, {{-1, 1}, {0, 3}, {1, 1}, 0, 0, 0, 0, 1}), {2}, {4, 5});
  check_values<int32_t>(run({2, 2, 2}, {{0, 1}, {0, 2}, {1, 1}, 0, 0, 1}), {2, 2, 1}, {1, 3, 5, 7});
  check_values<int32_t>(run({2, 2}, {{0, 0, 1}, {0, 0, 2}, {1, 1, 1}, 3, 3, 0, 1}), {1, 2, 1}, {1, 3});
  check_values<int32_t>(run({6}, {{2}, {3}, {1}, 0, 0, 0, 0, 0, true}), {3}, {2, 3, 4});
  check_refused(run({6}, {{0}, {6}, {0}}), ErrorCode::invalid_model, "stride 0 along axis 0");
  check_refused(run({6}, {{7}, {8}, {1}, 0, 0, 0, 0, 1}), ErrorCode::invalid_model,
                "index 7 along axis 0 lies outside");
  check_refused(run({6}, {{0, 0}, {6, 1}, {1, 1}}), ErrorCode::invalid_model, "slices 2 axes of tensor 'x' int32 [6]");
  check_refused(run({2, 2}, {{0, 0}, {1, 1}, {1, 1}, 0, 0, 3}), ErrorCode::invalid_model, "more than one ellipsis");
}

TEST_CASE("a slice of computed size is refused where its shape is needed", "[ops][slice][errors]") {
  for (const bool asked : {false, true}) {
    ModelBuilder m;
    const int x = m.tensor(TensorType::float32, {4}, "x"), sizes = m.tensor(TensorType::int32, {1}, "sizes");
    const int starts = m.tensor(TensorType::int32, {1}, "starts").values(std::vector<int32_t>{0});
    const int y = m.tensor(TensorType::float32, {}, "y"), z = m.tensor(TensorType::float32, {}, "z");
    m.op(BuiltinOperator::slice, {x, starts, sizes}, {y});
    if (!asked) m.op(BuiltinOperator::neg, {y}, {z});
    m.inputs({x, sizes}).outputs({asked ? y : z});
    check_refused(run_on_targets(m, {bytes_of(std::vector<float>(4)), bytes_of(std::vector<int32_t>{2})}), ErrorCode::unsupported,
                  std::string("operator 0 SLICE: the shape of its output 'y' depends on values that are computed while running and is ") +
                      (asked ? "asked for" : "read by operator 1 NEG"));
  }
}

TEST_CASE("a start far outside is refused", "[ops][slice][errors]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {4}, "x"), y = m.tensor(TensorType::float32, {}, "y");
  const int starts = m.tensor(TensorType::int64, {1}, "starts").values(std::vector<int64_t>{std::numeric_limits<int64_t>::min()});
  const int sizes = m.tensor(TensorType::int64, {1}, "sizes").values(std::vector<int64_t>{-1});
  m.op(BuiltinOperator::slice, {x, starts, sizes}, {y});
  m.inputs({x}).outputs({y});
  check_refused(run_on_targets(m, {bytes_of(std::vector<float>(4))}), ErrorCode::invalid_model, "lie outside tensor 'x'");
}
