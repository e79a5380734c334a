// Takes the noise out of speech, 8 ms at a time, with DTLN: blocks of 512 samples, each 128 later than the one before; a mask for
// the frequencies of each block, and a second model, if given, that mends the samples. Their states go in and come out.
//   noise_suppression MODEL_1.tflite [MODEL_2.tflite] NOISY.wav CLEAN.wav      (16-bit samples at 16 kHz)
#include <oneweight/oneweight.h>

#include <unsupported/Eigen/FFT>

#include <complex>
#include <cstdio>
#include <numbers>

#include "../support/wav.h"

constexpr size_t kBlock = 512, kShift = 128, kBins = kBlock / 2 + 1;

static int report(const oneweight::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

// A model whose input and output 1 are its state.
struct Stage {
  oneweight::ExecutionContext context;
  std::span<float> in;
  std::span<const float> out;
  std::vector<float> state, next_state;

  static oneweight::Expected<Stage> open(const char* path, size_t values) {
    auto model = oneweight::ModelView::open(path);
    if (!model.ok()) return model.status();
    auto plan = oneweight::make_plan<oneweight::opset::All>(*model);
    if (!plan.ok()) return plan.status();
    auto context = oneweight::ExecutionContext::create(*plan);
    if (!context.ok()) return context.status();
    auto in = context->input<float>(0), state = context->input<float>(1);
    auto out = context->output<float>(0), next_state = std::as_const(*context).output<float>(1);
    for (const auto& status : {in.status(), state.status(), out.status(), next_state.status()})
      if (!status.ok()) return status;
    if (in->size() != values || out->size() != values || state->size() != next_state->size())
      return oneweight::make_error(oneweight::ErrorCode::invalid_argument, "'%s' does not turn %zu values and a state into as many",
                                   path, values);
    return Stage{std::move(*context), *in, *out, std::vector<float>(state->size()), std::vector<float>(state->size())};
  }

  // The state that comes out is the next one to go in. Nothing is copied: two buffers change places.
  oneweight::Status run() {
    ONEWEIGHT_RETURN_IF_ERROR(context.bind_input(1, std::as_bytes(std::span(state))));
    ONEWEIGHT_RETURN_IF_ERROR(context.bind_output(1, std::as_writable_bytes(std::span(next_state))));
    std::swap(state, next_state);
    return context.run();
  }
};

int main(int count, char** arguments) {
  if (count != 4 && count != 5)
    return std::fprintf(stderr, "usage: noise_suppression MODEL_1.tflite [MODEL_2.tflite] NOISY.wav CLEAN.wav\n"), 2;
  const char *noisy = arguments[count - 2], *cleaned = arguments[count - 1];
  std::vector<Stage> stages;  // the one that makes masks, and perhaps the one that makes samples
  for (int i = 1; i < count - 2; ++i) {
    auto stage = Stage::open(arguments[i], i == 1 ? kBins : kBlock);
    if (!stage.ok()) return report(stage.status());
    stages.push_back(std::move(*stage));
  }

  const Wav sound = read_wav(noisy);
  if (sound.rate != 16000) return std::fprintf(stderr, "%s: not a WAV file of 16-bit samples at 16 kHz\n", noisy), 1;

  Eigen::FFT<float> fft;
  fft.SetFlag(Eigen::FFT<float>::HalfSpectrum);
  std::vector<std::complex<float>> spectrum(kBins);
  std::vector<float> block(kBlock), sum(kBlock), clean;
  const size_t length = sound.samples.size(), steps = (length + kBlock - 1) / kShift;
  std::vector<float> padded(kBlock - kShift);  // silence before and after: each sample is in four blocks
  padded.insert(padded.end(), sound.samples.begin(), sound.samples.end());
  padded.resize((steps - 1) * kShift + kBlock);
  for (size_t step = 0; step < steps; ++step) {
    fft.fwd(spectrum.data(), padded.data() + step * kShift, kBlock);
    std::transform(spectrum.begin(), spectrum.end(), stages[0].in.begin(), [](auto bin) { return std::abs(bin); });
    if (auto status = stages[0].run(); !status.ok()) return report(status);
    for (size_t i = 0; i < kBins; ++i) spectrum[i] *= stages[0].out[i];
    fft.inv(block.data(), spectrum.data(), kBlock);
    if (stages.size() > 1) {
      std::ranges::copy(block, stages[1].in.begin());
      if (auto status = stages[1].run(); !status.ok()) return report(status);
      std::ranges::copy(stages[1].out, block.begin());  // made to be added up as they are
    } else {  // faded in and out, so that the four blocks of a sample add up to it
      const float turn = 2 * std::numbers::pi_v<float> / kBlock;
      for (size_t i = 0; i < kBlock; ++i) block[i] *= 0.25f - 0.25f * std::cos(turn * static_cast<float>(i));
    }
    for (size_t i = 0; i < kBlock; ++i) sum[i] += block[i];
    clean.insert(clean.end(), sum.begin(), sum.begin() + kShift);
    std::fill(std::shift_left(sum.begin(), sum.end(), kShift), sum.end(), 0.0f);
  }
  const bool written = write_wav(cleaned, sound.rate, std::span(clean).subspan(kBlock - kShift, length));
  if (!written) return std::fprintf(stderr, "cannot write %s\n", cleaned), 1;
  std::printf("%.2f s in %zu steps\n", static_cast<double>(length) / sound.rate, steps);
  return 0;
}
