// STABLEHLO_RNG_BIT_GENERATOR: random bits (int32, uint32, int64, uint64) out of a state (uint64) of a key and a counter. Algorithm
// 0 and 1: Philox 4x32, state [2] (the key is the counter's upper half) or [3]; 2: Threefry 2x32, state [2]. Output 0 is the state
// for the next call: the counter moved on by the blocks that were used.
#ifndef ONEWEIGHT_OPS_RNG_BIT_GENERATOR_H
#define ONEWEIGHT_OPS_RNG_BIT_GENERATOR_H

#include <algorithm>

#include "oneweight/ops/op.h"
#include "oneweight/ops/philox.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct RngBitGenerator {
  struct Params {
    int64_t words = 0;  // of 32 bits
    int32_t state = 2;  // elements
    bool threefry = false;
  };
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 1 && t.in(0, TensorType::uint64) && t.out(0, TensorType::uint64) &&
           (t.out(1, TensorType::int32) || t.out(1, TensorType::uint32) || t.out(1, TensorType::int64) || t.out(1, TensorType::uint64));
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = BuiltinOperator::stablehlo_rng_bit_generator,
                                .types = "int32, uint32, int64, uint64",
                                .accepts = &accepts,
                                .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
// Threefry 2x32 with twenty rounds, of the same paper as Philox.
inline void threefry_2x32(uint64_t key, uint64_t counter, uint32_t* words) {
  constexpr int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  const uint32_t keys[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
  uint32_t a = static_cast<uint32_t>(counter) + keys[0], b = static_cast<uint32_t>(counter >> 32) + keys[1];
  for (uint32_t i = 0; i < 5; ++i) {
    for (int r = 0; r < 4; ++r) {
      const int by = rotations[i % 2 * 4 + static_cast<uint32_t>(r)];
      a += b;
      b = (b << by | b >> (32 - by)) ^ a;
    }
    a += keys[(i + 1) % 3];
    b += keys[(i + 2) % 3] + i + 1;
  }
  words[0] = a, words[1] = b;
}

inline void rng_bit_generator_kernel(const KernelArgs& args) {
  const auto& p = args.params<RngBitGenerator::Params>();
  uint64_t state[3] = {};
  std::memcpy(state, args.in<std::byte>(0), static_cast<size_t>(p.state) * sizeof(uint64_t));
  std::byte* out = args.out<std::byte>(1);
  const int64_t block = p.threefry ? 2 : 4;
  uint64_t high = p.state == 3 ? state[2] : state[0];
  for (int64_t i = 0; i < p.words; i += block) {
    uint32_t words[4];
    if (p.threefry)
      threefry_2x32(state[0], state[1], words);
    else
      philox_4x32(state[0], state[1], high, words);
    std::memcpy(out + i * 4, words, static_cast<size_t>(std::min(block, p.words - i)) * 4);
    if (++state[1] == 0 && !p.threefry) ++high;
  }
  if (p.state == 3) state[2] = high;
  std::memcpy(args.out<std::byte>(0), state, static_cast<size_t>(p.state) * sizeof(uint64_t));
}

ONEWEIGHT_INLINE Status RngBitGenerator::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1, 2));
  const Operand& state = p.input(0);
  Params* params = p.make_params<Params>();
  if (!params) return p.no_memory();
  const int algorithm = p.options().get<int8_t>(0, 0);
  if (algorithm < 0 || algorithm > 2) return p.error(ErrorCode::unsupported, "algorithm %d is not supported", algorithm);
  params->threefry = algorithm == 2;
  const int64_t size = state.shape.rank() == 1 ? state.shape[0] : 0;
  if (size != 2 && (size != 3 || params->threefry))
    return p.invalid("state %s does not fit algorithm %d", p.describe(state).c_str(), algorithm);
  params->state = static_cast<int32_t>(size);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, state.shape));
  const Shape shape = p.output(1).shape;
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(1, shape));
  params->words = shape.bytes(p.output(1).type) / 4;
  p.set_kernel(&rng_bit_generator_kernel);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_RNG_BIT_GENERATOR_H
