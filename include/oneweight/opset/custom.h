// Custom operators of MediaPipe's models. (Included once per target: see opset/all.h. Convolution2DTransposeBias is with the
// convolutions, TFLite_Detection_PostProcess with the windows.)
#include "oneweight/ops/max_unpooling_2d.h"
#include "oneweight/ops/transform_landmarks.h"

#ifndef ONEWEIGHT_OPSET_CUSTOM_H
#define ONEWEIGHT_OPSET_CUSTOM_H
#include "oneweight/opset/opset.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using Custom = OpSet<MaxPoolingWithArgmax2D, MaxUnpooling2D, Landmarks2TransformMatrix, TransformLandmarks, TransformTensorBilinear, TransformTensor>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_CUSTOM_H
