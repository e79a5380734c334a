// Are these outputs right?
#ifndef ONEWEIGHT_EXAMPLES_COMPARE_H
#define ONEWEIGHT_EXAMPLES_COMPARE_H

#include <string>
#include <vector>

#include "case.h"

namespace program {

// Element `index` as a sentence would name it: a number, true, "text", (1+2j).
std::string element_text(const Array& array, int64_t index);
// "[0, 3, 1]" for the element's place in the shape.
std::string index_text(const std::vector<int64_t>& shape, int64_t index);
// As a number; of a complex one the real part.
double element_value(const Array& array, int64_t index);

// Empty, or a sentence with the first differing element.
std::string compare(const Array& got, const Array& want, const Tolerance& tolerance, bool shape_only);

// Outputs of TFLite_Detection_PostProcess (boxes, classes, scores, count): every wanted detection must be
// found, in any order. Empty, or a sentence.
std::string compare_detections(const std::vector<Array>& got, const std::vector<Array>& want,
                               const std::vector<Tolerance>& tolerances);

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_COMPARE_H
