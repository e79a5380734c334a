// Variables of all subgraphs of a model: one registry for the plan of the main graph and those below it.
#ifndef ONEWEIGHT_PLAN_RESOURCES_H
#define ONEWEIGHT_PLAN_RESOURCES_H

#include <string>
#include <vector>

#include "oneweight/plan/preparation.h"

namespace oneweight {
inline namespace v1 {

class Resources {
 public:
  int graphs = 0;                    // subgraphs planned so far
  int64_t bytes() const { return bytes_; }

  int32_t handle(const std::string& name) {
    for (size_t i = 0; i < all_.size(); ++i)
      if (all_[i].name == name) return static_cast<int32_t>(i);
    all_.emplace_back().name = name;
    return static_cast<int32_t>(all_.size() - 1);
  }
  const std::string* name(int32_t handle) const {
    return handle >= 0 && static_cast<size_t>(handle) < all_.size() ? &all_[static_cast<size_t>(handle)].name : nullptr;
  }
  // See Preparation::resource.
  Status place(const Preparation& p, const std::string& name, TensorType type, const Shape& shape, int64_t* offset) {
    Resource& r = all_[static_cast<size_t>(handle(name))];
    if (r.offset < 0) {
      const int64_t bytes = shape.bytes(type);
      if (bytes < 0 || bytes > (int64_t{1} << 40)) return p.invalid("variable '%s' of shape %s is too large", name.c_str(), shape.to_string().c_str());
      r.type = type;
      r.shape = shape;
      r.offset = bytes_;
      bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    } else if (r.type != type || !(r.shape == shape)) {
      return p.error(ErrorCode::unsupported, "uses variable '%s' as %s %s, elsewhere it is %s %s", name.c_str(), tensor_type_name(type),
                     shape.to_string().c_str(), tensor_type_name(r.type), r.shape.to_string().c_str());
    }
    *offset = r.offset;
    return {};
  }

 private:
  struct Resource {
    std::string name;
    TensorType type = TensorType::float32;
    Shape shape;
    int64_t offset = -1;             // -1: not used yet
  };
  std::vector<Resource> all_;
  int64_t bytes_ = 0;
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_RESOURCES_H
