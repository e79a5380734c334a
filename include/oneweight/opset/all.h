// Every operator. The group headers have no guard of their own: with dynamic dispatch they are included once
// for each processor target, and each operator file compiles its kernels anew.
#include "oneweight/opset/binary.h"
#include "oneweight/opset/control.h"
#include "oneweight/opset/custom.h"
#include "oneweight/opset/elementwise.h"
#include "oneweight/opset/matrix.h"
#include "oneweight/opset/movement.h"
#include "oneweight/opset/recurrent.h"
#include "oneweight/opset/window.h"

#ifndef ONEWEIGHT_OPSET_ALL_H
#define ONEWEIGHT_OPSET_ALL_H

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using All = Join<Binary, Control, Matrix, Elementwise, Movement, Window, Recurrent, Custom>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_ALL_H
