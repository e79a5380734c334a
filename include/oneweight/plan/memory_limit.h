// How far a plan goes to fit a memory limit, and what it says when it cannot.
#ifndef ONEWEIGHT_PLAN_MEMORY_LIMIT_H
#define ONEWEIGHT_PLAN_MEMORY_LIMIT_H

#include <algorithm>
#include <string>

#include "oneweight/base/status.h"
#include "oneweight/plan/plan.h"

namespace oneweight {
inline namespace v1 {

// Shares of work (PlanOptions::extra_work) that are tried one after the other until a plan fits its limit.
inline constexpr double kExtraWorkLadder[] = {0.03, 0.1, 0.3, 1};

// `plan` is the smallest that was found.
inline Status limit_error(const Plan& plan, const PlanOptions& options) {
  std::string at;
  if (!plan.steps().empty()) {
    const Step& step = plan.steps()[static_cast<size_t>(plan.peak_step())];
    at = ", most of it at operator " + std::to_string(step.operator_index) + " " + step.name;
  }
  std::string advice;
  const auto advise = [&advice](bool wanted, const char* what) {
    if (wanted) advice += std::string(what) + ", ";
  };
  advise(options.tile_rows != 0, "let the plan choose tiles (tile_rows = 0)");
  advise(!options.reorder, "let steps be reordered (reorder = true)");
  advise(options.workers > 1, "plan for fewer workers");
  advise(!options.fuse, "let steps be fused (fuse = true)");
  advise(!options.keep.empty(), "keep fewer tensors");
  return make_error(ErrorCode::out_of_memory,
                    "the memory limit is %lld bytes, the least that was found to do is %lld: %lld for a context%s, %lld for derived constants "
                    "and parameters; %sraise the limit to that or make the inputs smaller",
                    static_cast<long long>(options.memory_limit), static_cast<long long>(plan.limited_bytes()),
                    static_cast<long long>(plan.context_bytes()), at.c_str(),
                    static_cast<long long>(plan.limited_bytes() - plan.context_bytes()), advice.c_str());
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_MEMORY_LIMIT_H
