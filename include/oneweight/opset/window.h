// Pooling, reductions, resizing and detection. (Included once per target: see opset/all.h.)

#ifndef ONEWEIGHT_OPSET_WINDOW_H
#define ONEWEIGHT_OPSET_WINDOW_H
#include "oneweight/opset/opset.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using Window = OpSet<>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_WINDOW_H
