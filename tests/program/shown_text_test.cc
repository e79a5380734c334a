#include "examples/oneweight/shown_text.h"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/xml_check.h"

using namespace program;
using namespace std::string_literals;

namespace {

const std::string kUnknown = "\xef\xbf\xbd";  // U+FFFD

}  // namespace

TEST_CASE("text that can be shown is shown as it is", "[program][text]") {
  for (const std::string text : {"", "conv_1/Relu6", "Gr\xc3\xbc\xc3\x9f""e", "\xe5\x8d\xb7\xe7\xa7\xaf", "\xf0\x9f\x98\x80", "\xef\xbf\xbd"}) CHECK(printable(text) == text);
}

TEST_CASE("what cannot be shown is replaced, character by character or byte by byte", "[program][text]") {
  struct Row {
    std::string text, shown;
  };
  const Row rows[] = {
      {"a\0b"s, "a" + kUnknown + "b"},
      {"\x1b[31m", kUnknown + "[31m"},                         // a terminal would turn red
      {"a\nb\tc\r\x7f", "a" + kUnknown + "b" + kUnknown + "c" + kUnknown + kUnknown},
      {"\xc2\x9b", kUnknown},                                   // a control character of two bytes
      {"\xe2\x80\xae""txt.exe", kUnknown + "txt.exe"},          // writing from right to left
      {"\xe2\x80\xa8", kUnknown},                               // a line separator
      {"\xef\xbb\xbf", kUnknown},                               // a byte order mark
      {"\xef\xbf\xbe", kUnknown},                               // no character
      {"\xff\xfe", kUnknown + kUnknown},                        // no UTF-8
      {"a\xc3", "a" + kUnknown},                                // cut off
      {"\xe5\x8d", kUnknown + kUnknown},
      {"\xc3(", kUnknown + "("},
      {"\xc0\xbc", kUnknown + kUnknown},                        // '<', written longer than allowed
      {"\xe0\x80\xbc", kUnknown + kUnknown + kUnknown},
      {"\xed\xa0\x80", kUnknown + kUnknown + kUnknown},         // half of a pair
      {"\xf4\x90\x80\x80", kUnknown + kUnknown + kUnknown + kUnknown},
      {"\xf8\x88\x80\x80\x80", kUnknown + kUnknown + kUnknown + kUnknown + kUnknown},
  };
  for (const Row& row : rows) {
    INFO(row.shown);
    CHECK(printable(row.text) == row.shown);
    CHECK(markup(row.text) == row.shown);
    CHECK(nlohmann::json::parse(script_string(row.text)) == row.shown);
  }
}

TEST_CASE("every byte, and every pair with it, can stand in XML and in a script", "[program][text]") {
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; b += a < 0x80 ? 85 : 1) {
      const std::string text = {static_cast<char>(a), static_cast<char>(b), 'x'};
      const std::string shown = printable(text);
      const oneweight::testing::XmlCheck xml("<t a=\"" + markup(text) + "\">" + markup(text) + "</t>");
      if (xml.error != "" || xml.text != shown) FAIL("bytes " << a << " " << b << ": " << xml.error);
      const std::string script = script_string(text);
      if (script.find_first_of("<>&\n") != script.npos || nlohmann::json::parse(script) != shown) FAIL("bytes " << a << " " << b << ": " << script);
    }
}

TEST_CASE("markup in names is text", "[program][text]") {
  CHECK(markup("</text><script>alert('1')</script>") == "&lt;/text&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;");
  CHECK(markup("\" onload=\"x") == "&quot; onload=&quot;x");
  CHECK(markup("&lt;") == "&amp;lt;");
  CHECK(script_string("</script>\\\"") == "\"\\u003c/script\\u003e\\u005c\\u0022\"");
}

TEST_CASE("text is shortened between characters", "[program][text]") {
  CHECK(beginning("abcdef", 6) == "abcdef");
  CHECK(beginning("abcdefg", 6) == "abcde\xe2\x80\xa6");
  CHECK(ending("abcdef", 6) == "abcdef");
  CHECK(ending("abcdefg", 6) == "\xe2\x80\xa6""cdefg");
  CHECK(beginning("\xc3\xa4\xc3\xb6\xc3\xbc", 2) == "\xc3\xa4\xe2\x80\xa6");
  CHECK(ending("\xc3\xa4\xc3\xb6\xc3\xbc", 2) == "\xe2\x80\xa6\xc3\xbc");
  const std::string name = "model/block_1/expand/Relu6";
  CHECK(ending_within(name, 10, 1000) == name);
  const std::string part = ending_within(name, 10, 100);
  CHECK(part.starts_with("\xe2\x80\xa6"));
  CHECK(name.ends_with(part.substr(3)));
  CHECK(text_width(part, 10) <= 100);
  CHECK(text_width(part, 10) > 80);
  CHECK(ending_within(name, 10, 30).empty());
  CHECK(short_name("conv/Relu;conv/BiasAdd") == "conv/Relu");
  CHECK(short_name(";a") == ";a");
}
