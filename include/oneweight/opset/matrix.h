// Matrix products and convolutions. (Included once per target: see opset/all.h.)

#ifndef ONEWEIGHT_OPSET_MATRIX_H
#define ONEWEIGHT_OPSET_MATRIX_H
#include "oneweight/opset/opset.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using Matrix = OpSet<>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_MATRIX_H
