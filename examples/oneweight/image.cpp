#include "image.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#endif
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>
#define STB_IMAGE_RESIZE_STATIC
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#if __has_include(<stb_image_resize2.h>)
#include <stb_image_resize2.h>
#define ONEWEIGHT_STB_RESIZE2 1
#else
#include <stb_image_resize.h>
#endif
#include <stb_easy_font.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace program {

using oneweight::ErrorCode;
using oneweight::make_error;

namespace {

constexpr int kMaxSide = 1 << 15;

// stb: bytes of 8-bit sRGB, both pictures dense.
bool resample(const uint8_t* from, int width, int height, int row_bytes, uint8_t* to, int to_width, int to_height) {
  if (width == to_width && height == to_height) {  // a filter would blur
    for (int y = 0; y < height; ++y) std::copy_n(from + static_cast<size_t>(y) * static_cast<size_t>(row_bytes ? row_bytes : 3 * width), 3 * width, to + static_cast<size_t>(y) * 3 * static_cast<size_t>(width));
    return true;
  }
#ifdef ONEWEIGHT_STB_RESIZE2
  return stbir_resize_uint8_linear(from, width, height, row_bytes, to, to_width, to_height, 0, STBIR_RGB) != nullptr;
#else
  return stbir_resize_uint8(from, width, height, row_bytes, to, to_width, to_height, 0, 3) != 0;
#endif
}

void set_pixel(Image* image, int x, int y, Colour c) {
  if (x < 0 || y < 0 || x >= image->width || y >= image->height) return;
  uint8_t* p = image->pixel(x, y);
  p[0] = c.r, p[1] = c.g, p[2] = c.b;
}
// A coordinate as a pixel number; far outside rather than undefined.
int to_pixel(float v) { return !(v > -1e6f) ? -1000000 : v > 1e6f ? 1000000 : static_cast<int>(std::lround(v)); }

void fill(Image* image, int left, int top, int right, int bottom, Colour c) {
  for (int y = std::max(top, 0); y <= std::min(bottom, image->height - 1); ++y)
    for (int x = std::max(left, 0); x <= std::min(right, image->width - 1); ++x) set_pixel(image, x, y, c);
}

// Strokes get thicker with the picture.
int stroke(const Image& image) { return 1 + std::min(image.width, image.height) / 400; }

}  // namespace

oneweight::Expected<Image> read_image(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return make_error(ErrorCode::not_found, "cannot open the picture '%s'", path.c_str());
  int width = 0, height = 0, channels = 0;
  uint8_t* pixels = stbi_load_from_file(file, &width, &height, &channels, 3);
  std::fclose(file);
  if (!pixels) return make_error(ErrorCode::invalid_data, "'%s' is not a picture that can be read: %s", path.c_str(), stbi_failure_reason());
  Image image;
  image.width = width, image.height = height;
  const bool fits = width > 0 && height > 0 && width <= kMaxSide && height <= kMaxSide;
  if (fits) image.rgb.assign(pixels, pixels + 3 * static_cast<size_t>(width) * static_cast<size_t>(height));
  stbi_image_free(pixels);
  if (!fits) return make_error(ErrorCode::unsupported, "'%s' has %d x %d pixels", path.c_str(), width, height);
  return image;
}

oneweight::Status write_png(const std::string& path, const Image& image) {
  if (stbi_write_png(path.c_str(), image.width, image.height, 3, image.rgb.data(), 3 * image.width)) return {};
  return make_error(ErrorCode::io_error, "cannot write '%s'", path.c_str());
}

oneweight::Expected<Image> fit_image(const Image& from, int width, int height, Fit fit, Placement* placement) {
  const auto no_memory = [&] { return make_error(ErrorCode::out_of_memory, "no memory to resize the picture to %d x %d", width, height); };
  const float fx = static_cast<float>(width) / static_cast<float>(from.width), fy = static_cast<float>(height) / static_cast<float>(from.height);
  Image to;
  to.width = width, to.height = height;
  to.rgb.assign(3 * static_cast<size_t>(width) * static_cast<size_t>(height), 0);
  const auto rounded = [](float v) { return std::max(1, static_cast<int>(std::lround(v))); };
  if (fit == Fit::letterbox) {
    const float factor = std::min(fx, fy);
    Image inner;
    inner.width = std::min(width, rounded(factor * static_cast<float>(from.width)));
    inner.height = std::min(height, rounded(factor * static_cast<float>(from.height)));
    inner.rgb.resize(3 * static_cast<size_t>(inner.width) * static_cast<size_t>(inner.height));
    if (!resample(from.rgb.data(), from.width, from.height, 0, inner.rgb.data(), inner.width, inner.height)) return no_memory();
    const int left = (width - inner.width) / 2, top = (height - inner.height) / 2;
    for (int y = 0; y < inner.height; ++y) std::copy_n(inner.pixel(0, y), 3 * inner.width, to.pixel(left, top + y));
    *placement = {static_cast<float>(inner.width) / static_cast<float>(from.width), static_cast<float>(inner.height) / static_cast<float>(from.height),
                  static_cast<float>(left), static_cast<float>(top)};
    return to;
  }
  int left = 0, top = 0, part_width = from.width, part_height = from.height;
  if (fit == Fit::crop) {
    const float factor = std::max(fx, fy);
    part_width = std::min(from.width, rounded(static_cast<float>(width) / factor));
    part_height = std::min(from.height, rounded(static_cast<float>(height) / factor));
    left = (from.width - part_width) / 2, top = (from.height - part_height) / 2;
  }
  if (!resample(from.pixel(left, top), part_width, part_height, 3 * from.width, to.rgb.data(), width, height)) return no_memory();
  const float factor_x = static_cast<float>(width) / static_cast<float>(part_width), factor_y = static_cast<float>(height) / static_cast<float>(part_height);
  *placement = {factor_x, factor_y, -factor_x * static_cast<float>(left), -factor_y * static_cast<float>(top)};
  return to;
}

Colour colour_of(int number) {
  static constexpr Colour kColours[] = {{230, 60, 70},  {40, 140, 230}, {60, 180, 90},  {245, 170, 40}, {150, 80, 200}, {20, 190, 190},
                                        {240, 110, 180}, {150, 110, 60}, {120, 140, 30}, {90, 90, 220},  {250, 230, 60}, {130, 130, 130}};
  return kColours[static_cast<size_t>(number < 0 ? 0 : number) % std::size(kColours)];
}

void draw_box(Image* image, float left, float top, float right, float bottom, Colour colour) {
  const int l = to_pixel(left), t = to_pixel(top), r = to_pixel(right), b = to_pixel(bottom), w = stroke(*image);
  fill(image, l, t, r, t + w - 1, colour), fill(image, l, b - w + 1, r, b, colour);
  fill(image, l, t, l + w - 1, b, colour), fill(image, r - w + 1, t, r, b, colour);
}

void draw_point(Image* image, float x, float y, Colour colour) {
  const int cx = to_pixel(x), cy = to_pixel(y), w = stroke(*image);
  fill(image, cx - w, cy - w, cx + w, cy + w, colour);
}

void draw_text(Image* image, float x, float y, const std::string& text, Colour colour) {
  struct Vertex {
    float x, y, z;
    uint8_t colour[4];
  };
  std::vector<Vertex> quads(4 * 400);
  std::string line = text.substr(0, 60);
  const int count = stb_easy_font_print(0, 0, line.data(), nullptr, quads.data(), static_cast<int>(quads.size() * sizeof(Vertex)));
  const float size = static_cast<float>(stroke(*image));
  const int left = to_pixel(x), top = to_pixel(y);
  fill(image, left - 1, top - 1, left + static_cast<int>(size) * stb_easy_font_width(line.data()), top + 9 * static_cast<int>(size), colour);
  const Colour ink = colour.r * 3 + colour.g * 6 + colour.b > 1300 ? Colour{0, 0, 0} : Colour{255, 255, 255};
  for (int i = 0; i < count; ++i) {  // upright rectangles
    const Vertex &a = quads[static_cast<size_t>(4 * i)], &b = quads[static_cast<size_t>(4 * i + 2)];
    fill(image, left + to_pixel(size * a.x), top + to_pixel(size * a.y), left + to_pixel(size * b.x) - 1, top + to_pixel(size * b.y) - 1, ink);
  }
}

void blend_pixel(Image* image, int x, int y, Colour colour) {
  if (x < 0 || y < 0 || x >= image->width || y >= image->height) return;
  uint8_t* p = image->pixel(x, y);
  p[0] = static_cast<uint8_t>((p[0] + colour.r) / 2), p[1] = static_cast<uint8_t>((p[1] + colour.g) / 2), p[2] = static_cast<uint8_t>((p[2] + colour.b) / 2);
}

}  // namespace program
