// Files compiled with different flags in one program: each plans with its own kernels, and each runs the others' plans.
#include <cmath>
#include <cstdio>

#include "answer.h"

int main(int count, char** values) {
  if (count != 2) return 2;
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    std::printf("skipped: this processor has no AVX2\n");
    return 77;
  }
#endif
  const PlanPointer plans[] = {plan_baseline(values[1]), plan_wide(values[1]), plan_dynamic(values[1])};
  int failures = 0;
  for (const PlanPointer& plan : plans) {
    if (!plan) return std::printf("a plan could not be made\n"), 1;
    for (float x = 0; x < 6; x += 0.5f)
      for (float y : {answer_baseline(plan, x), answer_wide(plan, x), answer_dynamic(plan, x)})
        if (!(std::fabs(y - std::sin(x)) < 0.2f)) {
          std::printf("sin(%g) came out as %g\n", static_cast<double>(x), static_cast<double>(y));
          ++failures;
        }
  }
  if (plans[0]->target() == plans[1]->target()) std::printf("note: both sets of flags mean the same target\n");
  return failures ? 1 : 0;
}
