// Runs a chain of tiny steps, for counting instructions from outside.
//   overhead KIND STEPS RUNS    KIND: nothing (a user's operator that does nothing) or abs (of one float)
#define ONEWEIGHT_OPS "tests/overhead/operators.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "oneweight/oneweight.h"
#include "oneweight/plan/custom_operator.h"
#include "tests/support/model_builder.h"

using namespace oneweight;

int main(int count, char** values) {
  if (count != 4) return 2;
  static constexpr auto kNothing = custom_operator(
      "Nothing", [](Preparation& p) { return p.set_output(0, p.input(0).shape); }, [](const CustomCall&) {});
  const bool nothing = std::strcmp(values[1], "nothing") == 0;
  const int steps = std::atoi(values[2]), runs = std::atoi(values[3]);
  oneweight::testing::ModelBuilder m;
  int last = m.tensor(TensorType::float32, {1});
  m.inputs({last});
  for (int i = 0; i < steps; ++i) {
    const int next = m.tensor(TensorType::float32, {1});
    if (nothing) m.custom_op("Nothing", {last}, {next});
    else m.op(BuiltinOperator::abs, {last}, {next});
    last = next;
  }
  m.outputs({last});
  const auto bytes = m.build();
  auto model = ModelView::from_bytes(std::as_bytes(std::span(bytes)));
  if (!model.ok()) return std::fprintf(stderr, "%s\n", model.status().message().c_str()), 1;
  PlanOptions options;
  options.custom_operators = {&kNothing};
  auto plan = make_plan<Operators>(*model, options);
  if (!plan.ok()) return std::fprintf(stderr, "%s\n", plan.status().message().c_str()), 1;
  if ((*plan)->steps().size() != static_cast<size_t>(steps)) return std::fprintf(stderr, "%zu steps\n", (*plan)->steps().size()), 1;
  auto context = ExecutionContext::create(*plan);
  if (!context.ok()) return 1;
  for (int i = 0; i < runs; ++i)
    if (!context->run().ok()) return 1;
  return 0;
}
