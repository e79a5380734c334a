#include "oneweight/plan/custom_operator.h"

#include "tests/support/opened_model.h"
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

// y = x times the float in the options; z = how many elements are negative. A NaN ends the run.
constexpr auto kTwist = custom_operator(
    "Twist",
    [](Preparation& p) -> Status {
      ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 2, 2));
      if (p.op().custom_options.size() != sizeof(float)) return p.invalid("has %zu bytes of options", p.op().custom_options.size());
      ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, p.input(0).shape));
      return p.set_output(1, {1});
    },
    [](const CustomCall& call) {
      const auto x = call.input<float>(0);
      const auto y = call.output<float>(0);
      int32_t negative = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(x[i])) return call.fail("cannot twist NaN");
        y[i] = -x[i] + static_cast<float>(call.input<float>(1).size());
        negative += x[i] < 0;
      }
      call.output<int32_t>(1)[0] = negative;
      if (call.output_shape(0).rank() != call.input_shape(0).rank() || !call.input<int8_t>(0).empty() || !call.output<float>(2).empty() || call.input_count() != 2)
        call.fail("the call is described wrongly");
    });

std::shared_ptr<const ModelView> twist_model(size_t option_bytes) {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {1, 3}, "x"), y = m.tensor(TensorType::float32, {}, "y"), z = m.tensor(TensorType::int32, {}, "z");
  m.custom_op("Twist", {x, -1}, {y, z}).custom_options(std::vector<uint8_t>(option_bytes));
  m.inputs({x}).outputs({y, z});
  return opened(m);
}

}  // namespace

TEST_CASE("a user's own operator runs by name", "[plan][custom]") {
  const auto model = twist_model(4);
  const Status missing = make_plan<opset::All>(model).status();
  CHECK(missing.code() == ErrorCode::unsupported);
  CHECK(missing.message().find("custom 'Twist' version 1") != std::string::npos);
  PlanOptions options;
  options.custom_operators = {&kTwist};
  auto plan = make_plan<opset::All>(model, options);
  REQUIRE(plan.ok());
  auto context = ExecutionContext::create(*plan);
  REQUIRE(context.ok());
  const std::vector<float> x = {1, -2, 3};
  std::copy(x.begin(), x.end(), context->input<float>(0)->begin());
  REQUIRE(context->run().ok());
  const auto y = *context->output<float>(0);
  CHECK(std::vector<float>(y.begin(), y.end()) == std::vector<float>{-1, 2, -3});
  CHECK((*context->output<int32_t>(1))[0] == 1);
  CHECK(context->output_tensor(0).shape == Shape{1, 3});

  (*context->input<float>(0))[1] = std::numeric_limits<float>::quiet_NaN();
  const Status failed = context->run();
  CHECK(failed.code() == ErrorCode::invalid_data);
  CHECK(failed.message().find("operator 0 Twist: cannot twist NaN") != std::string::npos);
}

TEST_CASE("a user's own operator refuses nodes with its own words", "[plan][custom][errors]") {
  PlanOptions options;
  options.custom_operators = {nullptr, &kTwist};
  const Status status = make_plan<opset::All>(twist_model(3), options).status();
  CHECK(status.code() == ErrorCode::invalid_model);
  CHECK(status.message().find("Twist: has 3 bytes of options") != std::string::npos);
}
