// The custom operator AudioSpectrogram: magnitudes, or squared ones, of the short-time Fourier transform. Input: float [samples,
// channels]; options (a flexbuffer map): window_size, stride, magnitude_squared. Output: float [channels, frames, n / 2 + 1], n the
// next power of two from the window size on. Windows are Hann's (periodic); frames lie inside the samples. Computed in double.
// Scratch: 3 n + 2 doubles. Rows: frames of all channels.
#ifndef ONEWEIGHT_OPS_AUDIO_SPECTROGRAM_H
#define ONEWEIGHT_OPS_AUDIO_SPECTROGRAM_H

#include <cmath>

#include "oneweight/ops/op.h"
#include "oneweight/schema/flexbuffer.h"
#include "oneweight/simd/fft.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct AudioSpectrogram {
  struct Params {
    int64_t channels = 0, frames = 0, window = 0, stride = 0, length = 0;
    const double* weights = nullptr;  // of the window
    TwiddleTable twiddles;
    bool squared = false;
  };
  static bool accepts(const NodeTypes& t) { return t.input_count == 1 && t.in(0, TensorType::float32) && t.out(0, TensorType::float32); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::custom, .custom_code = "AudioSpectrogram", .types = "float", .accepts = &accepts, .prepare = &prepare};
};

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // ONEWEIGHT_OPS_AUDIO_SPECTROGRAM_H

#if ONEWEIGHT_HAS_KERNELS
#if defined(ONEWEIGHT_OPS_AUDIO_SPECTROGRAM_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEWEIGHT_OPS_AUDIO_SPECTROGRAM_KERNELS
#undef ONEWEIGHT_OPS_AUDIO_SPECTROGRAM_KERNELS
#else
#define ONEWEIGHT_OPS_AUDIO_SPECTROGRAM_KERNELS
#endif

#include "oneweight/simd/fft-inl.h"
#include "oneweight/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace oneweight {
inline namespace ONEWEIGHT_ABI {
namespace HWY_NAMESPACE {

inline void audio_spectrogram_kernel(const KernelArgs& args) {
  const auto& p = args.params<AudioSpectrogram::Params>();
  const int64_t half = p.length / 2, bins = half + 1;
  double* const memory = reinterpret_cast<double*>(args.scratch);
  const ComplexArrays x{memory, memory + half}, y{memory + 2 * half, memory + 3 * half}, z{memory + 4 * half, memory + 4 * half + bins};
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int64_t channel = row / p.frames, frame = row % p.frames;
    for (int64_t i = 0; i < p.length; ++i) {
      const float sample = i < p.window ? Preparation::load<float>(args.in<std::byte>(0), (frame * p.stride + i) * p.channels + channel) : 0;
      // A pointer first: g++ 12 under UBSan evaluates an index behind a conditional in one of its branches only.
      double* const to = i % 2 ? x.im : x.re;
      to[i / 2] = i < p.window ? p.weights[i] * static_cast<double>(sample) : 0;
    }
    real_fft(x, y, p.length, p.twiddles, z);
    float* out = args.out<float>(0) + row * bins;
    for (int64_t k = 0; k < bins; ++k) {
      const double squared = z.re[k] * z.re[k] + z.im[k] * z.im[k];
      out[k] = static_cast<float>(p.squared ? squared : std::sqrt(squared));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oneweight {
inline namespace ONEWEIGHT_ABI {

ONEWEIGHT_INLINE Status AudioSpectrogram::prepare(Preparation& p) {
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_operands(1, 1));
  const Operand& input = p.input(0);
  ONEWEIGHT_RETURN_IF_ERROR(p.expect_rank(input, 2, 2));
  FlexMap options;
  if (!options.open(p.op().custom_options)) return p.invalid("its options are not a flexbuffer map");
  Params* params = p.make_params<Params>();
  if (!params) return p.no_memory();
  params->window = options.get_int("window_size", 0), params->stride = options.get_int("stride", 0);
  params->squared = options.get_bool("magnitude_squared", false);
  if (params->window < 2 || params->window > (1 << 20) || params->stride < 1)
    return p.invalid("window_size %lld and stride %lld are not valid", static_cast<long long>(params->window),
                     static_cast<long long>(params->stride));
  params->length = 2;
  while (params->length < params->window) params->length *= 2;
  params->channels = input.shape[1];
  params->frames = input.shape[0] < params->window ? 0 : (input.shape[0] - params->window) / params->stride + 1;
  ONEWEIGHT_RETURN_IF_ERROR(p.set_output(0, Shape{params->channels, params->frames, params->length / 2 + 1}));
  double* weights = p.derived<double>(params->window);
  double* factors = p.derived<double>(twiddle_count(params->length));
  if (!weights || !factors) return p.no_memory();
  constexpr double kTurn = 6.283185307179586476925;
  for (int64_t i = 0; i < params->window; ++i)
    weights[i] = 0.5 - 0.5 * std::cos(kTurn * static_cast<double>(i) / static_cast<double>(params->window));
  fill_twiddles(params->length, factors);
  params->weights = weights;
  params->twiddles = {factors, params->length};
  p.set_scratch((3 * params->length + 2) * static_cast<int64_t>(sizeof(double)));
  p.set_kernel(ONEWEIGHT_KERNEL(p.target(), audio_spectrogram_kernel), params->channels * params->frames);
  return {};
}

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight
#endif  // HWY_ONCE
#endif  // toggle
#endif  // ONEWEIGHT_HAS_KERNELS
