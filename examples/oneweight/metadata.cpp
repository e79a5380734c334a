#include "metadata.h"

#include <cstring>
#include <fstream>
#include <string_view>

#include "oneweight/schema/tables.h"

namespace program {

using oneweight::ErrorCode;
using oneweight::make_error;

namespace {

namespace schema = oneweight::schema;

// Tables of TFLite's metadata_schema.fbs, by field number.
class NormalizationTable : public schema::Table {
 public:
  schema::Values<float> mean() const { return values<float>(0); }
  schema::Values<float> std() const { return values<float>(1); }
  bool Verify(schema::Verifier& v) const { return begin(v) && check_values<float>(v, 0) && check_values<float>(v, 1) && v.end_table(); }
};
class ProcessUnitTable : public schema::Table {
 public:
  static constexpr uint8_t kNormalization = 1;
  const NormalizationTable* normalization() const {
    return scalar<uint8_t>(0, 0) == kNormalization ? table<NormalizationTable>(1) : nullptr;
  }
  bool Verify(schema::Verifier& v) const {
    if (!begin(v) || !check_scalar<uint8_t>(v, 0)) return false;
    return (scalar<uint8_t>(0, 0) != kNormalization || check_table<NormalizationTable>(v, 1)) && v.end_table();
  }
};
class AssociatedFileTable : public schema::Table {
 public:
  static constexpr int8_t kAxisLabels = 2, kValueLabels = 3;
  std::string_view name() const { return text(0); }
  bool has_labels() const { return scalar<int8_t>(2, 0) == kAxisLabels || scalar<int8_t>(2, 0) == kValueLabels; }
  bool Verify(schema::Verifier& v) const { return begin(v) && check_text(v, 0) && check_scalar<int8_t>(v, 2) && v.end_table(); }
};
class TensorTable : public schema::Table {
 public:
  std::string_view name() const { return text(0); }
  schema::Tables<ProcessUnitTable> process_units() const { return tables<ProcessUnitTable>(4); }
  schema::Tables<AssociatedFileTable> files() const { return tables<AssociatedFileTable>(6); }
  bool Verify(schema::Verifier& v) const {
    return begin(v) && check_text(v, 0) && check_tables<ProcessUnitTable>(v, 4) && check_tables<AssociatedFileTable>(v, 6) && v.end_table();
  }
};
class SubgraphTable : public schema::Table {
 public:
  schema::Tables<TensorTable> inputs() const { return tables<TensorTable>(2); }
  schema::Tables<TensorTable> outputs() const { return tables<TensorTable>(3); }
  bool Verify(schema::Verifier& v) const { return begin(v) && check_tables<TensorTable>(v, 2) && check_tables<TensorTable>(v, 3) && v.end_table(); }
};
class ModelTable : public schema::Table {
 public:
  std::string_view name() const { return text(0); }
  schema::Tables<SubgraphTable> subgraphs() const { return tables<SubgraphTable>(3); }
  bool Verify(schema::Verifier& v) const { return begin(v) && check_text(v, 0) && check_tables<SubgraphTable>(v, 3) && v.end_table(); }
};

TensorMetadata describe(const TensorTable& from) {
  TensorMetadata to;
  to.name = from.name();
  const auto units = from.process_units();
  for (uint32_t i = 0; i < units.size(); ++i) {
    const NormalizationTable* n = units[i].normalization();
    if (!n || n->mean().size() == 0 || n->mean().size() != n->std().size()) continue;
    for (uint32_t c = 0; c < n->mean().size(); ++c) to.mean.push_back(n->mean()[c]), to.std.push_back(n->std()[c]);
    break;
  }
  const auto files = from.files();
  for (uint32_t i = 0; i < files.size() && to.labels_file.empty(); ++i)
    if (files[i].has_labels()) to.labels_file = files[i].name();
  return to;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

uint32_t number(std::span<const std::byte> bytes, size_t at, size_t width) {
  uint32_t value = 0;
  for (size_t i = 0; i < width; ++i) value |= std::to_integer<uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}
std::string_view text_at(std::span<const std::byte> bytes, size_t at, size_t size) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, size};
}

}  // namespace

oneweight::Expected<Metadata> read_metadata(const oneweight::ModelView& model) {
  Metadata result;
  for (const oneweight::MetadataDef& entry : model.metadata()) {
    if (entry.name != "TFLITE_METADATA" || entry.data.empty()) continue;
    const auto* bytes = reinterpret_cast<const uint8_t*>(entry.data.data());
    schema::Verifier verifier(bytes, entry.data.size(), 64, 100000);
    if (!verifier.verify_root<ModelTable>()) return make_error(ErrorCode::invalid_data, "the model's TFLITE_METADATA (%zu bytes) is damaged", entry.data.size());
    const auto& root = *reinterpret_cast<const ModelTable*>(bytes + schema::load<uint32_t>(bytes));
    result.name = root.name();
    if (root.subgraphs().size() == 0) break;
    const SubgraphTable& graph = root.subgraphs()[0];
    for (uint32_t i = 0; i < graph.inputs().size(); ++i) result.inputs.push_back(describe(graph.inputs()[i]));
    for (uint32_t i = 0; i < graph.outputs().size(); ++i) result.outputs.push_back(describe(graph.outputs()[i]));
    break;
  }
  return result;
}

oneweight::Expected<std::vector<std::string>> read_lines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return make_error(ErrorCode::not_found, "cannot open '%s'", path.c_str());
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return make_error(ErrorCode::io_error, "cannot read '%s'", path.c_str());
  return split_lines(text);
}

oneweight::Expected<std::vector<std::string>> packed_lines(const oneweight::ModelView& model, const std::string& name) {
  // The zip archive's directory is found from its end record; both are at the end of the model's file. (APPNOTE.TXT, 4.3.16 and 4.3.12.)
  constexpr size_t kEndRecord = 22, kEntry = 46, kLocalHeader = 30;
  const std::span<const std::byte> file = model.bytes();
  const auto wanted = name.empty() ? std::string("its labels") : "'" + name + "'";
  size_t end = file.size();
  for (size_t back = kEndRecord; back <= file.size() && back <= kEndRecord + 65535; ++back)
    if (number(file, file.size() - back, 4) == 0x06054b50) {
      end = file.size() - back;
      break;
    }
  if (end == file.size()) return make_error(ErrorCode::not_found, "no files are packed into the model (wanted: %s)", wanted.c_str());
  const auto damaged = [&](const char* what) { return make_error(ErrorCode::invalid_data, "the archive behind the model is damaged: %s", what); };
  const uint32_t entries = number(file, end + 10, 2), directory_bytes = number(file, end + 12, 4), directory_at = number(file, end + 16, 4);
  if (directory_bytes > end) return damaged("its directory is larger than the file");
  // Offsets count from the start of the archive, which may follow other bytes.
  size_t at = end - directory_bytes;
  if (directory_at > at) return damaged("its directory lies outside the file");
  const size_t base = at - directory_at;
  for (uint32_t i = 0; i < entries; ++i) {
    if (at + kEntry > end || number(file, at, 4) != 0x02014b50) return damaged("an entry of its directory is cut off");
    const uint32_t method = number(file, at + 10, 2), size = number(file, at + 20, 4), name_bytes = number(file, at + 28, 2);
    const uint32_t extra = number(file, at + 30, 2) + number(file, at + 32, 2), offset = number(file, at + 42, 4);
    if (at + kEntry + name_bytes > end) return damaged("a name is cut off");
    const std::string_view found = text_at(file, at + kEntry, name_bytes);
    at += kEntry + name_bytes + extra;
    if (name.empty() ? found.find("label") == found.npos || !found.ends_with(".txt") : found != name) continue;
    if (method != 0) return make_error(ErrorCode::unsupported, "'%s' in the model is compressed; unpack it with any zip program and pass it with --labels", std::string(found).c_str());
    const size_t header = base + offset;
    if (header + kLocalHeader > end || number(file, header, 4) != 0x04034b50) return damaged("a file's header lies outside");
    const size_t data = header + kLocalHeader + number(file, header + 26, 2) + number(file, header + 28, 2);
    if (data > end || size > end - data) return damaged("a file is cut off");
    return split_lines(text_at(file, data, size));
  }
  return make_error(ErrorCode::not_found, "%s is not packed into the model", wanted.c_str());
}

}  // namespace program
