// From bytes to ModelDef: the flatbuffers verifier first, then everything it cannot know. After this no
// structure is read from the file again.
#ifndef ONEWEIGHT_MODEL_DECODE_H
#define ONEWEIGHT_MODEL_DECODE_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oneweight/base/status.h"
#include "oneweight/model/definitions.h"
#include "oneweight/schema/builtin_operator.h"
#include "oneweight/schema/options.h"
#include "oneweight/schema/tables.h"

namespace oneweight {
inline namespace v1 {

// Decodes one file. The bytes must stay where they are: constants become spans of them.
//
// Memory: tables of the file may be shared (thousands of operators may name one vector), so the decoded
// size is not bounded by the file's by itself. It is kept below 64 KiB + 64 times the first 16 MiB of the
// file + 4 times the rest; real models need less than 20 times their structure.
class ModelDecoder {
 public:
  explicit ModelDecoder(std::span<const std::byte> file) : file_(file) {
    const uint64_t size = file.size();
    const uint64_t head = std::min<uint64_t>(size, uint64_t{16} << 20);
    limit_ = (uint64_t{64} << 10) + 64 * head + 4 * (size - head);
  }

  // Errors: invalid_model; unsupported for what only a newer schema can mean.
  Status decode(ModelDef* model) {
    ONEWEIGHT_RETURN_IF_ERROR(verify());
    model->version = root_->version();
    if (model->version != schema::kSchemaVersion) {
      return make_error(ErrorCode::unsupported, "the schema version is %u; only version %u is known", model->version,
                        schema::kSchemaVersion);
    }
    ONEWEIGHT_RETURN_IF_ERROR(copy_text(root_->description(), &model->description));
    if (root_->subgraphs().size() == 0) return invalid("the model has no subgraphs");
    ONEWEIGHT_RETURN_IF_ERROR(decode_buffers());
    const auto graphs = root_->subgraphs();
    ONEWEIGHT_RETURN_IF_ERROR(charge(graphs.size() * sizeof(SubgraphDef)));
    model->subgraphs.resize(graphs.size());
    for (uint32_t i = 0; i < graphs.size(); ++i) {
      where_ = format_text("subgraph %u", i);
      ONEWEIGHT_RETURN_IF_ERROR(decode_subgraph(graphs[i], &model->subgraphs[i]));
    }
    ONEWEIGHT_RETURN_IF_ERROR(decode_signatures(model));
    ONEWEIGHT_RETURN_IF_ERROR(decode_metadata(model));
    model->structure_bytes = used_ - buffers_.size() * sizeof(buffers_[0]);
    return Status();
  }

 private:
  using Span = std::span<const std::byte>;
  struct BufferRange {
    Span data;
  };

  ONEWEIGHT_PRINTF(1, 2) static Status invalid(const char* format, ...) {
    std::va_list args;
    va_start(args, format);
    Status status(ErrorCode::invalid_model, format_message(format, args));
    va_end(args);
    return status;
  }

  Status charge(uint64_t bytes) {
    if (bytes > limit_ - used_) {
      return invalid("the decoded structure would need more than %llu bytes, too many for a file of %zu bytes",
                     static_cast<unsigned long long>(limit_), file_.size());
    }
    used_ += bytes;
    return Status();
  }

  Status copy_text(std::string_view text, std::string* to) {
    ONEWEIGHT_RETURN_IF_ERROR(charge(text.size()));
    to->assign(text);
    return Status();
  }

  template <class T>
  Status copy_values(const schema::Values<T>& values, std::vector<T>* to) {
    ONEWEIGHT_RETURN_IF_ERROR(charge(uint64_t{values.size()} * sizeof(T)));
    to->resize(values.size());
    if (!to->empty()) std::memcpy(to->data(), values.data(), to->size() * sizeof(T));
    return Status();
  }

  Status verify() {
    if (file_.size() < 8) return invalid("%zu bytes are too few for a model", file_.size());
    const char* id = reinterpret_cast<const char*>(file_.data()) + 4;
    if (std::memcmp(id, schema::kFileIdentifier, 4) != 0) {
      char shown[5] = {};
      for (int i = 0; i < 4; ++i) shown[i] = id[i] >= 32 && id[i] < 127 ? id[i] : '?';
      return invalid("not a .tflite model: the file identifier is '%s' instead of '%s'", shown,
                     schema::kFileIdentifier);
    }
    // The flatbuffer itself is below 2 GiB; what lies beyond are buffers addressed by file offset.
    const size_t size = std::min<size_t>(file_.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
    const uint8_t* base = reinterpret_cast<const uint8_t*>(file_.data());
    // Every honest table takes at least four bytes of its own.
    const auto max_tables = static_cast<flatbuffers::uoffset_t>(size / 4 + 1);
    schema::Verifier verifier(base, size, 64, max_tables);
    if (!verifier.verify_root<schema::Model>()) {
      return invalid("the file is damaged or cut off: an offset leads outside its %zu bytes", file_.size());
    }
    root_ = reinterpret_cast<const schema::Model*>(base + schema::load<uint32_t>(base));
    return Status();
  }

  // Bytes [offset, offset + size) of the file, or false.
  bool range(uint64_t offset, uint64_t size, Span* out) const {
    if (offset > file_.size() || size > file_.size() - offset) return false;
    *out = file_.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
    return true;
  }

  Status decode_buffers() {
    const auto buffers = root_->buffers();
    ONEWEIGHT_RETURN_IF_ERROR(charge(buffers.size() * sizeof(BufferRange)));
    buffers_.resize(buffers.size());
    for (uint32_t i = 0; i < buffers.size(); ++i) {
      const schema::Buffer& buffer = buffers[i];
      const auto data = buffer.data();
      BufferRange& to = buffers_[i];
      if (data.size() != 0) {
        to.data = {reinterpret_cast<const std::byte*>(data.data()), data.size()};
      } else if (buffer.offset() > 1) {  // 0 and 1 are placeholders
        if (!range(buffer.offset(), buffer.size(), &to.data)) {
          return invalid("buffer %u: offset %llu and size %llu reach beyond the end of the file of %zu bytes", i,
                         static_cast<unsigned long long>(buffer.offset()),
                         static_cast<unsigned long long>(buffer.size()), file_.size());
        }
      }
    }
    return Status();
  }

  Status decode_subgraph(const schema::SubGraph& from, SubgraphDef* graph) {
    ONEWEIGHT_RETURN_IF_ERROR(copy_text(from.name(), &graph->name));
    const auto tensors = from.tensors();
    ONEWEIGHT_RETURN_IF_ERROR(charge(tensors.size() * sizeof(TensorDef)));
    graph->tensors.resize(tensors.size());
    const std::string here = where_;
    for (uint32_t i = 0; i < tensors.size(); ++i) {
      const std::string_view name = tensors[i].name().substr(0, 200);
      where_ = format_text("%s, tensor %u ('%.*s')", here.c_str(), i, static_cast<int>(name.size()), name.data());
      ONEWEIGHT_RETURN_IF_ERROR(decode_tensor(tensors[i], &graph->tensors[i]));
    }
    for (uint32_t i = 0; i < tensors.size(); ++i) {  // these name other tensors of the subgraph
      where_ = format_text("%s, tensor %u", here.c_str(), i);
      ONEWEIGHT_RETURN_IF_ERROR(check_block_tensors(*graph, graph->tensors[i].quantization));
    }
    where_ = here;
    ONEWEIGHT_RETURN_IF_ERROR(copy_values(from.inputs(), &graph->inputs));
    ONEWEIGHT_RETURN_IF_ERROR(check_indices(*graph, graph->inputs, "input", false));
    ONEWEIGHT_RETURN_IF_ERROR(copy_values(from.outputs(), &graph->outputs));
    ONEWEIGHT_RETURN_IF_ERROR(check_indices(*graph, graph->outputs, "output", false));
    const auto operators = from.operators();
    ONEWEIGHT_RETURN_IF_ERROR(charge(operators.size() * sizeof(OperatorDef)));
    graph->operators.resize(operators.size());
    for (uint32_t i = 0; i < operators.size(); ++i) {
      where_ = format_text("%s, operator %u", here.c_str(), i);
      ONEWEIGHT_RETURN_IF_ERROR(decode_operator(operators[i], *graph, &graph->operators[i]));
    }
    decide_constants(graph);
    return Status();
  }

  // `indices` name tensors of `graph`; -1 only where the format lets one be left out.
  Status check_indices(const SubgraphDef& graph, const std::vector<int32_t>& indices, const char* what,
                       bool may_be_left_out) const {
    for (size_t i = 0; i < indices.size(); ++i) {
      const int32_t index = indices[i];
      if (index == -1 && may_be_left_out) continue;
      if (index < 0 || static_cast<size_t>(index) >= graph.tensors.size()) {
        return invalid("%s: %s %zu is tensor %d, but the subgraph has %zu tensors", where_.c_str(), what, i, index,
                       graph.tensors.size());
      }
    }
    return Status();
  }

  Status decode_tensor(const schema::Tensor& from, TensorDef* tensor) {
    ONEWEIGHT_RETURN_IF_ERROR(copy_text(from.name(), &tensor->name));
    if (from.type() < 0) return invalid("%s: the type number is %d", where_.c_str(), from.type());
    if (from.type() >= kTensorTypeCount) {
      return make_error(ErrorCode::unsupported, "%s: the type number is %d; types up to %d are known", where_.c_str(),
                        from.type(), kTensorTypeCount - 1);
    }
    tensor->type = static_cast<TensorType>(from.type());
    tensor->is_variable = from.is_variable();
    ONEWEIGHT_RETURN_IF_ERROR(decode_shape(from, tensor));
    ONEWEIGHT_RETURN_IF_ERROR(decode_data(from, tensor));
    if (const auto* quantization = from.quantization()) {
      ONEWEIGHT_RETURN_IF_ERROR(decode_quantization(*quantization, *tensor, &tensor->quantization));
    }
    if (const auto* sparsity = from.sparsity()) ONEWEIGHT_RETURN_IF_ERROR(decode_sparsity(*sparsity, tensor));
    return check_constant(*tensor);
  }

  Status decode_shape(const schema::Tensor& from, TensorDef* tensor) const {
    const auto shape = from.shape();
    const auto signature = from.shape_signature();
    if (shape.size() > kMaxRank) {
      return invalid("%s: the rank is %u; at most %d is possible", where_.c_str(), shape.size(), kMaxRank);
    }
    bool unknown = false;
    for (uint32_t i = 0; i < shape.size(); ++i) {
      if (shape[i] < -1) return invalid("%s: extent %u is %d", where_.c_str(), i, shape[i]);
      unknown |= shape[i] == -1;
      tensor->shape.push_back(shape[i] == -1 ? 1 : shape[i]);
    }
    if (signature.size() == shape.size()) {
      for (uint32_t i = 0; i < signature.size(); ++i) {
        if (signature[i] < -1) {
          return invalid("%s: extent %u of the shape signature is %d", where_.c_str(), i, signature[i]);
        }
        tensor->shape_signature.push_back(signature[i]);
      }
    }
    if (unknown && tensor->shape_signature.rank() == 0) {
      for (uint32_t i = 0; i < shape.size(); ++i) tensor->shape_signature.push_back(shape[i]);
    }
    tensor->has_rank = from.has_rank() || shape.size() != 0;
    if (tensor->shape.elements() < 0 ||
        (tensor_type_bits(tensor->type) != 0 && tensor->shape.bytes(tensor->type) < 0)) {
      return invalid("%s: the size of shape %s of %s does not fit 64 bits", where_.c_str(),
                     tensor->shape.to_string().c_str(), tensor_type_name(tensor->type));
    }
    return Status();
  }

  Status decode_data(const schema::Tensor& from, TensorDef* tensor) const {
    if (from.external_buffer() != 0) {
      return make_error(ErrorCode::unsupported, "%s: the data lies in another file (external buffer %u)",
                        where_.c_str(), from.external_buffer());
    }
    tensor->buffer = from.buffer();
    if (tensor->buffer >= buffers_.size()) {
      if (tensor->buffer == 0) return Status();  // "no data", in a file without buffers
      return invalid("%s: the data is in buffer %u, but the model has %zu buffers", where_.c_str(), tensor->buffer,
                     buffers_.size());
    }
    tensor->data = buffers_[tensor->buffer].data;
    return Status();
  }

  Status decode_quantization(const schema::QuantizationParameters& from, const TensorDef& tensor, Quantization* to) {
    if (from.details_type() == schema::QuantizationParameters::kMultiAxis) {
      return make_error(ErrorCode::unsupported, "%s: quantisation along several axes is not supported", where_.c_str());
    }
    if (const auto* blocks = from.blockwise()) {
      to->block_scales_tensor = blocks->scales();
      to->block_zero_points_tensor = blocks->zero_points();
      to->block_size = blocks->block_size();
      if (to->block_size < 0) return invalid("%s: the block size is %d", where_.c_str(), to->block_size);
    }
    const auto scales = from.scale();
    const auto zero_points = from.zero_point();
    const uint32_t n = scales.size();
    if (n == 0) return Status();  // only a recorded range, or nothing
    const int rank = tensor.shape.rank();
    to->axis = from.axis();
    if (n > 1) {
      if (rank == 1) to->axis = 0;  // some converters give a bias its filter's axis
      if (to->axis < 0 || to->axis >= rank) {
        return invalid("%s: the quantised axis is %d, but the rank is %d", where_.c_str(), to->axis, rank);
      }
      if (tensor.shape[to->axis] != n) {
        return invalid("%s: %u scales for %lld indices of axis %d", where_.c_str(), n,
                       static_cast<long long>(tensor.shape[to->axis]), to->axis);
      }
    } else if (to->axis < 0 || to->axis >= rank) {
      to->axis = 0;  // means nothing with one scale
    }
    if (zero_points.size() > 1 && zero_points.size() != n) {
      return invalid("%s: %u zero points for %u scales", where_.c_str(), zero_points.size(), n);
    }
    ONEWEIGHT_RETURN_IF_ERROR(copy_values(scales, &to->scales));
    for (uint32_t i = 0; i < n; ++i) {
      if (!std::isfinite(to->scales[i]) || to->scales[i] < 0) {
        return invalid("%s: scale %u is %g", where_.c_str(), i, static_cast<double>(to->scales[i]));
      }
    }
    ONEWEIGHT_RETURN_IF_ERROR(charge(uint64_t{n} * sizeof(int64_t)));
    to->zero_points.resize(n);
    const bool wide = tensor.type == TensorType::int64 || tensor.type == TensorType::uint64;
    for (uint32_t i = 0; i < n && zero_points.size() != 0; ++i) {
      const int64_t z = zero_points[zero_points.size() == 1 ? 0 : i];
      if (!wide && z != static_cast<int32_t>(z)) {
        return invalid("%s: zero point %u is %lld, outside 32 bits", where_.c_str(), i, static_cast<long long>(z));
      }
      to->zero_points[i] = z;
    }
    return Status();
  }

  Status check_block_tensors(const SubgraphDef& graph, const Quantization& q) const {
    if (q.block_size == 0) return Status();
    const auto count = static_cast<int64_t>(graph.tensors.size());
    if (q.block_scales_tensor < 0 || q.block_scales_tensor >= count || q.block_zero_points_tensor < -1 ||
        q.block_zero_points_tensor >= count) {
      return invalid(
          "%s: the scales and zero points of its blocks are tensors %d and %d, but the subgraph has %lld "
          "tensors",
          where_.c_str(), q.block_scales_tensor, q.block_zero_points_tensor, static_cast<long long>(count));
    }
    return Status();
  }

  Status decode_sparsity(const schema::SparsityParameters& from, TensorDef* tensor) {
    ONEWEIGHT_RETURN_IF_ERROR(charge(sizeof(Sparsity)));
    auto sparsity = std::make_unique<Sparsity>();
    ONEWEIGHT_RETURN_IF_ERROR(copy_values(from.traversal_order(), &sparsity->traversal_order));
    ONEWEIGHT_RETURN_IF_ERROR(copy_values(from.block_map(), &sparsity->block_map));
    const auto dimensions = from.dimensions();
    const size_t rank = static_cast<size_t>(tensor->shape.rank());
    const size_t count = sparsity->traversal_order.size();
    if (dimensions.size() != count || count != rank + sparsity->block_map.size() || count > 2 * kMaxRank) {
      return invalid(
          "%s: sparse with rank %zu, %zu dimensions in the traversal order, %zu in the block map and %u "
          "described",
          where_.c_str(), rank, count, sparsity->block_map.size(), dimensions.size());
    }
    uint32_t seen = 0;
    for (const int32_t d : sparsity->traversal_order) {
      if (d < 0 || static_cast<size_t>(d) >= count || (seen >> d & 1) != 0) {
        return invalid("%s: the sparse traversal order is not a permutation (it holds %d)", where_.c_str(), d);
      }
      seen |= uint32_t{1} << d;
    }
    for (const int32_t axis : sparsity->block_map) {
      if (axis < 0 || static_cast<size_t>(axis) >= rank) {
        return invalid("%s: the sparse block map names axis %d of %zu", where_.c_str(), axis, rank);
      }
    }
    ONEWEIGHT_RETURN_IF_ERROR(charge(count * sizeof(SparsityDimension)));
    sparsity->dimensions.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      const schema::DimensionMetadata& dimension = dimensions[i];
      SparsityDimension& to = sparsity->dimensions[i];
      if (dimension.format() != 0 && dimension.format() != 1) {
        return invalid("%s: sparse dimension %u has format %d", where_.c_str(), i, dimension.format());
      }
      to.sparse = dimension.sparse();
      to.dense_size = to.sparse ? 0 : dimension.dense_size();
      if (to.dense_size < 0) return invalid("%s: sparse dimension %u has size %d", where_.c_str(), i, to.dense_size);
      if (!to.sparse) continue;
      ONEWEIGHT_RETURN_IF_ERROR(copy_index_vector(dimension, 0, &to.segments));
      ONEWEIGHT_RETURN_IF_ERROR(copy_index_vector(dimension, 1, &to.indices));
      if (to.segments.empty()) return invalid("%s: sparse dimension %u has no segments", where_.c_str(), i);
    }
    tensor->sparsity = std::move(sparsity);
    return Status();
  }

  Status copy_index_vector(const schema::DimensionMetadata& from, int which, std::vector<int32_t>* to) {
    switch (from.index_type(which)) {
      case schema::DimensionMetadata::kNone: return Status();
      case schema::DimensionMetadata::kInt32: return widen(from.index_values<int32_t>(which), to);
      case schema::DimensionMetadata::kUint16: return widen(from.index_values<uint16_t>(which), to);
      case schema::DimensionMetadata::kUint8: return widen(from.index_values<uint8_t>(which), to);
      default: return invalid("%s: a sparse index vector has type number %u", where_.c_str(), from.index_type(which));
    }
  }

  template <class T>
  Status widen(const schema::Values<T>& from, std::vector<int32_t>* to) {
    ONEWEIGHT_RETURN_IF_ERROR(charge(uint64_t{from.size()} * sizeof(int32_t)));
    to->resize(from.size());
    for (uint32_t i = 0; i < from.size(); ++i) (*to)[i] = from[i];
    return Status();
  }

  // Length of a constant against its shape.
  Status check_constant(const TensorDef& tensor) {
    if (tensor.data.empty()) return Status();
    if (tensor.is_variable) return invalid("%s: a variable that has constant data", where_.c_str());
    if (tensor.sparsity) return Status();
    if (tensor.type == TensorType::string) return check_strings(tensor);
    if (tensor_type_bits(tensor.type) == 0) return Status();  // resources: the operator knows
    const int64_t want = tensor.shape.bytes(tensor.type);
    if (static_cast<uint64_t>(want) != tensor.data.size()) {
      return invalid("%s: shape %s of %s takes %lld bytes, but buffer %u has %zu", where_.c_str(),
                     tensor.shape.to_string().c_str(), tensor_type_name(tensor.type), static_cast<long long>(want),
                     tensor.buffer, tensor.data.size());
    }
    return Status();
  }

  // Strings: int32 count, count + 1 offsets from the start of the buffer, characters.
  Status check_strings(const TensorDef& tensor) {
    const Span data = tensor.data;
    const uint64_t count = data.size() >= 4 ? schema::load<uint32_t>(data.data()) : 0;
    const uint64_t header = 4 * (count + 2);
    bool good = data.size() >= 8 && header <= data.size();
    if (good && (scanned_ += header) > limit_) {  // many tensors may share one table
      return invalid("%s: too many tensors of strings for a file of %zu bytes", where_.c_str(), file_.size());
    }
    uint64_t last = header;
    for (uint64_t i = 0; good && i <= count; ++i) {
      const uint32_t offset = schema::load<uint32_t>(data.data() + 4 * (i + 1));
      good = offset >= last && offset <= data.size();
      last = offset;
    }
    if (good && count == static_cast<uint64_t>(tensor.shape.elements())) return Status();
    return invalid("%s: the table of %llu strings for shape %s in buffer %u of %zu bytes is damaged", where_.c_str(),
                   static_cast<unsigned long long>(count), tensor.shape.to_string().c_str(), tensor.buffer,
                   data.size());
  }

  Status decode_operator(const schema::Operator& from, const SubgraphDef& graph, OperatorDef* op) {
    const auto codes = root_->operator_codes();
    if (from.opcode_index() >= codes.size()) {
      return invalid("%s: operator code %u, but the model lists %u", where_.c_str(), from.opcode_index(), codes.size());
    }
    const schema::OperatorCode& code = codes[from.opcode_index()];
    // Files older than the 32-bit field have only the first; newer ones put min(code, 127) there.
    const int32_t builtin = std::max<int32_t>(code.deprecated_builtin_code(), code.builtin_code());
    if (builtin < 0) return invalid("%s: the operator number is %d", where_.c_str(), builtin);
    if (builtin >= kBuiltinOperatorCount) {
      return make_error(ErrorCode::unsupported, "%s: the operator number is %d; numbers up to %d are known",
                        where_.c_str(), builtin, kBuiltinOperatorCount - 1);
    }
    op->code = static_cast<BuiltinOperator>(builtin);
    op->version = code.version();
    if (op->version < 1) return invalid("%s: the version is %d", where_.c_str(), op->version);
    if (op->code == BuiltinOperator::custom) {
      if (code.custom_code().empty()) return invalid("%s: a custom operator without a name", where_.c_str());
      ONEWEIGHT_RETURN_IF_ERROR(copy_text(code.custom_code(), &op->custom_code));
    }
    const std::string_view name = op->name().substr(0, 200);
    where_ += format_text(" (%.*s)", static_cast<int>(name.size()), name.data());
    ONEWEIGHT_RETURN_IF_ERROR(copy_values(from.inputs(), &op->inputs));
    ONEWEIGHT_RETURN_IF_ERROR(check_indices(graph, op->inputs, "input", true));
    ONEWEIGHT_RETURN_IF_ERROR(copy_values(from.outputs(), &op->outputs));
    ONEWEIGHT_RETURN_IF_ERROR(check_indices(graph, op->outputs, "output", false));
    ONEWEIGHT_RETURN_IF_ERROR(copy_values(from.intermediates(), &op->intermediates));
    ONEWEIGHT_RETURN_IF_ERROR(check_indices(graph, op->intermediates, "intermediate", true));
    for (const int32_t output : op->outputs) {
      if (!graph.tensors[output].data.empty()) {
        return invalid("%s: writes tensor %d, which has constant data", where_.c_str(), output);
      }
    }
    ONEWEIGHT_RETURN_IF_ERROR(decode_custom_options(from, op));
    ONEWEIGHT_RETURN_IF_ERROR(
        decode_options_of(from.options(), from.options_type(), schema::OptionsUnion::options, op));
    return op->options.type != 0
               ? Status()
               : decode_options_of(from.options_2(), from.options_2_type(), schema::OptionsUnion::options_2, op);
  }

  Status decode_custom_options(const schema::Operator& from, OperatorDef* op) {
    const auto small = from.custom_options();
    Span data;
    if (small.size() != 0) {
      data = {reinterpret_cast<const std::byte*>(small.data()), small.size()};
    } else if (from.large_custom_options_offset() > 1) {
      if (!range(from.large_custom_options_offset(), from.large_custom_options_size(), &data)) {
        return invalid(
            "%s: custom options at offset %llu with size %llu reach beyond the end of the file of %zu "
            "bytes",
            where_.c_str(), static_cast<unsigned long long>(from.large_custom_options_offset()),
            static_cast<unsigned long long>(from.large_custom_options_size()), file_.size());
      }
    }
    ONEWEIGHT_RETURN_IF_ERROR(charge(data.size()));
    op->custom_options.assign(data.begin(), data.end());
    return Status();
  }

  Status decode_options_of(const uint8_t* table, uint8_t type, schema::OptionsUnion in, OperatorDef* op) {
    if (table == nullptr || type == 0) return Status();
    const auto position = static_cast<size_t>(table - reinterpret_cast<const uint8_t*>(file_.data()));
    Status charged;
    const auto pay = [&](uint64_t bytes) { return (charged = charge(bytes)).ok(); };
    if (schema::decode_options(file_, position, in, type, pay, &op->options)) return Status();
    if (!charged.ok()) return charged;
    return invalid("%s: its options (type %u) are damaged", where_.c_str(), type);
  }

  // A tensor is constant when it has data, or when it has no elements and nobody could ever write it.
  void decide_constants(SubgraphDef* graph) const {
    std::vector<bool> written(graph->tensors.size());
    for (const int32_t i : graph->inputs) {
      written[i] = true;
      graph->tensors[i].data = {};  // the caller feeds it
    }
    for (const OperatorDef& op : graph->operators)
      for (const int32_t i : op.outputs) written[i] = true;
    for (size_t i = 0; i < graph->tensors.size(); ++i) {
      TensorDef& tensor = graph->tensors[i];
      const bool empty = tensor.buffer < buffers_.size() && tensor.buffer != 0 && tensor.shape.elements() == 0;
      tensor.is_constant = !tensor.data.empty() || (empty && !written[i] && !tensor.is_variable);
    }
  }

  Status decode_signatures(ModelDef* model) {
    const auto signatures = root_->signature_defs();
    ONEWEIGHT_RETURN_IF_ERROR(charge(signatures.size() * sizeof(SignatureDef)));
    model->signatures.resize(signatures.size());
    for (uint32_t i = 0; i < signatures.size(); ++i) {
      const schema::SignatureDefTable& from = signatures[i];
      SignatureDef& to = model->signatures[i];
      ONEWEIGHT_RETURN_IF_ERROR(copy_text(from.signature_key(), &to.key));
      where_ = format_text("signature %u ('%s')", i, to.key.substr(0, 200).c_str());
      to.subgraph = from.subgraph_index();
      if (to.subgraph >= model->subgraphs.size()) {
        return invalid("%s: subgraph %u, but the model has %zu", where_.c_str(), to.subgraph, model->subgraphs.size());
      }
      const SubgraphDef& graph = model->subgraphs[to.subgraph];
      ONEWEIGHT_RETURN_IF_ERROR(decode_arguments(from.inputs(), graph, "input", &to.inputs));
      ONEWEIGHT_RETURN_IF_ERROR(decode_arguments(from.outputs(), graph, "output", &to.outputs));
    }
    return Status();
  }

  Status decode_arguments(const schema::Tables<schema::TensorMap>& from, const SubgraphDef& graph, const char* what,
                          std::vector<std::pair<std::string, int32_t>>* to) {
    ONEWEIGHT_RETURN_IF_ERROR(charge(from.size() * sizeof((*to)[0])));
    to->resize(from.size());
    for (uint32_t i = 0; i < from.size(); ++i) {
      ONEWEIGHT_RETURN_IF_ERROR(copy_text(from[i].name(), &(*to)[i].first));
      const uint32_t index = from[i].tensor_index();
      if (index >= graph.tensors.size()) {
        return invalid("%s: %s %u is tensor %u, but the subgraph has %zu tensors", where_.c_str(), what, i, index,
                       graph.tensors.size());
      }
      (*to)[i].second = static_cast<int32_t>(index);
    }
    return Status();
  }

  Status decode_metadata(ModelDef* model) {
    const auto metadata = root_->metadata();
    ONEWEIGHT_RETURN_IF_ERROR(charge(metadata.size() * sizeof(MetadataDef)));
    model->metadata.resize(metadata.size());
    for (uint32_t i = 0; i < metadata.size(); ++i) {
      MetadataDef& to = model->metadata[i];
      ONEWEIGHT_RETURN_IF_ERROR(copy_text(metadata[i].name(), &to.name));
      const uint32_t buffer = metadata[i].buffer();
      if (buffer >= buffers_.size()) {
        return invalid("metadata %u ('%s'): buffer %u, but the model has %zu buffers", i,
                       to.name.substr(0, 200).c_str(), buffer, buffers_.size());
      }
      to.data = buffers_[buffer].data;
    }
    return Status();
  }

  Span file_;
  uint64_t limit_ = 0;
  uint64_t used_ = 0;
  uint64_t scanned_ = 0;  // bytes of string tables read
  const schema::Model* root_ = nullptr;
  std::vector<BufferRange> buffers_;
  std::string where_;  // of what is being decoded, for messages
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_MODEL_DECODE_H
