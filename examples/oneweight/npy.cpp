#include "npy.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <string_view>

namespace program {

using oneweight::ErrorCode;
using oneweight::make_error;
using oneweight::TensorType;

namespace {

struct Descriptor {
  const char* code;  // without the byte order
  TensorType type;
  size_t bytes;
};
constexpr Descriptor kDescriptors[] = {
    {"f4", TensorType::float32, 4},   {"f2", TensorType::float16, 2},    {"f8", TensorType::float64, 8},
    {"i1", TensorType::int8, 1},      {"u1", TensorType::uint8, 1},      {"i2", TensorType::int16, 2},
    {"u2", TensorType::uint16, 2},    {"i4", TensorType::int32, 4},      {"u4", TensorType::uint32, 4},
    {"i8", TensorType::int64, 8},     {"u8", TensorType::uint64, 8},     {"b1", TensorType::boolean, 1},
    {"c8", TensorType::complex64, 8}, {"c16", TensorType::complex128, 16},
};

// The text after 'key': in the header's dictionary, or empty.
std::string_view value_of(std::string_view header, std::string_view key) {
  const size_t at = header.find("'" + std::string(key) + "'");
  if (at == header.npos) return {};
  const size_t colon = header.find(':', at);
  if (colon == header.npos) return {};
  const size_t start = header.find_first_not_of(' ', colon + 1);
  return start == header.npos ? std::string_view() : header.substr(start);
}

oneweight::Status parse_header(std::string_view header, Array* array) {
  const std::string_view descr = value_of(header, "descr"), order = value_of(header, "fortran_order"),
                         shape = value_of(header, "shape");
  if (descr.empty() || order.empty() || shape.empty() || descr[0] != '\'' || shape[0] != '(')
    return make_error(ErrorCode::invalid_data, "its header is damaged");
  const std::string code(descr.substr(1, descr.find('\'', 1) - 1));
  if (code.size() < 3) return make_error(ErrorCode::unsupported, "it has the type '%s'", code.c_str());
  const char* digits = code.c_str() + 1;
  bool known = false;
  if (code[1] == 'S') {
    array->type = TensorType::string;
    array->item_bytes = static_cast<size_t>(std::strtoul(digits + 1, nullptr, 10));
    known = array->item_bytes > 0 || code == "|S0";
  }
  for (const Descriptor& d : kDescriptors) {
    if (std::strcmp(digits, d.code) != 0) continue;
    array->type = d.type;
    array->item_bytes = d.bytes;
    known = code[0] == '<' || (d.bytes == 1 && (code[0] == '|' || code[0] == '>'));
  }
  if (!known) return make_error(ErrorCode::unsupported, "it has the type '%s'", code.c_str());
  size_t at = 1;
  while (true) {
    at = shape.find_first_not_of(" ,", at);
    if (at == shape.npos) return make_error(ErrorCode::invalid_data, "its header is damaged");
    if (shape[at] == ')') break;
    int64_t extent = 0;
    const size_t start = at;
    for (; at < shape.size() && shape[at] >= '0' && shape[at] <= '9' && extent < (int64_t{1} << 50); ++at)
      extent = extent * 10 + (shape[at] - '0');
    if (at == start) return make_error(ErrorCode::invalid_data, "its header is damaged");
    array->shape.push_back(extent);
  }
  if (order.substr(0, 4) == "True" && array->shape.size() > 1)
    return make_error(ErrorCode::unsupported, "it is in Fortran order");
  return {};
}

}  // namespace

std::string Array::shape_text() const {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

oneweight::Expected<Array> read_npy(const std::string& path) {
  const auto wrong = [&](const char* what) { return make_error(ErrorCode::invalid_data, "%s: %s", path.c_str(), what); };
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return make_error(ErrorCode::not_found, "%s cannot be read", path.c_str());
  const auto size = static_cast<uint64_t>(file.tellg());
  file.seekg(0);
  unsigned char start[12] = {};
  if (size < 10 || !file.read(reinterpret_cast<char*>(start), 10) || std::memcmp(start, "\x93NUMPY", 6) != 0)
    return wrong("it is not an npy file");
  uint64_t length = start[8] | start[9] << 8, begin = 10;
  if (start[6] >= 2) {
    if (start[6] > 3) return wrong("its version is unknown");
    if (!file.read(reinterpret_cast<char*>(start) + 10, 2)) return wrong("it is truncated");
    length |= static_cast<uint64_t>(start[10]) << 16 | static_cast<uint64_t>(start[11]) << 24;
    begin = 12;
  }
  if (length > size - begin) return wrong("it is truncated");
  std::string header(length, '\0');
  file.read(header.data(), static_cast<std::streamsize>(length));
  Array array;
  if (oneweight::Status status = parse_header(header, &array); !status.ok())
    return make_error(status.code(), "%s: %s", path.c_str(), status.message().c_str());
  uint64_t bytes = array.item_bytes;
  for (int64_t extent : array.shape) {
    if (extent != 0 && bytes > std::numeric_limits<uint64_t>::max() / static_cast<uint64_t>(extent))
      return wrong("its shape overflows");
    bytes *= static_cast<uint64_t>(extent);
  }
  if (bytes != size - begin - length)
    return make_error(ErrorCode::invalid_data, "%s: it holds %llu bytes of data, its shape %s needs %llu", path.c_str(),
                      static_cast<unsigned long long>(size - begin - length), array.shape_text().c_str(),
                      static_cast<unsigned long long>(bytes));
  array.data.resize(bytes);
  if (bytes && !file.read(reinterpret_cast<char*>(array.data.data()), static_cast<std::streamsize>(bytes)))
    return make_error(ErrorCode::io_error, "%s cannot be read to its end", path.c_str());
  return array;
}

oneweight::Status write_npy(const std::string& path, const Array& array) {
  std::string code;
  if (array.type == TensorType::string) code = "|S" + std::to_string(array.item_bytes);
  for (const Descriptor& d : kDescriptors)
    if (d.type == array.type) code = (d.bytes == 1 ? "|" : "<") + std::string(d.code);
  if (code.empty())
    return make_error(ErrorCode::unsupported, "%s: NumPy has no type %s", path.c_str(), tensor_type_name(array.type));
  std::string header = "{'descr': '" + code + "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : array.shape) header += std::to_string(extent) + ",";
  header += "), }";
  header.append(63 - (header.size() + 10) % 64, ' ');
  header += '\n';
  std::string start = "\x93NUMPY";
  start += '\1';
  start += '\0';
  start += static_cast<char>(header.size() & 0xff);
  start += static_cast<char>(header.size() >> 8);
  std::ofstream file(path, std::ios::binary);
  file << start << header;
  file.write(reinterpret_cast<const char*>(array.data.data()), static_cast<std::streamsize>(array.data.size()));
  if (!file.flush()) return make_error(ErrorCode::io_error, "%s cannot be written", path.c_str());
  return {};
}

const char* numpy_name(TensorType type) {
  if (type == TensorType::int4 || type == TensorType::int2) return "int8";
  if (type == TensorType::uint4) return "uint8";
  return tensor_type_name(type);
}

}  // namespace program
