#include "model_copy.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <bit>
#include <cstdarg>
#include <cstring>
#include <limits>
#include <new>
#include <set>
#include <string_view>
#include <tuple>

#include "oneweight/base/types.h"
#include "oneweight/schema/options.h"
#include "oneweight/schema/tables.h"

namespace program {

using oneweight::ErrorCode;
using oneweight::make_error;

namespace {

namespace schema = oneweight::schema;

// ---- The TFLite schema as data: what the fields of each table hold, by number.

struct TableForm;
struct Field {
  enum Kind : uint8_t { number, vector, text, table, tables, choice, options } kind;
  uint8_t width = 0;                    // bytes of a number, or of a vector's element; options: 1 or 2, the union
  std::span<const TableForm* const> of = {};  // of `choice`: by the number in the field before, from 1
};
struct TableForm {
  const char* name;
  std::span<const Field> fields;
};

constexpr Field kByte{Field::number, 1}, kInt{Field::number, 4}, kLong{Field::number, 8};
constexpr Field kBytes{Field::vector, 1}, kShorts{Field::vector, 2}, kInts{Field::vector, 4}, kLongs{Field::vector, 8};
constexpr Field kText{Field::text};
template <const TableForm& kForm> inline constexpr const TableForm* kOnly[] = {&kForm};
template <const TableForm& kForm> constexpr Field one() { return {Field::table, 0, kOnly<kForm>}; }
template <const TableForm& kForm> constexpr Field many() { return {Field::tables, 0, kOnly<kForm>}; }

constexpr Field kCustomQuantizationFields[] = {kBytes};
constexpr TableForm kCustomQuantization{"CustomQuantization", kCustomQuantizationFields};
constexpr Field kBlockwiseQuantizationFields[] = {kInt, kInt, kInt, kInt};
constexpr TableForm kBlockwiseQuantization{"BlockwiseQuantization", kBlockwiseQuantizationFields};
constexpr Field kMultiAxisQuantizationFields[] = {kInt, kInt, kInt, kInts};
constexpr TableForm kMultiAxisQuantization{"MultiAxisQuantization", kMultiAxisQuantizationFields};
constexpr const TableForm* kDetails[] = {&kCustomQuantization, &kBlockwiseQuantization, &kMultiAxisQuantization};
constexpr Field kQuantizationFields[] = {kInts, kInts, kInts, kLongs, kByte, {Field::choice, 0, kDetails}, kInt};
constexpr TableForm kQuantization{"QuantizationParameters", kQuantizationFields};

constexpr Field kIntVectorFields[] = {kInts}, kShortVectorFields[] = {kShorts}, kByteVectorFields[] = {kBytes};
constexpr TableForm kIntVector{"Int32Vector", kIntVectorFields}, kShortVector{"Uint16Vector", kShortVectorFields},
    kByteVector{"Uint8Vector", kByteVectorFields};
constexpr const TableForm* kIndexVectors[] = {&kIntVector, &kShortVector, &kByteVector};
constexpr Field kDimensionFields[] = {kByte, kInt, kByte, {Field::choice, 0, kIndexVectors}, kByte, {Field::choice, 0, kIndexVectors}};
constexpr TableForm kDimension{"DimensionMetadata", kDimensionFields};
constexpr Field kSparsityFields[] = {kInts, kInts, many<kDimension>()};
constexpr TableForm kSparsity{"SparsityParameters", kSparsityFields};

constexpr Field kVariantFields[] = {kInts, kByte, kByte};
constexpr TableForm kVariant{"VariantSubType", kVariantFields};
constexpr Field kTensorFields[] = {kInts, kByte, kInt, kText, one<kQuantization>(), kByte, one<kSparsity>(), kInts, kByte, many<kVariant>(), kInt};
constexpr TableForm kTensor{"Tensor", kTensorFields};
constexpr Field kOperatorFields[] = {kInt, kInts, kInts, kByte, {Field::options, 1}, kBytes, kByte, kBytes, kInts, kLong, kLong, kByte, {Field::options, 2}, kInt};
constexpr TableForm kOperator{"Operator", kOperatorFields};
constexpr Field kSubgraphFields[] = {many<kTensor>(), kInts, kInts, many<kOperator>(), kText, kInt};
constexpr TableForm kSubgraph{"SubGraph", kSubgraphFields};
constexpr Field kOperatorCodeFields[] = {kByte, kText, kInt, kInt};
constexpr TableForm kOperatorCode{"OperatorCode", kOperatorCodeFields};
constexpr Field kBufferFields[] = {kBytes, kLong, kLong};
constexpr TableForm kBuffer{"Buffer", kBufferFields};
constexpr Field kMetadataFields[] = {kText, kInt};
constexpr TableForm kMetadata{"Metadata", kMetadataFields}, kArgument{"TensorMap", kMetadataFields};
constexpr Field kSignatureFields[] = {many<kArgument>(), many<kArgument>(), kText, kText, kInt};
constexpr TableForm kSignature{"SignatureDef", kSignatureFields};
constexpr Field kExternalGroupFields[] = {kText};
constexpr TableForm kExternalGroup{"ExternalBufferGroup", kExternalGroupFields};
constexpr Field kExternalBufferFields[] = {kInt, kInt, kLong, kLong, kText};
constexpr TableForm kExternalBuffer{"ExternalBuffer", kExternalBufferFields};
constexpr Field kModelFields[] = {kInt, many<kOperatorCode>(), many<kSubgraph>(), kText, many<kBuffer>(), kInts, many<kMetadata>(),
                                  many<kSignature>(), many<kExternalGroup>(), many<kExternalBuffer>()};
constexpr TableForm kModel{"Model", kModelFields};

// Field numbers that are used below.
namespace tensor { enum { type = 1, buffer = 2, name = 3, quantization = 4, shape = 0, shape_signature = 7, has_rank = 8 }; }
namespace quantization { enum { scale = 2, zero_point = 3, axis = 6 }; }
namespace op { enum { code = 0, inputs = 1, outputs = 2, options_type = 3, options = 4, large_offset = 9, large_size = 10 }; }
namespace code { enum { deprecated_builtin = 0, version = 2, builtin = 3 }; }
namespace graph { enum { tensors = 0, operators = 3 }; }
namespace buffer { enum { data = 0, offset = 1, size = 2 }; }
namespace model { enum { codes = 1, subgraphs = 2, buffers = 4, metadata = 6 }; }

// Fields of the options tables in BuiltinOptions and BuiltinOptions2, by type from 1. Whether a field of a newer schema is an
// offset cannot be seen, so a table that has one is not copied.
constexpr uint8_t kOptionsFields[] = {7, 7, 3, 1, 6, 3, 2, 6, 1, 2, 2, 1, 4, 5, 4, 1, 1, 3, 1, 1, 1, 0, 2, 0, 0, 0, 1, 2, 1, 1, 3, 6,
                                      0, 0, 1, 0, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 5, 1, 0, 0, 0, 0, 1, 0, 1, 4, 2, 0, 1, 0, 0, 2,
                                      0, 0, 0, 0, 6, 4, 6, 0, 0, 2, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 2, 1, 0, 0,
                                      0, 0, 0, 0, 3, 2, 1, 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
constexpr uint8_t kOptions2Fields[] = {1, 1, 3, 17, 6, 2, 7, 2, 1, 3, 1, 5, 6, 3, 2, 6, 1, 0, 1, 1, 5, 0, 1};

constexpr int32_t kDequantizeVersion = 3;  // the first that takes half
constexpr size_t kAlignment = 16;  // of weights, as the schema asks; more is beyond flatbuffers
// Bytes behind the last weights: some kernels load whole vectors there.
constexpr size_t kBehind = 16;

template <class T>
T load(const std::byte* p) {
  return schema::load<T>(p);
}
template <class T>
void store(std::byte* p, T value) {
  std::memcpy(p, &value, sizeof value);
}

// ---- The archive behind a model

// Moves an archive's bytes to another place of the file. Offsets in ZIP archives count from the file's beginning or from the
// archive's; the former change. (APPNOTE.TXT, 4.3.16 and 4.3.12.) Bytes that are no archive stay as they are.
void move_archive(std::span<std::byte> archive, uint64_t old_at, uint64_t new_at) {
  constexpr size_t kEndRecord = 22, kEntry = 46;
  size_t end = archive.size();
  for (size_t back = kEndRecord; back <= archive.size() && back <= kEndRecord + 65535 && end == archive.size(); ++back)
    if (load<uint32_t>(&archive[archive.size() - back]) == 0x06054b50) end = archive.size() - back;
  if (end == archive.size()) return;
  const uint32_t directory_bytes = load<uint32_t>(&archive[end + 12]), directory_at = load<uint32_t>(&archive[end + 16]);
  if (directory_bytes > end || old_at + (end - directory_bytes) != directory_at) return;  // counts from the archive's beginning
  std::vector<std::byte*> offsets = {&archive[end + 16]};
  size_t at = end - directory_bytes;
  for (uint32_t i = load<uint16_t>(&archive[end + 10]); i > 0; --i) {
    if (at + kEntry > end || load<uint32_t>(&archive[at]) != 0x02014b50) return;
    offsets.push_back(&archive[at + 42]);
    at += kEntry + load<uint16_t>(&archive[at + 28]) + load<uint16_t>(&archive[at + 30]) + load<uint16_t>(&archive[at + 32]);
  }
  for (const std::byte* p : offsets)
    if (load<uint32_t>(p) < old_at || load<uint32_t>(p) - old_at + new_at > std::numeric_limits<uint32_t>::max()) return;
  for (std::byte* p : offsets) store(p, static_cast<uint32_t>(load<uint32_t>(p) - old_at + new_at));
}

// ---- The copy

class ModelCopy {
 public:
  ModelCopy(std::span<const std::byte> file, const ModelChanges& changes)
      : file_(file), changes_(changes), budget_(4 * uint64_t{file.size()}), builder_(std::min<size_t>(file.size() + (size_t{1} << 16), kMostBytes)) {
    builder_.ForceDefaults(true);
  }

  oneweight::Expected<std::vector<std::byte>> run() {
    const uint32_t root = load<uint32_t>(file_.data());
    Values values = read(root, kModel, {model::codes, model::subgraphs, model::buffers});
    if (!changes_.widened.empty()) check_order(values.metadata_tables);
    // What is written first is last in the file: the weights come behind the structure.
    vector_of(std::vector<uint8_t>(kBehind), 1);
    const std::vector<uint32_t> graphs = places(root, model::subgraphs);
    copy_buffers(places(root, model::buffers));
    read_codes(places(root, model::codes));
    count_code_users(graphs);
    std::vector<Offset> graph_tables;
    for (uint32_t i = 0; i < graphs.size() && status_.ok(); ++i) graph_tables.push_back(copy_subgraph(i, graphs[i]));
    values.set(model::subgraphs, 0, vector_of_tables(graph_tables));
    values.set(model::codes, 0, write_codes());
    values.set(model::buffers, 0, vector_of_tables(buffers_));
    const Offset table = write(values);
    ONEWEIGHT_RETURN_IF_ERROR(status_);
    builder_.Finish(flatbuffers::Offset<void>(table), schema::kFileIdentifier);
    return assemble();
  }

 private:
  using Offset = uint32_t;  // from the end of what is built
  static constexpr size_t kMostBytes = FLATBUFFERS_MAX_BUFFER_SIZE - (size_t{1} << 16);

  // A table's fields, its children written already. Width 0: an offset.
  struct Value {
    int field;
    uint8_t width;
    uint64_t bits;
  };
  struct Values {
    std::vector<Value> all;
    uint32_t metadata_tables = 0;  // of the model

    void set(int field, uint8_t width, uint64_t bits) {
      remove(field);
      all.push_back({field, width, bits});
    }
    void remove(int field) { std::erase_if(all, [&](const Value& v) { return v.field == field; }); }
    const Value* find(int field) const {
      for (const Value& v : all)
        if (v.field == field) return &v;
      return nullptr;
    }
    uint64_t get(int field, uint64_t otherwise) const {
      const Value* v = find(field);
      return v ? v->bits : otherwise;
    }
  };

  // ---- Reading: every step is checked against the file, and `end_` follows the last byte that belongs to the model.

  ONEWEIGHT_PRINTF(3, 4) void fail(ErrorCode error, const char* format, ...) {
    if (!status_.ok()) return;
    std::va_list args;
    va_start(args, format);
    status_ = oneweight::Status(error, oneweight::format_message(format, args));
    va_end(args);
  }
  bool take(uint64_t at, uint64_t bytes) {
    if (at > file_.size() || bytes > file_.size() - at) {
      fail(ErrorCode::invalid_model, "the file is damaged: %llu bytes at offset %llu lead outside its %zu bytes", static_cast<unsigned long long>(bytes),
           static_cast<unsigned long long>(at), file_.size());
      return false;
    }
    end_ = std::max(end_, at + bytes);
    return true;
  }
  // Tables and vectors of an honest file lie side by side, and each is read a few times at most; overlapping ones could make a
  // huge file of a small one.
  bool pay(uint64_t bytes) {
    if (bytes > budget_) {
      fail(ErrorCode::invalid_model, "the file is damaged: its parts overlap");
      return false;
    }
    budget_ -= bytes;
    return true;
  }

  struct Place {
    uint32_t table = 0;
    std::vector<uint16_t> fields;  // offsets in the table, 0: absent
    uint16_t size = 0;
  };
  bool open(uint32_t at, Place* place) {
    if (!take(at, sizeof(int32_t))) return false;
    const int64_t vtable = int64_t{at} - load<int32_t>(&file_[at]);
    if (vtable < 0 || !take(static_cast<uint64_t>(vtable), 4)) {
      fail(ErrorCode::invalid_model, "the file is damaged: a table's description lies outside");
      return false;
    }
    const std::byte* v = &file_[static_cast<size_t>(vtable)];
    const uint16_t bytes = load<uint16_t>(v);
    place->table = at;
    place->size = load<uint16_t>(v + 2);
    if (bytes < 4 || bytes % 2 != 0 || place->size < 4) {
      fail(ErrorCode::invalid_model, "the file is damaged: a table's description");
      return false;
    }
    if (!take(static_cast<uint64_t>(vtable), bytes) || !take(at, place->size) || !pay(place->size)) return false;
    for (uint16_t i = 4; i < bytes; i = static_cast<uint16_t>(i + 2)) place->fields.push_back(load<uint16_t>(v + i));
    while (!place->fields.empty() && place->fields.back() == 0) place->fields.pop_back();
    return true;
  }
  // The bytes of a field: null when it is absent or (with an error) outside.
  const std::byte* field(const Place& p, int number, size_t width) {
    if (static_cast<size_t>(number) >= p.fields.size() || p.fields[static_cast<size_t>(number)] == 0) return nullptr;
    const uint64_t at = uint64_t{p.table} + p.fields[static_cast<size_t>(number)];
    return take(at, width) ? &file_[at] : nullptr;
  }
  // Where an offset field leads; 0 when it is absent.
  uint32_t target(const Place& p, int number) {
    const std::byte* at = field(p, number, sizeof(uint32_t));
    return at ? follow(static_cast<uint64_t>(at - file_.data())) : 0;
  }
  uint32_t follow(uint64_t at) {
    const uint64_t to = at + load<uint32_t>(&file_[at]);
    if (!take(to, sizeof(uint32_t)) || to > std::numeric_limits<uint32_t>::max()) return 0;
    return static_cast<uint32_t>(to);
  }
  // The tables of a vector field.
  std::vector<uint32_t> places(uint32_t table, int number) {
    Place p;
    return open(table, &p) ? tables_at(target(p, number)) : std::vector<uint32_t>();
  }
  std::vector<uint32_t> tables_at(uint32_t at) {
    std::vector<uint32_t> all;
    if (at == 0) return all;
    const uint32_t n = load<uint32_t>(&file_[at]);
    if (!take(uint64_t{at} + 4, uint64_t{n} * 4) || !pay(uint64_t{n} * 4)) return all;
    for (uint32_t i = 0; i < n && status_.ok(); ++i) all.push_back(follow(uint64_t{at} + 4 + uint64_t{i} * 4));
    return all;
  }

  // ---- Writing

  template <class T>
  Offset vector_of(const std::vector<T>& values, size_t alignment = sizeof(T)) {
    return vector_of(reinterpret_cast<const std::byte*>(values.data()), values.size(), sizeof(T), alignment);
  }
  Offset vector_of(const std::byte* from, size_t n, size_t width, size_t alignment) {
    const auto copy = [&](std::byte* to) {
      if (n > 0) std::memcpy(to, from, n * width);
    };
    return vector_of(n, width, alignment, copy);
  }
  template <class Write>
  Offset vector_of(size_t n, size_t width, size_t alignment, Write&& write) {
    if (!has_room(n * width)) return 0;
    if (n > 0 && alignment > width) builder_.ForceVectorAlignment(n, width, alignment);
    switch (width) {
      case 1: return uninitialized<uint8_t>(n, write);
      case 2: return uninitialized<uint16_t>(n, write);
      case 4: return uninitialized<uint32_t>(n, write);
      default: return uninitialized<uint64_t>(n, write);
    }
  }
  template <class T, class Write>
  Offset uninitialized(size_t n, Write&& write) {
    T* to = nullptr;
    const Offset at = builder_.CreateUninitializedVector<T>(n, &to).o;
    write(reinterpret_cast<std::byte*>(to));
    return at;
  }
  Offset vector_of_tables(const std::vector<Offset>& tables) {
    std::vector<flatbuffers::Offset<void>> all(tables.begin(), tables.end());
    return has_room(all.size() * sizeof(Offset)) ? builder_.CreateVector(all).o : 0;
  }
  bool has_room(size_t bytes) {
    if (!status_.ok()) return false;  // children may be missing
    if (bytes < kMostBytes && builder_.GetSize() < kMostBytes - bytes) return true;
    fail(ErrorCode::unsupported, "the new file would have more than 2 GiB outside its constants");
    return false;
  }
  Offset write(const Values& values) {
    if (!has_room(values.all.size() * 10 + 64)) return 0;
    const flatbuffers::uoffset_t start = builder_.StartTable();
    for (const uint8_t width : {8, 0, 4, 2, 1})  // no holes between
      for (const Value& v : values.all) {
        if (v.width != width) continue;
        const auto slot = static_cast<flatbuffers::voffset_t>(4 + 2 * v.field);
        switch (width) {
          case 0: builder_.AddOffset(slot, flatbuffers::Offset<void>(static_cast<Offset>(v.bits))); break;
          case 1: builder_.AddElement<uint8_t>(slot, static_cast<uint8_t>(v.bits), 0); break;
          case 2: builder_.AddElement<uint16_t>(slot, static_cast<uint16_t>(v.bits), 0); break;
          case 4: builder_.AddElement<uint32_t>(slot, static_cast<uint32_t>(v.bits), 0); break;
          default: builder_.AddElement<uint64_t>(slot, v.bits, 0); break;
        }
      }
    return builder_.EndTable(start);
  }

  // ---- Copying. What several parts of the file share is shared in the copy.

  Offset copy_vector(uint32_t at, size_t width) {
    Offset& copy = copies_[{at, &kShared[width]}];
    if (copy != 0) return copy;
    const uint32_t n = load<uint32_t>(&file_[at]);
    const uint64_t bytes = uint64_t{n} * width;
    if (!take(uint64_t{at} + 4, bytes) || !pay(bytes)) return 0;
    return copy = vector_of(file_.data() + at + 4, n, width, width == 1 ? kAlignment : width);
  }
  Offset copy_text(uint32_t at) {
    Offset& copy = copies_[{at, &kShared[0]}];
    if (copy != 0) return copy;
    const std::string_view text = text_at(at);
    if (!status_.ok() || !pay(text.size()) || !has_room(text.size())) return 0;
    return copy = builder_.CreateString(text.data(), text.size()).o;
  }
  std::string_view text_at(uint32_t at) {
    const uint32_t n = load<uint32_t>(&file_[at]);
    if (!take(uint64_t{at} + 4, uint64_t{n} + 1)) return {};
    return {reinterpret_cast<const char*>(file_.data()) + at + 4, n};
  }
  Offset copy_table(uint32_t at, const TableForm& form) {
    if (const auto found = copies_.find({at, &form}); found != copies_.end()) return found->second;
    const Offset copy = write(read(at, form));
    if (copy != 0) copies_[{at, &form}] = copy;
    return copy;
  }
  // The fields of a table with copies of its children, except those of `without`.
  Values read(uint32_t at, const TableForm& form, std::initializer_list<int> without = {}) {
    Values values;
    Place p;
    if (!open(at, &p)) return values;
    if (p.fields.size() > form.fields.size())
      fail(ErrorCode::unsupported, "a %s table has field %zu, of a newer schema than this program knows", form.name, p.fields.size() - 1);
    for (int i = 0; i < static_cast<int>(p.fields.size()) && status_.ok(); ++i) {
      const Field& f = form.fields[static_cast<size_t>(i)];
      if (p.fields[static_cast<size_t>(i)] == 0 || std::find(without.begin(), without.end(), i) != without.end()) continue;
      if (f.kind == Field::number) {
        const std::byte* from = field(p, i, f.width);
        uint64_t bits = 0;
        if (from) std::memcpy(&bits, from, f.width);
        values.set(i, f.width, bits);
        continue;
      }
      const uint32_t to = target(p, i);
      if (!status_.ok()) break;
      switch (f.kind) {
        case Field::vector: values.set(i, 0, copy_vector(to, f.width)); break;
        case Field::text: values.set(i, 0, copy_text(to)); break;
        case Field::table: values.set(i, 0, copy_table(to, *f.of[0])); break;
        case Field::tables: {
          if (&form == &kModel && i == model::metadata) values.metadata_tables = to;
          std::vector<Offset> copies;
          for (uint32_t t : tables_at(to)) copies.push_back(status_.ok() ? copy_table(t, *f.of[0]) : 0);
          values.set(i, 0, vector_of_tables(copies));
          break;
        }
        case Field::choice: {
          const uint64_t type = values.get(i - 1, 0);
          if (type > f.of.size()) fail(ErrorCode::unsupported, "a %s table holds a table of type %llu, of a newer schema than this program knows", form.name, static_cast<unsigned long long>(type));
          if (type >= 1 && type <= f.of.size()) values.set(i, 0, copy_table(to, *f.of[type - 1]));
          break;
        }
        case Field::options:
          if (const auto type = static_cast<uint8_t>(values.get(i - 1, 0)); type != 0) values.set(i, 0, copy_options(to, f.width, type, -1));
          break;
        case Field::number: break;
      }
    }
    return values;
  }

  // An options table. Of its numbers only the places are known: each is copied with the bytes up to the next.
  Offset copy_options(uint32_t at, uint8_t which, uint8_t type, int true_field) {
    const std::span<const uint8_t> known = which == 1 ? std::span<const uint8_t>(kOptionsFields) : std::span<const uint8_t>(kOptions2Fields);
    if (type > known.size()) {
      fail(ErrorCode::unsupported, "an operator's options are of type %u, of a newer schema than this program knows", type);
      return 0;
    }
    const auto key = std::make_tuple(at, which, type, true_field);
    if (const auto found = options_.find(key); found != options_.end()) return found->second;
    Values values;
    Place p;
    if (at != 0 && !open(at, &p)) return 0;
    if (p.fields.size() > known[type - 1u])
      fail(ErrorCode::unsupported, "an operator's options (type %u) have field %zu, of a newer schema than this program knows", type, p.fields.size() - 1);
    for (size_t i = 0; i < p.fields.size() && status_.ok(); ++i) {
      if (p.fields[i] == 0) continue;
      if (const size_t width = element_width(which, type, i); width != 0) {
        const uint32_t to = target(p, static_cast<int>(i));
        if (status_.ok()) values.set(static_cast<int>(i), 0, is_text(which, type, i) ? copy_text(to) : copy_vector(to, width));
        continue;
      }
      size_t next = p.size;
      for (const uint16_t other : p.fields)
        if (other > p.fields[i]) next = std::min<size_t>(next, other);
      if (next <= p.fields[i]) {
        fail(ErrorCode::invalid_model, "the file is damaged: an operator's options (type %u)", type);
        break;
      }
      const size_t width = std::bit_floor(std::min<size_t>(8, next - p.fields[i]));
      uint64_t bits = 0;
      std::memcpy(&bits, &file_[p.table + p.fields[i]], width);
      values.set(static_cast<int>(i), static_cast<uint8_t>(width), bits);
    }
    if (true_field >= 0) values.set(true_field, 1, 1);
    return options_[key] = write(values);
  }
  static size_t element_width(uint8_t which, uint8_t type, size_t number) {
    for (const schema::OptionsVectorField& f : schema::kOptionsVectorFields) {
      if (static_cast<uint8_t>(f.in) != which || f.type != type || f.field != number) continue;
      return f.element == schema::OptionsElement::int64 ? 8 : f.element == schema::OptionsElement::uint8 ? 1 : 4;
    }
    return 0;
  }
  // Bytes in options are strings, which end with a zero, but for these vectors.
  static bool is_text(uint8_t which, uint8_t type, size_t number) {
    const bool bytes = element_width(which, type, number) == 1;
    const bool vector = which == 2 && ((type == 4 && number == 4) || (type == 5 && number == 5) || (type == 21 && number == 2));
    return bytes && !vector;
  }

  // ---- Buffers

  // Bytes behind the flatbuffer, and the table fields that tell where.
  struct Outside {
    Offset table;
    int offset_field;
    uint64_t at;  // in tail_
  };

  void copy_buffers(const std::vector<uint32_t>& tables) {
    for (const uint32_t at : tables) {
      if (!status_.ok()) return;
      if (const auto found = copies_.find({at, &kBuffer}); found != copies_.end()) {
        buffers_.push_back(found->second);
        continue;
      }
      Place p;
      if (!open(at, &p)) return;
      if (p.fields.size() > kBufferFields_) fail(ErrorCode::unsupported, "a Buffer table has field %zu, of a newer schema than this program knows", p.fields.size() - 1);
      const uint32_t inside = target(p, buffer::data);
      const uint32_t size = inside ? load<uint32_t>(&file_[inside]) : 0;
      const std::byte *offset = field(p, buffer::offset, 8), *length = field(p, buffer::size, 8);
      if (!status_.ok()) return;
      Values values;
      if (size != 0) {
        values.set(buffer::data, 0, copy_contents(inside, size));
      } else if (inside != 0) {
        values.set(buffer::data, 0, copy_vector(inside, 1));
      }
      if (offset) values.set(buffer::offset, 8, load<uint64_t>(offset));
      if (length) values.set(buffer::size, 8, load<uint64_t>(length));
      const bool outside = size == 0 && offset && load<uint64_t>(offset) > 1;
      uint64_t place = 0;
      if (outside) {
        uint64_t bytes = length ? load<uint64_t>(length) : 0;
        place = copy_outside(load<uint64_t>(offset), &bytes);
        values.set(buffer::size, 8, bytes);
      }
      if (buffers_.empty() || empty_buffer_ == kNone) {
        if (size == 0 && !outside) empty_buffer_ = static_cast<uint32_t>(buffers_.size());
      }
      const Offset table = write(values);
      if (outside) outside_.push_back({table, buffer::offset, place});
      if (table != 0) copies_[{at, &kBuffer}] = table;
      buffers_.push_back(table);
    }
    if (empty_buffer_ == kNone && !changes_.widened.empty()) {
      empty_buffer_ = static_cast<uint32_t>(buffers_.size());
      buffers_.push_back(write({}));
    }
  }
  Offset copy_contents(uint32_t at, uint32_t size) {
    Offset& copy = copies_[{at, &kShared[3]}];
    if (copy != 0) return copy;
    if (!take(uint64_t{at} + 4, size) || !pay(size)) return 0;
    const std::byte* from = file_.data() + at + 4;
    if (const auto changed = changes_.contents.find(from); changed != changes_.contents.end())
      return copy = vector_of(changed->second.size, 1, kAlignment, changed->second.write);
    return copy = vector_of(from, size, 1, kAlignment);
  }
  // Place in the tail of the copy of `*size` bytes at `at` of the file.
  uint64_t copy_outside(uint64_t at, uint64_t* size) {
    const auto key = std::make_pair(at, *size);
    if (!take(at, *size)) return 0;
    const std::byte* from = file_.data() + at;
    const auto changed = *size > 0 ? changes_.contents.find(from) : changes_.contents.end();
    if (changed != changes_.contents.end()) *size = changed->second.size;
    if (const auto found = tail_places_.find(key); found != tail_places_.end()) return found->second;
    if (!pay(*size)) return 0;
    tail_.resize((tail_.size() + kAlignment - 1) / kAlignment * kAlignment);
    const uint64_t place = tail_.size();
    tail_.resize(tail_.size() + static_cast<size_t>(*size));
    if (changed != changes_.contents.end()) {
      changed->second.write(tail_.data() + place);
    } else if (*size > 0) {
      std::memcpy(tail_.data() + place, from, static_cast<size_t>(*size));
    }
    return tail_places_[key] = place;
  }

  // ---- Operator codes

  void read_codes(const std::vector<uint32_t>& tables) {
    for (const uint32_t at : tables) codes_.push_back(read(at, kOperatorCode));
    code_users_.resize(codes_.size());
  }
  static int32_t builtin_of(const Values& c) {
    return std::max<int32_t>(static_cast<int8_t>(c.get(code::deprecated_builtin, 0)), static_cast<int32_t>(c.get(code::builtin, 0)));
  }
  static int32_t version_of(const Values& c) { return static_cast<int32_t>(c.get(code::version, 1)); }
  // Whose operators all get a newer version, gets it itself.
  void count_code_users(const std::vector<uint32_t>& graphs) {
    for (uint32_t g = 0; g < graphs.size() && status_.ok(); ++g) {
      const std::vector<uint32_t> operators = places(graphs[g], graph::operators);
      for (uint32_t i = 0; i < operators.size() && status_.ok(); ++i) {
        Place p;
        if (!open(operators[i], &p)) return;
        const std::byte* c = field(p, op::code, 4);
        const uint32_t index = c ? load<uint32_t>(c) : 0;
        if (index >= codes_.size()) continue;
        const auto changed = changes_.operators.find({g, i});
        code_users_[index].insert(changed == changes_.operators.end() ? 0 : std::max(changed->second.version, version_of(codes_[index])));
      }
    }
    for (size_t i = 0; i < codes_.size(); ++i)
      if (code_users_[i].size() == 1 && *code_users_[i].begin() > version_of(codes_[i])) codes_[i].set(code::version, 4, static_cast<uint32_t>(*code_users_[i].begin()));
  }
  uint32_t code_with_version(uint32_t index, int32_t version) {
    if (index >= codes_.size() || version_of(codes_[index]) >= version) return index;
    return code_of(builtin_of(codes_[index]), version, version);
  }
  uint32_t code_of(int32_t builtin, int32_t lowest, int32_t highest) {
    for (uint32_t i = 0; i < codes_.size(); ++i)
      if (builtin_of(codes_[i]) == builtin && version_of(codes_[i]) >= lowest && version_of(codes_[i]) <= highest) return i;
    Values added;
    added.set(code::deprecated_builtin, 1, static_cast<uint64_t>(std::min(builtin, 127)));
    added.set(code::version, 4, static_cast<uint32_t>(lowest));
    added.set(code::builtin, 4, static_cast<uint32_t>(builtin));
    codes_.push_back(std::move(added));
    return static_cast<uint32_t>(codes_.size() - 1);
  }
  Offset write_codes() {
    std::vector<Offset> tables;
    for (const Values& c : codes_) tables.push_back(write(c));
    return vector_of_tables(tables);
  }
  // Metadata may order operators by their numbers, which new operators would change.
  void check_order(uint32_t metadata) {
    for (const uint32_t at : tables_at(metadata)) {
      Place p;
      if (!open(at, &p)) return;
      if (const uint32_t name = target(p, 0); name != 0 && text_at(name) == "model_control_dependencies")
        fail(ErrorCode::unsupported, "the model's metadata orders its operators by number (model_control_dependencies), so none can be added");
    }
  }

  // ---- Subgraphs

  Offset copy_subgraph(uint32_t g, uint32_t at) {
    Values values = read(at, kSubgraph, {graph::tensors, graph::operators});
    const std::vector<uint32_t> tensors = places(at, graph::tensors);
    const std::vector<uint32_t> operators = places(at, graph::operators);
    std::vector<Offset> tensor_tables, operator_tables, halves;
    for (uint32_t i = 0; i < tensors.size() && status_.ok(); ++i) {
      const bool widened = changes_.widened.contains({g, i});
      const auto quantized = changes_.quantized.find({g, i});
      if (widened) {
        const auto number = static_cast<int32_t>(tensors.size() + halves.size());
        tensor_tables.push_back(widen(tensors[i], &halves));
        operator_tables.push_back(dequantize(number, static_cast<int32_t>(i)));
      } else if (quantized != changes_.quantized.end()) {
        tensor_tables.push_back(quantize(tensors[i], quantized->second));
      } else {
        tensor_tables.push_back(copy_table(tensors[i], kTensor));
      }
    }
    tensor_tables.insert(tensor_tables.end(), halves.begin(), halves.end());
    for (uint32_t i = 0; i < operators.size() && status_.ok(); ++i) operator_tables.push_back(copy_operator({g, i}, operators[i]));
    values.set(graph::tensors, 0, vector_of_tables(tensor_tables));
    values.set(graph::operators, 0, vector_of_tables(operator_tables));
    return write(values);
  }
  // Adds the half constant and returns the float tensor that is computed from it.
  Offset widen(uint32_t at, std::vector<Offset>* halves) {
    Values values = read(at, kTensor), half;
    for (const int kept : {int{tensor::shape}, int{tensor::shape_signature}, int{tensor::name}, int{tensor::buffer}, int{tensor::has_rank}})
      if (const Value* v = values.find(kept)) half.all.push_back(*v);
    half.set(tensor::type, 1, static_cast<uint8_t>(oneweight::TensorType::float16));
    halves->push_back(write(half));
    Place p;
    if (!open(at, &p)) return 0;
    if (const uint32_t name = target(p, tensor::name); name != 0) {
      const std::string text = std::string(text_at(name)) + "_dequantize";
      if (has_room(text.size())) values.set(tensor::name, 0, builder_.CreateString(text).o);
    }
    values.set(tensor::buffer, 4, empty_buffer_);
    return write(values);
  }
  Offset dequantize(int32_t from, int32_t to) {
    Values values;
    values.set(op::code, 4, code_of(static_cast<int32_t>(oneweight::BuiltinOperator::dequantize), kDequantizeVersion, std::numeric_limits<int32_t>::max()));
    values.set(op::inputs, 0, vector_of(std::vector<int32_t>{from}));
    values.set(op::outputs, 0, vector_of(std::vector<int32_t>{to}));
    return write(values);
  }
  Offset quantize(uint32_t at, const ModelChanges::Quantized& to) {
    Values values = read(at, kTensor, {tensor::quantization}), scales;
    scales.set(quantization::scale, 0, vector_of(to.scales));
    scales.set(quantization::zero_point, 0, vector_of(std::vector<int64_t>(to.scales.size())));
    scales.set(quantization::axis, 4, static_cast<uint32_t>(to.axis));
    values.set(tensor::quantization, 0, write(scales));
    values.set(tensor::type, 1, static_cast<uint8_t>(oneweight::TensorType::int8));
    return write(values);
  }
  Offset copy_operator(PartId id, uint32_t at) {
    Values values = read(at, kOperator);
    if (!status_.ok()) return 0;
    if (const auto changed = changes_.operators.find(id); changed != changes_.operators.end()) {
      values.set(op::code, 4, code_with_version(static_cast<uint32_t>(values.get(op::code, 0)), changed->second.version));
      if (changed->second.true_field >= 0) {
        Place p;
        if (!open(at, &p)) return 0;
        const uint32_t options = target(p, op::options);
        values.set(op::options, 0, copy_options(options, 1, changed->second.options_type, changed->second.true_field));
        values.set(op::options_type, 1, changed->second.options_type);
      }
    }
    const uint64_t offset = values.get(op::large_offset, 0);
    uint64_t size = values.get(op::large_size, 0), place = 0;
    if (offset > 1) place = copy_outside(offset, &size);
    const Offset table = write(values);
    if (offset > 1) outside_.push_back({table, op::large_offset, place});
    return table;
  }

  // ---- The whole file

  oneweight::Expected<std::vector<std::byte>> assemble() {
    const size_t size = builder_.GetSize();
    const auto up = [](size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; };
    const size_t tail_at = up(size);
    // Zeros behind the model fill it up; anything else belongs to somebody.
    std::span<const std::byte> behind = file_.subspan(static_cast<size_t>(end_));
    const auto used = [](std::byte b) { return b != std::byte{0}; };
    if (std::none_of(behind.begin(), behind.end(), used)) behind = {};
    const size_t behind_at = tail_.empty() ? size : tail_at + tail_.size() + kBehind;
    std::vector<std::byte> file(behind_at + behind.size());
    std::memcpy(file.data(), builder_.GetBufferPointer(), size);
    builder_.Clear();
    if (!tail_.empty()) std::memcpy(file.data() + tail_at, tail_.data(), tail_.size());
    if (!behind.empty()) {
      std::memcpy(file.data() + behind_at, behind.data(), behind.size());
      move_archive(std::span(file).subspan(behind_at), end_, behind_at);
    }
    for (const Outside& o : outside_) {
      const size_t table = size - o.table;
      const size_t vtable = table - static_cast<size_t>(load<int32_t>(&file[table]));
      store<uint64_t>(&file[table + load<uint16_t>(&file[vtable + 4 + 2 * static_cast<size_t>(o.offset_field)])], tail_at + o.at);
    }
    return file;
  }

  static constexpr uint32_t kNone = 0xffffffffu;
  static constexpr size_t kBufferFields_ = std::size(kBufferFields);
  // Stand for texts (0), vectors (the width of their elements), and contents of buffers (3) as keys of copies_.
  static constexpr TableForm kShared[9] = {};

  std::span<const std::byte> file_;
  const ModelChanges& changes_;
  uint64_t budget_, end_ = 0;
  oneweight::Status status_;
  flatbuffers::FlatBufferBuilder builder_;
  std::map<std::pair<uint32_t, const TableForm*>, Offset> copies_;
  std::map<std::tuple<uint32_t, uint8_t, uint8_t, int>, Offset> options_;
  std::vector<Offset> buffers_;
  uint32_t empty_buffer_ = kNone;
  std::vector<Values> codes_;
  std::vector<std::set<int32_t>> code_users_;  // versions that the operators of a code shall have; 0: unchanged
  std::vector<std::byte> tail_;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> tail_places_;
  std::vector<Outside> outside_;
};

}  // namespace

oneweight::Expected<std::vector<std::byte>> copy_model(std::span<const std::byte> file, const ModelChanges& changes) {
  try {
    return ModelCopy(file, changes).run();
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::out_of_memory, "no memory for the new file");
  }
}

}  // namespace program
