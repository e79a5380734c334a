// Arithmetic, activations and conversions element by element. (Included once per target: see opset/all.h.)

#ifndef ONEWEIGHT_OPSET_ELEMENTWISE_H
#define ONEWEIGHT_OPSET_ELEMENTWISE_H
#include "oneweight/opset/opset.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using Elementwise = OpSet<>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_ELEMENTWISE_H
