// Operators that move elements: shapes, slices, joins. (Included once per target: see opset/all.h.)
#include "oneweight/ops/arg_max.h"
#include "oneweight/ops/batch_space_nd.h"
#include "oneweight/ops/bitcast.h"
#include "oneweight/ops/broadcast_args.h"
#include "oneweight/ops/broadcast_to.h"
#include "oneweight/ops/bucketize.h"
#include "oneweight/ops/concatenation.h"
#include "oneweight/ops/densify.h"
#include "oneweight/ops/depth_to_space.h"
#include "oneweight/ops/dilate.h"
#include "oneweight/ops/dynamic_update_slice.h"
#include "oneweight/ops/embedding_lookup.h"
#include "oneweight/ops/embedding_lookup_sparse.h"
#include "oneweight/ops/expand_dims.h"
#include "oneweight/ops/fill.h"
#include "oneweight/ops/gather.h"
#include "oneweight/ops/gather_nd.h"
#include "oneweight/ops/hashtable_lookup.h"
#include "oneweight/ops/lsh_projection.h"
#include "oneweight/ops/matrix_diag.h"
#include "oneweight/ops/mirror_pad.h"
#include "oneweight/ops/one_hot.h"
#include "oneweight/ops/pack.h"
#include "oneweight/ops/pad.h"
#include "oneweight/ops/random.h"
#include "oneweight/ops/range.h"
#include "oneweight/ops/reshape.h"
#include "oneweight/ops/reverse_sequence.h"
#include "oneweight/ops/reverse_v2.h"
#include "oneweight/ops/rng_bit_generator.h"
#include "oneweight/ops/scatter_nd.h"
#include "oneweight/ops/segments.h"
#include "oneweight/ops/shape_of.h"
#include "oneweight/ops/slice.h"
#include "oneweight/ops/sparse_to_dense.h"
#include "oneweight/ops/split.h"
#include "oneweight/ops/squeeze.h"
#include "oneweight/ops/stablehlo_gather.h"
#include "oneweight/ops/strided_slice.h"
#include "oneweight/ops/tile.h"
#include "oneweight/ops/topk_v2.h"
#include "oneweight/ops/transpose.h"
#include "oneweight/ops/unique.h"

#ifndef ONEWEIGHT_OPSET_MOVEMENT_H
#define ONEWEIGHT_OPSET_MOVEMENT_H
#include "oneweight/opset/opset.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace opset {
using Movement = OpSet<Reshape, Concatenation, Pad, PadV2, Squeeze, ExpandDims, StridedSlice, Slice, Transpose, Split, SplitV, Pack, Unpack,
                       GatherStored, Gather, GatherNd, ShapeOf, RankOf, Tile, BroadcastTo, ReverseV2, DepthToSpace, SpaceToDepth, Fill, Range,
                       ArgMax, ArgMin, SpaceToBatchNd, BatchToSpaceNd, MirrorPad, OneHot, TopKV2, DynamicUpdateSlice, ReverseSequence,
                       MatrixDiag, MatrixSetDiag, SparseToDense, ScatterNd, EmbeddingLookupStored, EmbeddingLookup, Densify, Bitcast,
                       BroadcastArgs, Bucketize, Dilate, StablehloPad, EmbeddingLookupSparse, HashtableLookup, SegmentSum,
                       UnsortedSegmentSum, UnsortedSegmentProd, UnsortedSegmentMax, UnsortedSegmentMin, StablehloGather, StablehloScatter, Unique,
                       RandomUniform, RandomStandardNormal, Multinomial, RngBitGenerator, LshProjection>;
}  // namespace opset
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPSET_MOVEMENT_H
