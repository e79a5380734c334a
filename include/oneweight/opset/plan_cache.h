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
// same new plan at once wait for one another. Custom operators' rows must outlive the cache.
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
    // All members by name, so that a new one does not compile until it has its place here.
    const auto& [signature, input_shapes, keep, target_mask, fuse, workers, band_work, custom_operators, reorder, tile_rows, extra_work,
                 memory_limit] = o;
    // Addresses are unambiguous: a cached plan keeps its model alive, and custom rows outlive the cache.
    std::string key = format_text("%p %lld %d %d %lld %d %d %a %lld ", static_cast<const void*>(model), static_cast<long long>(target_mask), fuse,
                                  workers, static_cast<long long>(band_work), reorder, tile_rows, extra_work, static_cast<long long>(memory_limit));
    key += std::to_string(signature.size()) + ":" + signature;
    for (const auto& [number, shape] : input_shapes) key += " " + std::to_string(number) + "=" + shape.to_string();
    for (const std::string& name : keep) key += " " + std::to_string(name.size()) + ":" + name;
    for (const OpRow* row : custom_operators) key += format_text(" %p", static_cast<const void*>(row));
    return key;
  }

  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const Plan>> plans_;
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPSET_PLAN_CACHE_H
