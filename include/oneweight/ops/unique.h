// UNIQUE: the different elements of a vector in the order in which they first occur, and (output 1: int32 or int64) the place
// of each element among them. float, int8, uint8, int16, int32, int64; NaN differs from itself. As many as there are when the
// input is constant, else as many as the file gives the output, which is checked while running. Scratch: a table of places: at
// most 5 n + 2 int32.
#ifndef ONEWEIGHT_OPS_UNIQUE_H
#define ONEWEIGHT_OPS_UNIQUE_H

#include <algorithm>

#include "oneweight/ops/op.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct Unique {
  struct Params {
    int64_t count = 0, places = 0, table = 2;  // elements, different ones, a power of two
    bool wide = false;                         // places are int64
  };
  static bool accepts(const NodeTypes& t) {
    switch (t.inputs[0]) {
      case TensorType::float32:
      case TensorType::int8:
      case TensorType::uint8:
      case TensorType::int16:
      case TensorType::int32:
      case TensorType::int64: break;
      default: return false;
    }
    return t.input_count == 1 && t.out(0, t.inputs[0]) && (t.out(1, TensorType::int32) || t.out(1, TensorType::int64));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::unique, .types = "float, int8, uint8, int16, int32, int64", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
namespace unique {
// Calls found(number of the element, its place) for every element and returns how many places there are. table: 2^k entries, more
// than there are elements; first(place): number of the element that opened a place.
template <class T, class First, class Found>
int64_t walk(const std::byte* data, int64_t count, int32_t* table, int64_t size, First first, Found found) {
  std::fill(table, table + size, -1);
  int64_t places = 0;
  for (int64_t i = 0; i < count; ++i) {
    const T value = Preparation::load<T>(data, i);
    uint64_t bits = 0;
    if (!(value == T{0})) std::memcpy(&bits, &value, sizeof(T));  // -0 is 0
    if (!(value == value)) {  // NaN equals nothing: a place of its own
      if (!found(i, places)) return places + 1;
      ++places;
      continue;
    }
    bits = (bits ^ (bits >> 33)) * 0xff51afd7ed558ccdu;
    bits = (bits ^ (bits >> 33)) * 0xc4ceb9fe1a85ec53u;
    uint64_t slot = bits ^ (bits >> 33);
    for (;; ++slot) {
      int32_t& entry = table[slot & static_cast<uint64_t>(size - 1)];
      if (entry < 0) {
        if (!found(i, places)) return places + 1;
        entry = static_cast<int32_t>(places++);
        break;
      }
      if (Preparation::load<T>(data, first(entry)) == value) {
        found(i, entry);
        break;
      }
    }
  }
  return places;
}

// Scratch: the table, then the number of the element that opened each place.
template <class T>
void kernel(const KernelArgs& args) {
  const auto& p = args.params<Unique::Params>();
  auto* table = reinterpret_cast<int32_t*>(args.scratch);
  int32_t* first = table + p.table;
  const std::byte* data = args.in<std::byte>(0);
  int64_t next = 0;
  const int64_t places = walk<T>(
      data, p.count, table, p.table, [&](int64_t place) { return first[place]; },
      [&](int64_t i, int64_t place) {
        if (place >= p.places) return false;
        if (place == next) {
          first[next++] = static_cast<int32_t>(i);
          args.out<T>(0)[place] = Preparation::load<T>(data, i);
        }
        if (p.wide)
          args.out<int64_t>(1)[i] = place;
        else
          args.out<int32_t>(1)[i] = static_cast<int32_t>(place);
        return true;
      });
  if (places > p.places)
    args.run->fail(ErrorCode::invalid_data, "has more than the %lld different elements of its output", static_cast<long long>(p.places));
  else if (places < p.places)
    args.run->fail(ErrorCode::invalid_data, "has %lld different elements, its output %lld", static_cast<long long>(places),
                   static_cast<long long>(p.places));
}

template <class T>
Status prepare_type(Preparation& p, Unique::Params* params) {
  const Operand& input = p.input(0);
  params->places = p.output(0).shape.rank() == 1 ? p.output(0).shape[0] : 0;
  if (input.is_constant && input.data) {
    std::vector<int32_t> table(static_cast<size_t>(params->table)), first(static_cast<size_t>(params->count));
    params->places = walk<T>(
        input.data, params->count, table.data(), params->table, [&](int64_t place) { return first[static_cast<size_t>(place)]; },
        [&, next = int64_t{0}](int64_t i, int64_t place) mutable {
          if (place == next) first[static_cast<size_t>(next++)] = static_cast<int32_t>(i);
          return true;
        });
  } else if (params->count <= 1) {
    params->places = params->count;
  } else if (p.output(0).shape.rank() != 1 || params->places > params->count) {
    return p.error(ErrorCode::unsupported, "the shape of its output depends on the values of %s", p.describe(input).c_str());
  }
  p.set_kernel(&kernel<T>);
  return p.set_output(0, Shape{params->places});
}
}  // namespace unique

ONEWEIGHT_INLINE Status Unique::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1, 2));
  const Operand& input = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(input, 1, 1));
  Params* params = p.make_params<Params>();
  if (!params) return p.no_memory();
  params->count = input.shape[0];
  if (params->count > (int64_t{1} << 28))
    return p.error(ErrorCode::unsupported, "%s has more than 2^28 elements", p.describe(input).c_str());
  while (params->table < 2 * params->count) params->table *= 2;
  params->wide = p.output(1).type == TensorType::int64;
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(1, input.shape));
  p.set_scratch((params->table + params->count) * static_cast<int64_t>(sizeof(int32_t)));
  switch (input.type) {
    case TensorType::float32: return unique::prepare_type<float>(p, params);
    case TensorType::int8: return unique::prepare_type<int8_t>(p, params);
    case TensorType::uint8: return unique::prepare_type<uint8_t>(p, params);
    case TensorType::int16: return unique::prepare_type<int16_t>(p, params);
    case TensorType::int32: return unique::prepare_type<int32_t>(p, params);
    default: return unique::prepare_type<int64_t>(p, params);
  }
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_UNIQUE_H
