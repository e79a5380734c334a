// Arithmetic, activations and conversions element by element. (Included once per target: see opset/all.h.)
#include "oneweight/ops/add.h"
#include "oneweight/ops/add_n.h"
#include "oneweight/ops/cast.h"
#include "oneweight/ops/complex_parts.h"
#include "oneweight/ops/cumsum.h"
#include "oneweight/ops/fake_quant.h"
#include "oneweight/ops/l2_normalization.h"
#include "oneweight/ops/local_response_normalization.h"
#include "oneweight/ops/prelu.h"
#include "oneweight/ops/quantize.h"
#include "oneweight/ops/relu.h"
#include "oneweight/ops/softmax.h"
#include "oneweight/ops/unary.h"

#ifndef ONEWEIGHT_OPSET_ELEMENTWISE_H
#define ONEWEIGHT_OPSET_ELEMENTWISE_H
#include "oneweight/opset/opset.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using Elementwise =
    OpSet<Add, Sub, Mul, Relu, Relu6, ReluN1To1, Relu0To1, LeakyRelu, Prelu, Softmax, LogSoftmax, Quantize, Dequantize, WidenHalf, Cast,
          Logistic, Tanh, HardSwish, Exp, Log, Sqrt, Rsqrt, Square, Abs, Neg, Sin, Cos, Floor, Ceil, Round, Sign, Elu, Gelu,
          AddN, ZerosLike, Cumsum, L2Normalization, FakeQuant, ComplexAbs, Real, Imag, LocalResponseNormalization>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_ELEMENTWISE_H
