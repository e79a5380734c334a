#include "oneweight/opset/plan_cache.h"

#include "tests/support/toy_operators.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

struct ToyOperators {
  static constexpr std::span<const OpRow> rows = kToyRows;
};

std::shared_ptr<const ModelView> negation() {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {1, 8}, "x"), y = m.tensor(TensorType::float32, {1, 8}, "y"), z = m.tensor(TensorType::float32, {1, 8}, "z");
  m.op(BuiltinOperator::neg, {x}, {y});
  m.op(BuiltinOperator::relu, {y}, {z});
  m.inputs({x}).outputs({z});
  m.signature("again", 0, {{"x", static_cast<uint32_t>(x)}}, {{"z", static_cast<uint32_t>(z)}});
  return opened(m);
}

}  // namespace

TEST_CASE("equal options share a plan, others never do", "[plan][cache]") {
  const auto model = negation(), twin = negation();
  PlanCache<ToyOperators> cache;
  std::vector<PlanOptions> all(1);
  const auto add = [&all](auto&& change) {
    all.emplace_back();
    change(all.back());
  };
  add([](PlanOptions& o) { o.signature = "again"; });
  add([](PlanOptions& o) { o.input_shapes = {{0, Shape{2, 8}}}; });
  add([](PlanOptions& o) { o.keep = {"y"}; });
  add([](PlanOptions& o) { o.target_mask = available_targets(); });
  add([](PlanOptions& o) { o.fuse = false; });
  add([](PlanOptions& o) { o.workers = 2; });
  add([](PlanOptions& o) { o.band_work = 5; });
  add([](PlanOptions& o) { o.custom_operators = {&kToyRows[0]}; });
  add([](PlanOptions& o) { o.custom_operators = {&kToyRows[1]}; });
  add([](PlanOptions& o) { o.reorder = false; });
  add([](PlanOptions& o) { o.tile_rows = 1; });
  add([](PlanOptions& o) { o.extra_work = 0.5; });
  add([](PlanOptions& o) { o.memory_limit = 1 << 20; });
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const auto& m : {model, twin})
    for (const PlanOptions& options : all) {
      const auto plan = cache.get(m, options);
      INFO(plan.status().message());
      REQUIRE(plan.ok());
      CHECK(std::count(plans.begin(), plans.end(), *plan) == 0);
      plans.push_back(*plan);
    }
  for (size_t i = 0; i < all.size(); ++i) {
    CHECK(*cache.get(model, all[i]) == plans[i]);
    CHECK(*cache.get(twin, all[i]) == plans[all.size() + i]);
  }
}

TEST_CASE("a cache keeps no plan and no error", "[plan][cache]") {
  const auto model = negation();
  PlanCache<ToyOperators> cache;
  const std::weak_ptr<const Plan> gone = *cache.get(model);
  CHECK(gone.expired());
  PlanOptions options;
  options.memory_limit = 1;
  for (int k = 0; k < 2; ++k) CHECK(cache.get(model, options).status().code() == ErrorCode::out_of_memory);
  CHECK(cache.get(model).ok());
}
