// What models of TFLite Micro's audio frontend hear: 40 numbers every 10 ms, made of the last 30 ms at 16 kHz. In float, where
// the frontend computes with integers: features of speech differ by 1.5 of their 670 steps on average, which models do not mind.
#ifndef ONEWEIGHT_EXAMPLES_WAKE_WORD_FEATURES_H
#define ONEWEIGHT_EXAMPLES_WAKE_WORD_FEATURES_H

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <span>

#include <unsupported/Eigen/FFT>

class Features {
 public:
  static constexpr int kRate = 16000, kStep = 160, kChannels = 40;

  Features() {
    fft_.SetFlag(Eigen::FFT<float>::HalfSpectrum);
    const float turn = 2 * std::numbers::pi_v<float> / kWindow;
    for (int i = 0; i < kWindow; ++i) window_[i] = 0.5f - 0.5f * std::cos(turn * (static_cast<float>(i) + 0.5f));
  }

  // Takes the next `kStep` samples in [-1, 1). The steps before the first ones count as silence.
  std::array<float, kChannels> next(std::span<const float, kStep> samples) {
    std::shift_left(heard_.begin(), heard_.end(), kStep);
    std::transform(samples.begin(), samples.end(), heard_.end() - kStep, [](float s) { return 32768 * s; });
    for (int i = 0; i < kWindow; ++i) windowed_[i] = heard_[i] * window_[i];
    fft_.fwd(spectrum_.data(), windowed_.data(), kTransform);

    // Triangles with corners at equal distances on the mel scale: each frequency adds to the two whose slopes it lies on.
    std::array<float, kChannels + 2> energies{};  // the first and the last have no triangle of their own
    const float low = mel(125), spacing = (mel(7500) - low) / (kChannels + 1);
    for (int bin = 1; bin < kTransform / 2; ++bin) {
      const float at = (mel(static_cast<float>(bin) * kRate / kTransform) - low) / spacing;
      if (at < 0 || at >= kChannels + 1) continue;
      const int corner = static_cast<int>(at);
      const float rise = at - static_cast<float>(corner), energy = std::norm(spectrum_[bin]);
      energies[corner] += (1 - rise) * energy;
      energies[corner + 1] += rise * energy;
    }

    std::array<float, kChannels> features;
    for (int c = 0; c < kChannels; ++c) {
      const float signal = std::sqrt(energies[c + 1]);
      noise_[c] += (c % 2 == 0 ? 0.025f : 0.06f) * (signal - noise_[c]);  // a slow mean
      const float clean = std::max(0.05f * signal, signal - noise_[c]);
      const float gained = clean * std::pow(noise_[c] + 80, -0.95f);       // loud surroundings count less (PCAN)
      const float bent = gained < 2 ? gained * gained / 4 : gained - 1;    // small values are squeezed
      features[c] = 64 * std::log(std::max(1.0f, 8 * std::floor(64 * bent)));
    }
    return features;
  }

 private:
  static constexpr int kWindow = 480, kTransform = 512;
  static float mel(float frequency) { return 1127 * std::log1p(frequency / 700); }

  Eigen::FFT<float> fft_;
  std::array<float, kWindow> window_{}, heard_{};
  std::array<float, kTransform> windowed_{};  // the window, then zeros
  std::array<std::complex<float>, kTransform / 2 + 1> spectrum_{};
  std::array<float, kChannels> noise_{};
};

#endif  // ONEWEIGHT_EXAMPLES_WAKE_WORD_FEATURES_H
