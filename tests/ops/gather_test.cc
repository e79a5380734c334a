// GATHER, GATHER_ND, SCATTER_ND, SPARSE_TO_DENSE, EMBEDDING_LOOKUP: operators whose indices are checked while running.
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

template <class T, class Index>
ModelBuilder gather_model(const Shape& table, const Shape& indices, int32_t axis, int32_t batch_dims) {
  ModelBuilder m;
  const int x = m.tensor(tensor_type_of<T>, dims(table), "table"),
            i = m.tensor(tensor_type_of<Index>, dims(indices), "indices");
  const int y = m.tensor(tensor_type_of<T>, {}, "y");
  m.op(BuiltinOperator::gather, {x, i}, {y}).options(23).field(0, axis).field(1, batch_dims);
  m.inputs({x, i}).outputs({y});
  return m;
}

template <class T, class Index>
void check_gather(const Shape& table, const Shape& at, int32_t axis, int32_t batch_dims) {
  Random random(8);
  const int a = axis < 0 ? axis + table.rank() : axis, b = batch_dims < 0 ? batch_dims + at.rank() : batch_dims;
  const auto x = random.values<T>(table.elements());
  std::vector<Index> indices;
  for (int64_t i = 0; i < at.elements(); ++i) indices.push_back(static_cast<Index>(random.between(0, table[a] - 1)));
  Shape out;
  for (int i = 0; i < a; ++i) out.push_back(table[i]);
  for (int i = b; i < at.rank(); ++i) out.push_back(at[i]);
  for (int i = a + 1; i < table.rank(); ++i) out.push_back(table[i]);
  std::vector<T> want;
  for (int64_t i = 0; i < out.elements(); ++i) {
    const auto o = unravel(out, i);
    std::vector<int64_t> which(o.begin(), o.begin() + b), source(o.begin(), o.begin() + a);
    which.insert(which.end(), o.begin() + a, o.begin() + a + at.rank() - b);
    source.push_back(indices[static_cast<size_t>(ravel(at, which))]);
    source.insert(source.end(), o.begin() + a + at.rank() - b, o.end());
    want.push_back(x[static_cast<size_t>(ravel(table, source))]);
  }
  check_values(run_on_targets(gather_model<T, Index>(table, at, axis, batch_dims), {bytes_of(x), bytes_of(indices)}),
               out, want);
}

// Constant shape, computed indices and updates.
template <class T>
std::vector<RunResult> scatter(const Shape& indices, const std::vector<int32_t>& at, const Shape& updates,
                               const std::vector<T>& values, const std::vector<int32_t>& shape) {
  ModelBuilder m;
  const int i = m.tensor(TensorType::int32, dims(indices), "indices"),
            u = m.tensor(tensor_type_of<T>, dims(updates), "updates");
  const int s = m.tensor(TensorType::int32, {static_cast<int32_t>(shape.size())}, "shape").values(shape),
            y = m.tensor(tensor_type_of<T>, {}, "y");
  m.op(BuiltinOperator::scatter_nd, {i, u, s}, {y});
  m.inputs({i, u}).outputs({y});
  return run_on_targets(m, {bytes_of(at), bytes_of(values)});
}

}  // namespace

TEST_CASE("slices by index along every axis", "[ops][gather]") {
  check_gather<float, int32_t>({5, 3}, {4}, 0, 0);
  check_gather<float, int64_t>({5, 3}, {2, 2}, 1, 0);
  check_gather<int8_t, int32_t>({2, 5, 3}, {}, -2, 0);
  check_gather<int16_t, int16_t>({2, 3, 4}, {2, 5}, 1, 1);
  check_gather<int64_t, int32_t>({2, 3, 4}, {2, 3, 2}, 2, -1);
  check_gather<float, int32_t>({4, 2}, {0}, 0, 0);
}

TEST_CASE("an index outside its axis is an error of the run", "[ops][gather]") {
  const std::vector<uint8_t> table = bytes_of<float>({1, 2, 3, 4, 5, 6});
  const auto run = [&](std::vector<int32_t> indices) {
    return run_on_targets(gather_model<float, int32_t>({3, 2}, {2}, 0, 0), {table, bytes_of(indices)});
  };
  check_refused(run({0, 3}), ErrorCode::invalid_data, "index 3 (number 1) is outside the 3 entries of its axis");
  check_refused(run({-1, 0}), ErrorCode::invalid_data, "index -1 (number 0)");
  check_values<float>(run({2, 0}), {2, 2}, {5, 6, 1, 2});
  check_refused(run_on_targets(gather_model<float, int32_t>({3, 2}, {2}, 2, 0), {table, bytes_of<int32_t>({0, 0})}),
                ErrorCode::invalid_model, "axis 2 is outside rank 2");
  check_refused(run_on_targets(gather_model<float, int32_t>({3, 2}, {2}, 0, 1), {table, bytes_of<int32_t>({0, 0})}),
                ErrorCode::invalid_model, "batch_dims 1 does not fit");
}

TEST_CASE("a half table behind a DEQUANTIZE is read where it lies", "[ops][gather]") {
  ModelBuilder m;
  std::vector<half> stored;
  for (float f : {1.0f, -2.5f, 0.25f, 4.0f}) stored.push_back(float_to_half(f));
  const int h = m.tensor(TensorType::float16, {2, 2}, "stored").values(stored),
            x = m.tensor(TensorType::float32, {2, 2}, "table");
  const int i = m.tensor(TensorType::int32, {3}, "indices"), y = m.tensor(TensorType::float32, {}, "y");
  m.op(BuiltinOperator::dequantize, {h}, {x});
  m.op(BuiltinOperator::gather, {x, i}, {y}).options(23);
  m.inputs({i}).outputs({y});
  check_values<float>(run_on_targets(m, {bytes_of<int32_t>({1, 0, 1})}), {3, 2}, {0.25f, 4, 1, -2.5f, 0.25f, 4});
}

TEST_CASE("slices by coordinates", "[ops][gather_nd]") {
  const auto run = [](const Shape& indices, const std::vector<int32_t>& at) {
    ModelBuilder m;
    const int x = m.tensor(TensorType::float32, {2, 3, 2}, "table"),
              i = m.tensor(TensorType::int32, dims(indices), "indices");
    const int y = m.tensor(TensorType::float32, {}, "y");
    m.op(BuiltinOperator::gather_nd, {x, i}, {y});
    m.inputs({x, i}).outputs({y});
    return run_on_targets(m, {bytes_of<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), bytes_of(at)});
  };
  check_values<float>(run({2, 3}, {1, 2, 0, 0, 0, 1}), {2}, {10, 1});
  check_values<float>(run({2, 2}, {1, 1, 0, 2}), {2, 2}, {8, 9, 4, 5});
  check_values<float>(run({1}, {1}), {3, 2}, {6, 7, 8, 9, 10, 11});
  check_refused(run({1, 2}, {1, 3}), ErrorCode::invalid_data,
                "index 3 in row 0 of the indices is outside the 3 entries of axis 1");
  check_refused(run({1, 4}, {0, 0, 0, 0}), ErrorCode::invalid_model, "has 4 coordinates a row");
}

TEST_CASE("scattered slices add up", "[ops][scatter_nd]") {
  check_values<float>(scatter<float>({3, 1}, {1, 3, 1}, {3}, {1, 2, 4}, {5}), {5}, {0, 5, 0, 2, 0});
  check_values<int8_t>(scatter<int8_t>({2, 1}, {0, 0}, {2, 2}, {100, 1, 100, 2}, {2, 2}), {2, 2}, {-56, 3, 0, 0});
  check_refused(scatter<float>({1, 1}, {5}, {1}, {1}, {5}), ErrorCode::invalid_data,
                "index 5 in row 0 of the indices is outside the 5 entries of axis 0");
  check_refused(scatter<float>({1, 1}, {0}, {1}, {1}, {5, 2}), ErrorCode::invalid_model, "do not fit the shape [5, 2]");
  check_refused(scatter<float>({1, 1}, {0}, {1}, {1}, {-5}), ErrorCode::invalid_model, "extent -5");
}

TEST_CASE("sparse values become dense", "[ops][sparse_to_dense]") {
  const auto run = [](const Shape& indices, const std::vector<int32_t>& at, const Shape& values_shape,
                      const std::vector<float>& values, const std::vector<int32_t>& shape) {
    ModelBuilder m;
    const int i = m.tensor(TensorType::int32, dims(indices), "indices"),
              v = m.tensor(TensorType::float32, dims(values_shape), "values");
    const int s = m.tensor(TensorType::int32, {static_cast<int32_t>(shape.size())}, "shape").values(shape);
    const int d = m.tensor(TensorType::float32, {}, "default").values<float>({-1}),
              y = m.tensor(TensorType::float32, {}, "y");
    m.op(BuiltinOperator::sparse_to_dense, {i, s, v, d}, {y});
    m.inputs({i, v}).outputs({y});
    return run_on_targets(m, {bytes_of(at), bytes_of(values)});
  };
  check_values<float>(run({}, {2}, {}, {7}, {4}), {4}, {-1, -1, 7, -1});
  check_values<float>(run({2}, {0, 3}, {}, {7}, {4}), {4}, {7, -1, -1, 7});
  check_values<float>(run({2, 2}, {0, 1, 1, 0}, {2}, {7, 8}, {2, 2}), {2, 2}, {-1, 7, 8, -1});
  check_refused(run({2, 2}, {0, 1, 2, 0}, {2}, {7, 8}, {2, 2}), ErrorCode::invalid_data,
                "index 2 in row 1 of the indices is outside the 2 entries of axis 0");
  check_refused(run({2, 2}, {0, 1, 1, 0}, {3}, {7, 8, 9}, {2, 2}), ErrorCode::invalid_model, "does not fit 2 indices");
}

TEST_CASE("embeddings of plain and narrow tables", "[ops][embedding_lookup]") {
  ModelBuilder m;
  const int ids = m.tensor(TensorType::int32, {3}, "ids");
  const int table = m.tensor(TensorType::int8, {2, 3}, "table")
                        .values<int8_t>({1, 2, 3, -4, 5, -6})
                        .quantized({0.5f, 2.0f}, {0, 0}, 0);
  const int nibbles =
      m.tensor(TensorType::int4, {2, 3}, "nibbles").bytes({0x21, 0xf3, 0x87}).quantized(0.5f, 0);  // 1 2 3, -1 7 -8
  const int y = m.tensor(TensorType::float32, {}, "y"), z = m.tensor(TensorType::float32, {}, "z");
  m.op(BuiltinOperator::embedding_lookup, {ids, table}, {y});
  m.op(BuiltinOperator::embedding_lookup, {ids, nibbles}, {z});
  m.inputs({ids}).outputs({y, z});
  const auto results = run_on_targets(m, {bytes_of<int32_t>({1, 0, 1})});
  check_values<float>(results, {3, 3}, {-8, 10, -12, 0.5f, 1, 1.5f, -8, 10, -12}, 0, 0);
  check_values<float>(results, {3, 3}, {-0.5f, 3.5f, -4, 0.5f, 1, 1.5f, -0.5f, 3.5f, -4}, 0, 1);
  check_refused(run_on_targets(m, {bytes_of<int32_t>({1, 0, 2})}), ErrorCode::invalid_data,
                "id 2 (number 2) is outside the table of 2 entries");
}
