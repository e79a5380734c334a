// Pictures: read (PNG, JPEG, BMP, ...), brought to a model's size, drawn upon, written (PNG). 8-bit RGB. Decoding, resampling and encoding are stb's.
#ifndef ONEWEIGHT_EXAMPLES_IMAGE_H
#define ONEWEIGHT_EXAMPLES_IMAGE_H

#include <cstdint>
#include <string>
#include <vector>

#include "oneweight/base/status.h"

namespace program {

struct Colour {
  uint8_t r, g, b;
};

struct Image {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // rows from the top, three bytes a pixel
  uint8_t* pixel(int x, int y) { return rgb.data() + 3 * (static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)); }
  const uint8_t* pixel(int x, int y) const { return const_cast<Image*>(this)->pixel(x, y); }
};

// Errors: not_found, invalid_data (with stb's reason), out_of_memory.
oneweight::Expected<Image> read_image(const std::string& path);
// Errors: io_error.
oneweight::Status write_png(const std::string& path, const Image& image);

// How a picture of another shape is brought to width x height: each axis by its own factor; whole, with black margins; or its middle.
enum class Fit { stretch, letterbox, crop };
// Where the picture lies in the model's input, in pixels of the input: input = offset + factor * picture.
struct Placement {
  float factor_x = 1, factor_y = 1, offset_x = 0, offset_y = 0;
  float picture_x(float input) const { return (input - offset_x) / factor_x; }
  float picture_y(float input) const { return (input - offset_y) / factor_y; }
};
// Errors: out_of_memory.
oneweight::Expected<Image> fit_image(const Image& from, int width, int height, Fit fit, Placement* placement);

// Drawing; what lies outside is left out.
Colour colour_of(int number);  // well apart for small numbers
void draw_box(Image* image, float left, float top, float right, float bottom, Colour colour);
void draw_point(Image* image, float x, float y, Colour colour);
void draw_text(Image* image, float x, float y, const std::string& text, Colour colour);
void blend_pixel(Image* image, int x, int y, Colour colour);  // half and half

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_IMAGE_H
