// AudioSpectrogram and Mfcc against plain sums in double.
#include <numbers>

#include "tests/support/flexbuffer_map.h"
#include "tests/support/run_operator.h"

using namespace oneweight;
using namespace oneweight::testing;

namespace {

std::vector<RunResult> spectrogram(const Shape& in, const std::vector<float>& x, double window, double stride, bool squared) {
  ModelBuilder m;
  const int input = m.tensor(TensorType::float32, dims(in), "x"), y = m.tensor(TensorType::float32, {}, "y");
  m.custom_op("AudioSpectrogram", {input}, {y})
      .custom_options(flexbuffer_map({{"magnitude_squared", squared}, {"stride", stride}, {"window_size", window}}));
  m.inputs({input}).outputs({y});
  return run_on_targets(m, {bytes_of(x)});
}

std::vector<RunResult> mfcc(const Shape& in, const std::vector<float>& x, int32_t rate, double filters, double coefficients, double low,
                            double high) {
  ModelBuilder m;
  const int input = m.tensor(TensorType::float32, dims(in), "x"), r = m.tensor(TensorType::int32, {1}, "rate").values<int32_t>({rate}),
            y = m.tensor(TensorType::float32, {}, "y");
  m.custom_op("Mfcc", {input, r}, {y})
      .custom_options(flexbuffer_map({{"dct_coefficient_count", coefficients},
                                      {"filterbank_channel_count", filters},
                                      {"lower_frequency_limit", low},
                                      {"upper_frequency_limit", high}}));
  m.inputs({input}).outputs({y});
  return run_on_targets(m, {bytes_of(x)});
}

}  // namespace

TEST_CASE("windowed Fourier transforms of frames", "[ops][audio_spectrogram]") {
  Random random(1);
  for (const auto& [window, stride, channels, squared] :
       std::vector<std::tuple<int64_t, int64_t, int64_t, bool>>{{32, 8, 1, true}, {20, 7, 2, false}, {2, 1, 1, false}, {33, 40, 3, true}}) {
    const Shape in{75, channels};
    const auto x = random.values<float>(in.elements());
    int64_t n = 2;
    while (n < window) n *= 2;
    const Shape out{channels, (75 - window) / stride + 1, n / 2 + 1};
    std::vector<float> want;
    for (int64_t o = 0; o < out.elements(); ++o) {
      const auto at = unravel(out, o);
      double re = 0, im = 0;
      for (int64_t i = 0; i < window; ++i) {
        const double hann = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(window));
        const double angle = 2 * std::numbers::pi * static_cast<double>(i * at[2] % n) / static_cast<double>(n);
        const double v = hann * static_cast<double>(x[static_cast<size_t>((at[1] * stride + i) * channels + at[0])]);
        re += v * std::cos(angle), im -= v * std::sin(angle);
      }
      want.push_back(static_cast<float>(squared ? re * re + im * im : std::sqrt(re * re + im * im)));
    }
    check_values(spectrogram(in, x, static_cast<double>(window), static_cast<double>(stride), squared), out, want, 1e-6);
  }
  check_values<float>(spectrogram({5, 2}, std::vector<float>(10), 8, 2, true), {2, 0, 5}, {});
  check_refused(spectrogram({5, 1}, std::vector<float>(5), 1, 2, true), ErrorCode::invalid_model,
                "window_size 1 and stride 2 are not valid");
  check_refused(spectrogram({5, 1}, std::vector<float>(5), 4, 0, true), ErrorCode::invalid_model,
                "window_size 4 and stride 0 are not valid");
  check_refused(spectrogram({5}, std::vector<float>(5), 4, 1, true), ErrorCode::invalid_model, "has rank 1, not 2 to 2");
}

TEST_CASE("cepstral coefficients of mel filters", "[ops][mfcc]") {
  Random random(2);
  const Shape in{2, 3, 65};
  auto x = random.values<float>(in.elements());
  for (float& v : x) v *= v;
  const int filters = 9, coefficients = 5;
  const double rate = 16000, low = 40, high = 7500, step = rate / 2 / 64;
  const auto mel = [](double f) { return 1127 * std::log(1 + f / 700); };
  // Triangles: from the peak of the filter before to the peak of the one behind.
  const double width = (mel(high) - mel(low)) / (filters + 1);
  std::vector<float> want;
  for (int64_t frame = 0; frame < 6; ++frame) {
    std::vector<double> sums(filters);
    for (int64_t i = 1; i < 65; ++i) {
      const double f = static_cast<double>(i) * step;
      if (f > high) continue;
      for (int k = 0; k < filters; ++k) {
        const double distance = std::fabs(mel(f) - (mel(low) + width * (k + 1))) / width;
        if (distance < 1)
          sums[static_cast<size_t>(k)] += (1 - distance) * std::sqrt(static_cast<double>(x[static_cast<size_t>(frame * 65 + i)]));
      }
    }
    for (int c = 0; c < coefficients; ++c) {
      double sum = 0;
      for (int k = 0; k < filters; ++k)
        sum += std::sqrt(2.0 / filters) * std::cos(std::numbers::pi / filters * c * (k + 0.5)) *
               std::log(std::max(sums[static_cast<size_t>(k)], 1e-12));
      want.push_back(static_cast<float>(sum));
    }
  }
  check_values(mfcc(in, x, 16000, filters, coefficients, low, high), {2, 3, coefficients}, want, 1e-5);
  check_refused(mfcc(in, x, 8000, filters, coefficients, low, high), ErrorCode::invalid_data, "the upper frequency limit 7500 needs");
  check_refused(mfcc(in, x, 0, filters, coefficients, low, high), ErrorCode::invalid_data, "the sample rate is 0");
  check_refused(mfcc(in, x, 16000, 4, 5, low, high), ErrorCode::invalid_model, "5 coefficients of 4 filters are not valid");
  check_refused(mfcc(in, x, 16000, 9, 5, 400, 300), ErrorCode::invalid_model, "frequency limits 400 and 300 are not valid");
}
