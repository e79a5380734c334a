// A program's own list of operators: what is not named here is neither compiled nor linked. (No guard around the
// operators' includes: with dynamic dispatch they are read once for each processor target.)
#include "oneweight/ops/fully_connected.h"

#ifndef ONE_OPERATOR_H
#define ONE_OPERATOR_H
#include "oneweight/opset/opset.h"

using OneOperator = oneweight::OpSet<oneweight::FullyConnected<float, float>>;
#endif  // ONE_OPERATOR_H
