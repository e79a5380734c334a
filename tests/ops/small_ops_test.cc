// BITCAST, BROADCAST_ARGS, BUCKETIZE, LOCAL_RESPONSE_NORMALIZATION and LSH_PROJECTION.
#include <bit>

#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {
const float kNaN = std::nanf("");

template <class In, class Out>
std::vector<RunResult> bitcast(const Shape& in, const std::vector<In>& x) {
  ModelBuilder m;
  const int input = m.tensor(tensor_type_of<In>, dims(in), "x"), y = m.tensor(tensor_type_of<Out>, {}, "y");
  m.op(BuiltinOperator::bitcast, {input}, {y});
  m.inputs({input}).outputs({y});
  return run_on_targets(m, {bytes_of(x)});
}

template <class T>
std::vector<RunResult> bucketize(const std::vector<T>& x, const std::vector<float>& boundaries) {
  ModelBuilder m;
  const int input = m.tensor(tensor_type_of<T>, {static_cast<int32_t>(x.size())}, "x"), y = m.tensor(TensorType::int32, {}, "y");
  m.op(BuiltinOperator::bucketize, {input}, {y}).options(115).vector(0, boundaries);
  m.inputs({input}).outputs({y});
  return run_on_targets(m, {bytes_of(x)});
}
}  // namespace

TEST_CASE("the same bytes as another type", "[ops][bitcast]") {
  check_values<uint32_t>(bitcast<float, uint32_t>({2}, {1, -2}), {2}, {0x3f800000u, 0xc0000000u});
  check_values<int16_t>(bitcast<int32_t, int16_t>({1, 2}, {0x10002, -1}), {1, 2, 2}, {2, 1, -1, -1});
  check_values<int32_t>(bitcast<uint8_t, int32_t>({2, 4}, {1, 0, 0, 0, 0, 1, 0, 0}), {2}, {1, 256});
  check_values<int64_t>(bitcast<uint16_t, int64_t>({4}, {1, 0, 0, 1}), {}, {(int64_t{1} << 48) + 1});
  check_values<uint8_t>(bitcast<int16_t, uint8_t>({}, {513}), {2}, {1, 2});
  check_refused(bitcast<uint8_t, int32_t>({2, 3}, {1, 2, 3, 4, 5, 6}), ErrorCode::invalid_model, "has no last axis of 4 elements");
  check_refused(bitcast<int32_t, uint8_t>({1, 1, 1, 1, 1, 1, 1, 1}, {1}), ErrorCode::invalid_model, "makes more than 8 axes");
}

TEST_CASE("shapes that broadcast", "[ops][broadcast_args]") {
  const auto run = [](const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
    ModelBuilder m;
    const int x = m.tensor(TensorType::int64, {static_cast<int32_t>(a.size())}, "a"),
              z = m.tensor(TensorType::int64, {static_cast<int32_t>(b.size())}, "b");
    const int y = m.tensor(TensorType::int64, {}, "y");
    m.op(BuiltinOperator::broadcast_args, {x, z}, {y});
    m.inputs({x, z}).outputs({y});
    return run_on_targets(m, {bytes_of(a), bytes_of(b)});
  };
  check_values<int64_t>(run({3, 1}, {2, 1, 4}), {3}, {2, 3, 4});
  check_values<int64_t>(run({}, {5}), {1}, {5});
  check_values<int64_t>(run({0, 1}, {1, 7}), {2}, {0, 7});
  check_refused(run({2, 3}, {3, 3}), ErrorCode::invalid_data, "extents 2 and 3 of axis 0 do not broadcast");
  // Constant shapes give a shape that is known before the run.
  ModelBuilder m;
  const int a = m.tensor(TensorType::int32, {2}, "a").values<int32_t>({2, 1}),
            b = m.tensor(TensorType::int32, {1}, "b").values<int32_t>({3});
  const int s = m.tensor(TensorType::int32, {2}, "s"), x = m.tensor(TensorType::int8, {1}, "x"), y = m.tensor(TensorType::int8, {}, "y");
  m.op(BuiltinOperator::broadcast_args, {a, b}, {s});
  m.op(BuiltinOperator::broadcast_to, {x, s}, {y}).version(2);
  m.inputs({x}).outputs({y});
  check_values<int8_t>(run_on_targets(m, {{9}}), {2, 3}, {9, 9, 9, 9, 9, 9});
}

TEST_CASE("values between boundaries", "[ops][bucketize]") {
  check_values<int32_t>(bucketize<float>({-5, 0, 0.5f, 10, 99, 100, 1e9f, kNaN}, {0, 10, 100}), {8}, {0, 1, 1, 2, 2, 3, 3, 3});
  check_values<int32_t>(bucketize<int32_t>({-1, 0, 10, 11}, {0, 10}), {4}, {0, 1, 2, 2});
  check_values<int32_t>(bucketize<int64_t>({-1, int64_t{1} << 40}, {0, 1e6f}), {2}, {0, 2});
  check_values<int32_t>(bucketize<double>({0.1}, {0.1f}), {1}, {0});
  check_values<int32_t>(bucketize<float>({1}, {}), {1}, {0});
  check_refused(bucketize<float>({1}, {2, 1}), ErrorCode::invalid_model, "its boundaries are not sorted: number 1 is 1");
}

TEST_CASE("channels by the squares of their neighbours", "[ops][local_response_normalization]") {
  const auto run = [](const Shape& in, const std::vector<float>& x, int32_t radius, float bias, float alpha, float beta) {
    ModelBuilder m;
    const int input = m.tensor(TensorType::float32, dims(in), "x"), y = m.tensor(TensorType::float32, {}, "y");
    m.op(BuiltinOperator::local_response_normalization, {input}, {y})
        .options(13)
        .field(0, radius)
        .field(1, bias)
        .field(2, alpha)
        .field(3, beta);
    m.inputs({input}).outputs({y});
    return run_on_targets(m, {bytes_of(x)});
  };
  Random random(9);
  for (const int64_t depth : {1, 2, 7, 16, 33}) {
    const Shape in{2, 2, 3, depth};
    const auto x = random.values<float>(in.elements());
    for (const int32_t radius : {0, 1, 5, 100}) {
      for (const float beta : {0.75f, 0.5f, 1.0f, 2.0f, 0.3f, 0.0f, -0.4f}) {
        std::vector<float> want;
        for (int64_t i = 0; i < in.elements(); ++i) {
          double sum = 0;
          for (int64_t k = std::max<int64_t>(i % depth - radius, 0); k < std::min(i % depth + radius + 1, depth); ++k) {
            const auto v = static_cast<double>(x[static_cast<size_t>(i - i % depth + k)]);
            sum += v * v;
          }
          want.push_back(
              static_cast<float>(static_cast<double>(x[static_cast<size_t>(i)]) * std::pow(1.5 + 0.25 * sum, static_cast<double>(-beta))));
        }
        check_values(run(in, x, radius, 1.5f, 0.25f, beta), in, want, 2e-6);
      }
    }
  }
  check_refused(run({1, 2}, {1, 2}, -1, 1, 1, 1), ErrorCode::invalid_model, "radius -1 is negative");
}

// Wanted bits and numbers: made with FarmHash's own fingerprints.
TEST_CASE("hashes of items of all lengths", "[ops][lsh_projection]") {
  const auto run = [](int32_t length, bool dense, int32_t weights = 3, int8_t type = 0) {
    ModelBuilder m;
    std::vector<float> seeds;
    for (int k = 0; k < 12; ++k) seeds.push_back(0.25f * static_cast<float>(k) - 1);
    std::vector<uint8_t> items;
    for (int32_t i = 0; i < 3 * length; ++i) items.push_back(static_cast<uint8_t>(i * 29));
    const int s = m.tensor(TensorType::float32, {3, 4}, "seeds").values(seeds), x = m.tensor(TensorType::uint8, {3, length}, "x"),
              y = m.tensor(TensorType::int32, {}, "y");
    std::vector<float> values{0.5f, -2, 1.5f};
    values.resize(static_cast<size_t>(weights));
    const int w = dense ? -1 : int(m.tensor(TensorType::float32, {weights}, "w").values(values));
    m.op(BuiltinOperator::lsh_projection, {s, x, w}, {y}).options(2).field<int8_t>(0, type ? type : dense ? 2 : 1);
    m.inputs({x}).outputs({y});
    return run_on_targets(m, {items});
  };
  const struct {
    int32_t length;
    std::vector<int32_t> dense, sparse;
  } wanted[] = {{1, {0, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 0}, {0, 21, 44}},   {4, {0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0}, {6, 25, 47}},
                {5, {0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1}, {9, 28, 33}},   {12, {0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0}, {7, 26, 43}},
                {13, {0, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0}, {11, 16, 45}}, {28, {0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 0, 1}, {9, 28, 42}},
                {29, {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}, {8, 19, 32}},  {60, {1, 1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0}, {6, 31, 36}},
                {61, {1, 1, 1, 0, 1, 1, 0, 0, 0, 1, 0, 0}, {8, 22, 40}},  {124, {0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1}, {6, 17, 33}},
                {125, {1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0}, {7, 21, 42}}, {300, {0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 1}, {11, 28, 39}}};
  for (const auto& w : wanted) {
    INFO("items of " << w.length << " bytes");
    check_values(run(w.length, true), {12}, w.dense);
    check_values(run(w.length, false), {3}, w.sparse);
  }
  check_refused(run(4, false, 2), ErrorCode::invalid_model, "weights tensor 'w' float32 [2] do not fit");
  check_refused(run(4, true, 3, 5), ErrorCode::unsupported, "type 5 is neither sparse (1) nor dense (2)");
}
