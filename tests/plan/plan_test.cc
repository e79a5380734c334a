#include "oneweight/plan/arena.h"

#include <limits>

#include "tests/support/toy_operators.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

// x -> neg -> neg ... -> y, `length` operators on `elements` floats.
FileBytes chain(int length, int elements = 100) {
  ModelBuilder m;
  int at = m.tensor(TensorType::float32, {1, elements}, "x");
  m.inputs({at});
  for (int i = 0; i < length; ++i) {
    const int next = m.tensor(TensorType::float32, {1, elements}, i + 1 == length ? "y" : "t" + std::to_string(i));
    m.op(BuiltinOperator::neg, {at}, {next});
    at = next;
  }
  m.outputs({at});
  return m.build();
}

std::shared_ptr<const Plan> planned(const FileBytes& file, const PlanOptions& options = {}) {
  auto plan = plan_toy(file, options);
  INFO(plan.status().message());
  REQUIRE(plan.ok());
  return *plan;
}

bool overlap(const ArenaItem& a, const ArenaItem& b) {
  return a.first <= b.last && b.first <= a.last && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

TEST_CASE("the arena never gives two living buffers the same bytes", "[plan][arena]") {
  unsigned state = 7;
  const auto random = [&state](unsigned n) { return ((state = state * 1664525u + 1013904223u) >> 10) % n; };
  for (int round = 0; round < 50; ++round) {
    std::vector<ArenaItem> items;
    for (unsigned i = 0; i < 5 + random(60); ++i) {
      const int first = static_cast<int>(random(40));
      items.push_back({1 + static_cast<int64_t>(random(5000)), first, first + static_cast<int>(random(10)), 0});
    }
    const int64_t total = place_in_arena(items, 64);
    int64_t bound = 0;
    for (int step = 0; step < 60; ++step) {
      int64_t alive = 0;
      for (const ArenaItem& item : items)
        if (item.first <= step && step <= item.last) alive += (item.bytes + 63) / 64 * 64;
      bound = std::max(bound, alive);
    }
    CHECK(total >= bound);
    CHECK(total <= bound * 3 / 2 + 1024);
    for (size_t i = 0; i < items.size(); ++i) {
      CHECK(items[i].offset % 64 == 0);
      CHECK(items[i].offset + items[i].bytes <= total);
      for (size_t j = 0; j < i; ++j) CHECK_FALSE(overlap(items[i], items[j]));
    }
  }
}

TEST_CASE("buffers that may overlap do so only as far as they may", "[plan][arena]") {
  unsigned state = 11;
  const auto random = [&state](unsigned n) { return static_cast<int64_t>(((state = state * 1664525u + 1013904223u) >> 10) % n); };
  int overlapping = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<ArenaItem> items;
    for (int64_t i = 0, n = 4 + random(20); i < n; ++i) {
      const auto first = static_cast<int32_t>(random(10));
      items.push_back({1 + random(5000), first, first + static_cast<int32_t>(random(5)), 0});
    }
    std::vector<ArenaOverlap> overlaps;
    std::vector<std::vector<int>> known(items.size(), std::vector<int>(items.size(), -1));
    for (int k = 0; k < 6; ++k) {
      const auto a = static_cast<int32_t>(random(static_cast<unsigned>(items.size()))), b = static_cast<int32_t>(random(static_cast<unsigned>(items.size())));
      if (a == b || known[static_cast<size_t>(a)][static_cast<size_t>(b)] >= 0 || known[static_cast<size_t>(b)][static_cast<size_t>(a)] >= 0) continue;
      known[static_cast<size_t>(a)][static_cast<size_t>(b)] = static_cast<int>(overlaps.size());
      const int64_t low = random(4000) - 2000;
      overlaps.push_back({a, b, low, random(2) == 0 ? std::numeric_limits<int64_t>::max() : low + random(4000)});
    }
    std::vector<ArenaItem> apart = items;
    const int64_t total = place_in_arena(items, 64, overlaps);
    CHECK(total <= place_in_arena(apart, 64) * 5 / 4);
    for (size_t i = 0; i < items.size(); ++i) {
      CHECK(items[i].offset % 64 == 0);
      CHECK(items[i].offset >= 0);
      CHECK(items[i].offset + items[i].bytes <= total);
      for (size_t j = 0; j < items.size(); ++j) {
        if (i == j || !overlap(items[i], items[j])) continue;
        const int k = known[i][j] >= 0 ? known[i][j] : known[j][i];
        REQUIRE(k >= 0);
        const ArenaOverlap& o = overlaps[static_cast<size_t>(k)];
        const int64_t behind = items[static_cast<size_t>(o.inner)].offset - items[static_cast<size_t>(o.outer)].offset;
        CHECK(behind >= o.low);
        CHECK(behind <= o.high);
        ++overlapping;
      }
    }
  }
  CHECK(overlapping > 10);
}

TEST_CASE("elementwise steps run in place, and never in the input", "[plan]") {
  const auto plan = planned(chain(5, 1000));
  CHECK(plan->steps().size() == 5);
  // The input's 4000 bytes, and one buffer for all that follows.
  const int64_t data = plan->context_bytes() - plan->state_bytes();
  CHECK(data >= 8000);
  CHECK(data <= 8000 + 64 * 8);
  const auto& x = plan->tensors()[plan->inputs()[0]];
  for (const Step& step : plan->steps()) CHECK(plan->tensors()[step.outputs[0]].buffer != x.buffer);
}

TEST_CASE("a tensor that is read again is not overwritten in place", "[plan]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {4}, "x"), a = m.tensor(TensorType::float32, {4}, "a"),
            b = m.tensor(TensorType::float32, {4}, "b"), y = m.tensor(TensorType::float32, {4}, "y");
  m.op(BuiltinOperator::neg, {x}, {a});
  m.op(BuiltinOperator::neg, {a}, {b});
  m.op(BuiltinOperator::add, {a, b}, {y});
  m.inputs({x}).outputs({y});
  const auto plan = planned(m.build());
  CHECK(plan->tensors()[a].buffer != plan->tensors()[b].buffer);
  auto context = ExecutionContext::create(plan);
  REQUIRE(context.ok());
  for (float& f : *context->input<float>(0)) f = 3;
  REQUIRE(context->run().ok());
  for (float f : *context->output<float>(0)) CHECK(f == 0);
  for (float f : *context->input<float>(0)) CHECK(f == 3);
}

TEST_CASE("a view shares memory, except where an output would share an input's", "[plan]") {
  SECTION("inside the graph the step vanishes") {
    ModelBuilder m;
    const int x = m.tensor(TensorType::float32, {4}, "x"), a = m.tensor(TensorType::float32, {4}, "a"),
              b = m.tensor(TensorType::float32, {4}, "b"), y = m.tensor(TensorType::float32, {4}, "y");
    m.op(BuiltinOperator::neg, {x}, {a});
    m.op(BuiltinOperator::reshape, {a}, {b});
    m.op(BuiltinOperator::neg, {b}, {y});
    m.inputs({x}).outputs({y});
    const auto plan = planned(m.build());
    CHECK(plan->steps().size() == 2);
    CHECK(plan->tensors()[a].offset == plan->tensors()[b].offset);
  }
  SECTION("input to output is a copy") {
    ModelBuilder m;
    const int x = m.tensor(TensorType::float32, {4}, "x"), y = m.tensor(TensorType::float32, {4}, "y");
    m.op(BuiltinOperator::reshape, {x}, {y});
    m.inputs({x}).outputs({y});
    const auto plan = planned(m.build());
    CHECK(plan->steps().size() == 1);
    CHECK(plan->tensors()[x].offset != plan->tensors()[y].offset);
  }
}

TEST_CASE("constants are folded, dead operators dropped", "[plan]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {2}, "x");
  const int c = m.tensor(TensorType::float32, {2}, "c").values<float>({1, 2});
  const int n = m.tensor(TensorType::float32, {2}, "n"), dead = m.tensor(TensorType::float32, {2}, "dead"),
            y = m.tensor(TensorType::float32, {2}, "y");
  m.op(BuiltinOperator::neg, {c}, {n});
  m.op(BuiltinOperator::neg, {x}, {dead});
  m.op(BuiltinOperator::add, {x, n}, {y});
  m.inputs({x}).outputs({y});
  const auto plan = planned(m.build());
  CHECK(plan->steps().size() == 1);
  auto context = ExecutionContext::create(plan);
  REQUIRE(context.ok());
  for (float& f : *context->input<float>(0)) f = 10;
  REQUIRE(context->run().ok());
  CHECK((*context->output<float>(0))[0] == 9);
  CHECK((*context->output<float>(0))[1] == 8);
}

TEST_CASE("an activation is applied by the operator before it", "[plan][fuse]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {2}, "x"), a = m.tensor(TensorType::float32, {2}, "a"), y = m.tensor(TensorType::float32, {2}, "y");
  m.op(BuiltinOperator::neg, {x}, {a});
  m.op(BuiltinOperator::relu, {a}, {y});
  m.inputs({x}).outputs({y});
  const FileBytes file = m.build();
  PlanOptions unfused, keep;
  unfused.fuse = false;
  keep.keep = {"a"};
  CHECK(planned(file)->steps().size() == 1);
  CHECK(planned(file, unfused)->steps().size() == 2);
  CHECK(planned(file, keep)->steps().size() == 2);
  for (const PlanOptions& options : {PlanOptions(), unfused, keep}) {
    auto context = ExecutionContext::create(planned(file, options));
    REQUIRE(context.ok());
    (*context->input<float>(0))[0] = 5, (*context->input<float>(0))[1] = -5;
    REQUIRE(context->run().ok());
    CHECK((*context->output<float>(0))[0] == 0);
    CHECK((*context->output<float>(0))[1] == 5);
  }
  auto context = ExecutionContext::create(planned(file, keep));
  REQUIRE(context->run().ok());
  CHECK(context->tensor<float>("a").ok());
  auto lost = ExecutionContext::create(planned(file));
  CHECK(lost->tensor<float>("a").status().code() == ErrorCode::not_found);
}

TEST_CASE("half constants are read where they lie by operators that can, widened for others", "[plan][half]") {
  for (bool vector : {true, false}) {
    ModelBuilder m;
    const int n = vector ? 4 : 4096;
    const int x = m.tensor(TensorType::float32, {1, n}, "x");
    std::vector<uint16_t> ones(static_cast<size_t>(n), float_to_half(1.5f).bits);
    const int h = m.tensor(TensorType::float16, {1, n}, "h").values<uint16_t>(ones);
    const int f = m.tensor(TensorType::float32, {1, n}, "f"), a = m.tensor(TensorType::float32, {1, n}, "a"),
              b = m.tensor(TensorType::float32, {1, n}, "b"), y = m.tensor(TensorType::float32, {1, n}, "y");
    m.op(BuiltinOperator::dequantize, {h}, {f});
    m.op(BuiltinOperator::add, {x, f}, {a});   // reads the half
    m.op(BuiltinOperator::neg, {f}, {b});      // needs floats
    m.op(BuiltinOperator::add, {a, b}, {y});
    m.inputs({x}).outputs({y});
    const auto plan = planned(m.build());
    CHECK(plan->steps().size() == (vector ? 2u : 4u));
    auto context = ExecutionContext::create(plan);
    REQUIRE(context.ok());
    for (float& v : *context->input<float>(0)) v = 7;
    REQUIRE(context->run().ok());
    for (float v : *context->output<float>(0)) REQUIRE(v == 7);
  }
}

TEST_CASE("all missing operators are named at once", "[plan][errors]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {2}, "x"), a = m.tensor(TensorType::float32, {2}, "a"),
            b = m.tensor(TensorType::int8, {2}, "b"), y = m.tensor(TensorType::int8, {2}, "y");
  m.op(BuiltinOperator::sin, {x}, {a});
  m.op(BuiltinOperator::cos, {a}, {b});
  m.op(BuiltinOperator::neg, {b}, {y});
  m.inputs({x}).outputs({y});
  const auto plan = plan_toy(m.build());
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.status().code() == ErrorCode::unsupported);
  for (const char* part : {"SIN", "COS", "NEG", "int8"}) CHECK(plan.status().message().find(part) != std::string::npos);
}

TEST_CASE("a graph that contradicts itself is refused", "[plan][errors]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {2}, "x"), a = m.tensor(TensorType::float32, {2}, "a"), y = m.tensor(TensorType::float32, {2}, "y");
  m.inputs({x}).outputs({y});
  SECTION("a tensor is read before it is computed") {
    m.op(BuiltinOperator::neg, {a}, {y});
    m.op(BuiltinOperator::neg, {x}, {a});
  }
  SECTION("a tensor is computed twice") {
    m.op(BuiltinOperator::neg, {x}, {y});
    m.op(BuiltinOperator::neg, {x}, {y});
  }
  SECTION("an input is written") {
    m.op(BuiltinOperator::neg, {x}, {y});
    m.op(BuiltinOperator::neg, {y}, {x});
  }
  SECTION("an output is never computed") { m.op(BuiltinOperator::neg, {x}, {a}); }
  const auto plan = plan_toy(m.build());
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.status().code() == ErrorCode::invalid_model);
  INFO(plan.status().message());
  CHECK(plan.status().message().find('\'') != std::string::npos);
}

TEST_CASE("input shapes can be changed, and several plans live side by side", "[plan][resize]") {
  const FileBytes file = chain(2, 10);
  PlanOptions wide;
  wide.input_shapes = {{0, Shape{3, 50}}};
  const auto a = planned(file), b = planned(file, wide);
  CHECK(a->tensors()[a->outputs()[0]].shape == Shape{1, 10});
  CHECK(b->tensors()[b->outputs()[0]].shape == Shape{3, 50});
  CHECK(b->context_bytes() > a->context_bytes());
  for (const Shape& bad : {Shape{-1, 5}, Shape{int64_t{1} << 40, int64_t{1} << 40}}) {
    PlanOptions options;
    options.input_shapes = {{0, bad}};
    CHECK(plan_toy(file, options).status().code() == ErrorCode::invalid_argument);
  }
  PlanOptions options;
  options.input_shapes = {{3, Shape{1}}};
  CHECK(plan_toy(file, options).status().code() == ErrorCode::invalid_argument);
}

TEST_CASE("a memory limit that is too small is refused with what is needed", "[plan][errors]") {
  PlanOptions options;
  options.memory_limit = 1000;
  const auto plan = plan_toy(chain(2, 1000), options);
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.status().code() == ErrorCode::out_of_memory);
  CHECK(plan.status().message().find("NEG") != std::string::npos);
  options.memory_limit = planned(chain(2, 1000))->limited_bytes();
  CHECK(plan_toy(chain(2, 1000), options).ok());
}
