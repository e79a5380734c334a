// Control flow and variables. (Included once per target: see opset/all.h.)
#include "oneweight/ops/call_once.h"
#include "oneweight/ops/if.h"
#include "oneweight/ops/stablehlo_calls.h"
#include "oneweight/ops/variable.h"
#include "oneweight/ops/while.h"

#ifndef ONEWEIGHT_OPSET_CONTROL_H
#define ONEWEIGHT_OPSET_CONTROL_H
#include "oneweight/opset/opset.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using Control = OpSet<If, While, CallOnce, VarHandle, ReadVariable, AssignVariable, StablehloCase, StablehloComposite>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_CONTROL_H
