// Numbers and vectors of integers out of a flexbuffer map, the form of many custom operators' options. Reads by hand, and nothing outside the
// bytes.
#ifndef ONEWEIGHT_SCHEMA_FLEXBUFFER_H
#define ONEWEIGHT_SCHEMA_FLEXBUFFER_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "oneweight/base/config.h"

namespace oneweight {
inline namespace v1 {

// A map whose root is the whole buffer. Values that are not numbers, or lie outside, count as absent.
class FlexMap {
 public:
  // False when the bytes hold no map.
  bool open(std::span<const std::byte> bytes) {
    bytes_ = bytes;
    const size_t size = bytes.size();
    if (size < 3) return false;
    const uint64_t width = byte_at(size - 1), type = byte_at(size - 2);
    if ((type >> 2) != kMap || !is_width(width) || size - 2 < width) return false;
    return follow(size - 2 - width, width, &elements_) && open_map(uint64_t{1} << (type & 3));
  }
  bool has(std::string_view name) const {
    Number number;
    return find(name, &number);
  }
  int64_t get_int(std::string_view name, int64_t otherwise) const {
    Number n;
    if (!find(name, &n)) return otherwise;
    if (!n.is_real) return n.whole;
    return n.real > -9e18 && n.real < 9e18 ? static_cast<int64_t>(n.real) : otherwise;
  }
  double get_real(std::string_view name, double otherwise) const {
    Number n;
    if (!find(name, &n)) return otherwise;
    return n.is_real ? n.real : static_cast<double>(n.whole);
  }
  bool get_bool(std::string_view name, bool otherwise) const { return get_int(name, otherwise ? 1 : 0) != 0; }
  // A vector of integers, typed or not; false, and *values as it was, when there is none.
  bool get_ints(std::string_view name, std::vector<int64_t>* values) const {
    size_t entry = 0, start = 0;
    if (!entry_of(name, &entry)) return false;
    const uint64_t packed = packed_type(entry), type = packed >> 2, width = uint64_t{1} << (packed & 3);
    const bool fixed = type >= kVectorInt2 && type < kVectorInt2 + 9;
    const uint64_t element = fixed ? (type - kVectorInt2) % 3 + kInt : type == kVector ? 0 : type - kVectorInt + kInt;
    if (type != kVector && element != kInt && element != kUint) return false;
    uint64_t count = fixed ? (type - kVectorInt2) / 3 + 2 : 0;
    if (!follow(elements_ + entry * static_cast<size_t>(width_), width_, &start)) return false;
    if (!fixed && (start < width || !load(start - static_cast<size_t>(width), width, &count))) return false;
    const uint64_t each = width + (type == kVector ? 1 : 0);
    if (count > (bytes_.size() - start) / each) return false;
    std::vector<int64_t> found;
    for (uint64_t i = 0; i < count; ++i) {
      Number number;
      const uint64_t kind = type == kVector ? byte_at(start + static_cast<size_t>(count * width + i)) : element << 2;
      if (!read(start + static_cast<size_t>(i * width), kind, width, &number) || number.is_real) return false;
      found.push_back(number.whole);
    }
    *values = std::move(found);
    return true;
  }

 private:
  // Value types of the format.
  static constexpr uint64_t kInt = 1, kUint = 2, kReal = 3, kIndirectInt = 6, kIndirectUint = 7, kIndirectReal = 8,
                            kMap = 9, kVector = 10, kVectorInt = 11, kVectorInt2 = 16, kBool = 26;
  struct Number {
    bool is_real = false;
    int64_t whole = 0;
    double real = 0;
  };

  static bool is_width(uint64_t width) { return width == 1 || width == 2 || width == 4 || width == 8; }
  uint64_t byte_at(size_t i) const { return static_cast<uint8_t>(bytes_[i]); }
  bool load(size_t at, uint64_t width, uint64_t* value) const {
    if (at > bytes_.size() || width > bytes_.size() - at) return false;
    *value = 0;
    std::memcpy(value, bytes_.data() + at, static_cast<size_t>(width));
    return true;
  }
  // The place that the offset at `at` points back to.
  bool follow(size_t at, uint64_t width, size_t* place) const {
    uint64_t back = 0;
    if (!load(at, width, &back) || back > at) return false;
    *place = at - static_cast<size_t>(back);
    return true;
  }
  bool open_map(uint64_t width) {
    width_ = width;
    if (elements_ < 3 * width) return false;
    uint64_t keys = 0;
    return load(elements_ - width, width, &count_) && load(elements_ - 2 * width, width, &key_width_) &&
           is_width(key_width_) && follow(elements_ - 3 * width, width, &keys_) && keys_ >= key_width_ &&
           load(keys_ - key_width_, key_width_, &keys) && keys == count_ && count_ <= bytes_.size() / (width + 1) &&
           elements_ + count_ * (width + 1) <= bytes_.size();
  }
  bool find(std::string_view name, Number* number) const {
    size_t entry = 0;
    return entry_of(name, &entry) && read(elements_ + entry * static_cast<size_t>(width_), packed_type(entry), width_, number);
  }
  uint64_t packed_type(size_t entry) const { return byte_at(elements_ + static_cast<size_t>(count_ * width_) + entry); }
  // Which entry has this name.
  bool entry_of(std::string_view name, size_t* entry) const {
    for (uint64_t i = 0; i < count_; ++i) {
      size_t key = 0;
      if (!follow(keys_ + static_cast<size_t>(i * key_width_), key_width_, &key)) return false;
      if (bytes_.size() - key <= name.size() || std::memcmp(bytes_.data() + key, name.data(), name.size()) != 0 ||
          byte_at(key + name.size()) != 0)
        continue;
      *entry = static_cast<size_t>(i);
      return true;
    }
    return false;
  }
  // The number of this packed type at `at`, in a vector of elements of `width` bytes.
  bool read(size_t at, uint64_t packed, uint64_t width, Number* number) const {
    uint64_t type = packed >> 2, bits = 0;
    if (type >= kIndirectInt && type <= kIndirectReal) {
      if (!follow(at, width, &at)) return false;
      width = uint64_t{1} << (packed & 3);
      type -= kIndirectInt - kInt;
    }
    if (!load(at, width, &bits)) return false;
    if (type == kReal) {
      number->is_real = true;
      if (width == 4) {
        float value;
        std::memcpy(&value, &bits, sizeof(value));
        number->real = static_cast<double>(value);
      } else if (width == 8) {
        std::memcpy(&number->real, &bits, sizeof(number->real));
      }
      return width >= 4;
    }
    if (type != kInt && type != kUint && type != kBool) return false;
    if (type == kInt && width < 8) {
      const uint64_t sign = uint64_t{1} << (8 * width - 1);
      bits = (bits ^ sign) - sign;
    }
    number->whole = static_cast<int64_t>(bits);
    return true;
  }

  std::span<const std::byte> bytes_;
  size_t elements_ = 0, keys_ = 0;
  uint64_t width_ = 1, key_width_ = 1, count_ = 0;
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_SCHEMA_FLEXBUFFER_H
