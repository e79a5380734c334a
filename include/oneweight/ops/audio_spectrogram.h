// The custom operator AudioSpectrogram: magnitudes, or squared ones, of the short-time Fourier transform. Input: float [samples,
// channels]; options (a flexbuffer map): window_size, stride, magnitude_squared. Output: float [channels, frames, n / 2 + 1], n the
// next power of two from the window size on. Windows are Hann's (periodic); frames lie inside the samples. Computed in double.
// Scratch: n complex doubles. Rows: frames of all channels.
#ifndef ONEWEIGHT_OPS_AUDIO_SPECTROGRAM_H
#define ONEWEIGHT_OPS_AUDIO_SPECTROGRAM_H

#include <cmath>

#include "oneweight/ops/op.h"
#include "oneweight/schema/flexbuffer.h"

namespace oneweight {
inline namespace ONEWEIGHT_ABI {

struct AudioSpectrogram {
  struct Params {
    int64_t channels = 0, frames = 0, window = 0, stride = 0, length = 0;
    const double* weights = nullptr;  // of the window
    const double* turns = nullptr;    // cos, -sin of 2 pi k / length for k < length / 2
    bool squared = false;
  };
  static bool accepts(const NodeTypes& t) { return t.input_count == 1 && t.in(0, TensorType::float32) && t.out(0, TensorType::float32); }
  static Status prepare(Preparation& p);
  static constexpr OpRow row = {
      .code = BuiltinOperator::custom, .custom_code = "AudioSpectrogram", .types = "float", .accepts = &accepts, .prepare = &prepare};
};

#if ONEWEIGHT_HAS_KERNELS
// In place, by halves: length is a power of two; values lie in bit-reversed order.
inline void fourier_of_reversed(double* re, double* im, int64_t length, const double* turns) {
  for (int64_t half = 1; half < length; half *= 2) {
    const int64_t step = length / (2 * half);
    for (int64_t begin = 0; begin < length; begin += 2 * half) {
      for (int64_t k = 0; k < half; ++k) {
        const double c = turns[2 * k * step], s = turns[2 * k * step + 1];
        const int64_t a = begin + k, b = a + half;
        const double x = re[b] * c - im[b] * s, y = re[b] * s + im[b] * c;
        re[b] = re[a] - x, im[b] = im[a] - y;
        re[a] += x, im[a] += y;
      }
    }
  }
}

inline void audio_spectrogram_kernel(const KernelArgs& args) {
  const auto& p = args.params<AudioSpectrogram::Params>();
  auto* re = reinterpret_cast<double*>(args.scratch);
  double* im = re + p.length;
  const int64_t bins = p.length / 2 + 1;
  for (int64_t row = args.rows.begin; row < args.rows.end; ++row) {
    const int64_t channel = row / p.frames, frame = row % p.frames;
    int64_t place = 0;  // i with its bits reversed
    for (int64_t i = 0; i < p.length; ++i) {
      re[place] = i < p.window ? p.weights[i] * static_cast<double>(Preparation::load<float>(args.in<std::byte>(0),
                                                                                             (frame * p.stride + i) * p.channels + channel))
                               : 0;
      im[place] = 0;
      int64_t bit = p.length / 2;
      for (; bit > 0 && (place & bit); bit /= 2) place ^= bit;
      place |= bit;
    }
    fourier_of_reversed(re, im, p.length, p.turns);
    float* out = args.out<float>(0) + row * bins;
    for (int64_t k = 0; k < bins; ++k) {
      const double squared = re[k] * re[k] + im[k] * im[k];
      out[k] = static_cast<float>(p.squared ? squared : std::sqrt(squared));
    }
  }
}

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
  double* turns = p.derived<double>(params->length);
  if (!weights || !turns) return p.no_memory();
  constexpr double kTurn = 6.283185307179586476925;
  for (int64_t i = 0; i < params->window; ++i)
    weights[i] = 0.5 - 0.5 * std::cos(kTurn * static_cast<double>(i) / static_cast<double>(params->window));
  for (int64_t k = 0; k < params->length / 2; ++k) {
    const double angle = kTurn * static_cast<double>(k) / static_cast<double>(params->length);
    turns[2 * k] = std::cos(angle), turns[2 * k + 1] = -std::sin(angle);
  }
  params->weights = weights, params->turns = turns;
  p.set_scratch(2 * params->length * static_cast<int64_t>(sizeof(double)));
  p.set_kernel(&audio_spectrogram_kernel, params->channels * params->frames);
  return {};
}
#endif

}  // namespace ONEWEIGHT_ABI
}  // namespace oneweight

#endif  // ONEWEIGHT_OPS_AUDIO_SPECTROGRAM_H
