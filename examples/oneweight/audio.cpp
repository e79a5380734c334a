#include "audio.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

namespace program {

using oneweight::ErrorCode;
using oneweight::make_error;

namespace {

uint32_t number(const std::string& bytes, size_t at, size_t width) {
  uint32_t value = 0;
  for (size_t i = 0; i < width; ++i) value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return value;
}

}  // namespace

oneweight::Expected<Audio> read_wav(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return make_error(ErrorCode::not_found, "cannot open the sound '%s'", path.c_str());
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.size() < 12 || bytes.compare(0, 4, "RIFF") != 0 || bytes.compare(8, 4, "WAVE") != 0)
    return make_error(ErrorCode::invalid_data, "'%s' is not a WAV file", path.c_str());
  // Chunks: four letters, the size, the content, padded to even sizes.
  uint32_t format = 0, channels = 0, bits = 0;
  Audio audio;
  for (size_t at = 12; at + 8 <= bytes.size();) {
    const size_t start = at + 8, left = bytes.size() - start, size = std::min<size_t>(number(bytes, at + 4, 4), left);
    if (bytes.compare(at, 4, "fmt ") == 0) {
      if (size < 16) return make_error(ErrorCode::invalid_data, "'%s' has a format of %zu bytes", path.c_str(), size);
      format = number(bytes, start, 2), channels = number(bytes, start + 2, 2), bits = number(bytes, start + 14, 2);
      const uint32_t rate = number(bytes, start + 4, 4);
      if (format == 0xfffe && size >= 26) format = number(bytes, start + 24, 2);  // extensible: the first part of the GUID
      const bool known = (format == 1 && (bits == 16 || bits == 24 || bits == 32)) || (format == 3 && bits == 32);
      if (!known || channels == 0 || rate == 0 || rate > 1000000)
        return make_error(ErrorCode::unsupported, "'%s' has encoding %u with %u bits, %u channels, %u samples a second", path.c_str(), format, bits, channels, rate);
      audio.rate = static_cast<int>(rate);
    } else if (bytes.compare(at, 4, "data") == 0) {
      if (audio.rate == 0) return make_error(ErrorCode::invalid_data, "'%s' has sound before its format", path.c_str());
      const size_t width = bits / 8, frame = width * channels;
      for (size_t f = start; f + frame <= start + size; f += frame) {
        float sum = 0;
        for (size_t c = 0; c < channels; ++c) {
          const uint32_t raw = number(bytes, f + c * width, width);
          float value;
          if (format == 3) std::memcpy(&value, &raw, sizeof(value));
          else value = static_cast<float>(static_cast<int32_t>(raw << (32 - bits))) / 2147483648.0f;
          sum += value;
        }
        audio.samples.push_back(sum / static_cast<float>(channels));
      }
      return audio;
    }
    at = start + size + size % 2;
  }
  return make_error(ErrorCode::invalid_data, "'%s' holds no sound", path.c_str());
}

Audio resample(const Audio& from, int rate) {
  if (rate == from.rate || from.samples.empty()) return from;
  Audio to;
  to.rate = rate;
  const double step = static_cast<double>(from.rate) / rate;
  const auto count = static_cast<size_t>(static_cast<double>(from.samples.size()) / step);
  for (size_t i = 0; i < count; ++i) {
    const double at = static_cast<double>(i) * step;
    const auto first = static_cast<size_t>(at), last = std::min(static_cast<size_t>(at + step), from.samples.size());
    if (last > first + 1) {
      float sum = 0;
      for (size_t k = first; k < last; ++k) sum += from.samples[k];
      to.samples.push_back(sum / static_cast<float>(last - first));
    } else {
      const size_t next = std::min(first + 1, from.samples.size() - 1);
      const float part = static_cast<float>(at - static_cast<double>(first));
      to.samples.push_back((1 - part) * from.samples[first] + part * from.samples[next]);
    }
  }
  return to;
}

}  // namespace program
