// What an example does to noisy speech: white noise is added to a WAV file, the example takes it out again.
//   noisy_speech EXAMPLE MODEL SPEECH.wav FOLDER      (files are written to FOLDER)
// Pauses must be 12 dB quieter than before, speech as loud as it was without noise, and the whole nearer to it. Measured with
// DTLN's first model: 16.5 dB quieter, 0.6 dB less loud, 2.5 dB nearer.
#include <cstdio>
#include <cstdlib>

#include "examples/support/wav.h"

static double decibel(double power) { return 10 * std::log10(power + 1e-12); }

int main(int count, char** arguments) {
  if (count != 5) return 2;
  const std::string folder = arguments[4], noisy_path = folder + "/noisy.wav", cleaned_path = folder + "/cleaned.wav";
  const Wav speech = read_wav(arguments[3]);
  std::vector<float> noisy = speech.samples;
  unsigned state = 1;
  const auto uniform = [&state] {
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(state >> 8) / 0x1p24f - 0.5f;
  };
  for (float& s : noisy)
    for (int i = 0; i < 12; ++i) s += uniform() * 600 / 32768;  // together nearly normal, with a deviation of 600 of 32768
  if (!write_wav(noisy_path, speech.rate, noisy)) return std::fprintf(stderr, "cannot write %s\n", noisy_path.c_str()), 1;
  const std::string command = '"' + std::string(arguments[1]) + "\" \"" + arguments[2] + "\" \"" + noisy_path + "\" \"" + cleaned_path + '"';
  if (std::system(command.c_str()) != 0) return 1;
  const Wav cleaned = read_wav(cleaned_path);
  if (cleaned.rate != speech.rate || cleaned.samples.size() != noisy.size()) return std::fprintf(stderr, "another length or rate\n"), 1;

  // Mean powers in blocks of 10 ms that hold speech, and in those that hold none.
  struct {
    double speech = 0, noisy = 0, cleaned = 0, noise_before = 0, noise_after = 0;
    void add(double s, double n, double c) {
      speech += s * s, noisy += n * n, cleaned += c * c;
      noise_before += (n - s) * (n - s), noise_after += (c - s) * (c - s);
    }
  } spoken, pause;
  for (size_t at = 0; at + 160 <= noisy.size(); at += 160) {
    const auto block = std::span(speech.samples).subspan(at, 160);
    const bool silent = std::ranges::all_of(block, [](float s) { return std::abs(s) < 0.001f; });
    for (size_t i = at; i < at + 160; ++i) (silent ? pause : spoken).add(speech.samples[i], noisy[i], cleaned.samples[i]);
  }
  const double quieter = decibel(pause.noisy) - decibel(pause.cleaned), louder = decibel(spoken.cleaned) - decibel(spoken.speech);
  const double nearer = decibel(spoken.noise_before + pause.noise_before) - decibel(spoken.noise_after + pause.noise_after);
  std::printf("pauses %.1f dB quieter, speech %+.1f dB, %.1f dB nearer to the speech without noise\n", quieter, louder, nearer);
  return quieter > 12 && std::abs(louder) < 2 && nearer > 1 ? 0 : 1;
}
