// Plans by model, shapes and options, shared while somebody uses them.
#ifndef ONEWEIGHT_OPSET_PLAN_CACHE_H
#define ONEWEIGHT_OPSET_PLAN_CACHE_H

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "oneweight/opset/make_plan.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// Holds weak pointers only: a plan goes when its last context does. Thread-safe; two threads asking for the
// same new plan at once wait for one another.
template <class Ops>
class PlanCache {
 public:
  Expected<std::shared_ptr<const Plan>> get(const std::shared_ptr<const ModelView>& model, const PlanOptions& options = {}) {
    const std::string key = key_of(model.get(), options);
    std::lock_guard<std::mutex> lock(mutex_);
    if (auto found = plans_.find(key); found != plans_.end())
      if (std::shared_ptr<const Plan> plan = found->second.lock()) return plan;
    Expected<std::shared_ptr<const Plan>> plan = make_plan<Ops>(model, options);
    std::erase_if(plans_, [](const auto& entry) { return entry.second.expired(); });
    if (plan.ok()) plans_[key] = *plan;
    return plan;
  }

 private:
  static std::string key_of(const ModelView* model, const PlanOptions& o) {
    // The address is unambiguous: a cached plan keeps its model alive.
    std::string key = format_text("%p %lld %d %d %lld %lld ", static_cast<const void*>(model), static_cast<long long>(o.target_mask),
                                  o.fuse, o.workers, static_cast<long long>(o.band_work), static_cast<long long>(o.memory_limit));
    key += std::to_string(o.signature.size()) + ":" + o.signature;
    for (const auto& [number, shape] : o.input_shapes) key += " " + std::to_string(number) + "=" + shape.to_string();
    for (const std::string& name : o.keep) key += " " + std::to_string(name.size()) + ":" + name;
    return key;
  }

  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const Plan>> plans_;
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPSET_PLAN_CACHE_H
