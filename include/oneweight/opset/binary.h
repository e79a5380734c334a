// Comparisons, logic, selection and arithmetic on two operands that is rarely hot. (Included once per target: see opset/all.h.)
#include "oneweight/ops/arithmetic.h"
#include "oneweight/ops/comparison.h"
#include "oneweight/ops/logical.h"
#include "oneweight/ops/minimum_maximum.h"
#include "oneweight/ops/quantized_arithmetic.h"
#include "oneweight/ops/select.h"
#include "oneweight/ops/stablehlo_elementwise.h"

#ifndef ONEWEIGHT_OPSET_BINARY_H
#define ONEWEIGHT_OPSET_BINARY_H
#include "oneweight/opset/opset.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using Binary = OpSet<Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, LogicalAnd, LogicalOr, LogicalNot, Maximum, Minimum,
                     Select, SelectV2, Div, QuantizedDiv, FloorDiv, FloorMod, Pow, SquaredDifference,
                     QuantizedSquaredDifference, Atan2, BitwiseXor, RightShift,
                     StablehloAdd, StablehloMultiply, StablehloMaximum, StablehloMinimum, StablehloAnd, StablehloShiftLeft>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_BINARY_H
