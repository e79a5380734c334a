// The operators of this firmware. (No guard around the operators' includes: see oneweight/opset/all.h.)
#include "oneweight/ops/fully_connected.h"

#ifndef EMBEDDED_ONE_OPERATOR_H
#define EMBEDDED_ONE_OPERATOR_H
#include "oneweight/opset/opset.h"

using Operators = oneweight::OpSet<oneweight::FullyConnected<float, float>>;
#endif  // EMBEDDED_ONE_OPERATOR_H
