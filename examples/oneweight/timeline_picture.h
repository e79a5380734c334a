// Pictures of a timeline: steps from left to right, the bytes of the block from bottom to top.
#ifndef ONEWEIGHT_EXAMPLES_TIMELINE_PICTURE_H
#define ONEWEIGHT_EXAMPLES_TIMELINE_PICTURE_H

#include <cstdio>
#include <string>

#include "timeline.h"

namespace program {

struct PictureSource {
  const oneweight::Plan& plan;
  const Timeline& timeline;
  std::string model;                 // what the title says
};

// Both write piece by piece; the caller looks at ferror().
void write_svg(std::FILE* file, const PictureSource& source);
// One file that needs no other: the same picture, and a script that tells what is under the pointer.
void write_html(std::FILE* file, const PictureSource& source);

// Errors: invalid_argument unless the path ends with .svg or .html.
oneweight::Status check_picture_path(const std::string& path);
// Errors: those of check_picture_path(), io_error.
oneweight::Status write_picture(const std::string& path, const PictureSource& source);

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_TIMELINE_PICTURE_H
