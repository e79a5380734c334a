// Eight contexts of one view on eight threads answer as one context does; so does one context on many threads.
#include <thread>

#include "oneweight/context/eigen_executor.h"
#include "tests/support/model_builder.h"
#include "tests/support/test_data.h"

TEST_CASE("eight contexts on eight threads share one plan and agree", "[context][threads]") {
  for (const std::string& path : test_models()) {
    INFO(path);
    const auto plan = plan_of(path);
    std::vector<std::vector<std::vector<std::byte>>> expected;
    for (unsigned seed = 1; seed <= 8; ++seed) {
      auto context = context_of(plan);
      fill_inputs(context, seed);
      REQUIRE(context.run().ok());
      expected.push_back(outputs_of(context));
    }
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (unsigned seed = 1; seed <= 8; ++seed)
      threads.emplace_back([&, seed] {
        auto context = oneweight::ExecutionContext::create(plan);
        if (!context.ok()) {
          ++wrong;
          return;
        }
        for (int i = 0; i < 3; ++i) {
          context->reset();
          fill_inputs(*context, seed);
          if (!context->run().ok() || outputs_of(*context) != expected[seed - 1]) ++wrong;
        }
      });
    for (std::thread& t : threads) t.join();
    CHECK(wrong == 0);
  }
}

namespace {

// Every step that can be divided is.
std::shared_ptr<const oneweight::Plan> divided_plan_of(const std::string& path, int workers) {
  oneweight::PlanOptions options;
  options.workers = workers;
  options.band_work = 1;
  return plan_of(path, options);
}

std::vector<std::vector<std::byte>> answers_alone(const std::string& path) {
  auto alone = context_of(plan_of(path));
  fill_inputs(alone);
  REQUIRE(alone.run().ok());
  return outputs_of(alone);
}

oneweight::RunOptions with(const oneweight::Executor& executor) {
  oneweight::RunOptions run;
  run.executor = &executor;
  return run;
}

}  // namespace

TEST_CASE("answers do not depend on the number of threads of a run", "[context][threads]") {
  for (const std::string& path : test_models()) {
    INFO(path);
    const auto expected = answers_alone(path);
    for (int workers : {2, 3, 5}) {
      const auto plan = divided_plan_of(path, workers);
      auto context = context_of(plan);
      oneweight::EigenExecutor pool(workers);
      for (int i = 0; i < 3; ++i) {
        context.reset();
        fill_inputs(context);
        REQUIRE(context.run(with(pool)).ok());
        CHECK(outputs_of(context) == expected);
      }
    }
  }
}

TEST_CASE("steps of the larger models are divided", "[context][threads]") {
  int divided = 0;
  for (const std::string& path : test_models()) {
    const auto plan = divided_plan_of(path, 3);
    divided += plan->is_divided();
    for (const oneweight::Step& step : plan->steps()) CHECK(step.bands <= (step.divides_blocks ? step.blocks : step.rows));
    CHECK_FALSE(plan_of(path)->is_divided());
  }
  CHECK(divided > 0);
}

TEST_CASE("an executor may run its tasks in turn, only one of them, or none", "[context][threads]") {
  using Task = void (*)(void*, int);
  const oneweight::Executor in_turn([](void*, int count, Task task, void* argument) {
    for (int i = 0; i < count; ++i) task(argument, i);
  });
  const oneweight::Executor last_one([](void*, int count, Task task, void* argument) { task(argument, count - 1); });
  const oneweight::Executor none([](void*, int, Task, void*) {});
  const oneweight::Executor threads_of_its_own([](void*, int count, Task task, void* argument) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(task, argument, i);
    for (std::thread& t : threads) t.join();
  });
  for (const std::string& path : test_models()) {
    INFO(path);
    const auto expected = answers_alone(path);
    for (const oneweight::Executor* executor : {&in_turn, &last_one, &none, &threads_of_its_own}) {
      auto context = context_of(divided_plan_of(path, 4));
      fill_inputs(context);
      REQUIRE(context.run(with(*executor)).ok());
      CHECK(outputs_of(context) == expected);
    }
  }
}

TEST_CASE("contexts whose executors share a busy pool all finish", "[context][threads]") {
  const std::string path = test_models().front();
  const auto plan = divided_plan_of(path, 3);
  const auto expected = answers_alone(path);
  Eigen::ThreadPool pool(1, false);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      auto context = oneweight::ExecutionContext::create(plan);
      oneweight::EigenExecutor executor(&pool);
      for (int i = 0; i < 25 && context.ok(); ++i) {
        context->reset();
        fill_inputs(*context);
        right += context->run(with(executor)).ok() && outputs_of(*context) == expected;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(right == 100);
}

TEST_CASE("what fails in a band is reported as if there were none", "[context][threads]") {
  using namespace oneweight::testing;
  ModelBuilder m;
  const int table = m.tensor(oneweight::TensorType::float32, {4, 3}, "table"), at = m.tensor(oneweight::TensorType::int32, {64, 1}, "at");
  const int y = m.tensor(oneweight::TensorType::float32, {}, "y");
  m.op(oneweight::BuiltinOperator::gather_nd, {table, at}, {y});
  m.inputs({table, at}).outputs({y});
  const auto bytes = m.build();
  auto model = oneweight::ModelView::from_bytes(std::as_bytes(std::span(bytes)));
  REQUIRE(model.ok());
  const auto message = [&](int workers, const oneweight::Executor* executor) {
    oneweight::PlanOptions options;
    options.workers = workers;
    options.band_work = 1;
    auto plan = oneweight::make_plan<oneweight::opset::All>(*model, options);
    REQUIRE(plan.ok());
    CHECK((*plan)->is_divided() == (workers > 1));
    auto context = context_of(*plan);
    auto indices = context.input<int32_t>(1);
    REQUIRE(indices.ok());
    for (size_t i = 0; i < indices->size(); ++i) (*indices)[i] = i >= 10 ? 100 + static_cast<int>(i) : 0;  // wrong in every band
    oneweight::RunOptions run;
    run.executor = executor;
    const oneweight::Status status = context.run(run);
    CHECK(status.code() == oneweight::ErrorCode::invalid_data);
    std::fill(indices->begin(), indices->end(), 3);
    CHECK(context.run(run).ok());  // and the context is still good
    return status.message();
  };
  const std::string alone = message(1, nullptr);
  CHECK(alone.find("110") != std::string::npos);
  for (int workers : {2, 4, 7}) {
    oneweight::EigenExecutor pool(workers);
    for (int i = 0; i < 20; ++i) CHECK(message(workers, &pool) == alone);
  }
}

TEST_CASE("a run on many threads stops when it is told to", "[context][threads]") {
  const auto plan = divided_plan_of(test_models().front(), 3);
  auto context = context_of(plan);
  oneweight::EigenExecutor pool(3);
  std::atomic<bool> cancel{true};
  oneweight::RunOptions run = with(pool);
  run.cancel = &cancel;
  CHECK(context.run(run).code() == oneweight::ErrorCode::cancelled);
  cancel = false;
  CHECK(context.run(run).ok());
}
