// A user's program. With HEADERS_ONLY it compiles one operator itself, else it links oneweight::kernels.
#ifdef HEADERS_ONLY
#define ONEWEIGHT_OPS "one_operator.h"
#endif
#include <oneweight/oneweight.h>

#include <cmath>
#include <cstdio>

#ifdef HEADERS_ONLY
using Operators = OneOperator;
#else
using Operators = oneweight::opset::All;
#endif

// The model approximates sin(x) on [0, 2 pi].
int main(int count, char** values) {
  if (count != 2) return 2;
  auto model = oneweight::ModelView::open(values[1]);
  if (!model.ok()) return std::printf("%s\n", model.status().message().c_str()), 1;
  auto plan = oneweight::make_plan<Operators>(*model);
  if (!plan.ok()) return std::printf("%s\n", plan.status().message().c_str()), 1;
  auto context = oneweight::ExecutionContext::create(*plan);
  if (!context.ok()) return std::printf("%s\n", context.status().message().c_str()), 1;
  (*context->input<float>(0))[0] = 1.0f;
  if (auto status = context->run(); !status.ok()) return std::printf("%s\n", status.message().c_str()), 1;
  const float y = (*context->output<float>(0))[0];
  std::printf("sin(1) is about %f (on %s)\n", static_cast<double>(y), oneweight::target_name((*plan)->target()));
  return std::fabs(y - std::sin(1.0f)) < 0.1f ? 0 : 1;
}
