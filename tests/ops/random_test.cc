// RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL: shapes, distributions, and whose sequence is whose.
#include <numeric>

#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

std::shared_ptr<const Plan> plan_of(const ModelBuilder& m) {
  auto owner = std::make_shared<FileBytes>(m.build());
  auto model = ModelView::from_bytes(*owner, owner);
  REQUIRE(model.ok());
  auto plan = make_plan<opset::All>(*model);
  INFO(plan.status().message());
  REQUIRE(plan.ok());
  return *plan;
}
ModelBuilder fill_model(BuiltinOperator code, const std::vector<int32_t>& shape, int64_t seed, int64_t seed_2) {
  ModelBuilder m;
  const int s = m.tensor(TensorType::int32, {static_cast<int32_t>(shape.size())}, "shape").values(shape),
            y = m.tensor(TensorType::float32, {}, "y");
  m.op(code, {s}, {y}).options(119).field(0, seed).field(1, seed_2);
  m.outputs({y});
  return m;
}
std::vector<float> run(ExecutionContext& context) {
  REQUIRE(context.run().ok());
  std::vector<float> values(context.output_bytes(0).size() / sizeof(float));
  std::memcpy(values.data(), context.output_bytes(0).data(), values.size() * sizeof(float));
  return values;
}
double mean(const std::vector<float>& x) { return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size()); }

ModelBuilder draw_model(const Shape& logits, const std::vector<int32_t>& count, bool constant, std::vector<int32_t> declared) {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, dims(logits), "logits"), y = m.tensor(TensorType::int64, std::move(declared), "y");
  auto n = m.tensor(TensorType::int32, {}, "count");
  if (constant) n.values(count);
  const int number = n;
  m.op(BuiltinOperator::multinomial, {x, number}, {y}).options(119).field<int64_t>(0, 7);
  if (constant)
    m.inputs({x});
  else
    m.inputs({x, number});
  m.outputs({y});
  return m;
}

}  // namespace

TEST_CASE("uniform and normal numbers", "[ops][random]") {
  auto uniform = ExecutionContext::create(plan_of(fill_model(BuiltinOperator::random_uniform, {40, 101}, 3, 4)));
  const auto u = run(*uniform);
  REQUIRE(u.size() == 4040);
  for (const float x : u) REQUIRE((x >= 0 && x < 1));
  CHECK(std::fabs(mean(u) - 0.5) < 0.02);
  auto normal = ExecutionContext::create(plan_of(fill_model(BuiltinOperator::random_standard_normal, {4001}, 3, 4)));
  auto n = run(*normal);
  REQUIRE(n.size() == 4001);
  CHECK(std::fabs(mean(n)) < 0.06);
  for (float& x : n) x *= x;
  CHECK(std::fabs(mean(n) - 1) < 0.1);
}

TEST_CASE("seeded sequences go on, begin anew, and belong to a context", "[ops][random]") {
  const auto plan = plan_of(fill_model(BuiltinOperator::random_uniform, {5}, 3, 0));
  auto a = ExecutionContext::create(plan), b = ExecutionContext::create(plan);
  const auto first = run(*a), second = run(*a);
  CHECK(first != second);
  CHECK(run(*b) == first);
  CHECK(run(*b) == second);
  a->reset();
  CHECK(run(*a) == first);
  const auto unseeded = plan_of(fill_model(BuiltinOperator::random_uniform, {5}, 0, 0));
  auto c = ExecutionContext::create(unseeded), d = ExecutionContext::create(unseeded);
  CHECK(run(*c) != run(*d));
}

TEST_CASE("classes by their log-probabilities", "[ops][random]") {
  const float never = -std::numeric_limits<float>::infinity();
  const auto logits = bytes_of<float>({0, std::log(3.0f), never, never, 50, never});
  for (const RunResult& r : run_on_targets(draw_model({2, 3}, {2000}, true, {}), {logits})) {
    REQUIRE(r.status.ok());
    CHECK(r.shapes[0].to_string() == "[2, 2000]");
    const auto drawn = r.values<int64_t>();
    int counts[3] = {};
    for (size_t i = 0; i < 2000; ++i) ++counts[drawn[i]];
    CHECK(std::abs(counts[0] - 500) < 80);
    CHECK(counts[2] == 0);
    CHECK(std::all_of(drawn.begin() + 2000, drawn.end(), [](int64_t c) { return c == 1; }));
  }
  check_refused(run_on_targets(draw_model({1, 2}, {3}, true, {}), {bytes_of<float>({never, never})}), ErrorCode::invalid_data,
                "row 0 has no class of finite probability");
  check_refused(run_on_targets(draw_model({2, 0}, {3}, true, {}), {{}}), ErrorCode::invalid_model, "has no classes");
  check_refused(run_on_targets(draw_model({1, 2}, {-3}, true, {}), {bytes_of<float>({1, 2})}), ErrorCode::invalid_model,
                "is asked for -3 elements");
  check_refused(run_on_targets(draw_model({1, 2}, {3}, false, {1, 4}), {bytes_of<float>({1, 2}), bytes_of<int32_t>({3})}),
                ErrorCode::invalid_data, "is asked for 3 elements along axis 0, its output has 4");
  check_refused(run_on_targets(draw_model({1, 2}, {3}, false, {}), {bytes_of<float>({1, 2}), bytes_of<int32_t>({3})}),
                ErrorCode::unsupported, "needs the values of tensor 'count'");
}
