#include "shown_text.h"

#include <cstdint>
#include <cstdio>

namespace program {

namespace {

constexpr uint32_t kReplacement = 0xfffd;
constexpr std::string_view kEllipsis = "\xe2\x80\xa6";

// The character at `*at`, which moves behind it; kReplacement for a byte that begins no character.
uint32_t next_character(std::string_view text, size_t* at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0u; };
  const uint32_t lead = byte(*at);
  const int more = lead < 0x80 ? 0 : lead >> 5 == 6 ? 1 : lead >> 4 == 14 ? 2 : lead >> 3 == 30 ? 3 : -1;
  uint32_t c = more <= 0 ? lead : lead & (0x3fu >> more);
  bool valid = more >= 0;
  for (int i = 1; i <= more && valid; ++i) {
    const uint32_t next = byte(*at + static_cast<size_t>(i));
    valid = next >> 6 == 2;
    c = c << 6 | (next & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  valid = valid && c >= kLeast[more] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
  *at += valid ? static_cast<size_t>(more) + 1 : 1;
  return valid ? c : kReplacement;
}

struct Characters {
  uint32_t first, last;
};
// Controls, marks without a shape, characters that XML does not allow.
constexpr Characters kNotShown[] = {{0, 0x1f},         {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},   {0x180e, 0x180e},   {0x200b, 0x200f},
                                    {0x2028, 0x202e},  {0x2060, 0x206f}, {0xfdd0, 0xfdef}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};

bool is_shown(uint32_t c) {
  for (const Characters& range : kNotShown)
    if (c >= range.first && c <= range.last) return false;
  return (c & 0xfffe) != 0xfffe;
}

void append(std::string* text, uint32_t c) {
  const auto add = [text](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (c < 0x80) return add(c);
  if (c < 0x800) return add(0xc0 | c >> 6), add(0x80 | (c & 0x3f));
  if (c < 0x10000) return add(0xe0 | c >> 12), add(0x80 | (c >> 6 & 0x3f)), add(0x80 | (c & 0x3f));
  add(0xf0 | c >> 18), add(0x80 | (c >> 12 & 0x3f)), add(0x80 | (c >> 6 & 0x3f)), add(0x80 | (c & 0x3f));
}

bool continues(char c) { return static_cast<uint8_t>(c) >> 6 == 2; }

double width_of(uint32_t c) { return c >= 0x2e80 ? 1.0 : c >= 'A' && c <= 'Z' ? 0.72 : c == 'm' || c == 'w' || c > 0x7f ? 0.9 : 0.6; }

template <class Escape>
std::string escaped(std::string_view text, const Escape& escape) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = next_character(text, &i);
    escape(&result, is_shown(c) ? c : kReplacement);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, append); }

std::string markup(std::string_view text) {
  return escaped(text, [](std::string* result, uint32_t c) {
    switch (c) {
      case '&': *result += "&amp;"; return;
      case '<': *result += "&lt;"; return;
      case '>': *result += "&gt;"; return;
      case '"': *result += "&quot;"; return;
      case '\'': *result += "&#39;"; return;
      default: append(result, c);
    }
  });
}

std::string script_string(std::string_view text) {
  return '"' + escaped(text, [](std::string* result, uint32_t c) {
    if (c != '"' && c != '\\' && c != '<' && c != '>' && c != '&') return append(result, c);
    char code[8];
    std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
    *result += code;
  }) + '"';
}

std::string beginning(std::string_view text, size_t most) {
  size_t at = 0;
  for (size_t n = 0; at < text.size(); ++n) {
    size_t next = at + 1;
    while (next < text.size() && continues(text[next])) ++next;
    if (n + 1 >= most && next < text.size()) return std::string(text.substr(0, at)).append(kEllipsis);
    at = next;
  }
  return std::string(text);
}

std::string ending(std::string_view text, size_t most) {
  size_t at = text.size();
  for (size_t n = 0; at > 0; ++n) {
    size_t previous = at - 1;
    while (previous > 0 && continues(text[previous])) --previous;
    if (n + 1 >= most && previous > 0) return std::string(kEllipsis).append(text.substr(at));
    at = previous;
  }
  return std::string(text);
}

double text_width(std::string_view text, double size) {
  double width = 0;
  for (size_t i = 0; i < text.size();) width += width_of(next_character(text, &i));
  return width * size;
}

std::string ending_within(std::string_view text, double size, double width) {
  if (text_width(text, size) <= width) return std::string(text);
  size_t at = text.size(), letters = 0;
  for (double used = size; at > 0; ++letters) {  // the ellipsis
    size_t previous = at - 1;
    while (previous > 0 && continues(text[previous])) --previous;
    used += text_width(text.substr(previous, at - previous), size);
    if (used > width) break;
    at = previous;
  }
  return letters < 8 ? "" : std::string(kEllipsis).append(text.substr(at));
}

std::string short_name(std::string_view name) {
  const std::string_view first = name.substr(0, name.find(';'));
  return printable(first.empty() ? name : first);
}

}  // namespace program
