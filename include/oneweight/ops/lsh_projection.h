// LSH_PROJECTION: locality sensitive hashes of the items of input 1 (slices of its first axis, types of whole bytes). Each of the
// [hashes, bits] float seeds of input 0 gives a bit: whether the sum of the items' 64-bit FarmHash fingerprints (over the seed's
// bytes and the item's), each multiplied by its weight (input 2, optional), is above 0. Output int32: sparse (option 1) a number
// for each hash, its bits from the highest behind hash << bits; dense (2) a bit for each seed. Rows: hashes.
#ifndef ONEWEIGHT_OPS_LSH_PROJECTION_H
#define ONEWEIGHT_OPS_LSH_PROJECTION_H

#include <utility>

#include "oneweight/ops/strided_copy.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct LshProjection {
  struct Params {
    int64_t hashes = 0, bits = 0, items = 0, item_bytes = 0;
    bool dense = false;
  };
  static bool accepts(const NodeTypes& t) {
    return (t.input_count == 2 || t.input_count == 3) && t.in(0, TensorType::float32) && t.has_input[1] &&
           tensor_type_bits(t.inputs[1]) >= 8 && (!t.has_input[2] || t.in(2, TensorType::float32)) && t.out(0, TensorType::int32);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::lsh_projection, .types = "all of whole bytes", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
// FarmHash's 64-bit fingerprint of four bytes in front of a byte string.
namespace fingerprint {
inline constexpr uint64_t k0 = 0xc3a5c85c97cb3127u, k1 = 0xb492b66fbe98f273u, k2 = 0x9ae16a3b2f90404fu;
struct Text {
  const std::byte* head;  // four bytes
  const std::byte* tail;
  uint64_t byte(int64_t i) const { return static_cast<uint64_t>(i < 4 ? head[i] : tail[i - 4]); }
  uint64_t word(int64_t i, int bytes = 8) const {
    uint64_t value = 0;
    for (int k = 0; k < bytes; ++k) value |= byte(i + k) << (8 * k);
    return value;
  }
};
inline uint64_t turn(uint64_t x, int by) { return x >> by | x << (64 - by); }
inline uint64_t fold(uint64_t x) { return x ^ x >> 47; }
inline uint64_t mix(uint64_t a, uint64_t b, uint64_t by) { return fold((fold((a ^ b) * by) ^ b) * by) * by; }
using Pair = std::pair<uint64_t, uint64_t>;
// Of 32 bytes.
inline Pair absorb(const Text& s, int64_t i, uint64_t a, uint64_t b) {
  const uint64_t w = s.word(i), x = s.word(i + 8), y = s.word(i + 16), z = s.word(i + 24);
  a += w;
  b = turn(b + a + z, 21);
  const uint64_t c = a;
  a += x + y;
  b += turn(a, 44);
  return {a + z, b + c};
}
inline uint64_t of(const Text& s, int64_t n) {
  const auto length = static_cast<uint64_t>(n);
  const uint64_t by = k2 + length * 2;
  if (n < 8) return mix(length + (s.word(0, 4) << 3), s.word(n - 4, 4), by);
  if (n <= 16) {
    const uint64_t a = s.word(0) + k2, b = s.word(n - 8);
    return mix(turn(b, 37) * by + a, (turn(a, 25) + b) * by, by);
  }
  if (n <= 32) {
    const uint64_t a = s.word(0) * k1, b = s.word(8), c = s.word(n - 8) * by, d = s.word(n - 16) * k2;
    return mix(turn(a + b, 43) + turn(c, 30) + d, a + turn(b + k2, 18) + c, by);
  }
  if (n <= 64) {
    const uint64_t a = s.word(0) * k2, b = s.word(8), c = s.word(n - 8) * by, d = s.word(n - 16) * k2;
    const uint64_t y = turn(a + b, 43) + turn(c, 30) + d, z = mix(y, a + turn(b + k2, 18) + c, by);
    const uint64_t e = s.word(16) * by, f = s.word(24), g = (y + s.word(n - 32)) * by, h = (z + s.word(n - 24)) * by;
    return mix(turn(e + f, 43) + turn(g, 30) + h, e + turn(f + a, 18) + g, by);
  }
  uint64_t x = 81, y = x * k1 + 113, z = fold(y * k2 + 113) * k2, m = k1;
  Pair v{0, 0}, w{0, 0};
  x = x * k2 + s.word(0);
  const int64_t blocks = (n - 1) / 64 * 64, rest = (n - 1) % 64;
  for (int64_t i = 0; i <= blocks; i += 64) {
    const bool last = i == blocks;  // the last 64 bytes
    const int64_t at = last ? n - 64 : i;
    if (last) {
      m = k1 + ((z & 0xff) << 1);
      w.first += static_cast<uint64_t>(rest);
      v.first += w.first;
      w.first += v.first;
    }
    x = turn(x + y + v.first + s.word(at + 8), 37) * m;
    y = turn(y + v.second + s.word(at + 48), 42) * m;
    x ^= w.second * (last ? 9 : 1);
    y += v.first * (last ? 9 : 1) + s.word(at + 40);
    z = turn(z + w.first, 33) * m;
    v = absorb(s, at, v.second * m, x + w.first);
    w = absorb(s, at + 32, z + w.second, y + s.word(at + 16));
    std::swap(z, x);
  }
  return mix(mix(v.first, w.first, m) + fold(y) * k0 + z, mix(v.second, w.second, m) + x, m);
}
}  // namespace fingerprint

inline void lsh_projection_kernel(const KernelArgs& args) {
  const auto& p = args.params<LshProjection::Params>();
  for (int64_t hash = args.rows.begin; hash < args.rows.end; ++hash) {
    uint64_t signature = 0;
    for (int64_t bit = 0; bit < p.bits; ++bit) {
      fingerprint::Text text{args.in<std::byte>(0) + (hash * p.bits + bit) * 4, args.in<std::byte>(1)};
      double sum = 0;
      for (int64_t i = 0; i < p.items; ++i, text.tail += p.item_bytes) {
        const auto value = static_cast<double>(static_cast<int64_t>(fingerprint::of(text, 4 + p.item_bytes)));
        sum += args.in<std::byte>(2) ? static_cast<double>(Preparation::load<float>(args.in<std::byte>(2), i)) * value : value;
      }
      if (p.dense) args.out<int32_t>(0)[hash * p.bits + bit] = sum > 0;
      signature = signature << 1 | (sum > 0 ? 1 : 0);
    }
    if (!p.dense)
      args.out<int32_t>(0)[hash] = static_cast<int32_t>(static_cast<uint32_t>(signature + (static_cast<uint64_t>(hash) << p.bits)));
  }
}

ONEWEIGHT_INLINE Status LshProjection::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 3));
  const Operand &seeds = p.input(0), &items = p.input(1);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(seeds, 2, 2));
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(items, 1, kMaxRank));
  if (p.has_input(2) && (p.input(2).shape.rank() != 1 || p.input(2).shape[0] != items.shape[0]))
    return p.invalid("weights %s do not fit %s", p.describe(p.input(2)).c_str(), p.describe(items).c_str());
  const int type = p.options().get<int8_t>(0, 0);
  if (type != 1 && type != 2) return p.error(ErrorCode::unsupported, "type %d is neither sparse (1) nor dense (2)", type);
  if (seeds.shape[1] > 32)
    return p.invalid("%s gives %lld bits, more than 32", p.describe(seeds).c_str(), static_cast<long long>(seeds.shape[1]));
  Params* params = p.make_params<Params>();
  if (!params) return p.no_memory();
  params->hashes = seeds.shape[0], params->bits = seeds.shape[1], params->items = items.shape[0], params->dense = type == 2;
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, items, &params->item_bytes));
  params->item_bytes *= items.shape.elements(1, items.shape.rank());
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, Shape{params->dense ? params->hashes * params->bits : params->hashes}));
  p.set_kernel(&lsh_projection_kernel, params->hashes);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_LSH_PROJECTION_H
