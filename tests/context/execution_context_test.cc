#include "oneweight/context/execution_context.h"

#include "oneweight/context/quantize.h"
#include "tests/support/toy_operators.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

// y = exp'(x), z = -x; the toy exp refuses elements above 100.
FileBytes two_outputs() {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {3}, "x"), y = m.tensor(TensorType::float32, {3}, "y"), z = m.tensor(TensorType::float32, {3}, "z");
  m.op(BuiltinOperator::exp, {x}, {y});
  m.op(BuiltinOperator::neg, {x}, {z});
  m.inputs({x}).outputs({y, z});
  return m.build();
}

std::shared_ptr<const Plan> plan() {
  auto plan = plan_toy(two_outputs());
  REQUIRE(plan.ok());
  return *plan;
}

}  // namespace

TEST_CASE("scratch can be the caller's; one byte too few is refused with both numbers", "[context]") {
  const auto p = plan();
  const auto needed = static_cast<size_t>(p->context_bytes());
  std::vector<std::byte> memory(needed + 128);
  auto* start = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  auto context = ExecutionContext::create(p, {start, needed});
  REQUIRE(context.ok());
  CHECK(context->input_bytes(0).data() >= start);
  CHECK(context->input_bytes(0).data() < start + needed);
  const Status small = ExecutionContext::create(p, {start, needed - 1}).status();
  CHECK(small.code() == ErrorCode::invalid_argument);
  CHECK(small.message().find(std::to_string(needed)) != std::string::npos);
  CHECK(small.message().find(std::to_string(needed - 1)) != std::string::npos);
  CHECK(ExecutionContext::create(p, {start + 8, needed}).status().code() == ErrorCode::invalid_argument);
  CHECK(ExecutionContext::create(nullptr).status().code() == ErrorCode::invalid_argument);
}

TEST_CASE("inputs and outputs are found by number and name, with their type", "[context]") {
  auto context = ExecutionContext::create(plan());
  REQUIRE(context.ok());
  CHECK(context->input<float>("x").ok());
  CHECK(context->output<float>("z").ok());
  CHECK(context->input<float>(1).status().code() == ErrorCode::not_found);
  CHECK(context->input<float>(-1).status().code() == ErrorCode::not_found);
  const Status unknown = context->output<float>("w").status();
  CHECK(unknown.code() == ErrorCode::not_found);
  CHECK(unknown.message().find("'z'") != std::string::npos);
  const Status type = context->input<int8_t>(0).status();
  CHECK(type.code() == ErrorCode::invalid_argument);
  CHECK(type.message().find("float32") != std::string::npos);
  CHECK(context->input_bytes(5).empty());
}

TEST_CASE("memory of the caller is read and written without a copy", "[context]") {
  auto context = ExecutionContext::create(plan());
  REQUIRE(context.ok());
  alignas(16) float in[3] = {1, 2, 3}, out[3] = {};
  REQUIRE(context->bind_input(0, std::as_bytes(std::span(in))).ok());
  REQUIRE(context->bind_output(1, std::as_writable_bytes(std::span(out))).ok());
  REQUIRE(context->run().ok());
  CHECK(out[2] == -3);
  CHECK(context->output<float>(1)->data() == out);
  REQUIRE(context->bind_output(1, {}).ok());
  out[2] = 0;
  REQUIRE(context->run().ok());
  CHECK(out[2] == 0);
  CHECK((*context->output<float>(1))[2] == -3);
  CHECK(context->bind_input(0, std::as_bytes(std::span(in, 2))).code() == ErrorCode::invalid_argument);
  CHECK(context->bind_input(0, std::as_bytes(std::span(in)).subspan(1)).code() == ErrorCode::invalid_argument);
  std::vector<std::byte> odd(13);
  CHECK(context->bind_input(0, std::span<const std::byte>(odd.data() + 1, 12)).code() == ErrorCode::invalid_argument);
  CHECK(context->bind_output(2, {}).code() == ErrorCode::not_found);
}

TEST_CASE("an output that is an input, or the same output twice, can be bound too", "[context]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {2}, "x"), y = m.tensor(TensorType::float32, {2}, "y");
  m.op(BuiltinOperator::neg, {x}, {y});
  m.inputs({x}).outputs({x, y, y});
  auto p = plan_toy(m.build());
  REQUIRE(p.ok());
  auto context = ExecutionContext::create(*p);
  alignas(16) float a[2], b[2], c[2];
  REQUIRE(context->bind_output(0, std::as_writable_bytes(std::span(a))).ok());
  REQUIRE(context->bind_output(1, std::as_writable_bytes(std::span(b))).ok());
  REQUIRE(context->bind_output(2, std::as_writable_bytes(std::span(c))).ok());
  (*context->input<float>(0))[1] = 4;
  REQUIRE(context->run().ok());
  CHECK(a[1] == 4);
  CHECK(b[1] == -4);
  CHECK(c[1] == -4);
}

TEST_CASE("an error while running names operator and values, and the context runs again", "[context][errors]") {
  auto context = ExecutionContext::create(plan());
  (*context->input<float>(0))[1] = 1000;
  const Status status = context->run();
  CHECK(status.code() == ErrorCode::invalid_data);
  CHECK(status.message().find("EXP") != std::string::npos);
  CHECK(status.message().find("element 1") != std::string::npos);
  (*context->input<float>(0))[1] = 1;
  CHECK(context->run().ok());
}

TEST_CASE("a flag or a deadline stops a run between steps", "[context]") {
  auto context = ExecutionContext::create(plan());
  for (float& f : *context->input<float>(0)) f = 1;
  std::atomic<bool> cancel{true};
  RunOptions options;
  options.cancel = &cancel;
  CHECK(context->run(options).code() == ErrorCode::cancelled);
  cancel = false;
  CHECK(context->run(options).ok());
  options.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  CHECK(context->run(options).code() == ErrorCode::cancelled);
  options.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
  CHECK(context->run(options).ok());
  // The flag is set while running: the second step is not reached.
  options.observer_user = &cancel;
  options.observer = [](void* user, int) { static_cast<std::atomic<bool>*>(user)->store(true); };
  CHECK(context->run(options).code() == ErrorCode::cancelled);
}

TEST_CASE("contexts move, and keep plan and model alive", "[context]") {
  auto made = ExecutionContext::create(plan());
  for (float& f : *made->input<float>(0)) f = 1;
  const float* address = made->input<float>(0)->data();
  ExecutionContext context = std::move(*made);
  CHECK(context.input<float>(0)->data() == address);
  CHECK(context.run().ok());
  auto other = ExecutionContext::create(plan());
  for (float& f : *other->input<float>(0)) f = 1;
  context = std::move(*other);
  CHECK(context.run().ok());
}

#if defined(__SSE2__)
TEST_CASE("denormals are flushed during a run only", "[context]") {
  auto context = ExecutionContext::create(plan());
  const unsigned before = _mm_getcsr();
  (*context->input<float>(0))[0] = 1e-40f;
  REQUIRE(context->run().ok());
  CHECK(_mm_getcsr() == before);
  (*context->input<float>(0))[0] = 1000;
  REQUIRE_FALSE(context->run().ok());
  CHECK(_mm_getcsr() == before);
}
#endif

TEST_CASE("values are quantised and back at the border", "[context][quantize]") {
  Quantization q;
  q.scales = {0.5f};
  q.zero_points = {3};
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<float> real = {0, 0.25f, -0.25f, 100, -100, inf, -inf, nan};
  std::vector<int8_t> stored(real.size());
  REQUIRE(quantize<int8_t>(real, q, stored).ok());
  CHECK(stored == std::vector<int8_t>{3, 4, 2, 127, -128, 127, -128, 3});
  std::vector<float> back(real.size());
  REQUIRE(dequantize<int8_t>(stored, q, back).ok());
  CHECK(back[1] == 0.5f);
  CHECK_FALSE(quantize<int8_t>(real, Quantization(), stored).ok());
  CHECK_FALSE(quantize<int8_t>(std::span(real).first(2), q, stored).ok());
}
