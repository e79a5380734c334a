// Names from files that nobody has looked at, made fit to be shown: on a terminal, in XML and HTML, in a script.
#ifndef ONEWEIGHT_EXAMPLES_SHOWN_TEXT_H
#define ONEWEIGHT_EXAMPLES_SHOWN_TEXT_H

#include <string>
#include <string_view>

namespace program {

// UTF-8 of the text; what is not UTF-8, control characters and marks without a shape (also those that turn the direction of writing)
// are each replaced by U+FFFD.
std::string printable(std::string_view text);
// The same, for text and quoted attributes of XML and HTML.
std::string markup(std::string_view text);
// The same, as a JSON string with its quotes; fit to stand inside <script>.
std::string script_string(std::string_view text);

// Of printable text: the first or the last `most` characters, with an ellipsis for what is left out.
std::string beginning(std::string_view text, size_t most);
std::string ending(std::string_view text, size_t most);
// The ending that is no wider than `width` when it is written in a sans-serif font of this size; "" when less than eight letters of a
// longer text fit.
std::string ending_within(std::string_view text, double size, double width);
// An estimate that is rather too wide.
double text_width(std::string_view text, double size);

// A name as converters write it, "layer/op;layer/other_op": what stands before the first semicolon. Printable.
std::string short_name(std::string_view name);

}  // namespace program

#endif  // ONEWEIGHT_EXAMPLES_SHOWN_TEXT_H
