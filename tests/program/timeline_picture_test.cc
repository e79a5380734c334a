#include "examples/oneweight/timeline_picture.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>

#include "examples/oneweight/shown_text.h"
#include "oneweight/plan/custom_operator.h"
#include "tests/support/sha256.h"
#include "tests/support/test_data.h"
#include "tests/support/toy_operators.h"
#include "tests/support/xml_check.h"

using namespace oneweight;
using namespace oneweight::testing;
using namespace program;
using namespace std::string_literals;

namespace {

const std::string kHostileNames[] = {
    "</title></text></svg></style></script><script>alert(1)</script>",
    "\"/><image href=\"http://example.invalid/x.png\" onload=\"alert(1)\"/>",
    "' onmouseover='alert(1)",
    "<!-- ]]> --!> <![CDATA[ &amp; &nonsense; &#0;",
    "zero\0 \x01 \x1b[31m red \x7f \xc2\x85 line\nline\ttab"s,
    "not UTF-8: \xff \xc0\xbc \xed\xa0\x80 \xf4\x90\x80\x80 cut \xe5",
    "turned \xe2\x80\xae""round \xe2\x80\xa8 \xef\xbf\xbf \xef\xbb\xbf",
    "%s%n%x\\\\ \\u003c ${name} @name@ {{name}}",
    "",
    std::string(100000, 'x'),
    std::string(50000, ';'),
};

constexpr auto kHostileOperator = custom_operator(
    "<b>\"'&\xff\x01</b></script>", [](Preparation& p) { return p.set_output(0, p.input(0).shape); }, [](const CustomCall&) {});

// x -> op -> op -> ... -> y, all names hostile; `length` operators, every third in place.
std::shared_ptr<const Plan> hostile_plan(int length) {
  ModelBuilder m;
  const auto name = [](int i) { return kHostileNames[static_cast<size_t>(i) % std::size(kHostileNames)]; };
  int at = m.tensor(TensorType::float32, {1, 4000}, name(0));
  m.tensor(TensorType::float32, {1, 4}, name(1)).variable();
  m.inputs({at});
  for (int i = 0; i < length; ++i) {
    const int next = m.tensor(TensorType::float32, {1, 4000}, name(i + 1));
    if (i % 3 == 0) m.op(BuiltinOperator::exp, {at}, {next});
    if (i % 3 == 1) m.op(BuiltinOperator::neg, {at}, {next});
    if (i % 3 == 2) m.custom_op(kHostileOperator.custom_code, {at}, {next});
    at = next;
  }
  m.outputs({at});
  PlanOptions options;
  options.custom_operators = {&kHostileOperator};
  auto plan = plan_toy(m.build(), options);
  INFO(plan.status().message());
  REQUIRE(plan.ok());
  return *plan;
}

std::vector<std::pair<std::string, std::shared_ptr<const Plan>>> plans() {
  std::vector<std::pair<std::string, std::shared_ptr<const Plan>>> all;
  for (int length : {1, 12, 60, 2000}) all.emplace_back(kHostileNames[static_cast<size_t>(length) % 8], hostile_plan(length));
  for (const std::string& path : test_models()) all.emplace_back(path, plan_of(path));
  return all;
}

template <class Write>
std::string written(const Plan& plan, const std::string& model, const Write& write) {
  const Timeline timeline = make_timeline(plan);
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  REQUIRE(file);
  write(file.get(), PictureSource{plan, timeline, model});
  REQUIRE(std::ferror(file.get()) == 0);
  std::string text(static_cast<size_t>(std::ftell(file.get())), '\0');
  std::rewind(file.get());
  REQUIRE(std::fread(text.data(), 1, text.size(), file.get()) == text.size());
  return text;
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// What stands between the `number`th `begin` and the next `end`.
std::string between(const std::string& text, const std::string& begin, const std::string& end, int number = 0) {
  size_t at = text.find(begin);
  while (number-- > 0 && at != text.npos) at = text.find(begin, at + 1);
  REQUIRE(at != text.npos);
  at += begin.size();
  REQUIRE(text.find(end, at) != text.npos);
  return text.substr(at, text.find(end, at) - at);
}

void check_picture(const std::string& svg, const Plan& plan) {
  const XmlCheck xml(svg);
  CHECK(xml.error == "");
  CHECK(xml.elements.front() == "svg");
  const std::set<std::string> allowed = {"svg", "style", "defs", "pattern", "rect", "path", "text", "g", "title"};
  for (const std::string& name : xml.elements)
    if (!allowed.contains(name)) FAIL("an element '" << name << "'");
  for (const std::string& name : xml.attributes)
    if (name.starts_with("on") || name.find("href") != name.npos) FAIL("an attribute '" << name << "'");
  CHECK(svg.find("nan") == svg.npos);
  CHECK(svg.find("inf") == svg.npos);
  const size_t items = make_timeline(plan).items.size();
  CHECK(static_cast<size_t>(std::count(xml.elements.begin(), xml.elements.end(), "rect")) >= items + 4);
  CHECK(xml.text.find("peak: step " + std::to_string(plan.peak_step())) != std::string::npos);
  CHECK(xml.text.find("place in the block, ") != std::string::npos);
}

}  // namespace

TEST_CASE("pictures are well-formed XML, whatever the names are", "[program][picture]") {
  for (const auto& [name, plan] : plans()) {
    INFO(name << ", " << plan->steps().size() << " steps");
    const std::string svg = written(*plan, name, write_svg);
    CHECK(svg.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\""));
    check_picture(svg, *plan);
    CHECK(svg.size() < 1024 * (32 + plan->tensors().size() + 2 * plan->steps().size()));
  }
}

TEST_CASE("a rectangle of the picture is where the timeline says", "[program][picture]") {
  const auto plan = plan_of(std::string(ONEWEIGHT_TEST_DATA) + "/models/mlperf_kws_int8/model.tflite");
  const Timeline timeline = make_timeline(*plan);
  const std::string svg = written(*plan, "kws", write_svg);
  // The second panel is the block; tooltips tell what the rectangles are.
  std::smatch panel;
  std::string rest = svg.substr(svg.find("class=\"panel\"") + 1);
  REQUIRE(std::regex_search(rest, panel, std::regex("class=\"panel\" x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\" height=\"([0-9.]+)\"")));
  const double x = std::stod(panel[1]), y = std::stod(panel[2]), width = std::stod(panel[3]), height = std::stod(panel[4]);
  const std::regex rectangle("<rect class=\"[a-z ]+\" x=\"([0-9.]+)\" y=\"([0-9.]+)\" width=\"([0-9.]+)\" height=\"([0-9.]+)\"><title>[^<]*"
                             ", ([0-9]+) bytes at ([0-9]+), steps ([0-9]+) to ([0-9]+)</title>");
  size_t found = 0;
  for (std::sregex_iterator at(svg.begin(), svg.end(), rectangle), end; at != end; ++at, ++found) {
    const auto number = [&](int group) { return std::stod((*at)[group]); };
    const double steps = static_cast<double>(timeline.steps.size()), bytes = static_cast<double>(timeline.block_bytes);
    CHECK(std::abs(number(1) - (x + width * number(7) / steps)) < 0.1);
    CHECK(std::abs(number(3) - width * (number(8) - number(7) + 1) / steps) < 0.1);
    CHECK(std::abs(number(2) + number(4) - (y + height * (1 - number(6) / bytes))) < 0.1);
    CHECK(std::abs(number(4) - height * number(5) / bytes) < 0.1);
    CHECK(number(5) == static_cast<double>(timeline.items[found].bytes));
  }
  CHECK(found == timeline.items.size());
}

TEST_CASE("pages hold nothing that a name could make run", "[program][picture]") {
  for (const auto& [name, plan] : plans()) {
    INFO(name << ", " << plan->steps().size() << " steps");
    const std::string html = written(*plan, name, write_html);
    CHECK(html.starts_with("<!DOCTYPE html>"));
    std::string lines = html;
    std::erase(lines, '\n');
    CHECK(printable(lines) == lines);
    check_picture("<svg xmlns" + between(html, "<svg xmlns", "</svg>") + "</svg>", *plan);
    CHECK(count(html, "<script") == 2);
    CHECK(count(html, "</script") == 2);
    CHECK(count(html, "<style>") == 2);
    CHECK(count(html, "</style") == 2);
    CHECK(count(html, "<!--") == 0);
    for (const char* outside : {"<link", "<img", "<image", "<iframe", "<object", " src=\"", " href=\"", "@import", "fetch(", "innerHTML"}) CHECK(count(html, outside) == 0);
    CHECK(count(html, "url(") == count(html, "url(#hatch)"));
    // Nothing but these two styles and this script is allowed.
    const std::string policy = between(html, "<meta http-equiv=\"Content-Security-Policy\" content=\"", "\"");
    CHECK(policy == "default-src 'none'; style-src 'sha256-" + sha256_base64(between(html, "<style>", "</style>", 1)) + "' 'sha256-" +
                        sha256_base64(between(html, "<style>", "</style>", 0)) + "'; script-src 'sha256-" +
                        sha256_base64(between(html, "<script>", "</script>")) + "'; base-uri 'none'; form-action 'none'");
  }
}

TEST_CASE("the script of a page is given what the timeline says", "[program][picture]") {
  CHECK(sha256_base64("abc") == "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  for (const auto& [name, plan] : plans()) {
    const Timeline timeline = make_timeline(*plan);
    const std::string html = written(*plan, name, write_html);
    const auto data = nlohmann::json::parse(between(html, "<script type=\"application/json\" id=\"data\">", "</script>"));
    CHECK(data["peak"] == timeline.peak_step);
    CHECK(data["bytes"] == timeline.block_bytes);
    REQUIRE(data["steps"].size() == timeline.steps.size());
    REQUIRE(data["items"].size() == timeline.items.size());
    for (size_t s = 0; s < timeline.steps.size(); ++s) {
      const nlohmann::json wanted = {beginning(printable(plan->steps()[s].name), 160), timeline.steps[s].alive_bytes, timeline.steps[s].output_bytes,
                                     timeline.steps[s].scratch_bytes};
      if (data["steps"][s] != wanted) FAIL("step " << s << ": " << data["steps"][s]);
    }
    for (size_t i = 0; i < timeline.items.size(); ++i) {
      const TimelineItem& item = timeline.items[i];
      const nlohmann::json& found = data["items"][i];
      const bool same = data["kinds"][found[0].get<size_t>()] == name_of(item.kind) && found[1] == item.offset && found[2] == item.bytes &&
                        found[3] == item.first && found[4] == item.last && found[5].size() == timeline.tensors_of(item).size();
      if (!same) FAIL("item " << i << ": " << found);
      for (size_t k = 0; k < found[5].size(); ++k) {
        const PlanTensor& tensor = plan->tensors()[static_cast<size_t>(timeline.tensors_of(item)[k])];
        if (found[5][k][0] != beginning(printable(tensor.name), 160) || found[5][k][2] != tensor.bytes) FAIL("item " << i << ": " << found);
      }
    }
  }
}

TEST_CASE("a graph without operators makes a picture too", "[program][picture]") {
  ModelBuilder m;
  const int x = m.tensor(TensorType::float32, {1, 100}, "x");
  m.inputs({x}).outputs({x});
  auto plan = plan_toy(m.build());
  REQUIRE(plan.ok());
  CHECK(XmlCheck(written(**plan, "empty", write_svg)).error == "");
  CHECK(written(**plan, "empty", write_html).ends_with("</html>\n"));
}

TEST_CASE("the checker of XML finds what is wrong", "[program][picture]") {
  CHECK(XmlCheck("<?xml version=\"1.0\"?>\n<a b=\"1\" c=\"&lt;\"><d/>text &amp; more</a>\n").error == "");
  for (const char* wrong : {"", "text", "<a>", "<a></b>", "<a><b></a></b>", "<a b=1/>", "<a b=\"1\" b=\"2\"/>", "<a b=\"<\"/>", "<a>&nbsp;</a>", "<a>&</a>", "<a/><b/>",
                            "<a>\x01</a>", "<a>\xff</a>", "<a>\xc0\xbc</a>", "<a>\xed\xa0\x80</a>", "<a>]]></a>", "<a b=\"1\"c=\"2\"/>", "<a", "<1/>"})
    if (XmlCheck(wrong).error.empty()) FAIL("taken for XML: " << wrong);
}
