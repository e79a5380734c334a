// Matrix products and convolutions. (Included once per target: see opset/all.h.)
#include "oneweight/ops/conv_2d.h"
#include "oneweight/ops/fully_connected.h"

#ifndef ONEWEIGHT_OPSET_MATRIX_H
#define ONEWEIGHT_OPSET_MATRIX_H
#include "oneweight/opset/opset.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using Matrix = OpSet<Conv2D<half, float>, Conv2D<float, float>, FullyConnected<half, float>, FullyConnected<float, float>>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_MATRIX_H
