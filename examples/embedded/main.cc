// A firmware's use: the model lies in flash, its one operator is named, scratch is a static array, and nothing
// needs exceptions, RTTI, threads or files. .ci/bare_metal.sh compiles it for Cortex-M.
#define ONEWEIGHT_STATIC_DISPATCH 1  // kernels for this processor only
#define ONEWEIGHT_OPS "one_operator.h"
#include <oneweight/oneweight.h>

namespace {

alignas(oneweight::kAlignment) std::byte scratch[8192];

// Runs the model on one number. On errors: 1 the model is damaged, 2 it needs another operator, 3 or more scratch,
// 4 the run failed.
int run_model(std::span<const std::byte> flash, float x, float* y) {
  auto model = oneweight::ModelView::from_bytes(flash);
  if (!model.ok()) return 1;
  auto plan = oneweight::make_plan<Operators>(*model);
  if (!plan.ok()) return 2;
  auto context = oneweight::ExecutionContext::create(*plan, scratch);
  if (!context.ok()) return 3;
  auto input = context->input<float>(0);
  auto output = context->output<float>(0);
  if (!input.ok() || !output.ok() || input->size() != 1 || output->size() != 1) return 4;
  (*input)[0] = x;
  if (!context->run().ok()) return 4;
  *y = (*output)[0];
  return 0;
}

}  // namespace

// In a firmware the linker script places the model; here there is none, which run_model answers with 1.
extern "C" {
[[gnu::weak]] extern const std::byte model_start[1] = {};
[[gnu::weak]] extern const unsigned model_size = 0;
}

int main() {
  float y = 0;
  return run_model({model_start, model_size}, 1.0f, &y) == (model_size ? 0 : 1) ? 0 : 1;
}
