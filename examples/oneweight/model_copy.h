// Writes a model's file anew, with some of its parts changed. Everything else is copied: tables with all their fields (also
// those that this library does not read), constants inside and behind the flatbuffer, and what follows, as a ZIP archive.
#ifndef ONEWEIGHT_EXAMPLES_MODEL_COPY_H
#define ONEWEIGHT_EXAMPLES_MODEL_COPY_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "oneweight/base/status.h"
#include "oneweight/schema/builtin_operator.h"

namespace program {

// A tensor or an operator: numbers of the subgraph and of the part in it.
using PartId = std::pair<uint32_t, uint32_t>;

struct ModelChanges {
  // New contents of the bytes that begin at this address of the old file. All buffers that hold them share the new ones.
  struct Contents {
    size_t size = 0;
    std::function<void(std::byte*)> write;  // `size` bytes, called once
  };
  std::map<const std::byte*, Contents> contents;
  // These constants become int8, with one scale for each index along `axis`.
  struct Quantized {
    std::vector<float> scales;
    int32_t axis = 0;
  };
  std::map<PartId, Quantized> quantized;
  // These float constants become the outputs of new DEQUANTIZE operators, at the beginning of their subgraphs, whose inputs
  // are new half constants with the old name and buffer.
  std::set<PartId> widened;
  // These operators get at least this version and, where it is not negative, true in this field of their options (of that type).
  struct Operator {
    int32_t version = 1;
    uint8_t options_type = 0;
    int true_field = -1;
  };
  std::map<PartId, Operator> operators;
};

// `file` is a whole file that ModelView has opened. Errors: invalid_model (damaged where ModelView does not look), unsupported
// (parts of a newer schema that may hold offsets, operators ordered by number with DEQUANTIZE to be inserted, more than 2 GiB),
// out_of_memory.
oneweight::Expected<std::vector<std::byte>> copy_model(std::span<const std::byte> file, const ModelChanges& changes);

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_MODEL_COPY_H
