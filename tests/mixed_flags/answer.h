// The same function, in files with different flags: plans (with their own kernels) and runs the model.
#include <memory>

#include <oneweight/context/execution_context.h>

using PlanPointer = std::shared_ptr<const oneweight::Plan>;

PlanPointer plan_baseline(const char* path);
PlanPointer plan_wide(const char* path);     // with flags of a newer processor
PlanPointer plan_dynamic(const char* path);  // kernels for all processors
float answer_baseline(const PlanPointer& plan, float x);
float answer_wide(const PlanPointer& plan, float x);
float answer_dynamic(const PlanPointer& plan, float x);
