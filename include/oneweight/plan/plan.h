// The model prepared for given input shapes: steps with chosen kernels, every tensor's place, and thereby
// the exact number of bytes a context will own. Immutable and thread-safe; contexts share it.
#ifndef ONEWEIGHT_PLAN_PLAN_H
#define ONEWEIGHT_PLAN_PLAN_H

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oneweight/model/model_view.h"
#include "oneweight/plan/kernel.h"

namespace oneweight {
inline namespace v1 {

// Every tensor, scratch area and the block itself start at a multiple of this many bytes.
inline constexpr int64_t kAlignment = 64;

struct OpRow;

struct PlanOptions {
  // Signature to run, by key; empty: the main subgraph.
  std::string signature;
  // New shapes by input number (position in the signature or subgraph); others keep the file's.
  std::vector<std::pair<int, Shape>> input_shapes;
  // Tensors (by name) that stay readable after a run, besides the outputs.
  std::vector<std::string> keep;
  // Restricts the processor targets to these Highway bits; 0 = the best there is.
  int64_t target_mask = 0;
  // Fusion changes no integer answer; it can be switched off to compare or to read every tensor.
  bool fuse = true;
  // Threads that may share one run (RunOptions::executor): large steps are divided into bands of rows, with scratch for so many
  // bands at a time. Answers do not depend on it. From 1 to 64.
  int workers = 1;
  // Multiply-adds, or as much other work, that are worth a band of their own.
  int64_t band_work = 256 * 1024;
  // Operators of the user's own (plan/custom_operator.h), asked before the set's. The rows must outlive the making of the plan.
  std::vector<const OpRow*> custom_operators;
  // Steps may run in another order than the file's, where that needs less memory.
  bool reorder = true;
  // Chains of steps run tile by tile (Plan::chains) where that needs less memory for little more work. -1: never; n > 0: wherever
  // they can, in tiles of n rows of the chain's step with most rows. Answers are the same bits.
  int tile_rows = 0;
  // Work that tiles may add, as a share of all work.
  double extra_work = 0.03;
  // Most that a context and the plan's derived constants may need together (Plan::limited_bytes), in bytes; 0 = no limit. A plan that
  // does not fit is tried again with more extra work, up to twice the work.
  int64_t memory_limit = 0;
};

// Where a tensor of the plan lives.
enum class Placement : uint8_t {
  none,      // not used by this plan
  constant,  // in the model's memory or, when derived, in the plan's
  arena,     // in the context's block; its bytes are reused when it is no longer needed
  state,     // in the context's block, kept from run to run until reset()
};

struct PlanTensor {
  std::string_view name;             // the model's
  TensorType type = TensorType::float32;
  Shape shape;
  const Quantization* quantization = nullptr;  // never null
  Placement placement = Placement::none;
  const std::byte* constant = nullptr;
  int64_t offset = 0;                // arena and state: from the start of the block
  int64_t bytes = 0;
  int32_t buffer = -1;               // tensors with equal numbers share memory (views, in-place steps)
  int32_t first_step = -1;           // written by (-1: before the run)
  int32_t last_step = -1;            // last read by (number of steps: after the run)
  int64_t window_rows = 0;           // > 0: only so many image rows of it are in memory at a time, inside a chain
};

struct Step {
  KernelFn kernel = nullptr;
  const char* name = "";             // of the operator: "CONV_2D"
  const void* params = nullptr;
  const int32_t* inputs = nullptr;
  const int32_t* outputs = nullptr;
  int64_t rows = 1;
  int64_t rows_each = 1;             // of the rows above, for an image row of a chain
  int64_t blocks = 1;                // of output channels
  int64_t bands = 1;                 // parts of the rows, or of the blocks, that threads may compute at the same time
  int64_t tile_rows = 0;             // in a chain: image rows of a tile, about
  int64_t scratch_offset = 0;
  int64_t scratch_bytes = 0;         // of one band, a multiple of kAlignment
  int32_t input_count = 0;
  int32_t output_count = 0;
  int32_t operator_index = 0;        // in the subgraph
  bool divides_blocks = false;       // the bands are parts of the blocks
};

// Consecutive steps that run tile by tile: in tile k, step number s of them computes its rows from ends[k - 1][s] to ends[k][s]
// (from 0 in the first; rows are image rows), and the tensors of window w hold their rows from lows[k][w] on.
struct Chain {
  struct Window {
    const int32_t* tensors = nullptr;
    int32_t tensor_count = 0;
    int32_t writer = 0;              // number of the step whose rows have been computed into it
    int64_t row_bytes = 0;
    int64_t offset = 0;              // from the start of the block
  };
  int32_t first = 0, count = 0;
  int32_t tiles = 0, window_count = 0;
  const Window* windows = nullptr;
  const int32_t* ends = nullptr;
  const int32_t* lows = nullptr;

  int64_t end(int32_t tile, int32_t step) const { return tile < 0 ? 0 : ends[static_cast<int64_t>(tile) * count + step]; }
  int64_t low(int32_t tile, int32_t window) const { return tile < 0 ? 0 : lows[static_cast<int64_t>(tile) * window_count + window]; }
};

// Memory of a plan's parameters and derived constants: grows in chunks, addresses stay.
class PlanMemory {
 public:
  // 64-byte aligned, zeroed; null when out of memory.
  void* allocate(size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    if (bytes > left_) {
      const size_t chunk = bytes > kChunk ? bytes : kChunk;
      std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[chunk + 64]());
      if (!memory) return nullptr;
      const auto address = reinterpret_cast<uintptr_t>(memory.get());
      next_ = memory.get() + (64 - address % 64) % 64;
      left_ = chunk;
      total_ += chunk + 64;
      chunks_.push_back(std::move(memory));
    }
    void* result = next_;
    next_ += bytes;
    left_ -= bytes;
    return result;
  }
  size_t total() const { return total_; }

 private:
  static constexpr size_t kChunk = 4096;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* next_ = nullptr;
  size_t left_ = 0;
  size_t total_ = 0;
};

class PlanBuilder;

class Plan {
 public:
  const std::shared_ptr<const ModelView>& model() const { return model_; }
  const SubgraphDef& subgraph() const { return model_->subgraphs()[subgraph_]; }
  std::span<const Step> steps() const { return steps_; }
  // Those of the steps that run tile by tile, in their order.
  std::span<const Chain> chains() const { return chains_; }
  std::span<const PlanTensor> tensors() const { return tensors_; }
  // Tensor indices of inputs and outputs, in the order of the signature or the subgraph.
  std::span<const int32_t> inputs() const { return inputs_; }
  std::span<const int32_t> outputs() const { return outputs_; }
  // Names by which inputs and outputs are bound: the signature's, else the tensors'.
  std::span<const std::string> input_names() const { return input_names_; }
  std::span<const std::string> output_names() const { return output_names_; }
  // Number of the input or output called `name` (binding name or tensor name), or -1.
  int find_input(std::string_view name) const { return find(name, inputs_, input_names_); }
  int find_output(std::string_view name) const { return find(name, outputs_, output_names_); }
  // Index of the tensor called `name`, or -1.
  int find_tensor(std::string_view name) const {
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (tensors_[i].name == name) return static_cast<int>(i);
    return -1;
  }

  // Bytes of the block of one context: everything it will ever own.
  int64_t context_bytes() const { return context_bytes_; }
  // The same with the parameters and derived constants of the plan and its subgraphs: what PlanOptions::memory_limit bounds.
  int64_t limited_bytes() const { return context_bytes_ + parameter_bytes(); }
  // Work that tiles add, as a share of all work: an estimate.
  double extra_work() const { return extra_work_; }
  int64_t state_bytes() const { return state_bytes_; }
  // Variables shared by the subgraphs, and flags of steps that act once; zero after reset().
  int64_t resource_bytes() const { return resource_bytes_; }
  int64_t resource_offset() const { return arena_offset_; }
  // Plans of the subgraphs that steps of this plan run; their blocks are scratch of those steps.
  std::span<const std::unique_ptr<Plan>> children() const { return children_; }
  // The largest scratch of a single step, and the step that holds most at one time.
  int64_t largest_scratch_bytes() const { return largest_scratch_; }
  int peak_step() const { return peak_step_; }
  int workers() const { return workers_; }
  // Scratch of a step with as many bands at work as there can be.
  int64_t scratch_bytes(const Step& step) const { return step.scratch_bytes * std::min<int64_t>(step.bands, workers_); }
  // Some step has bands.
  bool is_divided() const { return is_divided_; }
  // Heap bytes of the plan itself (steps, parameters, derived constants), shared by all contexts.
  size_t plan_bytes() const {
    size_t children = 0;
    for (const auto& child : children_) children += child->plan_bytes();
    return children + sizeof(Plan) + memory_.total() + chain_bytes_ + steps_.capacity() * sizeof(Step) +
           tensors_.capacity() * sizeof(PlanTensor) + operands_.capacity() * sizeof(int32_t);
  }
  // One Highway target bit: the kernels this plan points to.
  int64_t target() const { return target_; }

  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

 private:
  friend class PlanBuilder;
  friend class ExecutionContext;
  Plan() = default;
  int64_t parameter_bytes() const {
    auto bytes = static_cast<int64_t>(memory_.total());
    for (const auto& child : children_) bytes += child->parameter_bytes();
    return bytes;
  }
  int find(std::string_view name, const std::vector<int32_t>& indices, const std::vector<std::string>& names) const {
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return static_cast<int>(i);
    for (size_t i = 0; i < indices.size(); ++i)
      if (tensors_[indices[i]].name == name) return static_cast<int>(i);
    return -1;
  }

  std::shared_ptr<const ModelView> model_;
  int subgraph_ = 0;
  std::vector<Step> steps_;
  std::vector<PlanTensor> tensors_;
  std::vector<int32_t> operands_;    // what the steps' inputs and outputs and the chains' windows point into
  struct ChainTables {
    std::unique_ptr<int32_t[]> numbers;
    std::unique_ptr<Chain::Window[]> windows;
  };
  std::vector<Chain> chains_;
  std::vector<ChainTables> chain_tables_;
  size_t chain_bytes_ = 0;
  std::vector<int32_t> inputs_, outputs_;
  std::vector<std::string> input_names_, output_names_;
  PlanMemory memory_;
  std::vector<std::unique_ptr<Plan>> children_;
  int64_t resource_bytes_ = 0;
  int64_t context_bytes_ = 0;
  int64_t arena_offset_ = 0;         // where resources, state and arena begin: behind the address table
  int64_t state_bytes_ = 0;
  int64_t largest_scratch_ = 0;
  int peak_step_ = 0;
  double extra_work_ = 0;
  int workers_ = 1;
  bool is_divided_ = false;
  int64_t target_ = 0;
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_PLAN_H
