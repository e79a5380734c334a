// Sound: WAV files (16, 24 and 32-bit integers, 32-bit floats, any number of channels) as mono floats in [-1, 1].
#ifndef ONEWEIGHT_EXAMPLES_AUDIO_H
#define ONEWEIGHT_EXAMPLES_AUDIO_H

#include <string>
#include <vector>

#include "oneweight/base/status.h"

namespace program {

struct Audio {
  int rate = 0;                 // samples a second
  std::vector<float> samples;   // the mean of all channels
};

// Errors: not_found, invalid_data (no WAV file, cut off), unsupported (other encodings).
oneweight::Expected<Audio> read_wav(const std::string& path);
// Linear interpolation, after a mean over each step where the rate falls.
Audio resample(const Audio& from, int rate);

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_AUDIO_H
