// Which tensors share memory: parts of concatenations, views, steps in place.
#include "oneweight/oneweight.h"
#include "tests/support/opened_model.h"

#include <cmath>
#include <set>

using namespace oneweight;
using namespace oneweight::testing;

namespace {

std::shared_ptr<const Plan> plan_of(const std::shared_ptr<const ModelView>& model, const PlanOptions& options) {
  auto plan = make_plan<opset::All>(model, options);
  INFO(plan.status().message());
  REQUIRE(plan.ok());
  return *plan;
}

// Of two runs: what is overwritten by the first must not matter to the second.
std::vector<std::vector<float>> answers_of(const std::shared_ptr<const Plan>& plan) {
  auto context = ExecutionContext::create(plan);
  REQUIRE(context.ok());
  for (size_t i = 0; i < plan->inputs().size(); ++i) {
    const auto values = *context->input<float>(static_cast<int>(i));
    for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>((k * 37 + i * 11) % 101) / 50 - 1;
  }
  std::vector<std::vector<float>> answers;
  for (int run = 0; run < 2; ++run) {
    REQUIRE(context->run().ok());
    for (size_t i = 0; i < plan->outputs().size(); ++i) {
      const auto values = *context->output<float>(static_cast<int>(i));
      answers.emplace_back(values.begin(), values.end());
    }
  }
  return answers;
}

// Maps [1, rows, 8, 4]; what reads which of them is drawn at random.
struct RandomGraph {
  ModelBuilder builder;
  std::vector<std::string> names;

  explicit RandomGraph(unsigned seed) {
    unsigned state = seed;
    const auto random = [&state](size_t n) { return static_cast<size_t>(((state = state * 1664525u + 1013904223u) >> 10) % n); };
    struct Map { int tensor; int rows; };
    std::vector<Map> maps;
    std::set<int> unread;
    const auto add = [&](int rows) {
      names.push_back("t" + std::to_string(names.size()));
      const Map map{builder.tensor(TensorType::float32, {1, rows, 8, 4}, names.back()), rows};
      unread.insert(map.tensor);
      return map;
    };
    const auto pick = [&] {
      const Map map = maps[maps.size() - 1 - random(std::min<size_t>(maps.size(), 5))];
      unread.erase(map.tensor);
      return map;
    };
    std::vector<int32_t> inputs, outputs;
    for (int i = 0; i < 2; ++i) maps.push_back(add(4 + static_cast<int>(random(8)))), inputs.push_back(maps.back().tensor);
    for (int step = 0; step < 14; ++step) {
      const Map from = pick();
      switch (random(6)) {
        case 0: {
          Map to = add(from.rows);
          builder.op(BuiltinOperator::abs, {from.tensor}, {to.tensor});
          maps.push_back(to);
          break;
        }
        case 1: {  // of two with as many rows
          Map other = from;
          for (const Map& map : maps)
            if (map.rows == from.rows && random(2) == 0) other = map;
          unread.erase(other.tensor);
          Map to = add(from.rows);
          builder.op(BuiltinOperator::sub, {from.tensor, other.tensor}, {to.tensor}).options(28);
          maps.push_back(to);
          break;
        }
        case 2:
        case 3: {
          std::vector<int32_t> parts = {from.tensor};
          int rows = from.rows;
          for (size_t k = 0, n = 1 + random(3); k < n; ++k) {
            const Map part = pick();
            parts.push_back(part.tensor), rows += part.rows;
          }
          if (rows > 200) continue;
          Map to = add(rows);
          builder.op(BuiltinOperator::concatenation, parts, {to.tensor}).options(10).field<int32_t>(0, 1);
          maps.push_back(to);
          break;
        }
        case 4: {
          const int rows = 1 + static_cast<int>(random(static_cast<size_t>(from.rows))), begin = static_cast<int>(random(static_cast<size_t>(from.rows - rows + 1)));
          const int begins = builder.tensor(TensorType::int32, {4}).values(std::vector<int32_t>{0, begin, 0, 0});
          const int sizes = builder.tensor(TensorType::int32, {4}).values(std::vector<int32_t>{1, rows, 8, 4});
          Map to = add(rows);
          builder.op(BuiltinOperator::slice, {from.tensor, begins, sizes}, {to.tensor});
          maps.push_back(to);
          break;
        }
        default: {
          const int margins = builder.tensor(TensorType::int32, {4, 2}).values(std::vector<int32_t>{0, 0, 1, 2, 0, 0, 0, 0});
          Map to = add(from.rows + 3);
          builder.op(BuiltinOperator::pad, {from.tensor, margins}, {to.tensor});
          maps.push_back(to);
        }
      }
    }
    for (int tensor : unread)
      if (std::find(inputs.begin(), inputs.end(), tensor) == inputs.end()) outputs.push_back(tensor);
    if (outputs.empty()) outputs.push_back(maps.back().tensor);
    builder.inputs(inputs).outputs(outputs);
  }
};

}  // namespace

TEST_CASE("sharing memory changes no answer", "[plan][layout]") {
  int smaller = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    RandomGraph graph(seed);
    const auto model = opened(graph.builder);
    PlanOptions apart;               // every tensor has its own bytes
    apart.keep = graph.names, apart.reorder = false, apart.tile_rows = -1;
    const auto whole = plan_of(model, apart);
    const auto want = answers_of(whole);
    for (bool reorder : {true, false})
      for (int tile_rows : {-1, 0, 1, 3}) {
        PlanOptions options;
        options.reorder = reorder, options.tile_rows = tile_rows, options.extra_work = 1;
        const auto plan = plan_of(model, options);
        INFO("seed " << seed << ", reorder " << reorder << ", tile_rows " << tile_rows);
        CHECK(answers_of(plan) == want);
        smaller += plan->context_bytes() < whole->context_bytes();
      }
  }
  CHECK(smaller > 1000);
}

TEST_CASE("what is read before a part of a concatenation is written lies where that part will be", "[plan][layout]") {
  ModelBuilder m;
  const auto tensor = [&](std::vector<int32_t> shape, const char* name) { return static_cast<int>(m.tensor(TensorType::float32, shape, name)); };
  const int x = tensor({1, 1, 1000}, "x"), wide = tensor({1, 4, 1000}, "wide");
  const int first = tensor({1, 1, 1000}, "first"), waste = tensor({1, 1, 1000}, "waste"), sum = tensor({1, 1, 1}, "sum"), second = tensor({1, 4, 1000}, "second"),
            y = tensor({1, 5, 1000}, "y");
  const int axis = m.tensor(TensorType::int32, {1}).values(std::vector<int32_t>{2});
  m.op(BuiltinOperator::abs, {x}, {first});
  m.op(BuiltinOperator::exp, {x}, {waste});
  m.op(BuiltinOperator::sum, {waste, axis}, {sum}).options(27).field<uint8_t>(0, 1);
  m.op(BuiltinOperator::add, {wide, sum}, {second}).options(11);
  m.op(BuiltinOperator::concatenation, {first, second}, {y}).options(10).field<int32_t>(0, 1);
  m.inputs({x, wide}).outputs({y});
  const auto model = opened(m);
  PlanOptions options;
  options.reorder = false;
  const auto plan = plan_of(model, options);
  CHECK(plan->context_bytes() < 4 * (1000 + 4000 + 5000) + 2000);  // inputs and output, and a bit
  const auto answer = answers_of(plan)[0];
  double total = 0;
  for (size_t k = 0; k < 1000; ++k) total += std::exp(static_cast<double>(static_cast<float>(k * 37 % 101) / 50 - 1));
  for (size_t k = 0; k < 1000; ++k) CHECK(answer[k] == std::abs(static_cast<float>(k * 37 % 101) / 50 - 1));
  for (size_t k = 0; k < 4000; ++k) CHECK(std::abs(answer[1000 + k] - (static_cast<float>((k * 37 + 11) % 101) / 50 - 1 + total)) < 1e-3);
}
