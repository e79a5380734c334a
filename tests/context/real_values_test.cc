#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

TEST_CASE("real numbers go in and out whatever is stored", "[context][quantize]") {
  for (const TensorType type : {TensorType::float32, TensorType::float16, TensorType::int8, TensorType::uint8, TensorType::int16, TensorType::int64}) {
    INFO(tensor_type_name(type));
    ModelBuilder m;
    const bool quantized = type == TensorType::int8 || type == TensorType::uint8;
    auto x = m.tensor(type, {1, 3}, "x");
    if (quantized) x.quantized(0.5f, 10);
    auto y = m.tensor(type, {3}, "y");
    if (quantized) y.quantized(0.5f, 10);
    const int in = x, out = y;
    const int shape = m.tensor(TensorType::int32, {1}, "shape").values(std::vector<int32_t>{3});
    m.op(BuiltinOperator::reshape, {in, shape}, {out});
    m.inputs({in}).outputs({out});
    const auto bytes = m.build();
    auto model = ModelView::from_bytes(bytes);
    REQUIRE(model.ok());
    auto plan = make_plan<opset::All>(*model);
    REQUIRE(plan.ok());
    auto context = ExecutionContext::create(*plan);
    REQUIRE(context.ok());
    const std::vector<float> real = {1, -2, 3};
    std::vector<float> back(3);
    const Status status = set_real_input(*context, 0, real);
    CHECK(status.ok() == (type != TensorType::int64));
    if (!status.ok()) {
      CHECK(status.message() == "input 0 has type int64, which holds no real numbers");
      CHECK_FALSE(get_real_output(*context, 0, back).ok());
      continue;
    }
    REQUIRE(context->run().ok());
    REQUIRE(get_real_output(*context, 0, back).ok());
    CHECK(back == real);
    CHECK(set_real_input(*context, 0, std::span(real).first(2)).message().find("2 real values for 3 stored") != std::string::npos);
    CHECK(get_real_output(*context, 0, std::span(back).first(1)).message().find("1 real values for 3 stored") != std::string::npos);
    CHECK(set_real_input(*context, 1, real).message() == "no input 1: the model has 1");
    CHECK(get_real_output(*context, -1, back).message() == "no output -1: the model has 1");
  }
}
