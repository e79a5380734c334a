#include "examples/oneweight/profile.h"

#include <thread>

#include "tests/support/test_data.h"
#include "tests/support/toy_operators.h"

using namespace oneweight;
using namespace oneweight::testing;
using namespace program;

namespace {

void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(4)); }
constexpr int64_t kWait = 4000000;

}  // namespace

TEST_CASE("the time between two announcements belongs to the first, however often a step is announced", "[program][profile]") {
  Profile profile(3);
  const int64_t* memory = profile.ns.data();
  // Steps 0 and 1 by bands, then step 2 and the end.
  for (int step : {0, 1, 0, 1, 0, 1, 2, 3}) Profile::observe(&profile, step), wait();
  CHECK(profile.ns[0] >= 3 * kWait);
  CHECK(profile.ns[1] >= 3 * kWait);
  CHECK(profile.ns[2] >= kWait);
  CHECK(profile.ns[2] < profile.ns[0]);
  // What lies between two runs belongs to none.
  const std::vector<int64_t> before = profile.ns;
  Profile::observe(&profile, 0);
  CHECK(profile.ns == before);
  wait();
  Profile::observe(&profile, 3);
  CHECK(profile.ns[0] >= before[0] + kWait);
  CHECK(profile.ns[1] == before[1]);
  CHECK(profile.ns.data() == memory);
  CHECK(profile.total_ms() >= 8 * 4);
}

TEST_CASE("runs of a model fill the profile", "[program][profile]") {
  for (const std::string& path : test_models()) {
    const auto plan = plan_of(path);
    auto context = context_of(plan);
    fill_inputs(context);
    Profile profile(plan->steps().size());
    RunOptions options;
    options.observer = &Profile::observe;
    options.observer_user = &profile;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 3; ++i) REQUIRE(context.run(options).ok());
    const double all = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    INFO(path);
    CHECK(profile.at == -1);
    CHECK(profile.total_ms() > 0);
    CHECK(profile.total_ms() <= all);
  }
}

TEST_CASE("a step reads inputs and constants, each once, and writes outputs", "[program][profile]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {1, 100}, "x"), y = m.tensor(TensorType::float32, {1, 100}, "y"), z = m.tensor(TensorType::float32, {1, 100}, "z");
  const int w = m.tensor(TensorType::float32, {1, 100}, "w").values(std::vector<float>(100, 1.0f));
  const int end = m.tensor(TensorType::float32, {1, 100}, "end");
  m.op(BuiltinOperator::add, {x, w}, {y});
  m.op(BuiltinOperator::add, {y, y}, {z});
  m.op(BuiltinOperator::exp, {z}, {end});
  m.inputs({x}).outputs({end});
  auto plan = plan_toy(m.build());
  REQUIRE(plan.ok());
  REQUIRE((*plan)->steps().size() == 3);
  const auto of = [&](size_t s) { return bytes_of(**plan, (*plan)->steps()[s]); };
  CHECK(of(0).read == 400);
  CHECK(of(0).constants == 400);
  CHECK(of(0).written == 400);
  CHECK(of(0).moved() == 1200);
  CHECK(of(0).scratch == 0);
  CHECK(of(1).read == 400);
  CHECK(of(1).constants == 0);
  CHECK(of(2).scratch == 1024);
}
