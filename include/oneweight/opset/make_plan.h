// Joins an operator set and the planner: the one place where the two meet.
#ifndef ONEWEIGHT_OPSET_MAKE_PLAN_H
#define ONEWEIGHT_OPSET_MAKE_PLAN_H

#include <memory>
#include <span>

#include "oneweight/opset/opset.h"
#include "oneweight/plan/op_row.h"

#if ONEWEIGHT_HAS_KERNELS
#include "oneweight/plan/builder.h"
#include "oneweight/simd/targets.h"
#include "hwy/targets.h"
#endif

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// Highway target bits that are compiled in and that this processor can run. Thread-safe.
int64_t available_targets();
// "AVX3_DL", "NEON", ... for one target bit.
const char* target_name(int64_t target);

namespace detail {
Expected<std::shared_ptr<const Plan>> build_plan(std::shared_ptr<const ModelView> model, const PlanOptions& options,
                                                 std::span<const OpRow> rows);
}

// Plans a model with the operators of Ops. Thread-safe. Errors: see PlanBuilder::build.
template <class Ops>
Expected<std::shared_ptr<const Plan>> make_plan(std::shared_ptr<const ModelView> model, const PlanOptions& options = {}) {
  return detail::build_plan(std::move(model), options, Ops::rows);
}

#if ONEWEIGHT_HAS_KERNELS && (!defined(ONEWEIGHT_BUILD_KERNELS) || defined(ONEWEIGHT_KERNELS_CORE))
ONEWEIGHT_INLINE int64_t available_targets() { return usable_targets(); }
ONEWEIGHT_INLINE const char* target_name(int64_t target) { return hwy::TargetName(target); }
namespace detail {
ONEWEIGHT_INLINE Expected<std::shared_ptr<const Plan>> build_plan(std::shared_ptr<const ModelView> model, const PlanOptions& options,
                                                                  std::span<const OpRow> rows) {
  if (!model) return make_error(ErrorCode::invalid_argument, "no model");
  return PlanBuilder::build(std::move(model), options, rows, best_target(options.target_mask));
}
}  // namespace detail
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPSET_MAKE_PLAN_H
