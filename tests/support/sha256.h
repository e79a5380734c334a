// SHA-256 as base64, which is how a page names the scripts it allows.
#ifndef ONEWEIGHT_TESTS_SUPPORT_SHA256_H
#define ONEWEIGHT_TESTS_SUPPORT_SHA256_H

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace oneweight::testing {

inline std::string sha256_base64(std::string_view text) {
  // The constants are the first 32 bits of the fractional parts of roots of the first primes.
  std::array<uint32_t, 64> k{};
  std::array<uint32_t, 8> h{};
  const auto fraction = [](long double root) { return static_cast<uint32_t>((root - std::floor(root)) * 4294967296.0L); };
  for (int prime = 2, found = 0; found < 64; ++prime) {
    bool is_prime = true;
    for (int d = 2; d * d <= prime; ++d) is_prime = is_prime && prime % d != 0;
    if (!is_prime) continue;
    if (found < 8) h[static_cast<size_t>(found)] = fraction(std::sqrt(static_cast<long double>(prime)));
    k[static_cast<size_t>(found++)] = fraction(std::cbrt(static_cast<long double>(prime)));
  }
  std::string data(text);
  data.push_back('\x80');
  while (data.size() % 64 != 56) data.push_back('\0');
  for (int shift = 56; shift >= 0; shift -= 8) data.push_back(static_cast<char>(static_cast<uint64_t>(text.size()) * 8 >> shift));
  for (size_t block = 0; block < data.size(); block += 64) {
    std::array<uint32_t, 64> w{};
    for (size_t i = 0; i < 64; ++i) w[i / 4] = w[i / 4] << 8 | static_cast<uint8_t>(data[block + i]);
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    std::array<uint32_t, 8> v = h;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t first = v[7] + (std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
      const uint32_t second = (std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
      v = {first + second, v[0], v[1], v[2], v[3] + first, v[4], v[5], v[6]};
    }
    for (size_t i = 0; i < 8; ++i) h[i] += v[i];
  }
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  for (size_t bit = 0; bit < 256; bit += 6) {
    uint32_t six = 0;
    for (size_t b = bit; b < bit + 6; ++b) six = six << 1 | (b < 256 ? h[b / 32] >> (31 - b % 32) & 1 : 0);
    result.push_back(kLetters[six]);
  }
  return result + "=";
}

}  // namespace oneweight::testing

#endif  // ONEWEIGHT_TESTS_SUPPORT_SHA256_H
