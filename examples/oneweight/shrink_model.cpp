#include "shrink_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "model_copy.h"
#include "oneweight/oneweight.h"

namespace program {

using oneweight::BuiltinOperator;
using oneweight::NodeTypes;
using oneweight::OperatorDef;
using oneweight::OpRow;
using oneweight::SubgraphDef;
using oneweight::TensorDef;
using oneweight::TensorType;

namespace {

// TFLite's converter leaves smaller constants alone: they cost accuracy and gain little.
constexpr int64_t kLeastInt8Elements = 1024;
constexpr float kLargestHalf = 65504.0f;

// An input of an operator that reads a constant.
struct Use {
  PartId op;
  int input = 0;
};
struct TensorUse {
  PartId id;
  const TensorDef* tensor = nullptr;
  std::vector<Use> uses;
};
// Tensors whose values are the same bytes of the file.
struct Constant {
  std::vector<TensorUse> tensors;
  std::string reason;  // why it stays float; empty while it may be converted
  int64_t elements() const { return tensors[0].tensor->shape.elements(); }
  float value(int64_t i) const {
    float v;
    std::memcpy(&v, tensors[0].tensor->data.data() + static_cast<size_t>(i) * sizeof v, sizeof v);
    return v;
  }
};

class Shrinking {
 public:
  Shrinking(const oneweight::ModelView& model, Storage storage) : model_(model), storage_(storage) {}

  oneweight::Expected<ShrunkModel> run() {
    find_constants();
    storage_ == Storage::half ? choose_half() : choose_int8();
    for (Constant& c : constants_) {
      if (!c.reason.empty()) {
        const TensorDef& first = *c.tensors[0].tensor;
        result_.kept.push_back({c.reason, first.name, static_cast<int64_t>(first.data.size())});
        continue;
      }
      ++result_.converted;
      result_.values += c.elements();
      result_.bytes_before += 4 * c.elements();
      storage_ == Storage::half ? to_half(c) : to_int8(c);
    }
    if (result_.converted == 0) return std::move(result_);
    auto file = copy_model(model_.bytes(), changes_);
    if (!file.ok()) return file.status();
    result_.file = std::move(*file);
    return std::move(result_);
  }

 private:
  const SubgraphDef& graph(PartId id) const { return model_.subgraphs()[id.first]; }
  const OperatorDef& op(const Use& use) const { return graph(use.op).operators[use.op.second]; }
  const TensorDef* input(const Use& use, int i) const {
    const OperatorDef& o = op(use);
    if (i >= static_cast<int>(o.inputs.size()) || o.inputs[static_cast<size_t>(i)] < 0) return nullptr;
    return &graph(use.op).tensors[static_cast<size_t>(o.inputs[static_cast<size_t>(i)])];
  }

  // All float constants, and why some cannot be converted whatever reads them.
  void find_constants() {
    std::map<const std::byte*, size_t> numbers;
    for (uint32_t g = 0; g < model_.subgraphs().size(); ++g) {
      const SubgraphDef& graph = model_.subgraphs()[g];
      for (uint32_t t = 0; t < graph.tensors.size(); ++t) {
        const TensorDef& tensor = graph.tensors[t];
        if (!tensor.is_constant || tensor.data.empty() || tensor.type != TensorType::float32) continue;
        const auto [place, added] = numbers.try_emplace(tensor.data.data(), constants_.size());
        if (added) constants_.emplace_back();
        Constant& c = constants_[place->second];
        of_tensor_[{g, t}] = {place->second, c.tensors.size()};
        c.tensors.push_back({{g, t}, &tensor, {}});
        if (tensor.data.size() != c.tensors[0].tensor->data.size()) c.reason = "shares its bytes with a longer constant";
        if (tensor.sparsity) c.reason = "is stored sparsely";
      }
    }
    for (uint32_t g = 0; g < model_.subgraphs().size(); ++g) {
      const SubgraphDef& graph = model_.subgraphs()[g];
      for (uint32_t o = 0; o < graph.operators.size(); ++o)
        for (size_t i = 0; i < graph.operators[o].inputs.size(); ++i)
          if (TensorUse* t = find({g, graph.operators[o].inputs[i]})) t->uses.push_back({{g, o}, static_cast<int>(i)});
      for (const int32_t output : graph.outputs) keep({g, output}, "is an output of its subgraph");
      for (uint32_t t = 0; t < graph.tensors.size(); ++t) {
        const TensorDef& tensor = graph.tensors[t];
        if (tensor.quantization.block_size != 0) {
          keep({g, tensor.quantization.block_scales_tensor}, "holds scales of another constant");
          keep({g, tensor.quantization.block_zero_points_tensor}, "holds zero points of another constant");
        }
        const auto number = numbers.find(tensor.data.data());
        if (!tensor.data.empty() && tensor.type != TensorType::float32 && number != numbers.end())
          constants_[number->second].reason = std::string("shares its bytes with a tensor of type ") + tensor_type_name(tensor.type);
      }
    }
    for (const oneweight::SignatureDef& s : model_.signatures())
      for (const auto& [name, tensor] : s.outputs) keep({s.subgraph, tensor}, "is an output of a signature");
    for (const oneweight::MetadataDef& m : model_.metadata())
      if (const auto number = numbers.find(m.data.data()); !m.data.empty() && number != numbers.end()) constants_[number->second].reason = "shares its bytes with metadata";
    // A subgraph's input may name the buffer of a constant.
    std::set<uint32_t> input_buffers;
    for (const SubgraphDef& graph : model_.subgraphs())
      for (const int32_t t : graph.inputs) input_buffers.insert(graph.tensors[static_cast<size_t>(t)].buffer);
    for (Constant& c : constants_)
      for (const TensorUse& t : c.tensors)
        if (t.tensor->buffer != 0 && input_buffers.contains(t.tensor->buffer)) c.reason = "shares its bytes with an input";
  }
  TensorUse* find(std::pair<uint32_t, int32_t> tensor) {
    if (tensor.second < 0) return nullptr;
    const PartId id(tensor.first, static_cast<uint32_t>(tensor.second));
    const auto place = of_tensor_.find(id);
    return place == of_tensor_.end() ? nullptr : &constants_[place->second.first].tensors[place->second.second];
  }
  void keep(std::pair<uint32_t, int32_t> tensor, const char* reason) {
    if (tensor.second < 0) return;
    const auto place = of_tensor_.find(PartId(tensor.first, static_cast<uint32_t>(tensor.second)));
    if (place != of_tensor_.end()) constants_[place->second.first].reason = reason;
  }
  // "CONV_2D, ADD": what reads it.
  std::string readers(const Constant& c) const {
    std::vector<std::string> names;
    for (const TensorUse& t : c.tensors)
      for (const Use& use : t.uses)
        if (std::string name(op(use).name()); std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    std::string text;
    for (size_t i = 0; i < names.size() && i < 4; ++i) text += (i ? ", " : "") + names[i];
    return names.size() > 4 ? text + ", ..." : text;
  }
  static bool is_named(const OpRow& row, const OperatorDef& o) {
    return row.code == o.code && (o.code != BuiltinOperator::custom || (row.custom_code && o.custom_code == row.custom_code));
  }

  // ---- Half

  bool is_candidate(PartId graph, int32_t tensor) const {
    const auto place = tensor < 0 ? of_tensor_.end() : of_tensor_.find(PartId(graph.first, static_cast<uint32_t>(tensor)));
    return place != of_tensor_.end() && constants_[place->second.first].reason.empty();
  }
  // What an operator's row is asked with, when its inputs `changed` (as bits) are constants of that type.
  NodeTypes types_of(PartId id, uint32_t changed, TensorType type) const {
    const SubgraphDef& g = graph(id);
    const OperatorDef& o = g.operators[id.second];
    NodeTypes types;
    types.input_count = static_cast<int>(o.inputs.size());
    types.output_count = static_cast<int>(o.outputs.size());
    for (int i = 0; i < std::min(types.input_count, NodeTypes::kMax); ++i) {
      const int32_t t = o.inputs[static_cast<size_t>(i)];
      types.has_input[i] = t >= 0;
      if (t < 0) continue;
      types.inputs[i] = changed >> i & 1u ? type : g.tensors[static_cast<size_t>(t)].type;
      types.constant[i] = g.tensors[static_cast<size_t>(t)].is_constant;
    }
    for (int i = 0; i < std::min(types.output_count, 4); ++i) types.outputs[i] = g.tensors[static_cast<size_t>(o.outputs[static_cast<size_t>(i)])].type;
    return types;
  }
  // The inputs, as bits, that a kernel of this operator would read in place if its candidates were half.
  uint32_t half_inputs(PartId id) const {
    const OperatorDef& o = graph(id).operators[id.second];
    uint32_t found = 0;
    for (const OpRow& row : oneweight::opset::All::rows) {
      if (!row.stored_inputs || !is_named(row, o) || o.version < row.min_version || o.version > row.max_version) continue;
      uint32_t stored = 0;
      for (size_t i = 0; i < std::min<size_t>(o.inputs.size(), NodeTypes::kMax); ++i)
        if ((row.stored_inputs >> i & 1u) && is_candidate(id, o.inputs[i])) stored |= 1u << i;
      if (stored && row.accepts(types_of(id, stored, TensorType::float16))) found |= stored;
    }
    return found;
  }
  // Bytes that a DEQUANTIZE and its second tensor take.
  static int64_t dequantize_bytes(const TensorDef& t) { return 180 + 4 * t.shape.rank() + static_cast<int64_t>(t.name.size()); }

  void choose_half() {
    for (Constant& c : constants_) {
      if (!c.reason.empty()) continue;
      int64_t cost = 0;
      for (const TensorUse& t : c.tensors) cost += dequantize_bytes(*t.tensor);
      if (2 * c.elements() <= cost) c.reason = "is too small to gain anything";
      for (int64_t i = 0; i < c.elements() && c.reason.empty(); ++i) {
        const float v = c.value(i);
        if (!std::isfinite(v)) c.reason = "has values that are infinite or no numbers";
        else if (std::fabs(v) > kLargestHalf) c.reason = "has values beyond 65504, the largest half";
      }
    }
    // An operator that reads several constants may take all as half or none, so one that drops out can take others along.
    for (bool changed = true; changed;) {
      changed = false;
      std::map<PartId, uint32_t> inputs;
      for (Constant& c : constants_) {
        if (!c.reason.empty()) continue;
        bool read = false;
        for (const TensorUse& t : c.tensors)
          for (const Use& use : t.uses) {
            const auto [known, added] = inputs.try_emplace(use.op, 0);
            if (added) known->second = half_inputs(use.op);
            read = read || (use.input < 32 && (known->second >> use.input & 1u));
          }
        if (read) continue;
        const std::string by = readers(c);
        c.reason = by.empty() ? "is read by nobody" : "is read by " + by + " as float only";
        changed = true;
      }
    }
  }
  void to_half(const Constant& c) {
    for (const TensorUse& t : c.tensors) changes_.widened.insert(t.id);
    const std::span<const std::byte> from = c.tensors[0].tensor->data;
    for (int64_t i = 0; i < c.elements(); ++i) {
      const float v = c.value(i);
      const uint16_t bits = oneweight::float_to_half(v).bits & 0x7fffu;
      if (v != 0 && bits == 0) ++result_.became_zero;
      if (bits != 0 && bits < 0x0400u) ++result_.became_denormal;
    }
    result_.bytes_after += 2 * c.elements();
    changes_.contents[from.data()] = {from.size() / 2, [from](std::byte* to) {
      for (size_t i = 0; i < from.size() / 4; ++i) {
        float v;
        std::memcpy(&v, from.data() + 4 * i, 4);
        const oneweight::half h = oneweight::float_to_half(v);
        std::memcpy(to + 2 * i, &h, 2);
      }
    }};
  }

  // ---- Int8

  // Element i of a constant belongs to the channel i / stride % channels.
  struct Channels {
    int64_t count = 0, stride = 0;
    int32_t axis = 0;
    bool operator==(const Channels&) const = default;
  };
  struct Int8Form {
    Channels channels;
    ModelChanges::Operator change;
  };
  static Channels channels_along(const TensorDef& tensor, int axis) {
    Channels c;
    c.axis = axis;
    c.count = tensor.shape[axis];
    c.stride = 1;
    for (int i = axis + 1; i < tensor.shape.rank(); ++i) c.stride *= tensor.shape[i];
    return c;
  }

  // How an operator takes int8 weights; nothing where it does not. Versions are those that TFLite's kernels ask for with a
  // scale for each channel.
  std::optional<Int8Form> int8_form(const Use& use, const TensorDef& weights) const {
    const OperatorDef& o = op(use);
    Int8Form form;
    if (use.input != 1 || o.outputs.size() != 1) return {};
    const int rank = weights.shape.rank();
    if (o.code == BuiltinOperator::conv_2d && rank == 4) {
      const TensorDef* x = input(use, 0);
      const bool groups = x && x->shape.rank() == 4 && x->shape[3] != weights.shape[3];
      form.channels = channels_along(weights, 0);
      form.change.version = groups ? 6 : 5;
    } else if (o.code == BuiltinOperator::depthwise_conv_2d && rank == 4 && weights.shape[0] == 1) {
      form.channels = channels_along(weights, 3);
      form.change.version = 6;
    } else if (o.code == BuiltinOperator::fully_connected && rank == 2 && o.options.get<int8_t>(kWeightsFormat, 0) == 0) {
      form.channels = channels_along(weights, 0);
      form.change = {12, kFullyConnectedOptions, kAsymmetricInputs};
    } else {
      return {};
    }
    const NodeTypes types = types_of(use.op, 1u << use.input, TensorType::int8);
    for (const OpRow& row : oneweight::opset::All::rows)
      if (is_named(row, o) && form.change.version >= row.min_version && form.change.version <= row.max_version && row.accepts(types)) return form;
    return {};
  }

  void choose_int8() {
    for (Constant& c : constants_) {
      if (!c.reason.empty()) continue;
      bool weights = false;
      std::string other;
      std::optional<Channels> channels;
      for (const TensorUse& t : c.tensors)
        for (const Use& use : t.uses) {
          const auto form = int8_form(use, *t.tensor);
          if (!form) {
            other = op(use).name();
            continue;
          }
          weights = true;
          Channels mine = form->channels;
          mine.axis = 0;  // of each tensor's own shape
          if (channels && *channels != mine) c.reason = "is read along different channels";
          channels = mine;
        }
      if (!weights) {
        const std::string by = readers(c);
        c.reason = by.empty() ? "is read by nobody" : "is read by " + by + " as float only";
      } else if (!other.empty()) {
        c.reason = "is also read by " + other + " as float only";
      } else if (c.elements() < kLeastInt8Elements) {
        c.reason = oneweight::format_text("has fewer than %lld elements", static_cast<long long>(kLeastInt8Elements));
      }
      for (int64_t i = 0; i < c.elements() && c.reason.empty(); ++i)
        if (!std::isfinite(c.value(i))) c.reason = "has values that are infinite or no numbers";
      // A tensor that nobody reads has no axis of its own.
      for (const TensorUse& t : c.tensors)
        if (t.uses.empty() && c.reason.empty()) c.reason = "shares its bytes with a tensor that nobody reads";
    }
  }
  void to_int8(const Constant& c) {
    Channels channels;
    std::vector<float> scales;
    for (const TensorUse& t : c.tensors) {
      for (const Use& use : t.uses) {
        const auto form = int8_form(use, *t.tensor);
        channels = form->channels;
        changes_.operators[use.op] = form->change;
      }
      if (scales.empty()) scales = scales_of(c, channels);
      changes_.quantized[t.id] = {scales, channels.axis};
    }
    result_.bytes_after += c.elements() + static_cast<int64_t>(scales.size()) * 12;
    const std::span<const std::byte> from = c.tensors[0].tensor->data;
    changes_.contents[from.data()] = {from.size() / 4, [from, channels, scales](std::byte* to) {
      for (size_t i = 0; i < from.size() / 4; ++i) {
        float v;
        std::memcpy(&v, from.data() + 4 * i, 4);
        const float scale = scales[i / static_cast<size_t>(channels.stride) % static_cast<size_t>(channels.count)];
        to[i] = static_cast<std::byte>(static_cast<int8_t>(std::clamp(std::round(v / scale), -127.0f, 127.0f)));
      }
    }};
  }
  static std::vector<float> scales_of(const Constant& c, const Channels& channels) {
    std::vector<float> scales(static_cast<size_t>(channels.count));
    for (int64_t i = 0; i < c.elements(); ++i) {
      float& largest = scales[static_cast<size_t>(i / channels.stride % channels.count)];
      largest = std::max(largest, std::fabs(c.value(i)));
    }
    // A channel of zeros has any scale; one that is not normal would be flushed to zero.
    for (float& s : scales) s = s == 0 ? 1.0f : std::max(s / 127, std::numeric_limits<float>::min());
    return scales;
  }

  // FullyConnectedOptions in BuiltinOptions, and two of its fields.
  static constexpr uint8_t kFullyConnectedOptions = 8;
  static constexpr int kWeightsFormat = 1, kAsymmetricInputs = 3;

  const oneweight::ModelView& model_;
  Storage storage_;
  std::vector<Constant> constants_;
  std::map<PartId, std::pair<size_t, size_t>> of_tensor_;  // numbers of its constant, and in Constant::tensors
  ModelChanges changes_;
  ShrunkModel result_;
};

}  // namespace

oneweight::Expected<ShrunkModel> shrink_model(const oneweight::ModelView& model, Storage storage) { return Shrinking(model, storage).run(); }

}  // namespace program
