// RANDOM_UNIFORM (in [0, 1)), RANDOM_STANDARD_NORMAL: float tensors of the shape in input 0. MULTINOMIAL: numbers of classes
// (int32, int64) drawn by the log-probabilities of input 0 [batch, classes], input 1 (int32) of them a row. Philox by the two
// seeds of the options: a context's sequence goes on from run to run and begins anew after reset(); with both seeds 0 every
// context has its own. A shape or count that is computed must be the one the file gives the output. Scratch: MULTINOMIAL: the
// sums of probabilities of one row, double.
#ifndef ONEWEIGHT_OPS_RANDOM_H
#define ONEWEIGHT_OPS_RANDOM_H

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

#include "oneweight/ops/op.h"
#include "oneweight/ops/philox.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

enum class RandomKind { uniform, normal, multinomial };

struct RandomParams {
  int64_t elements = 0, rows = 0, classes = 0;  // rows: of logits; elements: of the output, or of one row of it
  uint64_t seeds[2] = {};
  int64_t state = 0;  // offset of three uint64
  int32_t rank = 0;
  int64_t extents[kMaxRank] = {};  // what a computed shape must be
};

template <RandomKind kKind>
struct RandomBy {
  static constexpr bool kDraws = kKind == RandomKind::multinomial;
  static bool accepts(const NodeTypes& t) {
    if (kDraws)
      return t.input_count == 2 && t.in(0, TensorType::float32) && t.in(1, TensorType::int32) &&
             (t.out(0, TensorType::int32) || t.out(0, TensorType::int64));
    return t.input_count == 1 && (t.in(0, TensorType::int32) || t.in(0, TensorType::int64)) && t.out(0, TensorType::float32);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {.code = kKind == RandomKind::uniform  ? BuiltinOperator::random_uniform
                                        : kKind == RandomKind::normal ? BuiltinOperator::random_standard_normal
                                                                      : BuiltinOperator::multinomial,
                                .types = "float",
                                .accepts = &accepts,
                                .prepare = &prepare};
};
using RandomUniform = RandomBy<RandomKind::uniform>;
using RandomStandardNormal = RandomBy<RandomKind::normal>;
using Multinomial = RandomBy<RandomKind::multinomial>;

#if ONEWEIGHT_HAS_KERNELS
namespace random_numbers {
// The state of an operator in a context: blocks drawn so far, its seeds (0: not begun).
struct State {
  uint64_t blocks = 0, key = 0, counter = 0;
};

class Generator {
 public:
  explicit Generator(const KernelArgs& args) : params_(args.params<RandomParams>()), at_(args.run->resource(params_.state)) {
    std::memcpy(&state_, at_, sizeof(state_));
    if (state_.blocks > 0) return;
    state_.key = params_.seeds[0], state_.counter = params_.seeds[1];
    if (state_.key == 0 && state_.counter == 0) {
      state_.key = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
      state_.counter = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(at_));
    }
  }
  ~Generator() { std::memcpy(at_, &state_, sizeof(state_)); }
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;
  void next(uint32_t* words) { philox_4x32(state_.key, state_.blocks++, state_.counter, words); }

 private:
  const RandomParams& params_;
  std::byte* at_;
  State state_;
};

// In [0, 1), of 23 bits.
inline float unit(uint32_t bits) { return std::bit_cast<float>((bits & 0x7fffffu) | 0x3f800000u) - 1.0f; }

template <class T>
bool fits(const KernelArgs& args, int input) {
  const auto& p = args.params<RandomParams>();
  for (int i = 0; i < p.rank; ++i) {
    const T wanted = Preparation::load<T>(args.in<std::byte>(input), i);
    if (static_cast<int64_t>(wanted) == p.extents[i]) continue;
    args.run->fail(ErrorCode::invalid_data, "is asked for %lld elements along axis %d, its output has %lld", static_cast<long long>(wanted),
                   i, static_cast<long long>(p.extents[i]));
    return false;
  }
  return true;
}

template <RandomKind kKind, class T>
void fill_kernel(const KernelArgs& args) {
  const auto& p = args.params<RandomParams>();
  if (!fits<T>(args, 0)) return;
  Generator generator(args);
  for (int64_t i = 0; i < p.elements; i += 4) {
    uint32_t words[4];
    float values[4];
    generator.next(words);
    for (int k = 0; k < 4; k += 2) {
      const float a = unit(words[k]), b = unit(words[k + 1]);
      if constexpr (kKind == RandomKind::uniform) {
        values[k] = a, values[k + 1] = b;
      } else {  // Box and Muller
        const float radius = std::sqrt(-2.0f * std::log(std::max(a, 1.0e-7f))), angle = 6.283185307179586f * b;
        values[k] = radius * std::sin(angle), values[k + 1] = radius * std::cos(angle);
      }
    }
    std::memcpy(args.out<float>(0) + i, values, static_cast<size_t>(std::min<int64_t>(4, p.elements - i)) * sizeof(float));
  }
}

template <class T>
void multinomial_kernel(const KernelArgs& args) {
  const auto& p = args.params<RandomParams>();
  if (!fits<int32_t>(args, 1)) return;
  Generator generator(args);
  auto* sums = reinterpret_cast<double*>(args.scratch);
  for (int64_t r = 0; r < p.rows && p.elements > 0; ++r) {
    const std::byte* logits = args.in<std::byte>(0) + r * p.classes * static_cast<int64_t>(sizeof(float));
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t c = 0; c < p.classes; ++c) {
      const float x = Preparation::load<float>(logits, c);
      if (x > largest) largest = x;
    }
    double total = 0;
    for (int64_t c = 0; c < p.classes; ++c) {
      const double weight = std::exp(static_cast<double>(Preparation::load<float>(logits, c)) - static_cast<double>(largest));
      total += weight > 0 ? weight : 0;
      sums[c] = total;
    }
    if (!(total > 0))
      return args.run->fail(ErrorCode::invalid_data, "row %lld has no class of finite probability", static_cast<long long>(r));
    for (int64_t i = 0; i < p.elements; ++i) {
      uint32_t words[4];
      generator.next(words);
      const double at = (static_cast<double>(words[0]) + static_cast<double>(words[1] >> 11) / 2097152.0) / 4294967296.0 * total;
      const int64_t chosen = std::upper_bound(sums, sums + p.classes, at) - sums;
      args.out<T>(0)[r * p.elements + i] = static_cast<T>(std::min(chosen, p.classes - 1));
    }
  }
}
}  // namespace random_numbers

template <RandomKind kKind>
Status RandomBy<kKind>::prepare(Preparation& p) {
  constexpr int kShape = kDraws ? 1 : 0;
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(kShape + 1, kShape + 1));
  const Operand& wanted = p.input(kShape);
  RandomParams* params = p.make_params<RandomParams>();
  if (!params) return p.no_memory();
  const int lead = kDraws ? 1 : 0;  // axes before those that are asked for
  if (kDraws) {
    ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(p.input(0), 2, 2));
    if (wanted.shape.elements() != 1) return p.invalid("its number of samples %s is not one element", p.describe(wanted).c_str());
    params->rows = p.input(0).shape[0], params->classes = p.input(0).shape[1];
    if (params->classes < 1) return p.invalid("%s has no classes", p.describe(p.input(0)).c_str());
  } else {
    ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(wanted, 1, 1));
  }
  const int64_t count = wanted.shape.elements();
  if (count > kMaxRank) return p.invalid("asks for rank %lld, more than %d", static_cast<long long>(count), kMaxRank);
  params->rank = static_cast<int32_t>(count);
  if (wanted.is_constant || count == 0) {
    std::vector<int64_t> extents;
    ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(kShape, &extents));
    for (size_t i = 0; i < extents.size(); ++i) {
      if (extents[i] < 0) return p.invalid("is asked for %lld elements", static_cast<long long>(extents[i]));
      params->extents[i] = extents[i];
    }
  } else {
    if (p.output(0).shape.rank() != lead + params->rank)
      return p.error(ErrorCode::unsupported, "needs the values of %s before the run, but they are computed", p.describe(wanted).c_str());
    for (int i = 0; i < params->rank; ++i) params->extents[i] = p.output(0).shape[lead + i];
  }
  Shape shape;
  if (kDraws) shape.push_back(params->rows);
  for (int i = 0; i < params->rank; ++i) shape.push_back(params->extents[i]);
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  params->elements = kDraws ? params->extents[0] : shape.elements();
  for (int i = 0; i < 2; ++i) params->seeds[i] = static_cast<uint64_t>(p.options().template get<int64_t>(i, 0));
  // Operators whose outputs have one name share a sequence.
  ONEWEIGHT_RETURN_IF_ERROR(p.resource("random numbers of " + std::string(p.output(0).name), TensorType::uint64, Shape{3}, &params->state));
  if (kDraws) {
    p.set_scratch(params->classes * static_cast<int64_t>(sizeof(double)));
    p.set_kernel(p.output(0).type == TensorType::int32 ? &random_numbers::multinomial_kernel<int32_t>
                                                       : &random_numbers::multinomial_kernel<int64_t>);
  } else {
    p.set_kernel(wanted.type == TensorType::int32 ? &random_numbers::fill_kernel<kKind, int32_t>
                                                  : &random_numbers::fill_kernel<kKind, int64_t>);
  }
  p.set_not_foldable();
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_RANDOM_H
