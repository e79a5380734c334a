// Pooling, reductions, resizing, Fourier transforms and detection. (Included once per target: see opset/all.h.)
#include "oneweight/ops/audio_spectrogram.h"
#include "oneweight/ops/detection_postprocess.h"
#include "oneweight/ops/mfcc.h"
#include "oneweight/ops/non_max_suppression.h"
#include "oneweight/ops/pooling.h"
#include "oneweight/ops/reduce_window.h"
#include "oneweight/ops/reduction.h"
#include "oneweight/ops/resize_bilinear.h"
#include "oneweight/ops/resize_nearest_neighbor.h"
#include "oneweight/ops/rfft2d.h"

#ifndef ONEWEIGHT_OPSET_WINDOW_H
#define ONEWEIGHT_OPSET_WINDOW_H
#include "oneweight/opset/opset.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using Window = OpSet<AveragePool2D, MaxPool2D, L2Pool2D, Mean, Sum, ReduceMax, ReduceMin, ReduceProd, ReduceAny, ReduceAll, ResizeBilinear, ResizeNearestNeighbor,
                     Rfft2d, DetectionPostProcess, NonMaxSuppressionV4, NonMaxSuppressionV5, ReduceWindow, StablehloReduceWindow,
                     AudioSpectrogram, Mfcc>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_WINDOW_H
