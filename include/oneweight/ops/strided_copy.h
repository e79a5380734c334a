// Copies a block of elements between two tensors, each walked with its own strides: the engine of SLICE, TRANSPOSE,
// SPLIT, PACK, TILE, DEPTH_TO_SPACE and their like. Works on element sizes, not types.
#ifndef ONEWEIGHT_OPS_STRIDED_COPY_H
#define ONEWEIGHT_OPS_STRIDED_COPY_H

#include <algorithm>

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

// Strides and offsets in bytes; strides may be negative or (on the reading side) 0.
struct StridedCopy {
  static constexpr int kMaxAxes = 2 * kMaxRank;
  int rank = 0;
  int64_t run = 1;  // bytes that lie together on both sides
  int64_t from_offset = 0, to_offset = 0;
  int64_t extents[kMaxAxes] = {}, from[kMaxAxes] = {}, to[kMaxAxes] = {};

  // Outermost axis first; then finish().
  void add_axis(int64_t extent, int64_t from_stride, int64_t to_stride) {
    if (rank >= kMaxAxes) return;
    extents[rank] = extent, from[rank] = from_stride, to[rank] = to_stride;
    ++rank;
  }
  // Merges axes that are walked alike and orders the last two for the copy. Elements of `element` bytes.
  void finish(int64_t element) {
    run = element;
    int n = 0;
    for (int i = 0; i < rank; ++i) {
      if (extents[i] == 1) continue;
      if (n > 0 && from[n - 1] == from[i] * extents[i] && to[n - 1] == to[i] * extents[i]) {
        extents[n - 1] *= extents[i], from[n - 1] = from[i], to[n - 1] = to[i];
      } else {
        extents[n] = extents[i], from[n] = from[i], to[n] = to[i];
        ++n;
      }
    }
    rank = n;
    if (rank > 0 && from[rank - 1] == run && to[rank - 1] == run) run *= extents[--rank];
    // The axis along which the reads lie together goes next to the last one, for a copy in square tiles.
    for (int i = 0; i + 2 < rank; ++i) {
      if (from[i] != run || to[rank - 1] != run) continue;
      for (int k = i; k + 2 < rank; ++k) {
        std::swap(extents[k], extents[k + 1]);
        std::swap(from[k], from[k + 1]);
        std::swap(to[k], to[k + 1]);
      }
      break;
    }
  }
  // Parts into which the copy can be cut: indices of the outermost axis.
  int64_t rows() const { return rank > 0 && extents[0] > 0 ? extents[0] : 1; }
};

struct StridedCopyParams {
  StridedCopy copy;
};

#if ONEWEIGHT_HAS_KERNELS
namespace strided_copy {
struct Bytes16 {
  uint64_t words[2];
};
// The last two axes, in tiles that stay in the nearest cache whichever side is the scattered one.
template <class T>
void copy_plane(const std::byte* from, std::byte* to, const int64_t* extents, const int64_t* fs, const int64_t* ts) {
  constexpr int64_t kTile = 16;
  const auto move = [](const std::byte* source, std::byte* target) {
    T value;
    std::memcpy(&value, source, sizeof(T));
    std::memcpy(target, &value, sizeof(T));
  };
  if (fs[0] != static_cast<int64_t>(sizeof(T))) {
    for (int64_t a = 0; a < extents[0]; ++a)
      for (int64_t b = 0; b < extents[1]; ++b) move(from + a * fs[0] + b * fs[1], to + a * ts[0] + b * ts[1]);
    return;
  }
  for (int64_t a = 0; a < extents[0]; a += kTile) {
    const int64_t a_end = std::min(a + kTile, extents[0]);
    for (int64_t b = 0; b < extents[1]; b += kTile) {
      const int64_t b_end = std::min(b + kTile, extents[1]);
      for (int64_t i = a; i < a_end; ++i)
        for (int64_t k = b; k < b_end; ++k) move(from + i * fs[0] + k * fs[1], to + i * ts[0] + k * ts[1]);
    }
  }
}
inline void copy_plane_of_runs(int64_t run, const std::byte* from, std::byte* to, const int64_t* extents,
                               const int64_t* fs, const int64_t* ts) {
  for (int64_t a = 0; a < extents[0]; ++a)
    for (int64_t b = 0; b < extents[1]; ++b)
      std::memcpy(to + a * ts[0] + b * ts[1], from + a * fs[0] + b * fs[1], static_cast<size_t>(run));
}
}  // namespace strided_copy

// Copies the part of the block with index in `rows` of the outermost axis (all of it when rank is 0).
inline void copy_strided(const StridedCopy& c, const std::byte* from, std::byte* to, RowRange rows) {
  from += c.from_offset, to += c.to_offset;
  int64_t extents[StridedCopy::kMaxAxes];
  std::copy(c.extents, c.extents + StridedCopy::kMaxAxes, extents);
  if (c.rank > 0) {
    const int64_t begin = std::min(rows.begin, extents[0]), end = std::min(rows.end, extents[0]);
    from += begin * c.from[0], to += begin * c.to[0];
    extents[0] = end - begin;
  } else if (rows.begin > 0) {
    return;
  }
  if (c.run <= 0) return;
  int64_t planes = 1;
  for (int i = 0; i < c.rank; ++i) {
    if (extents[i] <= 0) return;
    if (i + 2 < c.rank) planes *= extents[i];
  }
  const int outer = std::max(c.rank - 2, 0);
  int64_t plane[2] = {1, 1}, fs[2] = {}, ts[2] = {};
  for (int i = outer; i < c.rank; ++i) {
    const int at = i + 2 - c.rank;
    plane[at] = extents[i], fs[at] = c.from[i], ts[at] = c.to[i];
  }
  int64_t index[StridedCopy::kMaxAxes] = {};
  for (int64_t p = 0; p < planes; ++p) {
    switch (c.run) {
      case 1: strided_copy::copy_plane<uint8_t>(from, to, plane, fs, ts); break;
      case 2: strided_copy::copy_plane<uint16_t>(from, to, plane, fs, ts); break;
      case 4: strided_copy::copy_plane<uint32_t>(from, to, plane, fs, ts); break;
      case 8: strided_copy::copy_plane<uint64_t>(from, to, plane, fs, ts); break;
      case 16: strided_copy::copy_plane<strided_copy::Bytes16>(from, to, plane, fs, ts); break;
      default: strided_copy::copy_plane_of_runs(c.run, from, to, plane, fs, ts);
    }
    for (int i = outer - 1; i >= 0; --i) {
      from += c.from[i], to += c.to[i];
      if (++index[i] < extents[i]) break;
      from -= c.from[i] * extents[i], to -= c.to[i] * extents[i];
      index[i] = 0;
    }
  }
}

// Input 0 to output 0.
inline void strided_copy_kernel(const KernelArgs& args) {
  copy_strided(args.params<StridedCopyParams>().copy, args.in<std::byte>(0), args.out<std::byte>(0), args.rows);
}

// Bytes between neighbours along each axis of a dense tensor.
inline void dense_strides(const Shape& shape, int64_t element, int64_t* strides) {
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = element;
    element *= std::max<int64_t>(shape[i], 1);
  }
}

// Bytes of an element; an error for types without whole bytes.
inline Status element_bytes(const Preparation& p, const Operand& t, int64_t* bytes) {
  *bytes = tensor_type_bits(t.type) / 8;
  if (*bytes > 0) return {};
  return p.error(ErrorCode::unsupported, "%s: elements of less than a byte or of no fixed size are not supported",
                 p.describe(t).c_str());
}

inline Status set_strided_copy(Preparation& p, const StridedCopy& copy) {
  StridedCopyParams* params = p.make_params<StridedCopyParams>();
  if (!params) return p.no_memory();
  params->copy = copy;
  p.set_kernel(&strided_copy_kernel, copy.rows());
  return {};
}
#endif

// Operators that only move elements: input `data` and output 0 have one type, of whole bytes.
template <int data>
bool accepts_moved(const NodeTypes& t) {
  return t.input_count > data && t.has_input[data] && t.out(0, t.inputs[data]) && tensor_type_bits(t.inputs[data]) >= 8;
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_STRIDED_COPY_H
