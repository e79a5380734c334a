// NAME is baseline, wide or dynamic.
#define ONEWEIGHT_OPS "tests/package/one_operator.h"
#include <oneweight/oneweight.h>

#include "answer.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

PlanPointer JOIN(plan_, NAME)(const char* path) {
  auto model = oneweight::ModelView::open(path);
  if (!model.ok()) return nullptr;
  auto plan = oneweight::make_plan<OneOperator>(*model);
  return plan.ok() ? *plan : nullptr;
}

float JOIN(answer_, NAME)(const PlanPointer& plan, float x) {
  auto context = oneweight::ExecutionContext::create(plan);
  if (!context.ok()) return -1000;
  (*context->input<float>(0))[0] = x;
  return context->run().ok() ? (*context->output<float>(0))[0] : -1000;
}
