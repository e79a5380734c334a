// Options of custom operators.
#ifndef ONEWEIGHT_TESTS_SUPPORT_FLEXBUFFER_MAP_H
#define ONEWEIGHT_TESTS_SUPPORT_FLEXBUFFER_MAP_H

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace oneweight {
namespace testing {

// A flexbuffer map of numbers, keys in order: all offsets 8 bytes wide, values doubles.
inline std::vector<uint8_t> flexbuffer_map(const std::vector<std::pair<std::string, double>>& entries) {
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> keys;
  const auto put = [&](uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
  };
  for (const auto& [key, value] : entries) {
    keys.push_back(bytes.size());
    bytes.insert(bytes.end(), key.begin(), key.end());
    bytes.push_back(0);
  }
  while (bytes.size() % 8) bytes.push_back(0);
  put(entries.size());
  const uint64_t key_vector = bytes.size();
  for (uint64_t key : keys) put(bytes.size() - key);
  put(bytes.size() - key_vector);
  put(8);
  put(entries.size());
  const uint64_t values = bytes.size();
  for (const auto& [key, value] : entries) put(std::bit_cast<uint64_t>(value));
  for (size_t i = 0; i < entries.size(); ++i) bytes.push_back(3 << 2 | 3);  // a real of 8 bytes
  bytes.push_back(static_cast<uint8_t>(bytes.size() - values));
  bytes.push_back(9 << 2 | 3);  // a map with 8-byte offsets
  bytes.push_back(1);
  return bytes;
}

}  // namespace testing
}  // namespace oneweight

#endif  // ONEWEIGHT_TESTS_SUPPORT_FLEXBUFFER_MAP_H
