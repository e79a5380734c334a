// The custom operator Mfcc: mel-frequency cepstral coefficients of squared magnitudes. Inputs: float [channels, frames, bins], the
// sample rate (int32, one element). Options (a flexbuffer map): lower_ and upper_frequency_limit, filterbank_channel_count,
// dct_coefficient_count. Output: float [channels, frames, coefficients]. Magnitudes are summed under triangles evenly spaced in
// mel (1127 ln(1 + f / 700)) without the constant part, their logarithms (of at least 1e-12) turned by a cosine transform. Computed in
// double. Scratch: 16 bytes a bin and 8 a filter. Rows: frames of all channels.
#ifndef ONEWEIGHT_OPS_MFCC_H
#define ONEWEIGHT_OPS_MFCC_H

#include <algorithm>
#include <cmath>

#include "oneweight/ops/op.h"
#include "oneweight/schema/flexbuffer.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct Mfcc {
  struct Params {
    int64_t bins = 0, filters = 0, coefficients = 0;
    double lower = 0, upper = 0;
    const double* cosines = nullptr;  // [coefficients][filters]
  };
  static bool accepts(const NodeTypes& t) {
    return t.input_count == 2 && t.in(0, TensorType::float32) && t.in(1, TensorType::int32) && t.out(0, TensorType::float32);
  }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::custom, .custom_code = "Mfcc", .types = "float", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
inline void mfcc_kernel(const KernelArgs& args) {
  const auto& p = args.params<Mfcc::Params>();
  const auto mel = [](double hertz) { return 1127.0 * std::log1p(hertz / 700.0); };
  const int32_t rate = Preparation::load<int32_t>(args.in<std::byte>(1), 0);
  if (rate < 1) return args.run->fail(ErrorCode::invalid_data, "the sample rate is %d", rate);
  const double hertz_per_bin = 0.5 * rate / static_cast<double>(p.bins - 1);
  const auto first = static_cast<int64_t>(1.5 + p.lower / hertz_per_bin), last = static_cast<int64_t>(p.upper / hertz_per_bin);
  if (last >= p.bins)
    return args.run->fail(ErrorCode::invalid_data, "the upper frequency limit %g needs %lld bins, there are %lld", p.upper,
                          static_cast<long long>(last + 1), static_cast<long long>(p.bins));
  // Of bin i: the filter whose falling side it is on (-1: below the first peak) and its weight there.
  auto* weights = reinterpret_cast<double*>(args.scratch);
  auto* filters = reinterpret_cast<int64_t*>(weights + p.bins);
  auto* sums = reinterpret_cast<double*>(filters + p.bins);
  const double low = mel(p.lower), spacing = (mel(p.upper) - low) / static_cast<double>(p.filters + 1);
  const auto center = [&](int64_t filter) { return low + spacing * static_cast<double>(filter + 1); };
  int64_t filter = 0;
  for (int64_t i = first; i <= last; ++i) {
    const double at = mel(static_cast<double>(i) * hertz_per_bin);
    while (filter < p.filters && center(filter) < at) ++filter;
    filters[i] = filter - 1;
    const double from = filter > 0 ? center(filter - 1) : low;
    weights[i] = (center(filter) - at) / (center(filter) - from);
  }
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const std::byte* in = args.in<std::byte>(0) + row * p.bins * static_cast<int64_t>(sizeof(float));
    std::fill(sums, sums + p.filters, 0.0);
    for (int64_t i = first; i <= last; ++i) {
      const double magnitude = std::sqrt(static_cast<double>(Preparation::load<float>(in, i))), falling = magnitude * weights[i];
      if (filters[i] >= 0) sums[filters[i]] += falling;
      if (filters[i] + 1 < p.filters) sums[filters[i] + 1] += magnitude - falling;
    }
    for (int64_t k = 0; k < p.filters; ++k) sums[k] = std::log(sums[k] < 1e-12 ? 1e-12 : sums[k]);
    float* out = args.out<float>(0) + row * p.coefficients;
    for (int64_t c = 0; c < p.coefficients; ++c) {
      double sum = 0;
      for (int64_t k = 0; k < p.filters; ++k) sum += p.cosines[c * p.filters + k] * sums[k];
      out[c] = static_cast<float>(sum);
    }
  }
}

ONEWEIGHT_INLINE Status Mfcc::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(2, 2));
  const Operand& input = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(input, 3, 3));
  if (p.input(1).shape.elements() != 1) return p.invalid("the sample rate %s is not one element", p.describe(p.input(1)).c_str());
  FlexMap options;
  if (!options.open(p.op().custom_options)) return p.invalid("its options are not a flexbuffer map");
  Params* params = p.make_params<Params>();
  if (!params) return p.no_memory();
  params->bins = input.shape[2];
  params->lower = options.get_real("lower_frequency_limit", 20), params->upper = options.get_real("upper_frequency_limit", 4000);
  params->filters = options.get_int("filterbank_channel_count", 40), params->coefficients = options.get_int("dct_coefficient_count", 13);
  if (params->bins < 2) return p.invalid("%s has less than two bins", p.describe(input).c_str());
  if (!(params->lower >= 0) || !(params->upper > params->lower) || params->upper > 1e9)
    return p.invalid("frequency limits %g and %g are not valid", params->lower, params->upper);
  constexpr int64_t kMost = 1 << 12;
  if (params->filters < 1 || params->filters > kMost || params->coefficients < 1 || params->coefficients > params->filters)
    return p.invalid("%lld coefficients of %lld filters are not valid", static_cast<long long>(params->coefficients),
                     static_cast<long long>(params->filters));
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, Shape{input.shape[0], input.shape[1], params->coefficients}));
  double* cosines = p.derived<double>(params->coefficients * params->filters);
  if (!cosines) return p.no_memory();
  const auto filters = static_cast<double>(params->filters);
  for (int64_t c = 0; c < params->coefficients; ++c)
    for (int64_t k = 0; k < params->filters; ++k)
      cosines[c * params->filters + k] =
          std::sqrt(2.0 / filters) * std::cos(static_cast<double>(c) * 3.14159265358979323846 / filters * (static_cast<double>(k) + 0.5));
  params->cosines = cosines;
  p.set_scratch((2 * params->bins + params->filters) * 8);
  p.set_kernel(&mfcc_kernel, input.shape[0] * input.shape[1]);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_MFCC_H
