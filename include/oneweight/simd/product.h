// What the kernels of matrix products are told; plain data, the same for every target.
#ifndef ONEWEIGHT_SIMD_PRODUCT_H
#define ONEWEIGHT_SIMD_PRODUCT_H

#include <limits>

#include "oneweight/plan/preparation.h"

namespace oneweight {
inline namespace v1 {

// How a product of floats is done: dot products straight on the weights; panels of weights used for many rows; few rows, transposed,
// against weights that are read once.
enum class ProductForm : uint8_t { dots, panels, broadcast };

// What happens to a sum before it is stored: bias, clamp (NaN passes), further activation.
struct Epilogue {
  const float* bias = nullptr;  // one for each channel, or null
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  bool clamps = false;
  FusedActivation::After after = FusedActivation::none;

  bool active() const { return clamps || after != FusedActivation::none; }
};
inline Epilogue make_epilogue(const float* bias, const FusedActivation& a) {
  const float infinity = std::numeric_limits<float>::infinity();
  return {bias, a.low, a.high, a.low > -infinity || a.high < infinity, a.after};
}

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_SIMD_PRODUCT_H
