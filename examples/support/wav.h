// WAV files of 16-bit samples, for the examples that hear. (The program of examples/oneweight reads other encodings too.)
#ifndef ONEWEIGHT_EXAMPLES_SUPPORT_WAV_H
#define ONEWEIGHT_EXAMPLES_SUPPORT_WAV_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

struct Wav {
  int rate = 0;                // samples a second; 0 when the file is not one of 16-bit samples
  std::vector<float> samples;  // in [-1, 1), the mean of all channels
};

inline Wav read_wav(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto number = [&bytes](size_t at, size_t width) {
    uint32_t value = 0;
    for (size_t i = 0; i < width; ++i) value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
    return value;
  };
  if (bytes.size() < 12 || bytes.compare(0, 4, "RIFF") != 0 || bytes.compare(8, 4, "WAVE") != 0) return {};
  // Chunks: four letters, the size, the content, padded to even sizes.
  Wav wav;
  size_t channels = 0;
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const size_t start = at + 8, size = std::min<size_t>(number(at + 4, 4), bytes.size() - start);
    if (bytes.compare(at, 4, "fmt ") == 0 && size >= 16) {
      channels = number(start + 2, 2);
      if (number(start, 2) != 1 || number(start + 14, 2) != 16 || channels == 0) return {};
      wav.rate = static_cast<int>(std::min(number(start + 4, 4), 1000000u));
    } else if (bytes.compare(at, 4, "data") == 0) {
      for (size_t frame = start; channels > 0 && frame + 2 * channels <= start + size; frame += 2 * channels) {
        int sum = 0;
        for (size_t c = 0; c < channels; ++c) sum += static_cast<int16_t>(number(frame + 2 * c, 2));
        wav.samples.push_back(static_cast<float>(sum) / (32768.0f * static_cast<float>(channels)));
      }
      return wav;
    }
    at = start + size + size % 2;
  }
  return {};
}

// One channel. False when the file cannot be written.
inline bool write_wav(const std::string& path, int rate, std::span<const float> samples) {
  std::string bytes;
  const auto number = [&bytes](uint32_t value, size_t width) {
    for (size_t i = 0; i < width; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  };
  const auto size = static_cast<uint32_t>(2 * samples.size());
  const auto second = static_cast<uint32_t>(rate);
  bytes += "RIFF", number(36 + size, 4), bytes += "WAVEfmt ", number(16, 4);
  number(1, 2), number(1, 2), number(second, 4), number(2 * second, 4), number(2, 2), number(16, 2);
  bytes += "data", number(size, 4);
  for (float s : samples) number(static_cast<uint16_t>(std::lrint(std::clamp(s * 32768.0f, -32768.0f, 32767.0f))), 2);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file.good();
}

#endif  // ONEWEIGHT_EXAMPLES_SUPPORT_WAV_H
