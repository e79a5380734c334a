// SEGMENT_SUM, UNSORTED_SEGMENT_*, UNIQUE, HASHTABLE_LOOKUP, EMBEDDING_LOOKUP_SPARSE: rows that are joined or found by number.
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

template <class T>
std::vector<RunResult> segments(BuiltinOperator code, const Shape& data, const std::vector<T>& x, const Shape& at,
                                const std::vector<int32_t>& ids, std::vector<int32_t> told = {}, bool constant_ids = true,
                                std::vector<int32_t> declared = {}) {
  ModelBuilder m;
  const int input = m.tensor(tensor_type_of<T>, dims(data), "x"), y = m.tensor(tensor_type_of<T>, std::move(declared), "y");
  auto i = m.tensor(TensorType::int32, dims(at), "ids");
  if (constant_ids) i.values(ids);
  const int which = i;
  std::vector<int32_t> inputs{input, which};
  if (!told.empty()) inputs.push_back(m.tensor(TensorType::int32, {}, "number").values(told));
  m.op(code, inputs, {y});
  if (constant_ids)
    m.inputs({input});
  else
    m.inputs({input, which});
  m.outputs({y});
  std::vector<std::vector<uint8_t>> values{bytes_of(x)};
  if (!constant_ids) values.push_back(bytes_of(ids));
  return run_on_targets(m, values);
}

template <class T>
std::vector<RunResult> unique(const std::vector<T>& x, std::vector<int32_t> declared, bool constant, TensorType places) {
  ModelBuilder m;
  auto input = m.tensor(tensor_type_of<T>, {static_cast<int32_t>(x.size())}, "x");
  if (constant) input.values(x);
  const int from = input, y = m.tensor(tensor_type_of<T>, std::move(declared), "y"),
            i = m.tensor(places, {static_cast<int32_t>(x.size())}, "places");
  m.op(BuiltinOperator::unique, {from}, {y, i}).options(80);
  m.outputs({y, i});
  if (!constant) m.inputs({from});
  return run_on_targets(m, constant ? std::vector<std::vector<uint8_t>>{} : std::vector<std::vector<uint8_t>>{bytes_of(x)});
}

std::vector<RunResult> sparse(int8_t combiner, const std::vector<int32_t>& ids, const std::vector<int32_t>& indices,
                              const std::vector<int32_t>& dense, const std::vector<float>& weights, bool constant = true,
                              std::vector<int32_t> declared = {}) {
  const auto n = static_cast<int32_t>(ids.size()), rank = static_cast<int32_t>(dense.size());
  ModelBuilder m;
  const int i = m.tensor(TensorType::int32, {n}, "ids"), at = m.tensor(TensorType::int32, {n, rank}, "indices");
  auto shape = m.tensor(TensorType::int32, {rank}, "dense");
  if (constant) shape.values(dense);
  const int s = shape, w = m.tensor(TensorType::float32, {n}, "weights"),
            t = m.tensor(TensorType::float32, {3, 2}, "table").values<float>({1, 2, 10, 20, 100, 200});
  const int y = m.tensor(TensorType::float32, std::move(declared), "y");
  m.op(BuiltinOperator::embedding_lookup_sparse, {i, at, s, w, t}, {y}).options(20).field(0, combiner);
  m.outputs({y});
  std::vector<std::vector<uint8_t>> values{bytes_of(ids), bytes_of(indices)};
  if (!constant) values.push_back(bytes_of(dense));
  values.push_back(bytes_of(weights));
  if (constant)
    m.inputs({i, at, w});
  else
    m.inputs({i, at, s, w});
  return run_on_targets(m, values);
}

}  // namespace

TEST_CASE("sums over rising ids", "[ops][segments]") {
  const std::vector<int32_t> x{1, 2, 3, 4, 5, 6, 7, 8};
  check_values<int32_t>(segments<int32_t>(BuiltinOperator::segment_sum, {4, 2}, x, {4}, {0, 0, 1, 2}), {3, 2}, {4, 6, 5, 6, 7, 8});
  check_values<float>(segments<float>(BuiltinOperator::segment_sum, {3}, {1, 2, 4}, {3}, {0, 0, 0}, {}, false, {1}), {1}, {7});
  check_values<int32_t>(segments<int32_t>(BuiltinOperator::segment_sum, {0, 2}, {}, {0}, {}), {0, 2}, {});
  const auto computed = [&](const std::vector<int32_t>& ids, int32_t declared) {
    return segments<int32_t>(BuiltinOperator::segment_sum, {4, 2}, x, {4}, ids, {}, false, {declared, 2});
  };
  check_refused(computed({0, 2, 2, 3}, 4), ErrorCode::invalid_data, "id 2 (number 1) follows 0");
  check_refused(computed({-1, 0, 0, 0}, 1), ErrorCode::invalid_data, "ids must rise from 0");
  check_refused(computed({0, 1, 1, 1}, 3), ErrorCode::invalid_data, "its ids make 2 segments, its output has 3");
  check_refused(computed({0, 1, 2, 2}, 2), ErrorCode::invalid_data, "outside the 2 segments");
  check_refused(segments<int32_t>(BuiltinOperator::segment_sum, {4, 2}, x, {4}, {0, 0, 0, 9}), ErrorCode::invalid_model,
                "its last id is 9");
  check_refused(segments<int32_t>(BuiltinOperator::segment_sum, {4, 2}, x, {3}, {0, 0, 0}), ErrorCode::invalid_model,
                "ids tensor 'ids' int32 [3] do not fit");
}

TEST_CASE("segments in any order", "[ops][segments]") {
  const std::vector<float> x{1, 2, -3, 4, 5, -6};
  const std::vector<int32_t> ids{2, -1, 2};
  const float low = std::numeric_limits<float>::lowest();
  check_values<float>(segments(BuiltinOperator::unsorted_segment_sum, {3, 2}, x, {3}, ids, {3}), {3, 2}, {0, 0, 0, 0, 6, -4});
  check_values<float>(segments(BuiltinOperator::unsorted_segment_prod, {3, 2}, x, {3}, ids, {3}, false), {3, 2}, {1, 1, 1, 1, 5, -12});
  check_values<float>(segments(BuiltinOperator::unsorted_segment_max, {3, 2}, x, {3}, ids, {3}), {3, 2}, {low, low, low, low, 5, 2});
  check_values<float>(segments(BuiltinOperator::unsorted_segment_min, {3, 2}, x, {3}, ids, {3}), {3, 2}, {-low, -low, -low, -low, 1, -6});
  check_values<int32_t>(segments<int32_t>(BuiltinOperator::unsorted_segment_prod, {3}, {1 << 20, 1 << 13, 3}, {3}, {0, 0, 1}, {2}), {2},
                        {0, 3});
  check_values<int32_t>(segments<int32_t>(BuiltinOperator::unsorted_segment_sum, {2, 2}, {1, 2, 3, 4}, {2, 2}, {1, 0, 1, 1}, {2}), {2},
                        {2, 8});
  check_refused(segments(BuiltinOperator::unsorted_segment_sum, {3, 2}, x, {3}, {0, 3, 1}, {3}), ErrorCode::invalid_data,
                "id 3 (number 1) is outside the 3 segments");
  check_refused(segments(BuiltinOperator::unsorted_segment_sum, {3, 2}, x, {3}, ids, {-3}), ErrorCode::invalid_model, "makes -3 segments");
}

TEST_CASE("different elements in their order", "[ops][unique]") {
  const auto some = unique<int32_t>({4, 1, 1, 7, 4, 0, -1}, {5}, false, TensorType::int32);
  check_values<int32_t>(some, {5}, {4, 1, 7, 0, -1}, 0, 0);
  check_values<int32_t>(some, {7}, {0, 1, 1, 2, 0, 3, 4}, 0, 1);
  const float nan = std::nanf("");
  const auto constant = unique<float>({0.0f, -0.0f, nan, nan, 2}, {}, true, TensorType::int64);
  check_values<float>(constant, {4}, {0, nan, nan, 2}, 0, 0);
  check_values<int64_t>(constant, {5}, {0, 0, 1, 2, 3}, 0, 1);
  check_values<int8_t>(unique<int8_t>({-7}, {9}, false, TensorType::int32), {1}, {-7}, 0, 0);
  check_values<int64_t>(unique<int64_t>({}, {}, false, TensorType::int32), {0}, {}, 0, 0);
  Random random(2);
  std::vector<int16_t> many, want;
  std::vector<int32_t> places;
  for (int i = 0; i < 3000; ++i) {
    many.push_back(static_cast<int16_t>(random.between(-300, 300)));
    size_t place = 0;
    while (place < want.size() && want[place] != many.back()) ++place;
    if (place == want.size()) want.push_back(many.back());
    places.push_back(static_cast<int32_t>(place));
  }
  const auto results = unique<int16_t>(many, {static_cast<int32_t>(want.size())}, false, TensorType::int32);
  check_values(results, {static_cast<int64_t>(want.size())}, want, 0, 0);
  check_values(results, {3000}, places, 0, 1);
  check_refused(unique<int32_t>({1, 2, 3}, {2}, false, TensorType::int32), ErrorCode::invalid_data, "more than the 2 different elements");
  check_refused(unique<int32_t>({1, 1, 1}, {2}, false, TensorType::int32), ErrorCode::invalid_data,
                "has 1 different elements, its output 2");
  check_refused(unique<int32_t>({1, 1, 1}, {}, false, TensorType::int32), ErrorCode::unsupported, "depends on the values of tensor 'x'");
}

TEST_CASE("values by key, zeros for keys that are not there", "[ops][hashtable_lookup]") {
  const auto lookup = [](const Shape& keys, const Shape& values) {
    ModelBuilder m;
    const int x = m.tensor(TensorType::int32, {4}, "x"), k = m.tensor(TensorType::int32, dims(keys), "keys").values<int32_t>({-3, 5, 9});
    const int v = m.tensor(TensorType::int16, dims(values), "values").values<int16_t>({1, 2, 3, 4, 5, 6});
    const int y = m.tensor(TensorType::int16, {}, "y"), hits = m.tensor(TensorType::uint8, {}, "hits");
    m.op(BuiltinOperator::hashtable_lookup, {x, k, v}, {y, hits});
    m.inputs({x}).outputs({y, hits});
    return run_on_targets(m, {bytes_of<int32_t>({9, 0, -3, 10})});
  };
  check_values<int16_t>(lookup({3}, {3, 2}), {4, 2}, {5, 6, 0, 0, 1, 2, 0, 0}, 0, 0);
  check_values<uint8_t>(lookup({3}, {3, 2}), {4}, {1, 0, 1, 0}, 0, 1);
  check_refused(lookup({3}, {2, 3}), ErrorCode::invalid_model, "differ in their first axis");
  check_refused(lookup({3, 1}, {3, 2}), ErrorCode::invalid_model, "has rank 2, not 1 to 1");
}

TEST_CASE("weighted sums of table rows", "[ops][embedding_lookup_sparse]") {
  const std::vector<int32_t> ids{0, 2, 1}, at{0, 0, 0, 3, 2, 1};
  const std::vector<float> weights{0.5f, 1.5f, 2};
  check_values<float>(sparse(0, ids, at, {3, 4}, weights), {3, 2}, {150.5f, 301, 0, 0, 20, 40}, 1e-6);
  check_values<float>(sparse(1, ids, at, {3, 4}, weights), {3, 2}, {75.25f, 150.5f, 0, 0, 10, 20}, 1e-6);
  const float root = std::sqrt(2.5f);
  check_values<float>(sparse(2, ids, at, {3, 4}, weights, false, {3, 2}), {3, 2}, {150.5f / root, 301 / root, 0, 0, 10, 20}, 1e-6);
  check_refused(sparse(0, {0, 3, 1}, at, {3, 4}, weights), ErrorCode::invalid_data, "id 3 (number 1) is outside the table of 3 entries");
  check_refused(sparse(0, ids, at, {2, 4}, weights), ErrorCode::invalid_data, "coordinate 2 of entry 2 is outside the 2 of axis 0");
  check_refused(sparse(0, ids, at, {3, 4}, weights, false, {4, 2}), ErrorCode::invalid_data,
                "extent 3 of axis 0 of its dense shape is not the 4");
  check_refused(sparse(3, ids, at, {3, 4}, weights), ErrorCode::invalid_model, "combiner 3 is not known");
}
