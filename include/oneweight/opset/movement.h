// Operators that move elements: shapes, slices, joins. (Included once per target: see opset/all.h.)
#include "oneweight/ops/reshape.h"

#ifndef ONEWEIGHT_OPSET_MOVEMENT_H
#define ONEWEIGHT_OPSET_MOVEMENT_H
#include "oneweight/opset/opset.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using Movement = OpSet<Reshape>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_MOVEMENT_H
