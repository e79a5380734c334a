// An operator's decoded options table.
#ifndef ONEWEIGHT_SCHEMA_OPTIONS_VIEW_H
#define ONEWEIGHT_SCHEMA_OPTIONS_VIEW_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "oneweight/base/config.h"

namespace oneweight {
inline namespace v1 {

// Scalar fields and vectors of an operator's options table, by field number of the TFLite schema. Raw
// bits are copied when the model is opened; the operator that reads them knows their types.
class OptionsView {
 public:
  struct Field {
    uint64_t bits = 0;
    bool present = false;
  };
  std::vector<Field> fields;
  // Field number, elements widened; float elements as their 32 bits, strings as their bytes.
  std::vector<std::pair<int, std::vector<int64_t>>> vectors;
  uint8_t type = 0;  // BuiltinOptions or BuiltinOptions2 union tag, 0 = none

  // Field `number` as T (an arithmetic type of at most 8 bytes), or `otherwise` when absent.
  template <class T>
  T get(int number, T otherwise) const {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    if (number < 0 || static_cast<size_t>(number) >= fields.size() || !fields[number].present) return otherwise;
    if constexpr (std::is_same_v<T, bool>) {
      return (fields[number].bits & 0xff) != 0;  // any byte but 0 is true
    } else {
      T value;
      std::memcpy(&value, &fields[number].bits, sizeof(T));
      return value;
    }
  }
  // A vector field, or null when absent.
  const std::vector<int64_t>* vector(int number) const {
    for (const auto& [n, values] : vectors)
      if (n == number) return &values;
    return nullptr;
  }
};

}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_SCHEMA_OPTIONS_VIEW_H
