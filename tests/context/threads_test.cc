// Eight contexts of one view on eight threads answer as one context does; so does one context on many threads.
#include <thread>

#include "oneweight/context/eigen_executor.h"
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

TEST_CASE("answers do not depend on the number of threads of a run", "[context][threads]") {
  for (const std::string& path : test_models()) {
    INFO(path);
    auto alone = context_of(plan_of(path));
    fill_inputs(alone);
    REQUIRE(alone.run().ok());
    for (int workers : {2, 3, 5}) {
      oneweight::PlanOptions options;
      options.workers = workers;
      auto context = context_of(plan_of(path, options));
      oneweight::EigenExecutor pool(workers);
      const oneweight::Executor executor = pool.executor();
      oneweight::RunOptions run;
      run.executor = &executor;
      fill_inputs(context);
      REQUIRE(context.run(run).ok());
      CHECK(outputs_of(context) == outputs_of(alone));
    }
  }
}
