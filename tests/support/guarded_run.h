// Runs a plan with every tensor, its variables, and the scratch of every step, ending right before a page that may not be touched.
#ifndef ONEWEIGHT_TESTS_SUPPORT_GUARDED_RUN_H
#define ONEWEIGHT_TESTS_SUPPORT_GUARDED_RUN_H

#include <cstring>
#include <vector>

#include "oneweight/oneweight.h"
#include "tests/support/guarded_memory.h"

// Memory of a whole plan. Tensors that share a buffer share it here too; constants are copied and read-only.
class GuardedRun {
 public:
  explicit GuardedRun(const oneweight::Plan& plan) : plan_(plan), resources_(static_cast<size_t>(plan.resource_bytes())), addresses_(plan.tensors().size(), nullptr) {
    if (plan.resource_bytes() > 0) std::memset(resources_.data(), 0, static_cast<size_t>(plan.resource_bytes()));
    std::vector<int> memory_of_buffer(plan.tensors().size(), -1);
    for (size_t t = 0; t < plan.tensors().size(); ++t) {
      const oneweight::PlanTensor& tensor = plan.tensors()[t];
      if (tensor.placement == oneweight::Placement::none) continue;
      const bool shared = tensor.placement == oneweight::Placement::arena;
      if (shared && memory_of_buffer[tensor.buffer] >= 0) {
        addresses_[t] = memory_[memory_of_buffer[tensor.buffer]].data();
        continue;
      }
      if (shared) memory_of_buffer[tensor.buffer] = static_cast<int>(memory_.size());
      memory_.emplace_back(static_cast<size_t>(tensor.bytes));
      addresses_[t] = memory_.back().data();
      if (tensor.placement == oneweight::Placement::constant && tensor.bytes > 0) {
        std::memcpy(addresses_[t], tensor.constant, static_cast<size_t>(tensor.bytes));
        memory_.back().make_read_only();
      }
      if (tensor.placement == oneweight::Placement::state && tensor.bytes > 0) {
        const bool quantized = tensor.type == oneweight::TensorType::int8 && !tensor.quantization->zero_points.empty();
        std::memset(addresses_[t], quantized ? static_cast<int>(tensor.quantization->zero_points[0]) : 0, static_cast<size_t>(tensor.bytes));
      }
    }
  }
  std::byte* address(int tensor) const { return addresses_[tensor]; }

  // As ExecutionContext::run, optionally in several bands of rows a step, and blocks of channels one by one.
  bool run(int64_t band = 0) {
    oneweight::DenormalsFlushed denormals;
    oneweight::RunState state(resources_.data());
    for (const oneweight::Step& step : plan_.steps()) {
      const GuardedMemory scratch(static_cast<size_t>(step.scratch_bytes));
      const int64_t rows = band > 0 ? band : step.rows;
      for (int64_t first = 0; first == 0 || first < step.rows; first += rows) {
        const int64_t blocks = band > 0 ? 1 : step.blocks;
        for (int64_t block = 0; block < step.blocks; block += blocks) {
          step.kernel({step.params, addresses_.data(), step.inputs, step.outputs, scratch.data(),
                       {first, std::min(first + rows, step.rows)}, &state, {block, block + blocks}});
          if (state.failed()) return false;
        }
        if (rows == 0) break;
      }
    }
    return true;
  }

 private:
  const oneweight::Plan& plan_;
  GuardedMemory resources_;
  std::vector<GuardedMemory> memory_;
  std::vector<std::byte*> addresses_;
};

#endif  // ONEWEIGHT_TESTS_SUPPORT_GUARDED_RUN_H
