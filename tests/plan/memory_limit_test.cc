// How far plans go to fit a limit, and what they say when they cannot.
#include "oneweight/plan/memory_limit.h"

#include <regex>

#include "oneweight/oneweight.h"
#include "tests/support/opened_model.h"
#include "tests/support/toy_operators.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

// Convolutions of 3x3 over maps of size x size, wide in the middle.
std::shared_ptr<const ModelView> convolutions(int size = 64) {
  constexpr int kChannels[] = {3, 16, 48, 16, 4};
  ModelBuilder m;
  const auto map = [&](int channels, const std::string& name) { return static_cast<int>(m.tensor(TensorType::float32, {1, size, size, channels}, name)); };
  const int first = map(kChannels[0], "x");
  int x = first;
  for (int k = 1; k < 5; ++k) {
    const int in = kChannels[k - 1], out = kChannels[k];
    std::vector<float> values(static_cast<size_t>(out * 9 * in));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((static_cast<int>(i) * 7 + k) % 13 - 6) / 64;
    const int weights = static_cast<int>(m.tensor(TensorType::float32, {out, 3, 3, in}).values(values));
    const int y = map(out, "y" + std::to_string(k));
    m.op(BuiltinOperator::conv_2d, {x, weights, -1}, {y}).options(1).field<int32_t>(1, 1).field<int32_t>(2, 1);
    x = y;
  }
  m.inputs({first}).outputs({x});
  return opened(m);
}

Expected<std::shared_ptr<const Plan>> plan(const std::shared_ptr<const ModelView>& model, const PlanOptions& options = {}) {
  return make_plan<opset::All>(model, options);
}

int64_t number_behind(const std::string& text, const char* words) {
  std::smatch found;
  REQUIRE(std::regex_search(text, found, std::regex(std::string(words) + " ([0-9]+)")));
  return std::stoll(found[1]);
}

std::vector<float> answer_of(std::shared_ptr<const Plan> plan) {
  auto context = ExecutionContext::create(std::move(plan));
  REQUIRE(context.ok());
  auto input = context->input_bytes(0);
  for (size_t i = 0; i < input.size() / sizeof(float); ++i) {
    const float x = static_cast<float>(i * 37 % 101) / 50 - 1;
    std::memcpy(input.data() + i * sizeof(float), &x, sizeof x);
  }
  REQUIRE(context->run().ok());
  const auto output = context->output_bytes(0);
  std::vector<float> values(output.size() / sizeof(float));
  std::memcpy(values.data(), output.data(), output.size());
  return values;
}

}  // namespace

TEST_CASE("with less memory allowed, plans do more work, until none fits", "[plan][memory_limit]") {
  const auto model = convolutions();
  PlanOptions options;
  options.tile_rows = -1;
  const auto whole = plan(model, options);
  options.tile_rows = 0;
  const auto usual = plan(model, options);
  REQUIRE(whole.ok());
  REQUIRE(usual.ok());
  CHECK((*whole)->extra_work() == 0);
  CHECK((*usual)->extra_work() > 0);
  CHECK((*usual)->extra_work() <= options.extra_work);
  CHECK((*usual)->limited_bytes() < (*whole)->limited_bytes());
  options.memory_limit = (*usual)->limited_bytes();
  const auto same = plan(model, options);
  REQUIRE(same.ok());
  CHECK((*same)->extra_work() == (*usual)->extra_work());
  options.memory_limit = (*usual)->limited_bytes() - 1;
  const auto smaller = plan(model, options);
  INFO(smaller.status().message());
  REQUIRE(smaller.ok());
  CHECK((*smaller)->limited_bytes() <= options.memory_limit);
  CHECK((*smaller)->extra_work() > (*usual)->extra_work());
  const auto want = answer_of(*whole);
  CHECK(answer_of(*usual) == want);
  CHECK(answer_of(*smaller) == want);
  // The message tells a limit that is kept, and nothing below it is.
  options.memory_limit = 1000;
  const auto none = plan(model, options);
  REQUIRE_FALSE(none.ok());
  CHECK(none.status().code() == ErrorCode::out_of_memory);
  const std::string text = none.status().message();
  options.memory_limit = number_behind(text, "the least that was found to do is");
  CHECK(options.memory_limit < (*smaller)->limited_bytes());
  CHECK(text.find("CONV_2D") != std::string::npos);
  CHECK(plan(model, options).ok());
  --options.memory_limit;
  CHECK_FALSE(plan(model, options).ok());
}

TEST_CASE("the extra work that tiles may do can be chosen", "[plan][memory_limit]") {
  const auto model = convolutions(128);
  int64_t bytes = 0;
  for (double share : kExtraWorkLadder) {
    PlanOptions options;
    options.extra_work = share;
    const auto made = plan(model, options);
    REQUIRE(made.ok());
    CHECK((*made)->extra_work() <= share);
    if (bytes > 0) CHECK((*made)->context_bytes() <= bytes);
    bytes = (*made)->context_bytes();
  }
}

TEST_CASE("an error about memory says what to change", "[plan][memory_limit][errors]") {
  const auto model = convolutions();
  const struct { void (*set)(PlanOptions&); const char* words; } cases[] = {
      {[](PlanOptions& o) { o.tile_rows = -1; }, "tile_rows"},
      {[](PlanOptions& o) { o.tile_rows = 7; }, "tile_rows"},
      {[](PlanOptions& o) { o.reorder = false; }, "reorder"},
      {[](PlanOptions& o) { o.workers = 4; }, "workers"},
      {[](PlanOptions& o) { o.fuse = false; }, "fuse"},
      {[](PlanOptions& o) { o.keep = {"y2"}; }, "fewer tensors"},
  };
  for (const auto& wanted : cases) {
    PlanOptions options;
    options.memory_limit = 2000;
    wanted.set(options);
    const auto made = plan(model, options);
    REQUIRE_FALSE(made.ok());
    INFO(made.status().message());
    for (const auto& other : cases)
      CHECK((made.status().message().find(other.words) != std::string::npos) == (std::string_view(other.words) == wanted.words));
    CHECK(made.status().message().find("2000") != std::string::npos);
  }
}

TEST_CASE("derived constants count for the limit", "[plan][memory_limit]") {
  ModelBuilder m;
  const int c = static_cast<int>(m.tensor(TensorType::float32, {1, 5000}, "c").values(std::vector<float>(5000, 2.f)));
  const int d = m.tensor(TensorType::float32, {1, 5000}, "d"), x = m.tensor(TensorType::float32, {1, 5000}, "x"), y = m.tensor(TensorType::float32, {1, 5000}, "y");
  m.op(BuiltinOperator::neg, {c}, {d});
  m.op(BuiltinOperator::add, {x, d}, {y});
  m.inputs({x}).outputs({y});
  const FileBytes file = m.build();
  PlanOptions options;
  auto made = plan_toy(file, options);
  REQUIRE(made.ok());
  const int64_t bytes = (*made)->limited_bytes();
  CHECK(bytes >= (*made)->context_bytes() + 20000);
  options.memory_limit = bytes;
  CHECK(plan_toy(file, options).ok());
  options.memory_limit = bytes - 1;
  CHECK_FALSE(plan_toy(file, options).ok());
}
