// Shapes: up to eight 64-bit extents, products checked for overflow.
#ifndef ONEWEIGHT_BASE_SHAPE_H
#define ONEWEIGHT_BASE_SHAPE_H

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include "oneweight/base/types.h"

namespace oneweight {
inline namespace v1 {

inline constexpr int kMaxRank = 8;

// a * b for non-negative a and b; false when it does not fit.
constexpr bool checked_multiply(int64_t a, int64_t b, int64_t* product) {
  if (a != 0 && b > std::numeric_limits<int64_t>::max() / a) return false;
  *product = a * b;
  return true;
}

// Extents in elements, outermost first; row-major. Rank 0 is a scalar with one element.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) {
    for (int64_t e : extents) push_back(e);
  }

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return extents_[axis]; }
  int64_t& operator[](int axis) { return extents_[axis]; }
  const int64_t* begin() const { return extents_; }
  const int64_t* end() const { return extents_ + rank_; }
  // Ignored beyond kMaxRank; callers check ranks of the file before.
  void push_back(int64_t extent) {
    if (rank_ < kMaxRank) extents_[rank_++] = extent;
  }
  void resize(int rank, int64_t fill = 1) {
    while (rank_ < rank && rank_ < kMaxRank) extents_[rank_++] = fill;
    rank_ = rank < kMaxRank ? rank : kMaxRank;
  }

  // Product of all extents, or -1 when an extent is negative or the product of those that are not 0 passes 2^58: strides
  // of tensors without elements stay in range, too.
  int64_t elements() const {
    int64_t product = 1;
    bool empty = false;
    for (int i = 0; i < rank_; ++i) {
      if (extents_[i] < 0) return -1;
      empty |= extents_[i] == 0;
      if (extents_[i] != 0 && (!checked_multiply(product, extents_[i], &product) || product > (int64_t{1} << 58))) return -1;
    }
    return empty ? 0 : product;
  }
  // The same over axes [first, last).
  int64_t elements(int first, int last) const {
    int64_t product = 1;
    for (int i = first; i < last; ++i)
      if (extents_[i] < 0 || !checked_multiply(product, extents_[i], &product)) return -1;
    return product;
  }
  // Bytes of a tensor of this shape, or -1 when they do not fit or the type has no fixed size.
  // Sub-byte types are packed, the last byte is padded.
  int64_t bytes(TensorType type) const {
    const int64_t n = elements();
    int64_t bits = 0;
    if (n < 0 || tensor_type_bits(type) == 0 || !checked_multiply(n, tensor_type_bits(type), &bits)) return -1;
    return bits > std::numeric_limits<int64_t>::max() - 7 ? -1 : (bits + 7) / 8;
  }

  std::string to_string() const {
    std::string text = "[";
    for (int i = 0; i < rank_; ++i) text += (i ? ", " : "") + std::to_string(extents_[i]);
    return text + "]";
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.extents_[i] != b.extents_[i]) return false;
    return true;
  }

 private:
  int64_t extents_[kMaxRank] = {};
  int32_t rank_ = 0;
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_BASE_SHAPE_H
