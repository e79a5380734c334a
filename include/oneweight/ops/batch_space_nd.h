// SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: the pixels of each place in a block (constant input 1, one number for each
// axis after the first) as a batch of their own, block places before batches; with constant margins of real zeros, or
// crops.
#ifndef ONEWEIGHT_OPS_BATCH_SPACE_ND_H
#define ONEWEIGHT_OPS_BATCH_SPACE_ND_H

#include "oneweight/ops/pad.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct BatchSpaceParams {
  int axes = 0;       // spatial
  int64_t batch = 1;  // of the side with whole images
  int64_t block[kMaxRank] = {}, before[kMaxRank] = {};
  int64_t image[kMaxRank] = {}, parts[kMaxRank] = {};  // spatial extents of whole images and of their parts
  int64_t pixel_bytes = 0, element = 1;
  std::byte zero[16] = {};
};

template <bool kToBatch>
struct BatchSpace {
  static bool accepts(const NodeTypes& t) { return t.input_count == 3 && accepts_moved<0>(t); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = kToBatch ? BuiltinOperator::space_to_batch_nd : BuiltinOperator::batch_to_space_nd,
      .types = "all of whole bytes",
      .accepts = &accepts,
      .prepare = &prepare};
};
using SpaceToBatchNd = BatchSpace<true>;
using BatchToSpaceNd = BatchSpace<false>;

#if ONEWEIGHT_HAS_KERNELS
// A row is one output pixel.
template <bool kToBatch>
void batch_space_kernel(const KernelArgs& args) {
  const auto& p = args.params<BatchSpaceParams>();
  const int64_t* extents = kToBatch ? p.parts : p.image;  // of the output
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    int64_t at[kMaxRank], rest = row;
    for (int i = p.axes - 1; i >= 0; --i) at[i] = rest % extents[i], rest /= extents[i];
    int64_t source = 0;
    bool inside = true;
    if constexpr (kToBatch) {
      int64_t place[kMaxRank], code = rest / p.batch;
      for (int i = p.axes - 1; i >= 0; --i) place[i] = code % p.block[i], code /= p.block[i];
      source = rest % p.batch;
      for (int i = 0; i < p.axes; ++i) {
        const int64_t x = at[i] * p.block[i] + place[i] - p.before[i];
        inside = inside && x >= 0 && x < p.image[i];
        source = source * p.image[i] + x;
      }
    } else {
      int64_t code = 0;
      for (int i = 0; i < p.axes; ++i) code = code * p.block[i] + (at[i] + p.before[i]) % p.block[i];
      source = code * p.batch + rest;
      for (int i = 0; i < p.axes; ++i) source = source * p.parts[i] + (at[i] + p.before[i]) / p.block[i];
    }
    std::byte* to = args.out<std::byte>(0) + row * p.pixel_bytes;
    if (inside)
      std::memcpy(to, args.in<std::byte>(0) + source * p.pixel_bytes, static_cast<size_t>(p.pixel_bytes));
    else
      pad::fill_elements(to, p.zero, p.element, p.pixel_bytes / p.element);
  }
}

template <bool kToBatch>
Status BatchSpace<kToBatch>::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(3, 3));
  const Operand& input = p.input(0);
  const Shape& in = input.shape;
  std::vector<int64_t> block, margins;
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(1, &block));
  ONEWEIGHT_RETURN_IF_ERROR(p.constant_ints(2, &margins));
  if (static_cast<int>(block.size()) >= in.rank() || block.empty() || margins.size() != 2 * block.size())
    return p.invalid("has %zu block sizes and %zu margins for %s", block.size(), margins.size(),
                     p.describe(input).c_str());
  BatchSpaceParams* params = p.make_params<BatchSpaceParams>();
  if (!params) return p.no_memory();
  BatchSpaceParams& b = *params;
  b.axes = static_cast<int>(block.size());
  Shape shape = in;
  int64_t places = 1;
  for (int i = 0; i < b.axes; ++i) {
    const int64_t before = margins[2 * i], behind = margins[2 * i + 1];
    if (block[i] <= 0 || before < 0 || behind < 0 || before > (int64_t{1} << 40) || behind > (int64_t{1} << 40) ||
        !checked_multiply(places, block[i], &places))
      return p.invalid("block size %lld or margins %lld, %lld of axis %d are not valid",
                       static_cast<long long>(block[i]), static_cast<long long>(before), static_cast<long long>(behind),
                       i + 1);
    b.block[i] = block[i], b.before[i] = before;
    if constexpr (kToBatch) {
      const int64_t padded = in[i + 1] + before + behind;
      if (padded % block[i] != 0)
        return p.invalid("axis %d of %s with margins %lld, %lld is not a multiple of the block size %lld", i + 1,
                         p.describe(input).c_str(), static_cast<long long>(before), static_cast<long long>(behind),
                         static_cast<long long>(block[i]));
      b.image[i] = in[i + 1], b.parts[i] = shape[i + 1] = padded / block[i];
    } else {
      int64_t whole = 0;
      if (!checked_multiply(in[i + 1], block[i], &whole) || before + behind > whole)
        return p.invalid("axis %d of %s in blocks of %lld cannot lose %lld and %lld", i + 1, p.describe(input).c_str(),
                         static_cast<long long>(block[i]), static_cast<long long>(before),
                         static_cast<long long>(behind));
      b.parts[i] = in[i + 1], b.image[i] = shape[i + 1] = whole - before - behind;
    }
  }
  if constexpr (kToBatch) {
    if (!checked_multiply(in[0], places, &shape[0]))
      return p.invalid("makes too many batches of %s", p.describe(input).c_str());
    b.batch = std::max<int64_t>(in[0], 1);
  } else {
    if (in[0] % places != 0)
      return p.invalid("the batches of %s are not a multiple of the %lld places of a block", p.describe(input).c_str(),
                       static_cast<long long>(places));
    shape[0] = in[0] / places;
    b.batch = shape[0];
  }
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, shape));
  ONEWEIGHT_RETURN_IF_ERROR(element_bytes(p, input, &b.element));
  b.pixel_bytes = in.elements(1 + b.axes, in.rank()) * b.element;
  const int64_t zero = p.output(0).quantized() ? p.output(0).zero_point() : 0;
  std::memcpy(b.zero, &zero, static_cast<size_t>(std::min<int64_t>(b.element, 8)));
  p.set_kernel(&batch_space_kernel<kToBatch>, b.pixel_bytes > 0 ? shape.elements(0, 1 + b.axes) : 0);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_BATCH_SPACE_ND_H
