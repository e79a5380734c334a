// Runs a plan with every tensor, its variables, and the scratch of every step, ending right before a page that may not be touched.
#ifndef ONEWEIGHT_TESTS_SUPPORT_GUARDED_RUN_H
#define ONEWEIGHT_TESTS_SUPPORT_GUARDED_RUN_H

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "oneweight/oneweight.h"
#include "tests/support/guarded_memory.h"

// Memory of a whole plan. Tensors that share a buffer share it here too; constants are copied and read-only.
class GuardedRun {
 public:
  explicit GuardedRun(const oneweight::Plan& plan) : plan_(plan), resources_(static_cast<size_t>(plan.resource_bytes())), addresses_(plan.tensors().size(), nullptr) {
    if (plan.resource_bytes() > 0) std::memset(resources_.data(), 0, static_cast<size_t>(plan.resource_bytes()));
    struct Extent { int64_t begin = std::numeric_limits<int64_t>::max(), end = 0; int memory = -1; };
    std::vector<Extent> buffers(plan.tensors().size());
    for (const oneweight::PlanTensor& tensor : plan.tensors()) {
      if (tensor.placement != oneweight::Placement::arena) continue;
      Extent& buffer = buffers[static_cast<size_t>(tensor.buffer)];
      buffer.begin = std::min(buffer.begin, tensor.offset), buffer.end = std::max(buffer.end, tensor.offset + tensor.bytes);
    }
    for (size_t t = 0; t < plan.tensors().size(); ++t) {
      const oneweight::PlanTensor& tensor = plan.tensors()[t];
      if (tensor.placement == oneweight::Placement::none || tensor.window_rows > 0) continue;
      if (tensor.placement == oneweight::Placement::arena) {
        Extent& buffer = buffers[static_cast<size_t>(tensor.buffer)];
        if (buffer.memory < 0) {
          buffer.memory = static_cast<int>(memory_.size());
          memory_.emplace_back(static_cast<size_t>(buffer.end - buffer.begin));
        }
        addresses_[t] = memory_[static_cast<size_t>(buffer.memory)].data() + (tensor.offset - buffer.begin);
        continue;
      }
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
    size_t s = 0;
    for (const oneweight::Chain& chain : plan_.chains()) {
      for (; s < static_cast<size_t>(chain.first); ++s)
        if (!run_step(plan_.steps()[s], {0, plan_.steps()[s].rows}, band, &state)) return false;
      std::vector<GuardedMemory> windows;
      for (int32_t tile = 0; tile < chain.tiles; ++tile) {
        windows = tile_windows(chain, tile, std::move(windows));
        for (int32_t k = 0; k < chain.count; ++k) {
          const int64_t each = plan_.steps()[static_cast<size_t>(chain.first + k)].rows_each;
          const oneweight::RowRange rows{chain.end(tile - 1, k) * each, chain.end(tile, k) * each};
          if (rows.size() > 0 && !run_step(plan_.steps()[static_cast<size_t>(chain.first + k)], rows, band, &state)) return false;
        }
      }
      s = static_cast<size_t>(chain.first + chain.count);
    }
    for (; s < plan_.steps().size(); ++s)
      if (!run_step(plan_.steps()[s], {0, plan_.steps()[s].rows}, band, &state)) return false;
    return true;
  }

 private:
  // Windows that hold exactly the rows a tile may see.
  std::vector<GuardedMemory> tile_windows(const oneweight::Chain& chain, int32_t tile, std::vector<GuardedMemory> old) {
    std::vector<GuardedMemory> windows;
    for (int32_t w = 0; w < chain.window_count; ++w) {
      const oneweight::Chain::Window& window = chain.windows[w];
      const int64_t low = chain.low(tile, w), kept = chain.end(tile - 1, window.writer) - low, rows = chain.end(tile, window.writer) - low;
      windows.emplace_back(static_cast<size_t>(std::max<int64_t>(rows, 0) * window.row_bytes));
      std::byte* memory = windows.back().data();
      if (tile > 0 && kept > 0) {
        const std::byte* from = old[static_cast<size_t>(w)].data() + (low - chain.low(tile - 1, w)) * window.row_bytes;
        std::memcpy(memory, from, static_cast<size_t>(kept * window.row_bytes));
      }
      for (int32_t i = 0; i < window.tensor_count; ++i)
        addresses_[static_cast<size_t>(window.tensors[i])] =
            reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(memory) - static_cast<uintptr_t>(low * window.row_bytes));
    }
    return windows;
  }

  bool run_step(const oneweight::Step& step, oneweight::RowRange all, int64_t band, oneweight::RunState* state) {
    const GuardedMemory scratch(static_cast<size_t>(step.scratch_bytes));
    const int64_t rows = band > 0 ? band : all.size();
    for (int64_t first = all.begin; first == all.begin || first < all.end; first += rows) {
      const int64_t blocks = band > 0 ? 1 : step.blocks;
      for (int64_t block = 0; block < step.blocks; block += blocks) {
        step.kernel({step.params, addresses_.data(), step.inputs, step.outputs, scratch.data(), {first, std::min(first + rows, all.end)}, state, {block, block + blocks}});
        if (state->failed()) return false;
      }
      if (rows == 0) break;
    }
    return true;
  }

  const oneweight::Plan& plan_;
  GuardedMemory resources_;
  std::vector<GuardedMemory> memory_;
  std::vector<std::byte*> addresses_;
};

#endif  // ONEWEIGHT_TESTS_SUPPORT_GUARDED_RUN_H
