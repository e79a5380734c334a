// The interface between an operator and the plan that is being made: the operator checks its node, states
// shapes, scratch and kernel here; the plan knows no operator.
#ifndef ONEWEIGHT_PLAN_PREPARATION_H
#define ONEWEIGHT_PLAN_PREPARATION_H

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "oneweight/plan/plan.h"

namespace oneweight {
inline namespace v1 {

// An input or output as prepare() sees it.
struct Operand {
  std::string_view name;
  TensorType type = TensorType::float32;
  Shape shape;
  const Quantization* quantization = nullptr;  // never null; empty scales = not quantised
  const std::byte* data = nullptr;   // the value when it is known before the run (unaligned), else null
  int64_t data_bytes = 0;            // at data (sparse constants: what the file stores)
  bool is_constant = false;          // known before the run (data may be null when it has no elements)
  bool is_variable = false;
  const Sparsity* sparsity = nullptr;

  bool quantized() const { return !quantization->scales.empty(); }
  float scale() const { return quantization->scales.empty() ? 0.0f : quantization->scales[0]; }
  int32_t zero_point() const {
    return quantization->zero_points.empty() ? 0 : static_cast<int32_t>(quantization->zero_points[0]);
  }
};

// Types of a node's operands, for choosing among the rows of an operator.
struct NodeTypes {
  static constexpr int kMax = 24;
  int input_count = 0, output_count = 0;
  TensorType inputs[kMax] = {};      // of the first kMax inputs
  bool has_input[kMax] = {};
  bool constant[kMax] = {};
  TensorType outputs[4] = {};
  // Type of input i when present.
  bool in(int i, TensorType type) const { return i < input_count && i < kMax && has_input[i] && inputs[i] == type; }
  bool out(int i, TensorType type) const { return i < output_count && i < 4 && outputs[i] == type; }
};

// Work as Preparation::set_work counts it, in multiply-adds of floats: of an element of weights that is packed into a panel; of a
// multiply-add in sums of few terms, or of bytes; of an element of a window that is gathered; of a byte read from far away, or near.
inline constexpr double kPackWork = 8, kShortWork = 2, kQuadWork = 0.25, kGatherWork = 1, kFarByteWork = 3, kByteWork = 1;
// Products of `rows` vectors with weights of that many elements: bound by reading the weights when there are few rows.
inline double product_work(double rows, double weights, double weight_bytes, double each = 1) {
  return weights * std::max(rows * each, kFarByteWork * weight_bytes);
}
// What a step says of itself: Preparation::set_work, set_channel_blocks.
struct StepWork {
  double all = -1, each_range = 0, each_block_range = 0;
};

// Rows of a map N,H,W,C or N,H,W: N * H. 0: the tensor is no map.
inline int64_t image_rows(const Shape& shape) { return shape.rank() == 3 || shape.rank() == 4 ? shape[0] * shape[1] : 0; }

// What the plan knows of a step when it gives tensors their places.
struct StepFacts {
  KernelFn kernel = nullptr;
  const void* params = nullptr;
  int64_t rows = 1, blocks = 1, scratch = 0;
  int64_t rows_each = 1;             // of the rows above, for an image row of output 0
  InputRowsFn input_rows = nullptr;
  uint32_t row_inputs = 0;           // bit i: input_rows speaks of input i
  StepWork work;
  struct InPlace { int in = -1, out = -1; };
  std::vector<InPlace> in_place;
  // Output `out` is the bytes of input `in` from `offset`, or, with `gathers`, holds them from there.
  struct View { int in = -1, out = -1; int64_t offset = 0; bool gathers = false; };
  std::vector<View> views;
  bool changes_state = false;

  int64_t image_rows() const { return rows / rows_each; }
};

// An activation folded into the step that produces its input: a clamp that lets NaN through, then `after`.
struct FusedActivation {
  enum After : uint8_t { none, hard_swish, swish };  // swish: x times the logistic function of x
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  After after = none;
};

// Constant zero padding (of the real value 0) in elements before and behind each axis of a rank-4 tensor.
struct SpatialPadding {
  int64_t before[4] = {};
  int64_t behind[4] = {};
};

class Preparation {
 public:
  // ---- The node
  const OperatorDef& op() const { return *op_; }
  const OptionsView& options() const { return op_->options; }
  int64_t target() const { return target_; }   // one Highway target bit
  int input_count() const { return static_cast<int>(inputs_.size()); }
  int output_count() const { return static_cast<int>(outputs_.size()); }
  bool has_input(int i) const { return i < input_count() && input_ids_[i] >= 0; }
  // i must be present (check with has_input or expect_inputs).
  const Operand& input(int i) const { return inputs_[i]; }
  const Operand& output(int i) const { return outputs_[i]; }

  // Intermediate tensors of quantised LSTMs: they hold scales alone. Never computed.
  int intermediate_count() const { return static_cast<int>(op_->intermediates.size()); }
  const Quantization& intermediate(int i) const;

  // ---- Checks: errors name the operator; ONEWEIGHT_RETURN_IF_ERROR hands them on.
  ONEWEIGHT_PRINTF(3, 4) Status error(ErrorCode code, const char* format, ...) const {
    std::va_list args;
    va_start(args, format);
    std::string text = where() + format_message(format, args);
    va_end(args);
    return Status(code, std::move(text));
  }
  ONEWEIGHT_PRINTF(2, 3) Status invalid(const char* format, ...) const {
    std::va_list args;
    va_start(args, format);
    std::string text = where() + format_message(format, args);
    va_end(args);
    return Status(ErrorCode::invalid_model, std::move(text));
  }
  // "tensor 'name' int8 [1, 2]"
  std::string describe(const Operand& t) const {
    return "tensor '" + std::string(t.name) + "' " + tensor_type_name(t.type) + " " + t.shape.to_string();
  }
  // The node has between `least` and `most` inputs, the first `least` of them present; and `outputs` outputs.
  Status expect_operands(int least, int most, int outputs = 1) const {
    if (input_count() < least || input_count() > most)
      return invalid("has %d inputs, not %d to %d", input_count(), least, most);
    for (int i = 0; i < least; ++i)
      if (!has_input(i)) return invalid("input %d is left out", i);
    if (output_count() != outputs) return invalid("has %d outputs, not %d", output_count(), outputs);
    return {};
  }
  Status expect_rank(const Operand& t, int least, int most) const {
    if (t.shape.rank() >= least && t.shape.rank() <= most) return {};
    return invalid("%s has rank %d, not %d to %d", describe(t).c_str(), t.shape.rank(), least, most);
  }
  // Values of a constant int32, int64, int16, int8 or uint8 input, widened. An input that is known only while
  // running is `unsupported` (a shape that depends on data).
  Status constant_ints(int i, std::vector<int64_t>* values) const {
    const Operand& t = inputs_[i];
    if (!t.is_constant && t.shape.elements() != 0)  // no elements: known, whoever writes them
      return error(ErrorCode::unsupported, "needs the values of %s before the run, but they are computed",
                   describe(t).c_str());
    const int64_t n = t.shape.elements();
    values->clear();
    for (int64_t k = 0; k < n; ++k) {
      switch (t.type) {
        case TensorType::int32: values->push_back(load<int32_t>(t.data, k)); break;
        case TensorType::int64: values->push_back(load<int64_t>(t.data, k)); break;
        case TensorType::int16: values->push_back(load<int16_t>(t.data, k)); break;
        case TensorType::int8: values->push_back(load<int8_t>(t.data, k)); break;
        case TensorType::uint8: values->push_back(load<uint8_t>(t.data, k)); break;
        default: return invalid("%s is not an integer tensor", describe(t).c_str());
      }
    }
    return {};
  }
  // Axis numbers from the end are negative; the result lies in [0, rank).
  Status normalize_axis(int64_t axis, int rank, int* result) const {
    if (axis < -rank || axis >= rank)
      return invalid("axis %lld is outside rank %d", static_cast<long long>(axis), rank);
    *result = static_cast<int>(axis < 0 ? axis + rank : axis);
    return {};
  }
  // Numpy broadcast of two shapes.
  Status broadcast(const Shape& a, const Shape& b, Shape* result) const {
    const int rank = a.rank() > b.rank() ? a.rank() : b.rank();
    *result = Shape();
    for (int i = 0; i < rank; ++i) {
      const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
      const int64_t ea = ia < 0 ? 1 : a[ia], eb = ib < 0 ? 1 : b[ib];
      if (ea != eb && ea != 1 && eb != 1)
        return invalid("shapes %s and %s do not broadcast", a.to_string().c_str(), b.to_string().c_str());
      result->push_back(ea == 1 ? eb : ea);
    }
    return {};
  }

  // ---- What the operator states
  // The shape of output i for these inputs. Every output needs one. Errors: too many bytes.
  Status set_output(int i, const Shape& shape) {
    if (shape.bytes(outputs_[i].type) < 0 || shape.bytes(outputs_[i].type) > (int64_t{1} << 46))
      return invalid("output '%.*s' of shape %s is too large", static_cast<int>(outputs_[i].name.size()),
                     outputs_[i].name.data(), shape.to_string().c_str());
    outputs_[i].shape = shape;
    output_set_[i] = true;
    return {};
  }
  // Parameters the kernel reads: one trivially copyable struct, kept in the plan. Null when out of memory.
  template <class P>
  P* make_params() {
    static_assert(std::is_trivially_copyable_v<P> && alignof(P) <= 64);
    void* bytes = memory_->allocate(sizeof(P));
    facts_.params = bytes;
    return bytes ? new (bytes) P() : nullptr;
  }
  // A zeroed array kept in the plan (row sums, multipliers, tables; at most 16 bytes an output channel
  // plus tables; 256 MiB at the most). The parameters may point to it. Null when out of memory.
  template <class T>
  T* derived(int64_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    constexpr int64_t kMost = (int64_t{1} << 28) / static_cast<int64_t>(sizeof(T));
    if (count > kMost) return nullptr;
    return static_cast<T*>(memory_->allocate(static_cast<size_t>(count > 0 ? count : 1) * sizeof(T)));
  }
  Status no_memory() const { return error(ErrorCode::out_of_memory, "no memory for its parameters"); }
  // The kernel, and how many rows of output can be computed apart from each other.
  // input_rows: when row r of output 0 is a map's image row r (batch * height + y), the image rows of input `input` that it reads.
  void set_kernel(KernelFn kernel, int64_t rows = 1, InputRowsFn input_rows = nullptr, int input = 0) {
    facts_.kernel = kernel;
    facts_.rows = rows;
    facts_.rows_each = 1;
    facts_.input_rows = input_rows;
    facts_.row_inputs = input_rows ? 1u << input : 0;
  }
  // Image rows of output 0 need the same rows of each input that has as many, and all of the other inputs. The kernel's rows are image
  // rows, or each image row is equally many of them.
  void set_same_rows() {
    const Shape& shape = outputs_[0].shape;
    for (size_t i = 0; i < inputs_.size() && i < 32; ++i)
      if (inputs_[i].shape.rank() == shape.rank()) set_same_rows_of(static_cast<int>(i));
  }
  // The same for input i alone, whose rank may be another.
  void set_same_rows_of(int i) {
    const Shape &shape = outputs_[0].shape, &input = inputs_[static_cast<size_t>(i)].shape;
    const int64_t rows = image_rows(shape);
    if (rows <= 0 || facts_.rows < rows || facts_.rows % rows != 0) return;
    facts_.rows_each = facts_.rows / rows;
    facts_.input_rows = [](const void*, RowRange range) { return range; };
    if (image_rows(input) == rows && input[0] == shape[0]) facts_.row_inputs |= 1u << i;
  }
  // Image rows of output 0, each of them equally many of the kernel's rows, need the image rows of input 0 that `input_rows` tells.
  void set_image_rows(InputRowsFn input_rows) {
    facts_.rows_each = facts_.rows / image_rows(outputs_[0].shape);
    facts_.input_rows = input_rows;
    facts_.row_inputs = 1;
  }
  // Scratch bytes while one range of rows is computed.
  void set_scratch(int64_t bytes) { facts_.scratch = bytes; }
  // Multiply-adds, or as much other work, of all rows, and what every range of them repeats. Not told: some for each byte of
  // inputs and outputs that are no constants, and nothing repeated.
  void set_work(double all, double each_range = 0) { facts_.work.all = all, facts_.work.each_range = each_range; }
  // The kernel can as well compute all rows of some blocks of the `channels` output channels; what every range of blocks repeats.
  void set_channel_blocks(int64_t channels, double each_range) {
    facts_.blocks = (channels + kBlockChannels - 1) / kBlockChannels;
    facts_.work.each_block_range = each_range;
  }
  // The kernel works when output `out` is the memory of input `in` (equal bytes).
  void allow_in_place(int in, int out = 0) { facts_.in_place.push_back({in, out}); }
  // Output `out` holds the bytes of input `in`: the step vanishes where the plan can share the memory. The
  // kernel must still copy, for where it cannot.
  void allow_alias(int in, int out = 0) { facts_.views = {{in, out}}; }
  // Output `out` is the bytes of input 0 from `offset`, so that it can be a view of them. The kernel skips what is in its place.
  void allow_part(int in, int out, int64_t offset) { facts_.views.push_back({in, out, offset, false}); }
  // Output 0 holds input `in` from byte `offset`: whoever computes the input may write it there. The kernel skips what is in its place.
  void allow_gathered(int in, int64_t offset) { facts_.views.push_back({in, 0, offset, true}); }
  // The value of output i is known now (shape operators): `bytes` of memory from derived().
  void set_constant_output(int i, const void* bytes) { constant_outputs_.push_back({i, static_cast<const std::byte*>(bytes)}); }
  // Keeps the step even if its outputs are not used (it changes state).
  void set_side_effect() { facts_.changes_state = true; }
  // The outputs may differ from run to run for equal inputs: never folded.
  void set_not_foldable() { foldable_ = false; }
  // The shape of output 0, the only one, depends on values that are computed while running. No kernel then: only a consumer
  // that looks through this step (OpRow::takes_unsized, absorb_unsized) may read it.
  void set_unsized_output() { unsized_ = true; }
  bool is_unsized(int i) const { return is_unsized_impl(i); }
  // If nobody else reads the unsized input i, makes that step's input 0 the input i of this node, and appends its other
  // inputs behind all inputs of this node; *first: the number of the first of them.
  bool absorb_unsized(int i, int* first) { return absorb_unsized_impl(i, first); }
  // Inputs a and b are the same tensor.
  bool same_input(int a, int b) const { return input_ids_[a] == input_ids_[b]; }
  // ---- State and subgraphs
  // The variable called `name`, of that type and shape (told by the first operator that knows them; a later
  // one must agree). Offset for RunState::resource in *offset. Zero until it is assigned.
  Status resource(const std::string& name, TensorType type, const Shape& shape, int64_t* offset);
  // A number for `name`, the same in all subgraphs: what a resource tensor holds.
  int32_t resource_handle(const std::string& name);
  // The name behind a handle, or null.
  const std::string* resource_name(int32_t handle) const;
  // The plan of subgraph `index` for inputs like these operands. Kept by this plan. Errors: no such subgraph,
  // recursion, other numbers of inputs, and all that planning can meet.
  Status subgraph(int index, std::span<const Operand* const> inputs, const Plan** plan);
  // ---- Fusion
  // Output 0 is input 0 with these margins of real zeros: a consumer that pads by itself may absorb it.
  void set_padding(const SpatialPadding& padding) { padding_ = padding; is_padding_ = true; }
  // If input 0 comes from such a padding and nobody else reads it, makes the padding's own input the
  // input 0 of this node and tells the margins. Call before anything else that looks at input 0.
  bool absorb_padding(SpatialPadding* padding) { return absorb_padding_impl(padding); }
  // The kernel applies *activation (inside the parameters) to output 0: a following activation may write
  // it there instead of running.
  void offer_activation(FusedActivation* activation) { activation_ = activation; }
  // An activation operator on float: true when the producer of input 0 takes it; the node then vanishes.
  bool fuse_activation(const FusedActivation& wanted) { return fuse_activation_impl(wanted); }

  // Output 0 is the logistic function of input 0, in float.
  void set_logistic() { is_logistic_ = true; }
  // Output 0 is a function of input 0, bytes both: table[bits of the input]. The table is derived().
  void set_table(const uint8_t* table) { table_ = table; }
  // If one of two inputs is such a function of the other, and nobody else reads it, makes that other the only input of this node.
  // The number of the input that vanished, or -1; *table: null for the logistic function in float. Call before anything else that
  // looks at the inputs.
  int absorb_function(const uint8_t** table) { return absorb_function_impl(table); }

  template <class T>
  static T load(const std::byte* data, int64_t index) {
    T value;
    std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return value;
  }

 private:
  friend class PlanBuilder;
  struct ConstantOutput { int out; const std::byte* bytes; };

  explicit Preparation(PlanBuilder* builder) : builder_(builder) {}
  bool absorb_padding_impl(SpatialPadding* padding);
  bool fuse_activation_impl(const FusedActivation& wanted);
  int absorb_function_impl(const uint8_t** table);
  bool is_unsized_impl(int i) const;
  bool absorb_unsized_impl(int i, int* first);
  std::string where() const {
    return "operator " + std::to_string(index_) + " " + std::string(op_->name()) + ": ";
  }

  PlanBuilder* builder_;
  const OperatorDef* op_ = nullptr;
  int index_ = 0;
  int64_t target_ = 0;
  PlanMemory* memory_ = nullptr;
  std::vector<Operand> inputs_, outputs_;
  std::vector<int32_t> input_ids_, output_ids_;
  std::vector<char> output_set_;
  // Statements
  StepFacts facts_;
  std::vector<ConstantOutput> constant_outputs_;
  bool foldable_ = true;
  bool is_padding_ = false;
  bool is_logistic_ = false;
  const uint8_t* table_ = nullptr;
  bool fused_away_ = false;
  bool unsized_ = false;
  SpatialPadding padding_;
  FusedActivation* activation_ = nullptr;
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_PLAN_PREPARATION_H
