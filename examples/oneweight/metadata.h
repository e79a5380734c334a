// What a model file says about itself beside the graph: TFLite's metadata (a flatbuffer in the buffer "TFLITE_METADATA") and the
// files packed behind it (a zip archive). Everything in it may be missing or wrong; it is only used for defaults and names.
#ifndef ONEWEIGHT_EXAMPLES_METADATA_H
#define ONEWEIGHT_EXAMPLES_METADATA_H

#include <string>
#include <vector>

#include "oneweight/oneweight.h"

namespace program {

struct TensorMetadata {
  std::string name;
  std::vector<float> mean, std;     // normalised = (value - mean) / std, one number or one for each channel; empty: not stated
  std::string labels_file;          // of the values along the last axis, or of the values themselves
};
struct Metadata {
  std::string name;
  std::vector<TensorMetadata> inputs, outputs;  // in the order of the subgraph; may be shorter than it
};

// Of subgraph 0. Empty where there is none. Errors: invalid_data for a damaged flatbuffer.
oneweight::Expected<Metadata> read_metadata(const oneweight::ModelView& model);

// Lines of a text file. Errors: not_found, io_error.
oneweight::Expected<std::vector<std::string>> read_lines(const std::string& path);
// Lines of a text file packed into the model; with an empty name, of its only text file whose name has "label" in it.
// Errors: not_found, unsupported (compressed), invalid_data.
oneweight::Expected<std::vector<std::string>> packed_lines(const oneweight::ModelView& model, const std::string& name);

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_METADATA_H
