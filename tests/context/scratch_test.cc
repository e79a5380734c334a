// Scratch that is given back, and scratch that contexts share by turns.
#include "oneweight/context/scratch_pool.h"

#include <thread>

#include "tests/support/counters.h"
#include "tests/support/process_memory.h"
#include "tests/support/test_data.h"
#include "tests/support/toy_operators.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

using Answer = std::vector<std::vector<std::byte>>;

// y = -x
std::shared_ptr<const Plan> toy_plan(std::vector<int32_t> shape) {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, shape, "x"), y = m.tensor(TensorType::float32, shape, "y");
  m.op(BuiltinOperator::neg, {x}, {y});
  m.inputs({x}).outputs({y});
  auto plan = plan_toy(m.build());
  INFO(plan.status().message());
  REQUIRE(plan.ok());
  return *plan;
}

// An LSTM that takes three numbers a run and has its state in tensors.
std::shared_ptr<const Plan> lstm_plan() {
  constexpr int kCells = 4, kInputs = 3;
  ModelBuilder m;
  const auto numbers = [&m](std::vector<int32_t> shape, int seed) {
    size_t count = 1;
    for (int32_t n : shape) count *= static_cast<size_t>(n);
    std::vector<float> values;
    for (size_t i = 0; i < count; ++i) values.push_back(static_cast<float>((static_cast<int>(i) * 7 + seed * 5) % 11 - 5) / 8);
    return static_cast<int>(m.tensor(TensorType::float32, shape).values(values));
  };
  const int x = m.tensor(TensorType::float32, {1, kInputs}, "x"), y = m.tensor(TensorType::float32, {1, kCells}, "y");
  std::vector<int32_t> in = {x};
  for (int g = 0; g < 4; ++g) in.push_back(numbers({kCells, kInputs}, g));
  for (int g = 0; g < 4; ++g) in.push_back(numbers({kCells, kCells}, 4 + g));
  for (int i = 0; i < 3; ++i) in.push_back(-1);  // no peepholes
  for (int g = 0; g < 4; ++g) in.push_back(numbers({kCells}, 8 + g));
  for (int i = 0; i < 2; ++i) in.push_back(-1);  // no projection
  for (const char* name : {"h", "c"}) in.push_back(m.tensor(TensorType::float32, {1, kCells}, name).variable());
  for (int i = 0; i < 4; ++i) in.push_back(-1);  // no normalisation
  m.op(BuiltinOperator::lstm, in, {y}).options(14).field<int8_t>(0, 4);
  m.inputs({x}).outputs({y});
  auto owner = std::make_shared<FileBytes>(m.build());
  auto model = ModelView::from_bytes(*owner, owner);
  REQUIRE(model.ok());
  auto plan = make_plan<opset::All>(*model);
  INFO(plan.status().message());
  REQUIRE(plan.ok());
  CHECK((*plan)->state_bytes() >= 2 * kCells * 4);
  return *plan;
}

// Every model there is, and the LSTM: with resources, with state tensors, with neither.
std::vector<std::shared_ptr<const Plan>> all_plans() {
  std::vector<std::shared_ptr<const Plan>> plans = {lstm_plan()};
  for (const std::string& path : test_models()) plans.push_back(plan_of(path));
  return plans;
}

bool answers(ExecutionContext& context, unsigned seed, const Answer& expected) {
  fill_inputs(context, seed);
  return context.run().ok() && outputs_of(context) == expected;
}

// What a stream answers to seeds first, first + 1 ..., alone.
std::vector<Answer> answers_alone(const std::shared_ptr<const Plan>& plan, unsigned first, unsigned count) {
  auto context = context_of(plan);
  std::vector<Answer> all;
  for (unsigned i = 0; i < count; ++i) {
    fill_inputs(context, first + i);
    REQUIRE(context.run().ok());
    all.push_back(outputs_of(context));
  }
  return all;
}

// Of its first output.
size_t resident(const ExecutionContext& context) {
  auto bytes = Pages::inside(context.output_bytes(0).data(), context.output_bytes(0).size()).resident_bytes();
  REQUIRE(bytes.ok());
  return *bytes;
}

}  // namespace

TEST_CASE("scratch is given back, and comes back at the same addresses", "[context][scratch]") {
  auto context = context_of(toy_plan({1, 300, 1000}));
  const auto values = *context.input<float>(0);
  std::fill(values.begin(), values.end(), 2.0f);
  REQUIRE(context.run().ok());
  const std::byte* address = context.output_bytes(0).data();
  CHECK(resident(context) > 1000000);
  REQUIRE(context.release_scratch().ok());
  CHECK(resident(context) == 0);
  CHECK(context.input<float>(0)->data() == values.data());
  CHECK(context.output_bytes(0).data() == address);
  std::fill(values.begin(), values.end(), 3.0f);
  REQUIRE(context.run().ok());
  CHECK(std::ranges::all_of(*context.output<float>(0), [](float y) { return y == -3; }));
  REQUIRE(context.release_scratch().ok());
  context.prefault();
  CHECK(resident(context) > 1000000);
}

TEST_CASE("state and bound memory outlive the scratch", "[context][scratch]") {
  for (const auto& plan : all_plans()) {
    const auto expected = answers_alone(plan, 1, 5);
    auto context = context_of(plan);
    for (unsigned i = 0; i < 5; ++i) {
      CHECK(answers(context, 1 + i, expected[i]));
      CHECK(context.release_scratch().ok());
    }
  }
  auto context = context_of(toy_plan({1, 300, 1000}));
  std::vector<float> in(300000, 4.0f), out(300000);
  REQUIRE(context.bind_input(0, std::as_bytes(std::span(in))).ok());
  REQUIRE(context.bind_output(0, std::as_writable_bytes(std::span(out))).ok());
  REQUIRE(context.release_scratch().ok());
  REQUIRE(context.run().ok());
  CHECK(std::ranges::all_of(out, [](float y) { return y == -4; }));
}

TEST_CASE("scratch of the caller stays the caller's", "[context][scratch]") {
  const auto plan = toy_plan({1, 300, 1000});
  const std::unique_ptr<std::byte, void (*)(void*)> memory(
      static_cast<std::byte*>(std::aligned_alloc(64, static_cast<size_t>(plan->context_bytes()))), [](void* p) { std::free(p); });
  auto context = ExecutionContext::create(plan, {memory.get(), static_cast<size_t>(plan->context_bytes())});
  REQUIRE(context.ok());
  (*context->input<float>(0))[5] = 7;
  CHECK(context->release_scratch().code() == ErrorCode::unsupported);
  CHECK((*context->input<float>(0))[5] == 7);
}

TEST_CASE("two models by turns in one block answer as they do apart", "[context][pool]") {
  const auto plans = all_plans();
  constexpr unsigned kTurns = 4;
  std::vector<std::vector<Answer>> expected;
  std::vector<ContextState> states;
  int64_t largest = 0;
  for (const auto& plan : plans) {
    expected.push_back(answers_alone(plan, 1, kTurns));
    auto state = ContextState::create(plan);
    REQUIRE(state.ok());
    states.push_back(std::move(*state));
    largest = std::max(largest, plan->context_bytes());
  }
  ScratchPool pool;
  CHECK(pool.blocks() == 0);
  for (int round = 0; round < 2; ++round) {
    for (unsigned turn = 0; turn < kTurns; ++turn)
      for (size_t p = 0; p < plans.size(); ++p) {
        INFO("model " << p << ", turn " << turn);
        auto context = pool.context(states[p]);
        REQUIRE(context.ok());
        CHECK(answers(*context, 1 + turn, expected[p][turn]));
        CHECK(pool.blocks() == 1);
      }
    CHECK(pool.bytes() == largest);
    // Forgets it all: by the state, and by a context that takes part in it.
    for (size_t p = 0; p < plans.size(); ++p) {
      if (p % 2 == 0) states[p].reset();
      else pool.context(states[p])->reset();
    }
  }
  // Without a state, contexts begin anew whatever lies in the block.
  for (int i = 0; i < 2; ++i)
    for (size_t p = 0; p < plans.size(); ++p) {
      auto context = pool.context(plans[p]);
      REQUIRE(context.ok());
      CHECK(answers(*context, 1, expected[p][0]));
    }
}

TEST_CASE("the LSTM of the turns does remember", "[context][pool]") {
  const auto plan = lstm_plan();
  auto context = context_of(plan);
  fill_inputs(context);
  REQUIRE(context.run().ok());
  const Answer first = outputs_of(context);
  REQUIRE(context.run().ok());
  CHECK(outputs_of(context) != first);
}

TEST_CASE("a pool has as many blocks as contexts at one time", "[context][pool]") {
  const auto small = toy_plan({10}), large = toy_plan({1000}), largest = toy_plan({5000});
  ScratchPool pool;
  {
    auto a = pool.context(small);
    auto b = pool.context(large);
    REQUIRE((a.ok() && b.ok()));
    CHECK(a->input_bytes(0).data() != b->input_bytes(0).data());
    CHECK(pool.blocks() == 2);
    CHECK(pool.bytes() == small->context_bytes() + large->context_bytes());
    ExecutionContext moved = std::move(*a);  // the block goes with it
    (*moved.input<float>(0))[0] = 1;
    CHECK(moved.run().ok());
  }
  CHECK(pool.blocks() == 2);
  {
    auto a = pool.context(small);  // the small block, though the large one is free too
    auto b = pool.context(large);
    CHECK(pool.bytes() == small->context_bytes() + large->context_bytes());
  }
  {
    auto a = pool.context(largest);  // in place of the small block
    CHECK(pool.blocks() == 2);
    CHECK(pool.bytes() == large->context_bytes() + largest->context_bytes());
    pool.trim();  // leaves what is lent
    CHECK(pool.blocks() == 1);
    CHECK(a->run().ok());
  }
  pool.trim();
  CHECK(pool.blocks() == 0);
  CHECK(pool.bytes() == 0);
  CHECK(pool.context(std::shared_ptr<const Plan>()).status().code() == ErrorCode::invalid_argument);
  CHECK(ContextState::create(nullptr).status().code() == ErrorCode::invalid_argument);
}

TEST_CASE("a pool keeps its limit, and says which bytes are wanted", "[context][pool]") {
  const auto plan = toy_plan({1000}), small = toy_plan({10});
  const int64_t limit = plan->context_bytes() + small->context_bytes();
  ScratchPool pool(limit);
  {
    auto first = pool.context(plan);
    REQUIRE(first.ok());
    const Status status = pool.context(plan).status();
    CHECK(status.code() == ErrorCode::out_of_memory);
    for (int64_t bytes : {plan->context_bytes(), limit, plan->context_bytes()}) CHECK(status.message().find(std::to_string(bytes)) != std::string::npos);
    CHECK(pool.context(small).ok());
    CHECK(first->run().ok());
  }
  auto again = pool.context(plan);
  CHECK(again.ok());
  CHECK_FALSE(pool.context(toy_plan({3000})).ok());
}

#ifdef ONEWEIGHT_TESTS_COUNT  // sanitizers end the program instead, and keep what is freed
TEST_CASE("memory that is not there is an error that names the bytes", "[context][pool]") {
  const auto plan = toy_plan({1 << 22, 1 << 22});  // two tensors of 64 TB: no address space of 2^47 has them
  ScratchPool pool;
  CHECK(pool.context(toy_plan({10})).ok());
  const std::string bytes = std::to_string(plan->context_bytes());
  for (const Status& status : {pool.context(plan).status(), ExecutionContext::create(plan).status()}) {
    CHECK(status.code() == ErrorCode::out_of_memory);
    CHECK(status.message().find("no memory for the " + bytes + " bytes") == 0);
  }
  CHECK(pool.blocks() == 0);
  CHECK(pool.context(toy_plan({10})).ok());
}

TEST_CASE("the memory of contexts and pools goes back to the system without being asked for", "[context][scratch][pool]") {
  const auto plan = toy_plan({1, 2000, 1000});  // 16 MB
  const auto use = [&](ExecutionContext context) {
    context.prefault();
    return process_memory().resident;
  };
  for (int round = 0; round < 3; ++round) {  // the allocator learns, and keeps more for later in each
    const ProcessMemory before = process_memory();
    CHECK(use(context_of(plan)) > before.resident + 15000000);
    {
      ScratchPool pool;
      CHECK(use(std::move(*pool.context(plan))) > before.resident + 15000000);
      CHECK(process_memory().resident > before.resident + 15000000);
      pool.trim();
      CHECK(process_memory().resident < before.resident + 100000);
      CHECK(use(std::move(*pool.context(plan))) > before.resident + 15000000);
    }
    CHECK(process_memory().resident < before.resident + 100000);
    CHECK(process_memory().anonymous < before.anonymous + 100000);
  }
}
#endif

TEST_CASE("streams of several models on several threads share a pool", "[context][pool][threads]") {
  constexpr unsigned kThreads = 4, kStreams = 3, kTurns = 5;
  const auto plans = all_plans();
  std::vector<std::vector<Answer>> expected;
  for (const auto& plan : plans) expected.push_back(answers_alone(plan, 1, kTurns));
  ScratchPool pool;
  std::atomic<unsigned> right{0};
  std::atomic<int> most{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (size_t p = t; p < t + plans.size(); ++p) {
        const size_t model = p % plans.size();
        std::vector<ContextState> states;
        for (unsigned s = 0; s < kStreams; ++s)
          if (auto state = ContextState::create(plans[model]); state.ok()) states.push_back(std::move(*state));
        for (unsigned turn = 0; turn < kTurns; ++turn)
          for (ContextState& state : states) {
            auto context = pool.context(state);
            right += context.ok() && answers(*context, 1 + turn, expected[model][turn]);
            const int blocks = pool.blocks();
            for (int known = most; known < blocks && !most.compare_exchange_weak(known, blocks);) {
            }
            if (turn == 2) pool.trim();
          }
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == kThreads * kStreams * kTurns * plans.size());
  CHECK(most <= static_cast<int>(kThreads));
}

TEST_CASE("weights are given back while contexts run", "[context][pages][threads]") {
  for (const std::string& path : test_models()) {
    INFO(path);
    const auto plan = plan_of(path);
    const auto expected = answers_alone(plan, 1, 1);
    std::atomic<bool> done{false};
    std::atomic<int> wrong{0};
    std::thread giver([&] {
      while (!done) wrong += !plan->model()->release().ok();
    });
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&] {
        auto context = ExecutionContext::create(plan);
        for (int i = 0; i < 20; ++i) {
          context->reset();
          wrong += !answers(*context, 1, expected[0]);
        }
      });
    for (std::thread& thread : threads) thread.join();
    done = true;
    giver.join();
    CHECK(wrong == 0);
  }
}
