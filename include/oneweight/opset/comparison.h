// Comparisons, logic and selection. (Included once per target: see opset/all.h.)
#include "oneweight/ops/comparison.h"
#include "oneweight/ops/logical.h"
#include "oneweight/ops/minimum_maximum.h"
#include "oneweight/ops/select.h"

#ifndef ONEWEIGHT_OPSET_COMPARISON_H
#define ONEWEIGHT_OPSET_COMPARISON_H
#include "oneweight/opset/opset.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using Comparison = OpSet<Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, LogicalAnd, LogicalOr, LogicalNot, Maximum, Minimum,
                         Select, SelectV2>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_COMPARISON_H
