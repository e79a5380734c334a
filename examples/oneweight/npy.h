// NumPy's array files (.npy): C order, little endian, versions 1.0 to 3.0 read, 1.0 written.
#ifndef ONEWEIGHT_EXAMPLES_NPY_H
#define ONEWEIGHT_EXAMPLES_NPY_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "oneweight/base/status.h"
#include "oneweight/base/types.h"

namespace program {

struct Array {
  oneweight::TensorType type = oneweight::TensorType::float32;
  size_t item_bytes = 4;       // of one element; strings: the fixed length NumPy pads to with zeros
  std::vector<int64_t> shape;  // empty: a scalar
  std::vector<std::byte> data;

  int64_t elements() const {
    int64_t n = 1;
    for (int64_t e : shape) n *= e;
    return n;
  }
  std::string shape_text() const;
};

// Errors: not_found, io_error, invalid_data (no npy file, truncated), unsupported (type, Fortran order, big endian).
oneweight::Expected<Array> read_npy(const std::string& path);
// Errors: io_error, unsupported (types NumPy does not have).
oneweight::Status write_npy(const std::string& path, const Array& array);

// "float32", "bool", ...: NumPy's name of the type that holds tensors of `type`. Types of less than a byte
// are held as int8 or uint8, one element a byte.
const char* numpy_name(oneweight::TensorType type);

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_NPY_H
