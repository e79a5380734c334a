// The operators whose steps are counted. (No guard around the operators' includes: see oneweight/opset/all.h.)
#include "oneweight/ops/unary.h"

#ifndef ONEWEIGHT_TESTS_OVERHEAD_OPERATORS_H
#define ONEWEIGHT_TESTS_OVERHEAD_OPERATORS_H
#include "oneweight/opset/opset.h"

using Operators = oneweight::OpSet<oneweight::Unary<oneweight::function::Abs>>;
#endif  // ONEWEIGHT_TESTS_OVERHEAD_OPERATORS_H
