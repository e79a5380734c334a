// Builds small .tflite files in memory, right ones and wrong ones.
//
//   ModelBuilder m;
//   const int x = m.tensor(TensorType::float32, {1, 4}, "x");
//   const int w = m.tensor(TensorType::int8, {3, 4}, "w").values<int8_t>({...}).quantized({0.5f, 1, 2}, {0, 0, 0}, 0);
//   const int y = m.tensor(TensorType::float32, {1, 3}, "y");
//   m.op(BuiltinOperator::fully_connected, {x, w, -1}, {y}).version(9).options(8).field<int8_t>(0, 1);
//   m.inputs({x}).outputs({y});
//   std::vector<std::byte> file = m.build();
//
// Union tags and field numbers are those of the TFLite schema (BuiltinOptions: 8 is FullyConnectedOptions,
// its field 0 the activation). m.spec may be changed freely before build(): nothing is checked.
#ifndef ONEWEIGHT_TESTS_SUPPORT_MODEL_BUILDER_H
#define ONEWEIGHT_TESTS_SUPPORT_MODEL_BUILDER_H

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "oneweight/base/types.h"
#include "oneweight/schema/builtin_operator.h"

namespace oneweight::testing {

using FileBytes = std::vector<std::byte>;

// One table field: a number of `width` bytes, or (vector) elements of `width` bytes.
struct FieldSpec {
  int number = 0;
  int width = 4;
  bool is_vector = false;
  bool is_text = false;
  std::vector<uint8_t> bytes;
};

struct OptionsSpec {
  uint8_t type = 0;     // union tag, 0 = no options
  bool second = false;  // BuiltinOptions2
  std::vector<FieldSpec> fields;
};

struct SparseDimensionSpec {
  bool sparse = false;
  int32_t dense_size = 0;
  int index_width = 4;  // 4, 2 or 1 bytes
  std::vector<int32_t> segments, indices;
};

struct SparsitySpec {
  std::vector<int32_t> traversal_order, block_map;
  std::vector<SparseDimensionSpec> dimensions;
};

struct TensorSpec {
  int8_t type = 0;
  std::vector<int32_t> shape, shape_signature;
  std::string name;
  std::optional<std::vector<uint8_t>> data;  // in a buffer of its own
  std::optional<uint32_t> buffer;            // or this buffer, instead
  uint32_t external_buffer = 0;
  std::vector<float> scales;
  std::vector<int64_t> zero_points;
  int32_t axis = 0;
  bool blockwise = false;  // details BlockwiseQuantization
  int32_t block_scales = 0, block_zero_points = -1, block_size = 0;
  bool is_variable = false;
  bool has_rank = false;
  std::optional<SparsitySpec> sparsity;
};

struct OperatorSpec {
  uint32_t code = 0;  // index into ModelSpec::codes
  std::vector<int32_t> inputs, outputs, intermediates;
  OptionsSpec options;
  std::vector<uint8_t> custom_options;
  bool custom_options_at_end = false;  // behind the flatbuffer, by file offset
};

struct OperatorCodeSpec {
  int8_t deprecated_builtin = 0;
  int32_t builtin = 0;
  int32_t version = 1;
  std::string custom;
};

struct SubgraphSpec {
  std::string name;
  std::vector<TensorSpec> tensors;
  std::vector<OperatorSpec> operators;
  std::vector<int32_t> inputs, outputs;
};

struct SignatureSpec {
  std::string key;
  uint32_t subgraph = 0;
  std::vector<std::pair<std::string, uint32_t>> inputs, outputs;
};

struct ModelSpec {
  uint32_t version = 3;
  std::string identifier = "TFL3";
  std::string description = "made by a test";
  std::vector<OperatorCodeSpec> codes;
  std::vector<SubgraphSpec> subgraphs{1};
  std::vector<SignatureSpec> signatures;
  std::vector<std::pair<std::string, std::vector<uint8_t>>> metadata;
  bool buffers_at_end = false;  // constants behind the flatbuffer, by file offset (files over 2 GB)
};

template <class T>
std::vector<uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Constant data of a string tensor.
inline std::vector<uint8_t> string_tensor_bytes(const std::vector<std::string>& strings) {
  std::vector<int32_t> header{static_cast<int32_t>(strings.size())};
  int32_t at = static_cast<int32_t>(4 * (strings.size() + 2));
  header.push_back(at);
  for (const std::string& s : strings) header.push_back(at += static_cast<int32_t>(s.size()));
  std::vector<uint8_t> bytes = bytes_of(header);
  for (const std::string& s : strings) bytes.insert(bytes.end(), s.begin(), s.end());
  return bytes;
}

// Writes a ModelSpec; use ModelBuilder::build.
class ModelWriter {
 public:
  explicit ModelWriter(const ModelSpec& spec) : spec_(spec) {}

  FileBytes write() {
    // The first pass finds the flatbuffer's size, the second writes the offsets behind it.
    std::vector<uint8_t> file = write_once(0);
    if (!tail_.empty()) file = write_once(file.size());
    file.insert(file.end(), tail_.begin(), tail_.end());
    FileBytes bytes(file.size());
    std::memcpy(bytes.data(), file.data(), file.size());
    return bytes;
  }

 private:
  using Builder = flatbuffers::FlatBufferBuilder;
  using Any = flatbuffers::Offset<void>;

  static flatbuffers::voffset_t slot(int field) { return static_cast<flatbuffers::voffset_t>(4 + 2 * field); }

  // A table being written; offsets (child tables, vectors) must be made before.
  class TableWriter {
   public:
    explicit TableWriter(Builder& b) : b_(b), start_(b.StartTable()) {}
    template <class T>
    TableWriter& scalar(int field, T value) {
      b_.AddElement<T>(slot(field), value, T{});
      return *this;
    }
    TableWriter& offset(int field, Any target) {
      if (target.o != 0) b_.AddOffset(slot(field), target);
      return *this;
    }
    Any end() { return Any(b_.EndTable(start_)); }

   private:
    Builder& b_;
    flatbuffers::uoffset_t start_;
  };

  template <class T>
  Any vector(const std::vector<T>& values) {
    return Any(b_->CreateVector(values).o);
  }
  template <class T>
  Any vector_or_none(const std::vector<T>& values) {
    return values.empty() ? Any() : vector(values);
  }
  Any tables(const std::vector<Any>& all) { return Any(b_->CreateVector(all).o); }
  Any text(const std::string& s) { return Any(b_->CreateString(s).o); }

  std::vector<uint8_t> write_once(size_t flatbuffer_size) {
    Builder builder;
    builder.ForceDefaults(true);
    b_ = &builder;
    tail_start_ = flatbuffer_size;
    tail_.clear();
    buffers_.assign(1, TableWriter(builder).end());  // buffer 0: no data
    std::vector<Any> codes, graphs, signatures, metadata;
    for (const OperatorCodeSpec& c : spec_.codes) codes.push_back(code(c));
    for (const SubgraphSpec& g : spec_.subgraphs) graphs.push_back(subgraph(g));
    for (const SignatureSpec& s : spec_.signatures) signatures.push_back(signature(s));
    for (const auto& [name, data] : spec_.metadata) {
      const Any name_text = text(name);
      const uint32_t index = add_buffer(data);
      metadata.push_back(TableWriter(*b_).offset(0, name_text).scalar<uint32_t>(1, index).end());
    }
    const Any all_codes = tables(codes), all_graphs = tables(graphs), description = text(spec_.description),
              all_buffers = tables(buffers_), all_metadata = tables(metadata), all_signatures = tables(signatures);
    const Any root = TableWriter(*b_)
                         .scalar<uint32_t>(0, spec_.version)
                         .offset(1, all_codes)
                         .offset(2, all_graphs)
                         .offset(3, description)
                         .offset(4, all_buffers)
                         .offset(6, all_metadata)
                         .offset(7, all_signatures)
                         .end();
    builder.Finish(root, spec_.identifier.c_str());
    return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
  }

  // File offset of `data` behind the flatbuffer.
  uint64_t append(const std::vector<uint8_t>& data) {
    while ((tail_start_ + tail_.size()) % 16 != 0) tail_.push_back(0);
    const uint64_t at = tail_start_ + tail_.size();
    tail_.insert(tail_.end(), data.begin(), data.end());
    return at;
  }

  uint32_t add_buffer(const std::vector<uint8_t>& data) {
    if (spec_.buffers_at_end && !data.empty()) {
      const uint64_t at = append(data);
      buffers_.push_back(TableWriter(*b_).scalar<uint64_t>(1, at).scalar<uint64_t>(2, data.size()).end());
    } else {
      b_->ForceVectorAlignment(data.size(), 1, 16);
      const Any bytes = vector(data);
      buffers_.push_back(TableWriter(*b_).offset(0, bytes).end());
    }
    return static_cast<uint32_t>(buffers_.size() - 1);
  }

  Any code(const OperatorCodeSpec& c) {
    const Any custom = c.custom.empty() ? Any() : text(c.custom);
    return TableWriter(*b_)
        .scalar<int8_t>(0, c.deprecated_builtin)
        .offset(1, custom)
        .scalar<int32_t>(2, c.version)
        .scalar<int32_t>(3, c.builtin)
        .end();
  }

  Any signature(const SignatureSpec& s) {
    const auto map = [this](const std::vector<std::pair<std::string, uint32_t>>& arguments) {
      std::vector<Any> all;
      for (const auto& [name, index] : arguments) {
        const Any name_text = text(name);
        all.push_back(TableWriter(*b_).offset(0, name_text).scalar<uint32_t>(1, index).end());
      }
      return tables(all);
    };
    const Any inputs = map(s.inputs), outputs = map(s.outputs), key = text(s.key);
    return TableWriter(*b_).offset(0, inputs).offset(1, outputs).offset(2, key).scalar(4, s.subgraph).end();
  }

  Any subgraph(const SubgraphSpec& g) {
    std::vector<Any> tensors, operators;
    for (const TensorSpec& t : g.tensors) tensors.push_back(tensor(t));
    for (const OperatorSpec& o : g.operators) operators.push_back(op(o));
    const Any all_tensors = tables(tensors), inputs = vector(g.inputs), outputs = vector(g.outputs),
              all_operators = tables(operators), name = text(g.name);
    return TableWriter(*b_)
        .offset(0, all_tensors)
        .offset(1, inputs)
        .offset(2, outputs)
        .offset(3, all_operators)
        .offset(4, name)
        .end();
  }

  Any tensor(const TensorSpec& t) {
    const Any shape = vector(t.shape), signature = vector_or_none(t.shape_signature), name = text(t.name);
    const uint32_t buffer = t.buffer ? *t.buffer : t.data ? add_buffer(*t.data) : 0;
    const Any quantization = t.scales.empty() && !t.blockwise ? Any() : quantization_of(t);
    const Any sparse = t.sparsity ? sparsity(*t.sparsity) : Any();
    return TableWriter(*b_)
        .offset(0, shape)
        .scalar<int8_t>(1, t.type)
        .scalar<uint32_t>(2, buffer)
        .offset(3, name)
        .offset(4, quantization)
        .scalar<uint8_t>(5, t.is_variable)
        .offset(6, sparse)
        .offset(7, signature)
        .scalar<uint8_t>(8, t.has_rank)
        .scalar<uint32_t>(10, t.external_buffer)
        .end();
  }

  Any quantization_of(const TensorSpec& t) {
    const Any scales = vector_or_none(t.scales), zero_points = vector_or_none(t.zero_points);
    Any details;
    if (t.blockwise) {
      details = TableWriter(*b_).scalar(0, t.block_scales).scalar(1, t.block_zero_points).scalar(2, t.block_size).end();
    }
    return TableWriter(*b_)
        .offset(2, scales)
        .offset(3, zero_points)
        .scalar<uint8_t>(4, t.blockwise ? 2 : 0)
        .offset(5, details)
        .scalar<int32_t>(6, t.axis)
        .end();
  }

  Any sparsity(const SparsitySpec& s) {
    std::vector<Any> dimensions;
    for (const SparseDimensionSpec& d : s.dimensions) {
      const Any segments = d.sparse ? index_vector(d.segments, d.index_width) : Any();
      const Any indices = d.sparse ? index_vector(d.indices, d.index_width) : Any();
      const uint8_t tag = !d.sparse ? 0 : d.index_width == 4 ? 1 : d.index_width == 2 ? 2 : 3;
      dimensions.push_back(TableWriter(*b_)
                               .scalar<int8_t>(0, d.sparse)
                               .scalar<int32_t>(1, d.dense_size)
                               .scalar<uint8_t>(2, tag)
                               .offset(3, segments)
                               .scalar<uint8_t>(4, tag)
                               .offset(5, indices)
                               .end());
    }
    const Any order = vector(s.traversal_order), map = vector_or_none(s.block_map), all = tables(dimensions);
    return TableWriter(*b_).offset(0, order).offset(1, map).offset(2, all).end();
  }

  Any index_vector(const std::vector<int32_t>& values, int width) {
    const Any narrow = width == 4   ? vector(values)
                       : width == 2 ? vector(std::vector<uint16_t>(values.begin(), values.end()))
                                    : vector(std::vector<uint8_t>(values.begin(), values.end()));
    return TableWriter(*b_).offset(0, narrow).end();
  }

  Any op(const OperatorSpec& o) {
    const Any inputs = vector(o.inputs), outputs = vector(o.outputs), intermediates = vector_or_none(o.intermediates);
    const Any custom = o.custom_options_at_end ? Any() : vector_or_none(o.custom_options);
    const Any options = o.options.type == 0 ? Any() : options_table(o.options);
    const uint64_t large_at = o.custom_options_at_end ? append(o.custom_options) : 0;
    TableWriter table(*b_);
    table.scalar<uint32_t>(0, o.code).offset(1, inputs).offset(2, outputs);
    table.scalar<uint8_t>(o.options.second ? 11 : 3, o.options.type).offset(o.options.second ? 12 : 4, options);
    table.offset(5, custom).offset(8, intermediates);
    if (o.custom_options_at_end) {
      table.scalar<uint64_t>(9, large_at).scalar<uint64_t>(10, o.custom_options.size());
    }
    return table.end();
  }

  Any options_table(const OptionsSpec& options) {
    std::vector<Any> vectors(options.fields.size());
    for (size_t i = 0; i < vectors.size(); ++i) {
      const FieldSpec& f = options.fields[i];
      if (f.is_vector) vectors[i] = raw_vector(f);
    }
    TableWriter table(*b_);
    for (size_t i = 0; i < vectors.size(); ++i) {
      const FieldSpec& f = options.fields[i];
      if (f.is_vector) {
        table.offset(f.number, vectors[i]);
      } else {
        uint64_t bits = 0;
        std::memcpy(&bits, f.bytes.data(), f.bytes.size());
        switch (f.width) {
          case 1: table.scalar(f.number, static_cast<uint8_t>(bits)); break;
          case 2: table.scalar(f.number, static_cast<uint16_t>(bits)); break;
          case 4: table.scalar(f.number, static_cast<uint32_t>(bits)); break;
          default: table.scalar(f.number, bits); break;
        }
      }
    }
    return table.end();
  }

  Any raw_vector(const FieldSpec& f) {
    if (f.is_text) return text(std::string(f.bytes.begin(), f.bytes.end()));
    switch (f.width) {
      case 1: return vector(f.bytes);
      case 4: return vector(elements<uint32_t>(f.bytes));
      default: return vector(elements<uint64_t>(f.bytes));
    }
  }
  template <class T>
  static std::vector<T> elements(const std::vector<uint8_t>& bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  const ModelSpec& spec_;
  Builder* b_ = nullptr;
  size_t tail_start_ = 0;
  std::vector<uint8_t> tail_;
  std::vector<Any> buffers_;
};

class ModelBuilder {
 public:
  ModelSpec spec;

  // Refines the tensor just added; converts to its index. Valid while the builder lives.
  class TensorRef {
   public:
    TensorRef(ModelBuilder& m, size_t graph, int index) : m_(m), graph_(graph), index_(index) {}
    operator int() const { return index_; }
    TensorSpec& spec() const { return m_.spec.subgraphs[graph_].tensors[static_cast<size_t>(index_)]; }
    template <class T>
    TensorRef& values(const std::vector<T>& values) {
      return bytes(bytes_of(values));
    }
    TensorRef& bytes(std::vector<uint8_t> bytes) {
      spec().data = std::move(bytes);
      return *this;
    }
    TensorRef& strings(const std::vector<std::string>& strings) { return bytes(string_tensor_bytes(strings)); }
    TensorRef& quantized(float scale, int64_t zero_point) { return quantized({scale}, {zero_point}, 0); }
    TensorRef& quantized(std::vector<float> scales, std::vector<int64_t> zero_points, int32_t axis) {
      spec().scales = std::move(scales);
      spec().zero_points = std::move(zero_points);
      spec().axis = axis;
      return *this;
    }
    TensorRef& signature(std::vector<int32_t> shape) {
      spec().shape_signature = std::move(shape);
      return *this;
    }
    TensorRef& variable() {
      spec().is_variable = true;
      return *this;
    }

   private:
    ModelBuilder& m_;
    size_t graph_;
    int index_;
  };

  // Refines the operator just added.
  class OperatorRef {
   public:
    OperatorRef(ModelBuilder& m, size_t graph, size_t index) : m_(m), graph_(graph), index_(index) {}
    OperatorSpec& spec() const { return m_.spec.subgraphs[graph_].operators[index_]; }
    OperatorRef& version(int32_t version) {
      m_.spec.codes[spec().code].version = version;
      return *this;
    }
    // Union tag of BuiltinOptions; fields follow.
    OperatorRef& options(uint8_t type) {
      spec().options.type = type;
      return *this;
    }
    // Union tag of BuiltinOptions2 (STABLEHLO operators, DILATE, REDUCE_WINDOW).
    OperatorRef& options_2(uint8_t type) {
      spec().options.second = true;
      return options(type);
    }
    template <class T>
    OperatorRef& field(int number, T value) {
      return add({number, sizeof(T), false, false, bytes_of<Plain<T>>({Plain<T>(value)})});
    }
    template <class T>
    OperatorRef& vector(int number, const std::vector<T>& values) {
      return add({number, sizeof(T), true, false, bytes_of(values)});
    }
    OperatorRef& text(int number, const std::string& s) { return add({number, 1, true, true, {s.begin(), s.end()}}); }
    OperatorRef& custom_options(std::vector<uint8_t> bytes) {
      spec().custom_options = std::move(bytes);
      return *this;
    }
    OperatorRef& intermediates(std::vector<int32_t> tensors) {
      spec().intermediates = std::move(tensors);
      return *this;
    }

   private:
    template <class T>
    using Plain = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    OperatorRef& add(FieldSpec field) {
      spec().options.fields.push_back(std::move(field));
      return *this;
    }
    ModelBuilder& m_;
    size_t graph_;
    size_t index_;
  };

  // Tensors, operators, inputs and outputs added from now on belong to a new subgraph; its index. The
  // first one is there from the start.
  int add_subgraph(std::string name) {
    spec.subgraphs.emplace_back();
    spec.subgraphs.back().name = std::move(name);
    return static_cast<int>(spec.subgraphs.size()) - 1;
  }

  TensorRef tensor(TensorType type, std::vector<int32_t> shape, std::string name = {}) {
    TensorSpec t;
    t.type = static_cast<int8_t>(type);
    t.shape = std::move(shape);
    auto& all = spec.subgraphs.back().tensors;
    t.name = name.empty() ? "tensor_" + std::to_string(all.size()) : std::move(name);
    all.push_back(std::move(t));
    return {*this, spec.subgraphs.size() - 1, static_cast<int>(all.size()) - 1};
  }

  OperatorRef op(BuiltinOperator code, std::vector<int32_t> inputs, std::vector<int32_t> outputs) {
    const int32_t number = static_cast<int32_t>(code);
    spec.codes.push_back({static_cast<int8_t>(number < 127 ? number : 127), number, 1, {}});
    return add_op(std::move(inputs), std::move(outputs));
  }

  OperatorRef custom_op(std::string name, std::vector<int32_t> inputs, std::vector<int32_t> outputs) {
    spec.codes.push_back({32, 32, 1, std::move(name)});
    return add_op(std::move(inputs), std::move(outputs));
  }

  ModelBuilder& inputs(std::vector<int32_t> tensors) {
    spec.subgraphs.back().inputs = std::move(tensors);
    return *this;
  }
  ModelBuilder& outputs(std::vector<int32_t> tensors) {
    spec.subgraphs.back().outputs = std::move(tensors);
    return *this;
  }
  ModelBuilder& signature(std::string key, uint32_t subgraph, std::vector<std::pair<std::string, uint32_t>> inputs,
                          std::vector<std::pair<std::string, uint32_t>> outputs) {
    spec.signatures.push_back({std::move(key), subgraph, std::move(inputs), std::move(outputs)});
    return *this;
  }

  FileBytes build() const { return ModelWriter(spec).write(); }

 private:
  OperatorRef add_op(std::vector<int32_t> inputs, std::vector<int32_t> outputs) {
    OperatorSpec o;
    o.code = static_cast<uint32_t>(spec.codes.size() - 1);  // one code an operator: versions stay apart
    o.inputs = std::move(inputs);
    o.outputs = std::move(outputs);
    auto& all = spec.subgraphs.back().operators;
    all.push_back(std::move(o));
    return {*this, spec.subgraphs.size() - 1, all.size() - 1};
  }
};

}  // namespace oneweight::testing

#endif  // ONEWEIGHT_TESTS_SUPPORT_MODEL_BUILDER_H
