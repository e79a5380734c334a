// Which float constants of a model can be stored in fewer bytes, and the model's file with those that can.
#ifndef ONEWEIGHT_EXAMPLES_SHRINK_MODEL_H
#define ONEWEIGHT_EXAMPLES_SHRINK_MODEL_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "oneweight/model/model_view.h"

namespace program {

// half: weights become half constants behind a DEQUANTIZE, which all kernels that multiply by weights read in place.
// int8: weights of CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED become int8 with a scale for each output channel; what they
// are multiplied by is quantised while the model runs ("dynamic range").
enum class Storage { half, int8 };

struct KeptConstant {
  std::string reason;  // "is ...", "has ...": goes on after the tensor's name
  std::string name;
  int64_t bytes = 0;
};

struct ShrunkModel {
  std::vector<std::byte> file;  // empty: nothing can be shrunk
  int converted = 0;            // constants: what several tensors share counts once
  int64_t bytes_before = 0, bytes_after = 0;              // of these constants
  int64_t values = 0, became_zero = 0, became_denormal = 0;  // half: non-zero values that are too small for it
  std::vector<KeptConstant> kept;                         // the other float constants, in the file's order
};

// Errors: those of copy_model.
oneweight::Expected<ShrunkModel> shrink_model(const oneweight::ModelView& model, Storage storage);

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_SHRINK_MODEL_H
