// The tables of the TFLite schema, read by hand over flatbuffers::Table: no generated code, which is
// locked to one release of flatbuffers. Nothing here needs the file to be aligned in memory as far as
// values go; flatbuffers itself reads table offsets with plain loads.
//
// Accessors may be called only on tables whose Verify has answered true.
#ifndef ONEWEIGHT_SCHEMA_TABLES_H
#define ONEWEIGHT_SCHEMA_TABLES_H

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "oneweight/base/config.h"

namespace oneweight {
inline namespace v1 {
namespace schema {

inline constexpr char kFileIdentifier[] = "TFL3";
inline constexpr uint32_t kSchemaVersion = 3;

// Little-endian value at any address.
template <class T>
T load(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

// flatbuffers' verifier, and the bounds check it has under another name in every release.
struct Verifier {
  flatbuffers::Verifier flat;
  const uint8_t* base;

  Verifier(const uint8_t* bytes, size_t size, flatbuffers::uoffset_t max_depth, flatbuffers::uoffset_t max_tables)
      : flat(bytes, size, max_depth, max_tables), base(bytes) {}
  bool inside(const uint8_t* p, size_t bytes) const { return flat.Verify(static_cast<size_t>(p - base), bytes); }
  bool end_table() { return flat.EndTable(); }
  // The root table, whose offset is the file's first number.
  template <class T>
  bool verify_root() {
    if (!inside(base, 2 * sizeof(uint32_t))) return false;
    const uint32_t offset = load<uint32_t>(base);
    return inside(base + offset, sizeof(uint32_t)) && reinterpret_cast<const T*>(base + offset)->Verify(*this);
  }
};

// A vector of numbers in the file; empty when the field is absent.
template <class T>
class Values {
 public:
  explicit Values(const uint8_t* p) : p_(p) {}
  bool present() const { return p_ != nullptr; }
  uint32_t size() const { return p_ ? load<uint32_t>(p_) : 0; }
  const uint8_t* data() const { return p_ + sizeof(uint32_t); }
  T operator[](uint32_t i) const { return load<T>(data() + size_t{i} * sizeof(T)); }

 private:
  const uint8_t* p_;
};

// A vector of tables in the file; empty when the field is absent.
template <class T>
class Tables {
 public:
  explicit Tables(const uint8_t* p) : p_(p) {}
  uint32_t size() const { return p_ ? load<uint32_t>(p_) : 0; }
  const T& operator[](uint32_t i) const {
    const uint8_t* element = p_ + sizeof(uint32_t) * (size_t{i} + 1);
    return *reinterpret_cast<const T*>(element + load<uint32_t>(element));
  }

 private:
  const uint8_t* p_;
};

// Base of all tables: field k of the schema sits at vtable offset 4 + 2k.
class Table : private flatbuffers::Table {
 public:
  const uint8_t* address() const { return reinterpret_cast<const uint8_t*>(this); }

 protected:
  static constexpr flatbuffers::voffset_t slot(int field) { return static_cast<flatbuffers::voffset_t>(4 + 2 * field); }
  template <class T>
  T scalar(int field, T otherwise) const {
    const uint8_t* p = GetAddressOf(slot(field));
    return p ? load<T>(p) : otherwise;
  }
  // What an offset field points at, or null.
  const uint8_t* target(int field) const {
    const uint8_t* p = GetAddressOf(slot(field));
    return p ? p + load<uint32_t>(p) : nullptr;
  }
  template <class T>
  Values<T> values(int field) const {
    return Values<T>(target(field));
  }
  template <class T>
  Tables<T> tables(int field) const {
    return Tables<T>(target(field));
  }
  template <class T>
  const T* table(int field) const {
    return reinterpret_cast<const T*>(target(field));
  }
  std::string_view text(int field) const {
    const Values<char> characters(target(field));
    if (!characters.present()) return {};
    return {reinterpret_cast<const char*>(characters.data()), characters.size()};
  }

  bool begin(Verifier& v) const { return VerifyTableStart(v.flat); }
  template <class T>
  bool check_scalar(Verifier& v, int field) const {
    const flatbuffers::voffset_t offset = GetOptionalFieldOffset(slot(field));
    return offset == 0 || v.inside(address() + offset, sizeof(T));
  }
  bool check_offset(Verifier& v, int field) const { return VerifyOffset(v.flat, slot(field)); }
  template <class T>
  bool check_values(Verifier& v, int field) const {
    return check_offset(v, field) &&
           v.flat.VerifyVector(reinterpret_cast<const flatbuffers::Vector<T>*>(target(field)));
  }
  bool check_text(Verifier& v, int field) const {
    return check_offset(v, field) && v.flat.VerifyString(reinterpret_cast<const flatbuffers::String*>(target(field)));
  }
  template <class T>
  bool check_table(Verifier& v, int field) const {
    return check_offset(v, field) && (target(field) == nullptr || table<T>(field)->Verify(v));
  }
  template <class T>
  bool check_tables(Verifier& v, int field) const {
    if (!check_values<flatbuffers::uoffset_t>(v, field)) return false;
    const Tables<T> all = tables<T>(field);
    for (uint32_t i = 0; i < all.size(); ++i)
      if (!all[i].Verify(v)) return false;
    return true;
  }
};

// Int32Vector, Uint16Vector and Uint8Vector: members of the union SparseIndexVector.
template <class T>
class IndexVector : public Table {
 public:
  Values<T> values() const { return Table::values<T>(0); }
  bool Verify(Verifier& v) const { return begin(v) && check_values<T>(v, 0) && v.end_table(); }
};

class DimensionMetadata : public Table {
 public:
  enum IndexType : uint8_t { kNone = 0, kInt32 = 1, kUint16 = 2, kUint8 = 3 };
  bool sparse() const { return scalar<int8_t>(0, 0) != 0; }
  int8_t format() const { return scalar<int8_t>(0, 0); }
  int32_t dense_size() const { return scalar<int32_t>(1, 0); }
  // Segments are `which` 0, indices `which` 1.
  uint8_t index_type(int which) const { return scalar<uint8_t>(2 + 2 * which, kNone); }
  template <class T>
  Values<T> index_values(int which) const {
    const auto* holder = table<IndexVector<T>>(3 + 2 * which);
    return holder ? holder->values() : Values<T>(nullptr);
  }
  bool Verify(Verifier& v) const {
    return begin(v) && check_scalar<int8_t>(v, 0) && check_scalar<int32_t>(v, 1) && check_index(v, 0) &&
           check_index(v, 1) && v.end_table();
  }

 private:
  bool check_index(Verifier& v, int which) const {
    if (!check_scalar<uint8_t>(v, 2 + 2 * which)) return false;
    switch (index_type(which)) {
      case kInt32: return check_table<IndexVector<int32_t>>(v, 3 + 2 * which);
      case kUint16: return check_table<IndexVector<uint16_t>>(v, 3 + 2 * which);
      case kUint8: return check_table<IndexVector<uint8_t>>(v, 3 + 2 * which);
      default: return true;
    }
  }
};

class SparsityParameters : public Table {
 public:
  Values<int32_t> traversal_order() const { return values<int32_t>(0); }
  Values<int32_t> block_map() const { return values<int32_t>(1); }
  Tables<DimensionMetadata> dimensions() const { return tables<DimensionMetadata>(2); }
  bool Verify(Verifier& v) const {
    return begin(v) && check_values<int32_t>(v, 0) && check_values<int32_t>(v, 1) &&
           check_tables<DimensionMetadata>(v, 2) && v.end_table();
  }
};

class BlockwiseQuantization : public Table {
 public:
  int32_t scales() const { return scalar<int32_t>(0, 0); }  // tensor indices
  int32_t zero_points() const { return scalar<int32_t>(1, 0); }
  int32_t block_size() const { return scalar<int32_t>(2, 0); }
  bool Verify(Verifier& v) const {
    return begin(v) && check_scalar<int32_t>(v, 0) && check_scalar<int32_t>(v, 1) && check_scalar<int32_t>(v, 2) &&
           v.end_table();
  }
};

class QuantizationParameters : public Table {
 public:
  enum DetailsType : uint8_t { kNone = 0, kCustom = 1, kBlockwise = 2, kMultiAxis = 3 };
  Values<float> scale() const { return values<float>(2); }
  Values<int64_t> zero_point() const { return values<int64_t>(3); }
  uint8_t details_type() const { return scalar<uint8_t>(4, kNone); }
  // Null unless details_type() is kBlockwise.
  const BlockwiseQuantization* blockwise() const {
    return details_type() == kBlockwise ? table<BlockwiseQuantization>(5) : nullptr;
  }
  int32_t axis() const { return scalar<int32_t>(6, 0); }
  bool Verify(Verifier& v) const {
    return begin(v) && check_values<float>(v, 2) && check_values<int64_t>(v, 3) && check_scalar<uint8_t>(v, 4) &&
           (details_type() != kBlockwise || check_table<BlockwiseQuantization>(v, 5)) && check_scalar<int32_t>(v, 6) &&
           v.end_table();
  }
};

class Tensor : public Table {
 public:
  Values<int32_t> shape() const { return values<int32_t>(0); }
  int8_t type() const { return scalar<int8_t>(1, 0); }
  uint32_t buffer() const { return scalar<uint32_t>(2, 0); }
  std::string_view name() const { return text(3); }
  const QuantizationParameters* quantization() const { return table<QuantizationParameters>(4); }
  bool is_variable() const { return scalar<uint8_t>(5, 0) != 0; }
  const SparsityParameters* sparsity() const { return table<SparsityParameters>(6); }
  Values<int32_t> shape_signature() const { return values<int32_t>(7); }
  bool has_rank() const { return scalar<uint8_t>(8, 0) != 0; }
  uint32_t external_buffer() const { return scalar<uint32_t>(10, 0); }
  bool Verify(Verifier& v) const {
    return begin(v) && check_values<int32_t>(v, 0) && check_scalar<int8_t>(v, 1) && check_scalar<uint32_t>(v, 2) &&
           check_text(v, 3) && check_table<QuantizationParameters>(v, 4) && check_scalar<uint8_t>(v, 5) &&
           check_table<SparsityParameters>(v, 6) && check_values<int32_t>(v, 7) && check_scalar<uint8_t>(v, 8) &&
           check_scalar<uint32_t>(v, 10) && v.end_table();
  }
};

// The options tables are left unverified here: decode_options checks while it reads.
class Operator : public Table {
 public:
  uint32_t opcode_index() const { return scalar<uint32_t>(0, 0); }
  Values<int32_t> inputs() const { return values<int32_t>(1); }
  Values<int32_t> outputs() const { return values<int32_t>(2); }
  uint8_t options_type() const { return scalar<uint8_t>(3, 0); }
  const uint8_t* options() const { return target(4); }
  Values<uint8_t> custom_options() const { return values<uint8_t>(5); }
  Values<int32_t> intermediates() const { return values<int32_t>(8); }
  uint64_t large_custom_options_offset() const { return scalar<uint64_t>(9, 0); }
  uint64_t large_custom_options_size() const { return scalar<uint64_t>(10, 0); }
  uint8_t options_2_type() const { return scalar<uint8_t>(11, 0); }
  const uint8_t* options_2() const { return target(12); }
  bool Verify(Verifier& v) const {
    return begin(v) && check_scalar<uint32_t>(v, 0) && check_values<int32_t>(v, 1) && check_values<int32_t>(v, 2) &&
           check_scalar<uint8_t>(v, 3) && check_offset(v, 4) && check_values<uint8_t>(v, 5) &&
           check_values<int32_t>(v, 8) && check_scalar<uint64_t>(v, 9) && check_scalar<uint64_t>(v, 10) &&
           check_scalar<uint8_t>(v, 11) && check_offset(v, 12) && v.end_table();
  }
};

class SubGraph : public Table {
 public:
  Tables<Tensor> tensors() const { return tables<Tensor>(0); }
  Values<int32_t> inputs() const { return values<int32_t>(1); }
  Values<int32_t> outputs() const { return values<int32_t>(2); }
  Tables<Operator> operators() const { return tables<Operator>(3); }
  std::string_view name() const { return text(4); }
  bool Verify(Verifier& v) const {
    return begin(v) && check_tables<Tensor>(v, 0) && check_values<int32_t>(v, 1) && check_values<int32_t>(v, 2) &&
           check_tables<Operator>(v, 3) && check_text(v, 4) && v.end_table();
  }
};

class OperatorCode : public Table {
 public:
  int8_t deprecated_builtin_code() const { return scalar<int8_t>(0, 0); }
  std::string_view custom_code() const { return text(1); }
  int32_t version() const { return scalar<int32_t>(2, 1); }
  int32_t builtin_code() const { return scalar<int32_t>(3, 0); }
  bool Verify(Verifier& v) const {
    return begin(v) && check_scalar<int8_t>(v, 0) && check_text(v, 1) && check_scalar<int32_t>(v, 2) &&
           check_scalar<int32_t>(v, 3) && v.end_table();
  }
};

// Bytes inside the flatbuffer, or (offset > 1) at an absolute offset of the file.
class Buffer : public Table {
 public:
  Values<uint8_t> data() const { return values<uint8_t>(0); }
  uint64_t offset() const { return scalar<uint64_t>(1, 0); }
  uint64_t size() const { return scalar<uint64_t>(2, 0); }
  bool Verify(Verifier& v) const {
    return begin(v) && check_values<uint8_t>(v, 0) && check_scalar<uint64_t>(v, 1) && check_scalar<uint64_t>(v, 2) &&
           v.end_table();
  }
};

class Metadata : public Table {
 public:
  std::string_view name() const { return text(0); }
  uint32_t buffer() const { return scalar<uint32_t>(1, 0); }
  bool Verify(Verifier& v) const {
    return begin(v) && check_text(v, 0) && check_scalar<uint32_t>(v, 1) && v.end_table();
  }
};

class TensorMap : public Table {
 public:
  std::string_view name() const { return text(0); }
  uint32_t tensor_index() const { return scalar<uint32_t>(1, 0); }
  bool Verify(Verifier& v) const {
    return begin(v) && check_text(v, 0) && check_scalar<uint32_t>(v, 1) && v.end_table();
  }
};

class SignatureDefTable : public Table {
 public:
  Tables<TensorMap> inputs() const { return tables<TensorMap>(0); }
  Tables<TensorMap> outputs() const { return tables<TensorMap>(1); }
  std::string_view signature_key() const { return text(2); }
  uint32_t subgraph_index() const { return scalar<uint32_t>(4, 0); }
  bool Verify(Verifier& v) const {
    return begin(v) && check_tables<TensorMap>(v, 0) && check_tables<TensorMap>(v, 1) && check_text(v, 2) &&
           check_scalar<uint32_t>(v, 4) && v.end_table();
  }
};

class Model : public Table {
 public:
  uint32_t version() const { return scalar<uint32_t>(0, 0); }
  Tables<OperatorCode> operator_codes() const { return tables<OperatorCode>(1); }
  Tables<SubGraph> subgraphs() const { return tables<SubGraph>(2); }
  std::string_view description() const { return text(3); }
  Tables<Buffer> buffers() const { return tables<Buffer>(4); }
  Tables<Metadata> metadata() const { return tables<Metadata>(6); }
  Tables<SignatureDefTable> signature_defs() const { return tables<SignatureDefTable>(7); }
  bool Verify(Verifier& v) const {
    return begin(v) && check_scalar<uint32_t>(v, 0) && check_tables<OperatorCode>(v, 1) &&
           check_tables<SubGraph>(v, 2) && check_text(v, 3) && check_tables<Buffer>(v, 4) &&
           check_tables<Metadata>(v, 6) && check_tables<SignatureDefTable>(v, 7) && v.end_table();
  }
};

}  // namespace schema
}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_SCHEMA_TABLES_H
