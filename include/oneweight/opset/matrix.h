// Matrix products and convolutions. (Included once per target: see opset/all.h.)
#include "oneweight/ops/batch_matmul.h"
#include "oneweight/ops/conv_2d.h"
#include "oneweight/ops/conv_3d.h"
#include "oneweight/ops/depthwise_conv_2d.h"
#include "oneweight/ops/fully_connected.h"
#include "oneweight/ops/quantized_batch_matmul.h"
#include "oneweight/ops/quantized_product.h"
#include "oneweight/ops/quantized_transpose_conv.h"
#include "oneweight/ops/transpose_conv.h"

#ifndef ONEWEIGHT_OPSET_MATRIX_H
#define ONEWEIGHT_OPSET_MATRIX_H
#include "oneweight/opset/opset.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using Matrix = OpSet<Conv2D<half, float>, Conv2D<float, float>, FullyConnected<half, float>, FullyConnected<float, float>,
                     Conv2D<int8_t, int8_t>, Conv2D<uint8_t, uint8_t>, Conv2D<int8_t, float>, Conv2D<int8_t, int16_t>,
                     FullyConnected<int8_t, int8_t>, FullyConnected<uint8_t, uint8_t>, FullyConnected<int8_t, float>,
                     FullyConnected<int8_t, int16_t>, DepthwiseConv2D<half, float>, DepthwiseConv2D<float, float>,
                     DepthwiseConv2D<int8_t, int8_t>, DepthwiseConv2D<uint8_t, uint8_t>, DepthwiseConv2D<int8_t, float>,
                     DepthwiseConv2D<int8_t, int16_t>, BatchMatMul<half, float>, BatchMatMul<float, float>,
                     BatchMatMul<int8_t, int8_t>, BatchMatMul<int16_t, int16_t>, BatchMatMul<int8_t, float>, TransposeConv<half, float>,
                     TransposeConv<float, float>, TransposeConv<int8_t, int8_t>, TransposeConv<uint8_t, uint8_t>,
                     TransposeConv<int8_t, float>, TransposeConv<int8_t, int16_t>, Convolution2DTransposeBias<half>,
                     Convolution2DTransposeBias<float>, Conv3D<half>, Conv3D<float>, Conv3DTranspose<half>, Conv3DTranspose<float>>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_MATRIX_H
