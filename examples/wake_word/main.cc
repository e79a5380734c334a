// Listens for a wake word, or for any voice, in a sound: 30 ms at a time, as if they came from a microphone. What was heard
// before is in the context: the model keeps it in variables.
//   wake_word MODEL.tflite SOUND.wav [THRESHOLD]      (microWakeWord's models; 16-bit samples at 16 kHz)
#include <oneweight/oneweight.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "../support/wav.h"
#include "features.h"

static int report(const oneweight::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

int main(int count, char** arguments) {
  if (count != 3 && count != 4) return std::fprintf(stderr, "usage: wake_word MODEL.tflite SOUND.wav [THRESHOLD]\n"), 2;
  const float threshold = count == 4 ? std::strtof(arguments[3], nullptr) : 0.85f;
  auto model = oneweight::ModelView::open(arguments[1]);
  if (!model.ok()) return report(model.status());
  auto plan = oneweight::make_plan<oneweight::opset::All>(*model);
  if (!plan.ok()) return report(plan.status());
  auto context = oneweight::ExecutionContext::create(*plan);
  if (!context.ok()) return report(context.status());
  auto input = context->input<int8_t>(0);
  if (!input.ok()) return report(input.status());
  auto output = context->output<uint8_t>(0);
  if (!output.ok()) return report(output.status());
  if (input->empty() || input->size() % Features::kChannels != 0 || output->size() != 1)
    return std::fprintf(stderr, "the model does not make one probability of rows of %d features\n", Features::kChannels), 1;

  const Wav sound = read_wav(arguments[2]);
  if (sound.rate != Features::kRate) return std::fprintf(stderr, "%s: not a WAV file of 16-bit samples at 16 kHz\n", arguments[2]), 1;

  Features features;
  size_t filled = 0, runs = 0;
  std::array<float, 5> recent{};  // probabilities; their mean decides
  bool above = false, heard = false;
  for (size_t at = 0; at + Features::kStep <= sound.samples.size(); at += Features::kStep) {
    for (float f : features.next(std::span(sound.samples).subspan(at).first<Features::kStep>()))
      (*input)[filled++] = static_cast<int8_t>(std::clamp(std::round(f * 256 / 666) - 128, -128.0f, 127.0f));
    if (filled < input->size()) continue;
    filled = 0;
    if (auto status = context->run(); !status.ok()) return report(status);
    recent[runs++ % recent.size()] = static_cast<float>((*output)[0]) / 255;
    const float mean = std::accumulate(recent.begin(), recent.end(), 0.0f) / static_cast<float>(recent.size());
    const float seconds = static_cast<float>(at + Features::kStep) / Features::kRate;
    if (mean >= threshold && !above) std::printf("%.2f s: probability %.2f\n", static_cast<double>(seconds), static_cast<double>(mean));
    above = mean >= threshold;
    heard = heard || above;
  }
  if (!heard) std::printf("nothing was heard\n");
  return 0;
}
