// Index tensors of GATHER, SCATTER_ND and their like, and elements of half a byte.
#ifndef ONEWEIGHT_OPS_INDICES_H
#define ONEWEIGHT_OPS_INDICES_H

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

inline bool is_index_type(const NodeTypes& t, int input) {
  return t.in(input, TensorType::int32) || t.in(input, TensorType::int64) || t.in(input, TensorType::int16);
}
inline int64_t load_index(const std::byte* data, TensorType type, int64_t i) {
  switch (type) {
    case TensorType::int64: return Preparation::load<int64_t>(data, i);
    case TensorType::int16: return Preparation::load<int16_t>(data, i);
    default: return Preparation::load<int32_t>(data, i);
  }
}

// Elements of 4 bits, the first of a byte in its low half.
inline uint8_t load_nibble(const std::byte* data, int64_t i) {
  return static_cast<uint8_t>((static_cast<uint8_t>(data[i / 2]) >> (i % 2 * 4)) & 15);
}
// Writes in order: the high half of the last byte is cleared when the next element is not written.
inline void copy_nibbles(const std::byte* from, int64_t from_at, std::byte* to, int64_t to_at, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t value = load_nibble(from, from_at + i);
    std::byte& byte = to[(to_at + i) / 2];
    byte = (to_at + i) % 2 == 0 ? static_cast<std::byte>(value) : byte | static_cast<std::byte>(value << 4);
  }
}

// Offsets of slices addressed by rows of an index matrix (GATHER_ND, SCATTER_ND).
struct IndexRows {
  int depth = 0;
  TensorType type = TensorType::int32;
  int64_t extents[kMaxRank] = {}, strides[kMaxRank] = {};  // strides in elements of the indexed tensor

  // False, with an error that names the index, when row r points outside.
  bool offset(const std::byte* indices, int64_t r, RunState* run, int64_t* at) const {
    *at = 0;
    for (int i = 0; i < depth; ++i) {
      const int64_t index = load_index(indices, type, r * depth + i);
      if (index < 0 || index >= extents[i]) {
        run->fail(ErrorCode::invalid_data,
                  "index %lld in row %lld of the indices is outside the %lld entries of axis %d",
                  static_cast<long long>(index), static_cast<long long>(r), static_cast<long long>(extents[i]), i);
        return false;
      }
      *at += index * strides[i];
    }
    return true;
  }
};

inline void make_index_rows(const Shape& indexed, int depth, TensorType type, IndexRows* rows) {
  rows->depth = depth;
  rows->type = type;
  int64_t stride = indexed.elements(depth, indexed.rank());
  for (int i = depth - 1; i >= 0; --i) {
    rows->extents[i] = indexed[i];
    rows->strides[i] = stride;
    stride *= indexed[i];
  }
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_INDICES_H
