// Files whose parts are well formed one by one and do not fit together.
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

Status plan_status(const ModelBuilder& m) {
  auto bytes = std::make_shared<FileBytes>(m.build());
  auto model = ModelView::from_bytes(*bytes, bytes);
  if (!model.ok()) return model.status();
  return make_plan<opset::All>(*model).status();
}

// A float constant of shape [2, 3] with three stored values.
int sparse_constant(ModelBuilder& m) {
  auto x = m.tensor(TensorType::float32, {2, 3}, "sparse").values(std::vector<float>{1, 2, 3});
  x.spec().sparsity = SparsitySpec{{0, 1}, {}, {{false, 2, 4, {}, {}}, {true, 0, 1, {0, 1, 3}, {1, 0, 2}}}};
  return x;
}

}  // namespace

TEST_CASE("a sparse constant is read by nothing but DENSIFY", "[plan][errors]") {
  const std::string words = "tensor 'sparse' is a constant that is stored sparsely";
  for (const BuiltinOperator code : {BuiltinOperator::neg, BuiltinOperator::dequantize, BuiltinOperator::shape, BuiltinOperator::squeeze}) {
    ModelBuilder m;
    const int x = sparse_constant(m), y = m.tensor(TensorType::float32, {}, "y");
    if (code == BuiltinOperator::dequantize) m.op(BuiltinOperator::add, {x, x}, {y});
    else m.op(code, {x}, {y});
    m.inputs({}).outputs({y});
    INFO(builtin_operator_name(code));
    const Status status = plan_status(m);
    CHECK(status.code() == ErrorCode::unsupported);
    if (code != BuiltinOperator::shape) CHECK(status.message().find(words) != std::string::npos);  // SHAPE gives integers
  }
  ModelBuilder output;
  const int x = sparse_constant(output);
  output.inputs({}).outputs({x});
  CHECK(plan_status(output).message().find(words) != std::string::npos);
  // As the output of a called subgraph, whose bytes the caller copies.
  ModelBuilder m;
  const int c = m.tensor(TensorType::boolean, {1}, "c"), z = m.tensor(TensorType::float32, {2, 3}, "z");
  m.op(BuiltinOperator::if_, {c}, {z}).options(92).field<int32_t>(0, 1).field<int32_t>(1, 1);
  m.inputs({c}).outputs({z});
  m.add_subgraph("branch");
  const int inner = sparse_constant(m);
  m.inputs({}).outputs({inner});
  CHECK(plan_status(m).message().find(words) != std::string::npos);
}

TEST_CASE("a called subgraph names each input once", "[plan][errors]") {
  ModelBuilder m;
  const int c = m.tensor(TensorType::boolean, {1}, "c"), x = m.tensor(TensorType::float32, {1}, "x"), y = m.tensor(TensorType::float32, {4000}, "y");
  const int z = m.tensor(TensorType::float32, {}, "z");
  m.op(BuiltinOperator::if_, {c, x, y}, {z}).options(92).field<int32_t>(0, 1).field<int32_t>(1, 1);
  m.inputs({c, x, y}).outputs({z});
  m.add_subgraph("branch");
  const int a = m.tensor(TensorType::float32, {1}, "a"), b = m.tensor(TensorType::float32, {}, "b");
  m.op(BuiltinOperator::neg, {a}, {b});
  m.inputs({a, a}).outputs({b});
  CHECK(plan_status(m).message().find("calls subgraph 1, which names a tensor twice among its inputs") != std::string::npos);
}

TEST_CASE("calls of subgraphs that multiply are counted", "[plan][errors]") {
  // 2^14 calls: IF in both branches of IF, and so on.
  ModelBuilder m;
  for (int depth = 0; depth < 14; ++depth) {
    if (depth > 0) m.add_subgraph("branch");
    const int c = m.tensor(TensorType::boolean, {1}, "c"), x = m.tensor(TensorType::float32, {1}, "x"), y = m.tensor(TensorType::float32, {}, "y");
    if (depth < 13) m.op(BuiltinOperator::if_, {c, c, x}, {y}).options(92).field<int32_t>(0, depth + 1).field<int32_t>(1, depth + 1);
    else m.op(BuiltinOperator::neg, {x}, {y});
    m.inputs({c, x}).outputs({y});
  }
  CHECK(plan_status(m).message().find("calls more than 4096 subgraphs") != std::string::npos);
}

TEST_CASE("tensors without elements cost nothing, however long their other extents are", "[plan]") {
  CHECK((Shape{0, int64_t{1} << 40, int64_t{1} << 40}).elements() == -1);
  CHECK((Shape{0, int64_t{1} << 31, 8}).elements() == 0);
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {0, 2147483647}, "x"), y = m.tensor(TensorType::float32, {}, "y");
  m.op(BuiltinOperator::neg, {x}, {y});
  m.inputs({x}).outputs({y});
  auto bytes = std::make_shared<FileBytes>(m.build());
  auto plan = make_plan<opset::All>(*ModelView::from_bytes(*bytes, bytes));
  REQUIRE(plan.ok());
  CHECK((*plan)->steps().empty());
  ModelBuilder large;
  const int a = large.tensor(TensorType::float32, {0, 2147483647, 2147483647}, "a"), b = large.tensor(TensorType::float32, {}, "b");
  large.op(BuiltinOperator::neg, {a}, {b});
  large.inputs({a}).outputs({b});
  CHECK_FALSE(plan_status(large).ok());
}
