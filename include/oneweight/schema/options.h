// Decodes an operator's options table without knowing its type's fields: raw bits of what lies inline,
// and the vectors of the types that have some.
#ifndef ONEWEIGHT_SCHEMA_OPTIONS_H
#define ONEWEIGHT_SCHEMA_OPTIONS_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "oneweight/schema/options_view.h"
#include "oneweight/schema/tables.h"

namespace oneweight {
inline namespace v1 {
namespace schema {

enum class OptionsUnion : uint8_t { options = 1, options_2 = 2 };  // BuiltinOptions, BuiltinOptions2
enum class OptionsElement : uint8_t { int32, int64, uint32, uint8, float_bits };

// A vector (or string: uint8) field of an options table.
struct OptionsVectorField {
  OptionsUnion in;
  uint8_t type;  // union tag
  uint8_t field;
  OptionsElement element;
};

inline constexpr OptionsVectorField kOptionsVectorFields[] = {
    {OptionsUnion::options, 3, 1, OptionsElement::int32},  // ConcatEmbeddingsOptions
    {OptionsUnion::options, 3, 2, OptionsElement::int32},
    {OptionsUnion::options, 8, 5, OptionsElement::uint8},    // FullyConnectedOptions quant_spec
    {OptionsUnion::options, 17, 0, OptionsElement::int32},   // ReshapeOptions new_shape
    {OptionsUnion::options, 30, 0, OptionsElement::int32},   // SqueezeOptions squeeze_dims
    {OptionsUnion::options, 111, 0, OptionsElement::uint8},  // VarHandleOptions container, shared_name
    {OptionsUnion::options, 111, 1, OptionsElement::uint8},
    {OptionsUnion::options, 115, 0, OptionsElement::float_bits},  // BucketizeOptions boundaries
    {OptionsUnion::options_2, 2, 0, OptionsElement::int64},       // StablehloBroadcastInDimOptions
    {OptionsUnion::options_2, 3, 0, OptionsElement::int64},       // StablehloSliceOptions
    {OptionsUnion::options_2, 3, 1, OptionsElement::int64},
    {OptionsUnion::options_2, 3, 2, OptionsElement::int64},
    {OptionsUnion::options_2, 4, 0, OptionsElement::int64},  // StablehloConvolutionOptions
    {OptionsUnion::options_2, 4, 1, OptionsElement::int64},
    {OptionsUnion::options_2, 4, 2, OptionsElement::int64},
    {OptionsUnion::options_2, 4, 3, OptionsElement::int64},
    {OptionsUnion::options_2, 4, 4, OptionsElement::uint8},
    {OptionsUnion::options_2, 4, 7, OptionsElement::int64},
    {OptionsUnion::options_2, 4, 10, OptionsElement::int64},
    {OptionsUnion::options_2, 4, 13, OptionsElement::int64},
    {OptionsUnion::options_2, 4, 16, OptionsElement::uint32},
    {OptionsUnion::options_2, 5, 0, OptionsElement::uint8},  // StablehloCustomCallOptions
    {OptionsUnion::options_2, 5, 2, OptionsElement::uint8},
    {OptionsUnion::options_2, 5, 4, OptionsElement::int32},
    {OptionsUnion::options_2, 5, 5, OptionsElement::uint8},
    {OptionsUnion::options_2, 6, 0, OptionsElement::int64},  // StablehloReduceOptions
    {OptionsUnion::options_2, 7, 1, OptionsElement::int64},  // StablehloScatterOptions
    {OptionsUnion::options_2, 7, 2, OptionsElement::int64},
    {OptionsUnion::options_2, 7, 3, OptionsElement::int64},
    {OptionsUnion::options_2, 9, 0, OptionsElement::int64},   // StablehloDynamicSliceOptions
    {OptionsUnion::options_2, 10, 0, OptionsElement::int64},  // StablehloPadOptions
    {OptionsUnion::options_2, 10, 1, OptionsElement::int64},
    {OptionsUnion::options_2, 10, 2, OptionsElement::int64},
    {OptionsUnion::options_2, 12, 0, OptionsElement::int64},  // StablehloDotGeneralOptions
    {OptionsUnion::options_2, 12, 1, OptionsElement::int64},
    {OptionsUnion::options_2, 12, 2, OptionsElement::int64},
    {OptionsUnion::options_2, 12, 3, OptionsElement::int64},
    {OptionsUnion::options_2, 12, 4, OptionsElement::uint32},
    {OptionsUnion::options_2, 13, 0, OptionsElement::int64},  // StablehloReduceWindowOptions
    {OptionsUnion::options_2, 13, 1, OptionsElement::int64},
    {OptionsUnion::options_2, 13, 2, OptionsElement::int64},
    {OptionsUnion::options_2, 13, 3, OptionsElement::int64},
    {OptionsUnion::options_2, 13, 4, OptionsElement::int64},
    {OptionsUnion::options_2, 16, 0, OptionsElement::int64},  // StablehloGatherOptions
    {OptionsUnion::options_2, 16, 1, OptionsElement::int64},
    {OptionsUnion::options_2, 16, 2, OptionsElement::int64},
    {OptionsUnion::options_2, 16, 4, OptionsElement::int64},
    {OptionsUnion::options_2, 17, 0, OptionsElement::int64},  // StablehloTransposeOptions
    {OptionsUnion::options_2, 21, 0, OptionsElement::uint8},  // StableHLOCompositeOptions
    {OptionsUnion::options_2, 21, 2, OptionsElement::uint8},
    {OptionsUnion::options_2, 23, 0, OptionsElement::int32},  // StablehloCaseOptions
};

// Reads the table at `position` of `file`. Checks everything it reads and asks `charge(bytes)` before it
// allocates; false when the table is damaged or the charge was refused.
template <class Charge>
bool decode_options(std::span<const std::byte> file, size_t position, OptionsUnion in, uint8_t type, Charge&& charge,
                    OptionsView* options) {
  const std::byte* base = file.data();
  const size_t size = file.size();
  const auto fits = [size](size_t at, uint64_t bytes) { return at <= size && bytes <= size - at; };
  if (!fits(position, sizeof(int32_t))) return false;
  const int64_t vtable_at = static_cast<int64_t>(position) - load<int32_t>(base + position);
  if (vtable_at < 0 || !fits(static_cast<size_t>(vtable_at), 4)) return false;
  const std::byte* vtable = base + vtable_at;
  const uint16_t vtable_size = load<uint16_t>(vtable);
  const uint16_t table_size = load<uint16_t>(vtable + 2);
  if (vtable_size < 4 || vtable_size % 2 != 0 || !fits(static_cast<size_t>(vtable_at), vtable_size)) return false;
  if (table_size < 4 || !fits(position, table_size)) return false;

  const size_t count = (vtable_size - 4u) / 2u;
  if (!charge(count * sizeof(OptionsView::Field))) return false;
  options->type = type;
  options->fields.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const uint16_t offset = load<uint16_t>(vtable + 4 + 2 * i);
    if (offset == 0) continue;
    if (offset < 4 || offset >= table_size) return false;
    options->fields[i].present = true;
    std::memcpy(&options->fields[i].bits, base + position + offset, std::min<size_t>(8, table_size - offset));
  }

  for (const OptionsVectorField& f : kOptionsVectorFields) {
    if (f.in != in || f.type != type || f.field >= count || !options->fields[f.field].present) continue;
    const uint16_t offset = load<uint16_t>(vtable + 4 + 2 * f.field);
    if (offset + sizeof(uint32_t) > table_size) return false;
    const size_t at = position + offset;
    const uint32_t step = load<uint32_t>(base + at);
    if (!fits(at, uint64_t{step} + sizeof(uint32_t))) return false;
    const uint32_t n = load<uint32_t>(base + at + step);
    const std::byte* from = base + at + step + sizeof(uint32_t);
    const uint32_t width = f.element == OptionsElement::int64 ? 8 : f.element == OptionsElement::uint8 ? 1 : 4;
    if (!fits(at + step + sizeof(uint32_t), uint64_t{n} * width)) return false;
    if (!charge(sizeof(options->vectors[0]) + uint64_t{n} * sizeof(int64_t))) return false;
    std::vector<int64_t> values(n);
    for (uint32_t i = 0; i < n; ++i, from += width) {
      switch (f.element) {
        case OptionsElement::int32: values[i] = load<int32_t>(from); break;
        case OptionsElement::int64: values[i] = load<int64_t>(from); break;
        case OptionsElement::uint8: values[i] = load<uint8_t>(from); break;
        case OptionsElement::uint32:
        case OptionsElement::float_bits: values[i] = load<uint32_t>(from); break;
      }
    }
    options->vectors.emplace_back(f.field, std::move(values));
  }
  return true;
}

}  // namespace schema
}  // namespace v1
}  // namespace oneweight

#endif  // ONEWEIGHT_SCHEMA_OPTIONS_H
