// IF, WHILE, CALL_ONCE and variables.
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

struct Graph {
  std::shared_ptr<const Plan> plan;
  explicit Graph(const ModelBuilder& m, ErrorCode expected = ErrorCode::ok, const char* words = "") {
    auto owner = std::make_shared<FileBytes>(m.build());
    auto model = ModelView::from_bytes(*owner, owner);
    INFO(model.status().message());
    REQUIRE(model.ok());
    auto made = make_plan<opset::All>(*model);
    INFO(made.status().message());
    REQUIRE(made.status().code() == expected);
    if (made.ok()) plan = *made;
    else CHECK(made.status().message().find(words) != std::string::npos);
  }
};

// A subgraph of two floats a, b of the given extent.
int subgraph(ModelBuilder& m, BuiltinOperator code, bool swap = false) {
  const int graph = m.add_subgraph("g");
  (void)graph;
  const int a = m.tensor(TensorType::float32, {2}, "a"), b = m.tensor(TensorType::float32, {2}, "b"), c = m.tensor(TensorType::float32, {2}, "c");
  if (swap) {
    m.inputs({a, b}).outputs({b, a});
  } else {
    m.op(code, {a, b}, {c});
    m.inputs({a, b}).outputs({c});
  }
  return graph;
}

}  // namespace

TEST_CASE("IF runs the branch that its condition names", "[ops][control]") {
  ModelBuilder m;
  const int c = m.tensor(TensorType::boolean, {1}, "c"), x = m.tensor(TensorType::float32, {2}, "x"), y = m.tensor(TensorType::float32, {2}, "y"),
            z = m.tensor(TensorType::float32, {2}, "z");
  m.op(BuiltinOperator::if_, {c, x, y}, {z}).options(92).field<int32_t>(0, 1).field<int32_t>(1, 2);
  m.inputs({c, x, y}).outputs({z});
  subgraph(m, BuiltinOperator::add);
  subgraph(m, BuiltinOperator::mul);
  const auto x_values = bytes_of(std::vector<float>{3, 4}), y_values = bytes_of(std::vector<float>{5, 6});
  check_values(run_on_targets(m, {{1}, x_values, y_values}), {2}, std::vector<float>{8, 10});
  check_values(run_on_targets(m, {{0}, x_values, y_values}), {2}, std::vector<float>{15, 24});
}

TEST_CASE("a subgraph that is missing, or calls itself, is refused", "[ops][control][errors]") {
  for (const int32_t called : {7, 0}) {
    ModelBuilder m;
    const int c = m.tensor(TensorType::boolean, {1}, "c"), y = m.tensor(TensorType::boolean, {1}, "y");
    m.op(BuiltinOperator::if_, {c, c}, {y}).options(92).field<int32_t>(0, called).field<int32_t>(1, called);
    m.inputs({c}).outputs({y});
    Graph(m, ErrorCode::invalid_model, called == 0 ? "recursion" : "subgraph 7");
  }
}

TEST_CASE("WHILE repeats its body as long as its condition holds, also when the body swaps its values", "[ops][control]") {
  // (n, a, b) -> (n + 1, b, a) while n < limit.
  ModelBuilder m;
  const int n = m.tensor(TensorType::int32, {1}, "n"), a = m.tensor(TensorType::float32, {2}, "a"), b = m.tensor(TensorType::float32, {2}, "b");
  const int n2 = m.tensor(TensorType::int32, {1}, "n2"), a2 = m.tensor(TensorType::float32, {2}, "a2"), b2 = m.tensor(TensorType::float32, {2}, "b2");
  m.op(BuiltinOperator::while_, {n, a, b}, {n2, a2, b2}).options(93).field<int32_t>(0, 1).field<int32_t>(1, 2);
  m.inputs({n, a, b}).outputs({n2, a2, b2});
  for (const bool body : {false, true}) {
    m.add_subgraph(body ? "body" : "condition");
    const int i = m.tensor(TensorType::int32, {1}, "i"), x = m.tensor(TensorType::float32, {2}, "x"), y = m.tensor(TensorType::float32, {2}, "y");
    const int constant = m.tensor(TensorType::int32, {1}, "constant").values<int32_t>({body ? 1 : 3});
    const int result = m.tensor(body ? TensorType::int32 : TensorType::boolean, {1}, "result");
    m.op(body ? BuiltinOperator::add : BuiltinOperator::less, {i, constant}, {result});
    m.inputs({i, x, y});
    if (body) m.outputs({result, y, x});
    else m.outputs({result});
  }
  const auto a_values = std::vector<float>{1, 2}, b_values = std::vector<float>{3, 4};
  const auto three = run_on_targets(m, {bytes_of(std::vector<int32_t>{0}), bytes_of(a_values), bytes_of(b_values)});
  check_values(three, {1}, std::vector<int32_t>{3}, 0, 0);
  check_values(three, {2}, b_values, 0, 1);
  check_values(three, {2}, a_values, 0, 2);
  const auto none = run_on_targets(m, {bytes_of(std::vector<int32_t>{9}), bytes_of(a_values), bytes_of(b_values)});
  check_values(none, {1}, std::vector<int32_t>{9}, 0, 0);
  check_values(none, {2}, a_values, 0, 1);
}

TEST_CASE("what the body of a WHILE hands through stays where it is", "[ops][control]") {
  // s = |x|; (n, s, t) -> (n + 1, s, t + s) while n < 3; y = the last s, or -s.
  constexpr int kCount = 5000;
  for (const bool is_output : {false, true}) {
    ModelBuilder m;
    const auto floats = [&m](const char* name) { return static_cast<int>(m.tensor(TensorType::float32, {kCount}, name)); };
    const int n = m.tensor(TensorType::int32, {1}, "n"), x = floats("x"), t = floats("t"), s = floats("s");
    const int n2 = m.tensor(TensorType::int32, {1}, "n2"), s2 = floats("s2"), t2 = floats("t2"), y = floats("y");
    m.op(BuiltinOperator::abs, {x}, {s});
    m.op(BuiltinOperator::while_, {n, s, t}, {n2, s2, t2}).options(93).field<int32_t>(0, 1).field<int32_t>(1, 2);
    m.op(BuiltinOperator::neg, {s2}, {y});
    m.inputs({n, x, t}).outputs(is_output ? std::vector<int32_t>{t2, y, s2} : std::vector<int32_t>{t2, y});
    for (const bool body : {false, true}) {
      m.add_subgraph(body ? "body" : "condition");
      const int i = m.tensor(TensorType::int32, {1}, "i"), a = floats("a"), b = floats("b"), sum = floats("sum");
      const int constant = m.tensor(TensorType::int32, {1}, "constant").values<int32_t>({body ? 1 : 3});
      const int result = m.tensor(body ? TensorType::int32 : TensorType::boolean, {1}, "result");
      m.op(body ? BuiltinOperator::add : BuiltinOperator::less, {i, constant}, {result});
      m.inputs({i, a, b});
      if (body) m.op(BuiltinOperator::add, {b, a}, {sum});
      if (body) m.outputs({result, a, sum});
      else m.outputs({result});
    }
    std::vector<float> x_values, t_values, sums, negatives, absolutes;
    for (int k = 0; k < kCount; ++k) {
      x_values.push_back(static_cast<float>(k % 7 - 3)), t_values.push_back(static_cast<float>(k));
      absolutes.push_back(std::abs(x_values.back())), negatives.push_back(-absolutes.back());
      sums.push_back(t_values.back() + 3 * absolutes.back());
    }
    const auto outputs = run_on_targets(m, {bytes_of(std::vector<int32_t>{0}), bytes_of(x_values), bytes_of(t_values)});
    check_values(outputs, {kCount}, sums, 0, 0);
    check_values(outputs, {kCount}, negatives, 0, 1);
    if (is_output) check_values(outputs, {kCount}, absolutes, 0, 2);
    // x, t, s, t2, y, and a, b and sum of the body: s2 takes nothing.
    if (!is_output) CHECK(Graph(m).plan->context_bytes() < 4 * kCount * 8);
  }
}

TEST_CASE("variables keep their values from run to run, per context, until reset", "[ops][control][variable]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {2}, "x"), handle = m.tensor(TensorType::resource, {}, "v"), old = m.tensor(TensorType::float32, {2}, "old"),
            sum = m.tensor(TensorType::float32, {2}, "sum");
  m.op(BuiltinOperator::var_handle, {}, {handle}).options(111).text(1, "total");
  m.op(BuiltinOperator::read_variable, {handle}, {old});
  m.op(BuiltinOperator::add, {old, x}, {sum});
  m.op(BuiltinOperator::assign_variable, {handle, sum}, {});
  m.inputs({x}).outputs({sum});
  const Graph graph(m);
  auto a = ExecutionContext::create(graph.plan), b = ExecutionContext::create(graph.plan);
  for (ExecutionContext* context : {&*a, &*b}) (*context->input<float>(0))[0] = 5, (*context->input<float>(0))[1] = -1;
  for (int run = 1; run <= 3; ++run) {
    REQUIRE(a->run().ok());
    CHECK((*a->output<float>(0))[0] == 5.0f * static_cast<float>(run));
  }
  REQUIRE(b->run().ok());
  CHECK((*b->output<float>(0))[0] == 5);
  a->reset();
  REQUIRE(a->run().ok());
  CHECK((*a->output<float>(0))[0] == 5);
}
