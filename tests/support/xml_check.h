// Reads XML to find out whether it is well formed: elements nest, attributes are quoted and named once, only the five named
// references and numbers, only characters XML allows. No document types, no CDATA: the project writes neither.
#ifndef ONEWEIGHT_TESTS_SUPPORT_XML_CHECK_H
#define ONEWEIGHT_TESTS_SUPPORT_XML_CHECK_H

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace oneweight::testing {

class XmlCheck {
 public:
  // What is wrong and where, or "".
  std::string error;
  std::vector<std::string> elements;   // names in the order of their start tags
  std::set<std::string> attributes;    // names of all
  std::string text;                    // of all elements, references replaced

  explicit XmlCheck(std::string_view xml) : xml_(xml) {
    if (xml_.substr(0, 5) == "<?xml") at_ = xml_.find("?>") == xml_.npos ? fail("no end of the declaration") : xml_.find("?>") + 2;
    while (error.empty() && at_ < xml_.size()) xml_[at_] == '<' ? tag() : character(&text, open_.empty());
    if (error.empty() && !open_.empty()) fail("'" + open_.back() + "' is not closed");
    if (error.empty() && elements.empty()) fail("no element");
  }

 private:
  size_t fail(const std::string& why) {
    if (error.empty()) error = why + " at byte " + std::to_string(at_);
    return at_ = xml_.size();
  }
  bool take(std::string_view what) {
    if (xml_.substr(at_, what.size()) != what) return false;
    at_ += what.size();
    return true;
  }
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
  void spaces() {
    while (at_ < xml_.size() && is_space(xml_[at_])) ++at_;
  }
  std::string name() {
    const size_t begin = at_;
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    while (at_ < xml_.size() && (letter(xml_[at_]) || (at_ > begin && ((xml_[at_] >= '0' && xml_[at_] <= '9') || xml_[at_] == '-' || xml_[at_] == ':')))) ++at_;
    if (at_ == begin) fail("no name");
    return std::string(xml_.substr(begin, at_ - begin));
  }

  // One character or reference, appended to `into`.
  void character(std::string* into, bool outside) {
    const size_t begin = at_;
    const auto c = static_cast<uint8_t>(xml_[at_]);
    if (outside && !is_space(xml_[at_])) return void(fail("text outside of the element"));
    if (c == '&') {
      for (const auto& [name, value] : {std::pair{"&amp;", '&'}, std::pair{"&lt;", '<'}, std::pair{"&gt;", '>'}, std::pair{"&quot;", '"'}, std::pair{"&#39;", '\''}})
        if (take(name)) return into->push_back(value);
      return void(fail("an unknown reference"));
    }
    const int bytes = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0;
    if (bytes == 0 || at_ + static_cast<size_t>(bytes) > xml_.size()) return void(fail("not UTF-8"));
    uint32_t code = bytes == 1 ? c : c & (0x7fu >> bytes);
    for (int i = 1; i < bytes; ++i) {
      const auto next = static_cast<uint8_t>(xml_[at_ + static_cast<size_t>(i)]);
      if (next >> 6 != 2) return void(fail("not UTF-8"));
      code = code << 6 | (next & 0x3f);
    }
    const bool too_long = (bytes == 2 && code < 0x80) || (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
    const bool allowed = code == 9 || code == 10 || code == 13 || (code >= 0x20 && code <= 0xd7ff) || (code >= 0xe000 && code <= 0xfffd) ||
                         (code >= 0x10000 && code <= 0x10ffff);
    if (too_long || !allowed) return void(fail("a character that XML does not allow"));
    at_ += static_cast<size_t>(bytes);
    into->append(xml_.substr(begin, static_cast<size_t>(bytes)));
    if (into->ends_with("]]>")) fail("']]>' in text");
  }

  void tag() {
    take("<");
    if (take("/")) {
      const std::string closed = name();
      spaces();
      if (!take(">")) return void(fail("no end of '</" + closed + "'"));
      if (open_.empty() || open_.back() != closed) return void(fail("'</" + closed + ">' closes nothing"));
      open_.pop_back();
      return;
    }
    if (open_.empty() && !elements.empty()) return void(fail("a second element"));
    const std::string opened = name();
    elements.push_back(opened);
    std::set<std::string> own;
    while (error.empty()) {
      const size_t before = at_;
      spaces();
      if (take("/>")) return;
      if (take(">")) return open_.push_back(opened);
      if (at_ == before) return void(fail("no space before an attribute"));
      const std::string attribute = name();
      attributes.insert(attribute);
      if (!own.insert(attribute).second) return void(fail("'" + attribute + "' twice"));
      if (!take("=\"")) return void(fail("no value of '" + attribute + "'"));
      std::string value;
      while (error.empty() && at_ < xml_.size() && xml_[at_] != '"') xml_[at_] == '<' ? void(fail("'<' in a value")) : character(&value, false);
      if (!take("\"")) fail("no end of '" + attribute + "'");
    }
  }

  std::string_view xml_;
  size_t at_ = 0;
  std::vector<std::string> open_;
};

}  // namespace oneweight::testing

#endif  // ONEWEIGHT_TESTS_SUPPORT_XML_CHECK_H
