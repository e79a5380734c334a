// RESIZE_NEAREST_NEIGHBOR on NHWC to the constant size [height, width] of input 1: each output cell is one input cell.
// Positions are computed in float as TFLite does: floor, with aligned corners the nearest (halves away from zero).
// Rows: batch * output height + y.
#ifndef ONEWEIGHT_OPS_RESIZE_NEAREST_NEIGHBOR_H
#define ONEWEIGHT_OPS_RESIZE_NEAREST_NEIGHBOR_H

#include <algorithm>
#include <cmath>

#include "oneweight/ops/resize.h"
#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct ResizeNearestNeighbor {
  static bool accepts(const NodeTypes& t) { return t.input_count == 2 && accepts_moved<0>(t); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::resize_nearest_neighbor,
                                .types = "all of whole bytes",
                                .accepts = &accepts,
                                .prepare = &prepare};
};

struct ResizeNearestNeighborParams {
  ResizeGeometry geometry;
  int64_t pixel_bytes = 0;
  const int32_t* columns = nullptr;  // input column of each output column
  const int32_t* lines = nullptr;    // input row of each output row
};

#if ONEWEIGHT_HAS_KERNELS
namespace resize_nearest {
template <class T>
void copy_pixels(const std::byte* from, std::byte* to, const int32_t* columns, int64_t count) {
  for (int64_t x = 0; x < count; ++x)
    std::memcpy(to + x * static_cast<int64_t>(sizeof(T)), from + columns[x] * static_cast<int64_t>(sizeof(T)),
                sizeof(T));
}

inline void kernel(const KernelArgs& args) {
  const auto& p = args.params<ResizeNearestNeighborParams>();
  const ResizeGeometry& g = p.geometry;
  const int64_t in_line = g.x.in * p.pixel_bytes, out_line = g.x.out * p.pixel_bytes;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int64_t y = row % g.y.out;
    std::byte* to = args.out<std::byte>(0) + row * out_line;
    if (row > args.rows.begin && y > 0 && p.lines[y] == p.lines[y - 1]) {
      std::memcpy(to, to - out_line, static_cast<size_t>(out_line));
      continue;
    }
    const std::byte* from = args.in<std::byte>(0) + (row / g.y.out * g.y.in + p.lines[y]) * in_line;
    switch (p.pixel_bytes) {
      case 1: copy_pixels<uint8_t>(from, to, p.columns, g.x.out); break;
      case 2: copy_pixels<uint16_t>(from, to, p.columns, g.x.out); break;
      case 4: copy_pixels<uint32_t>(from, to, p.columns, g.x.out); break;
      case 8: copy_pixels<uint64_t>(from, to, p.columns, g.x.out); break;
      default:
        for (int64_t x = 0; x < g.x.out; ++x)
          std::memcpy(to + x * p.pixel_bytes, from + p.columns[x] * p.pixel_bytes, static_cast<size_t>(p.pixel_bytes));
    }
  }
}

inline RowRange input_rows(const void* params, RowRange rows) {
  const auto& p = *static_cast<const ResizeNearestNeighborParams*>(params);
  return resize_rows(p.geometry, rows, [&](int64_t y) { return RowRange{p.lines[y], p.lines[y] + 1}; });
}
}  // namespace resize_nearest

ONEWEIGHT_INLINE Status ResizeNearestNeighbor::prepare(Preparation& p) {
  ResizeNearestNeighborParams* params = p.make_params<ResizeNearestNeighborParams>();
  if (!params) return p.no_memory();
  ResizeGeometry& g = params->geometry;
  const bool align_corners = p.options().get<bool>(0, false), half_pixel = p.options().get<bool>(1, false);
  ONEWEIGHT_RETURN_IF_ERROR(prepare_resize(p, align_corners, half_pixel, &g));
  int64_t element = 0;
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, p.input(0), &element));
  params->pixel_bytes = g.channels * element;
  int32_t* columns = p.derived<int32_t>(g.x.out);
  int32_t* lines = p.derived<int32_t>(g.y.out);
  if (!columns || !lines) return p.no_memory();
  const auto place = [&](const ResizeAxis& axis, int32_t* to) {
    for (int64_t i = 0; i < axis.out; ++i) {
      const float at = (static_cast<float>(i) + (half_pixel ? 0.5f : 0.0f)) * axis.scale;
      const auto nearest = static_cast<int64_t>(align_corners ? std::round(at) : std::floor(at));
      to[i] = static_cast<int32_t>(std::clamp<int64_t>(nearest, 0, std::max<int64_t>(axis.in - 1, 0)));
    }
  };
  place(g.x, columns);
  place(g.y, lines);
  params->columns = columns, params->lines = lines;
  p.set_kernel(&resize_nearest::kernel, g.batch * g.y.out, &resize_nearest::input_rows);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_RESIZE_NEAREST_NEIGHBOR_H
