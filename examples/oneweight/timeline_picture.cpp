#include "timeline_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>

#include "shown_text.h"
#include "timeline_page.h"

namespace program {

using oneweight::ErrorCode;
using oneweight::make_error;
using oneweight::PlanTensor;

namespace {

constexpr double kKiB = 1024, kMiB = 1024 * 1024;
constexpr double kWidth = 1200, kLeft = 66, kRight = 18;
constexpr size_t kLongest = 160;     // letters of a name, where all of it is to be shown

// Where the two panels are, in units of the picture.
struct Layout {
  int steps;
  double bytes;                      // at the upper edge of both panels
  double unit;                       // of the ticks: MiB, or KiB for small blocks
  const char* unit_name;
  double step_width;
  double top = 0, alive_top = 0, alive_height = 92, block_top = 0, block_height = 520, bottom = 0;

  double x(double step) const { return kLeft + step * step_width; }
  double block_y(double at) const { return block_top + block_height * (1 - at / bytes); }
  double alive_y(double alive) const { return alive_top + alive_height * (1 - alive / bytes); }
};

// As a person would read it: "11.8 MiB", "640 B".
std::string size_text(int64_t bytes) {
  const auto b = static_cast<double>(bytes);
  if (b >= 100 * kMiB) return oneweight::format_text("%.0f MiB", b / kMiB);
  if (b >= kMiB / 2) return oneweight::format_text("%.2f MiB", b / kMiB);
  if (b >= 100 * kKiB) return oneweight::format_text("%.0f KiB", b / kKiB);
  if (b >= kKiB) return oneweight::format_text("%.1f KiB", b / kKiB);
  return oneweight::format_text("%.0f B", b);
}

std::string tensor_text(const PlanTensor& tensor) { return std::string(tensor_type_name(tensor.type)) + " " + tensor.shape.to_string(); }

// 1, 2 or 5 times a power of ten, so that there are at most `most` ticks up to `end`.
double tick_distance(double end, double most) {
  const double least = std::max(end / most, 1e-9);
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least) return factor * power;
  return 10 * power;
}

class PictureWriter {
 public:
  PictureWriter(std::FILE* file, const PictureSource& source, bool in_page)
      : file_(file), plan_(source.plan), timeline_(source.timeline), model_(source.model), in_page_(in_page) {
    layout_.steps = std::max(static_cast<int>(timeline_.steps.size()), 1);
    layout_.bytes = std::max(static_cast<double>(timeline_.block_bytes), 1.0);
    const bool small = layout_.bytes < kMiB / 2;
    layout_.unit = small ? kKiB : kMiB;
    layout_.unit_name = small ? "KiB" : "MiB";
    layout_.step_width = (kWidth - kLeft - kRight) / layout_.steps;
    layout_.top = in_page ? 76 : 0;  // the page says the title in letters that fit a telephone
    layout_.alive_top = 116;
    layout_.block_top = layout_.alive_top + layout_.alive_height + 34;
    double names = 0;
    for (const oneweight::Step& step : plan_.steps()) names = std::max(names, text_width(operator_text(step), 10));
    names_shown_ = !plan_.steps().empty() && layout_.step_width >= 10.5;
    constexpr double kSlant = 40;
    if (names > layout_.step_width - 4) {
      const bool has_room = layout_.step_width >= 24 && names * cosine(kSlant) < kLeft + layout_.step_width / 2 - 4;
      names_angle_ = has_room ? kSlant : 90;
    }
    layout_.bottom = layout_.block_top + layout_.block_height + 46;
    if (names_shown_) layout_.bottom += names_angle_ > 0 ? names * cosine(90 - names_angle_) + 6 : 12;
  }
  const Layout& layout() const { return layout_; }

  // The legend as a list of the page.
  void write_legend() {
    print("<ul class=\"legend\">\n");
    for (const ItemKind kind : kinds())
      print("<li><svg class=\"swatch\" viewBox=\"0 0 12 12\"><rect class=\"%s\" width=\"12\" height=\"12\"/></svg>%s</li>\n", name_of(kind), name_of(kind));
    print("</ul>\n");
  }

  void write() {
    print("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 %.0f %.0f %.0f\"", layout_.top, kWidth, layout_.bottom - layout_.top);
    if (!in_page_) print(" width=\"%.0f\" height=\"%.0f\"", kWidth, layout_.bottom);
    print(" class=\"picture\" role=\"img\" aria-label=\"%s\">\n", markup(in_page_ ? "Memory over steps" : "Memory of " + model_).c_str());
    print("<style>%s</style>\n", kPictureStyle);
    print("<defs><pattern id=\"hatch\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
          "<rect class=\"hatch\" width=\"5\" height=\"5\"/><rect class=\"hatching\" width=\"2\" height=\"5\"/></pattern></defs>\n");
    if (!in_page_) write_head();
    write_axes();
    write_alive();
    write_items();
    write_peak();
    write_labels();
    write_step_axis();
    print("</svg>\n");
  }

 private:
  ONEWEIGHT_PRINTF(2, 3) void print(const char* format, ...) {
    std::va_list args;
    va_start(args, format);
    std::vfprintf(file_, format, args);
    va_end(args);
  }
  // Text that needs no escaping is the caller's affair.
  void text(double x, double y, const char* classes, const std::string& escaped, const char* more = "") {
    print("<text class=\"%s\" x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", classes, x, y, more, escaped.c_str());
  }
  static double cosine(double degrees) { return std::cos(degrees * 3.14159265358979 / 180); }
  static std::string operator_text(const oneweight::Step& step) { return beginning(printable(step.name), 32); }
  const PlanTensor& tensor(int32_t t) const { return plan_.tensors()[static_cast<size_t>(t)]; }

  void write_head() {
    text(20, 36, "title", markup(beginning(printable(model_), 80)));
    text(20, 58, "note", markup(summary(plan_, timeline_)));
    double x = 20;
    for (const ItemKind kind : kinds()) {
      print("<rect class=\"%s\" x=\"%.1f\" y=\"71\" width=\"12\" height=\"12\"/>\n", name_of(kind), x);
      text(x + 17, 81, "note", name_of(kind));
      x += 34 + text_width(name_of(kind), 13);
    }
  }
  // Those there are, as a legend lists them.
  std::vector<ItemKind> kinds() const {
    std::vector<ItemKind> kinds;
    for (ItemKind kind : {ItemKind::input, ItemKind::output, ItemKind::intermediate, ItemKind::state, ItemKind::resources, ItemKind::scratch, ItemKind::addresses})
      if (std::any_of(timeline_.items.begin(), timeline_.items.end(), [kind](const TimelineItem& item) { return item.kind == kind; })) kinds.push_back(kind);
    return kinds;
  }

  void write_axes() {
    const Layout& l = layout_;
    for (const auto& [top, height] : {std::pair{l.alive_top, l.alive_height}, std::pair{l.block_top, l.block_height}})
      print("<rect class=\"panel\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", kLeft, top, kWidth - kLeft - kRight, height);
    const auto ticks = [&](double top, double height, double most) {
      const double end = l.bytes / l.unit, distance = tick_distance(end, most);
      for (int i = 0; i * distance <= end * (1 + 1e-9); ++i) {
        const double y = top + height * (1 - i * distance / end);
        print("<path class=\"grid\" d=\"M%.1f %.2fH%.1f\"/>", kLeft, y, kWidth - kRight);
        text(kLeft - 7, y + 3.5, "tick end", oneweight::format_text("%.6g", i * distance));
      }
    };
    ticks(l.alive_top, l.alive_height, 3);
    ticks(l.block_top, l.block_height, 10);
    const auto turned = [&](double y, const char* what) {
      text(18, y, "axis middle", std::string(what) + ", " + l.unit_name, oneweight::format_text(" transform=\"rotate(-90 18 %.1f)\"", y).c_str());
    };
    turned(l.alive_top + l.alive_height / 2, "alive");
    turned(l.block_top + l.block_height / 2, "place in the block");
  }

  // Bytes alive as a staircase; the scratch of the steps is its upper part.
  void write_alive() {
    for (const bool with_scratch : {true, false}) {
      print("<path class=\"%s\" d=\"M%.2f %.2f", with_scratch ? "alive-scratch" : "alive", kLeft, layout_.alive_y(0));
      for (size_t s = 0; s < timeline_.steps.size(); ++s) {
        const TimelineStep& step = timeline_.steps[s];
        const int64_t bytes = step.alive_bytes - (with_scratch ? 0 : step.scratch_bytes);
        print("V%.2fH%.2f", layout_.alive_y(static_cast<double>(bytes)), layout_.x(static_cast<double>(s + 1)));
      }
      print("V%.2fZ\"/>\n", layout_.alive_y(0));
    }
  }

  struct Box {
    double x, y, width, height;
  };
  Box box(const TimelineItem& item) const {
    const double y = layout_.block_y(static_cast<double>(item.offset + item.bytes));
    return {layout_.x(item.first), y, (item.last - item.first + 1) * layout_.step_width, layout_.block_y(static_cast<double>(item.offset)) - y};
  }

  void write_items() {
    int shade = 0;
    for (const TimelineItem& item : timeline_.items) {
      const Box b = box(item);
      const bool thin = std::min(b.width, b.height) < 3;
      const bool second = item.kind == ItemKind::intermediate && shade++ % 2 != 0;
      const char* fill = item.kind == ItemKind::scratch && thin ? "scratch solid" : name_of(item.kind);
      print("<rect class=\"%s%s%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"", fill, second ? " second" : "", thin ? " thin" : "",
            b.x, b.y, b.width, b.height);
      if (in_page_)
        print("/>\n");
      else
        print("><title>%s</title></rect>\n", markup(item_text(item)).c_str());
    }
  }

  // All there is to say about an item, for viewers of SVG that show titles.
  std::string item_text(const TimelineItem& item) const {
    std::string result;
    const auto step_text = [this](int32_t s) { return "step " + std::to_string(s) + ", " + operator_text(plan_.steps()[static_cast<size_t>(s)]); };
    if (item.kind == ItemKind::scratch) result = "scratch of " + step_text(item.first) + "\n";
    if (item.kind == ItemKind::addresses) result = "addresses of the tensors\n";
    if (item.kind == ItemKind::resources) result = "variables shared by the subgraphs\n";
    constexpr size_t kMost = 20;
    const auto tensors = timeline_.tensors_of(item);
    for (size_t i = 0; i < tensors.size() && i < kMost; ++i) {
      const PlanTensor& t = tensor(tensors[i]);
      result += beginning(printable(t.name), kLongest) + "\n  " + tensor_text(t) + ", " + size_text(t.bytes);
      if (const int32_t s = timeline_.producers[static_cast<size_t>(tensors[i])]; s >= 0) result += ", made by " + step_text(s);
      result += "\n";
    }
    if (tensors.size() > kMost) result += oneweight::format_text("and %zu more\n", tensors.size() - kMost);
    return result + oneweight::format_text("%s, %lld bytes at %lld, steps %d to %d", name_of(item.kind), static_cast<long long>(item.bytes),
                                           static_cast<long long>(item.offset), item.first, item.last);
  }

  // Name and size in the rectangles that have room for them, turned where only that fits.
  void write_labels() {
    constexpr double kSize = 10;
    print("<g class=\"labels\">\n");
    for (const TimelineItem& item : timeline_.items) {
      const Box b = box(item);
      const bool turned = b.height > 1.3 * b.width && b.width < 90;
      const double along = (turned ? b.height : b.width) - 8, across = turned ? b.width : b.height;
      if (along < 24 || across < kSize + 1.5) continue;
      const std::string label = ending_within(label_of(item), kSize, along);
      const std::string size = across >= 2.8 * kSize || label.empty() ? size_of(item, along) : "";
      const double x = b.x + b.width / 2, y = b.y + b.height / 2;
      const std::string turn = turned ? oneweight::format_text(" transform=\"rotate(-90 %.1f %.1f)\"", x, y) : "";
      if (!label.empty()) text(x, y + (size.empty() ? 3.5 : -2), "label middle", markup(label), turn.c_str());
      if (!size.empty()) text(x, y + (label.empty() ? 3.5 : 10), "label-size middle", markup(size), turn.c_str());
    }
    print("</g>\n");
  }
  std::string label_of(const TimelineItem& item) const {
    std::string label;
    for (int32_t t : timeline_.tensors_of(item)) {
      if (label.size() > 4 * kLongest) break;
      label += (label.empty() ? "" : " \xe2\x86\x92 ") + short_name(tensor(t).name);
    }
    return label.empty() ? name_of(item.kind) : label;
  }
  // "float32 [1, 8]  32 B", or as much of it as fits.
  std::string size_of(const TimelineItem& item, double width) const {
    const auto tensors = timeline_.tensors_of(item);
    const std::string size = size_text(item.bytes);
    const std::string all = tensors.empty() ? size : tensor_text(tensor(tensors[0])) + ", " + size;
    return text_width(all, 10) <= width ? all : text_width(size, 10) <= width ? size : "";
  }

  void write_peak() {
    if (timeline_.steps.empty()) return;
    const Layout& l = layout_;
    const auto peak = static_cast<size_t>(timeline_.peak_step);
    const double left = l.x(timeline_.peak_step), middle = left + l.step_width / 2;
    const double width = std::max(l.step_width, 1.0);
    print("<rect class=\"%s\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"/>\n", l.step_width < 4 ? "peak narrow" : "peak", middle - width / 2, l.alive_top, width,
          l.block_top + l.block_height - l.alive_top);
    const bool to_the_left = middle > kWidth * 0.6;
    print("<path class=\"peak-mark\" d=\"M%.2f %.1fl-4 -7h8z\"/>\n", middle, l.alive_top - 1);
    text(middle + (to_the_left ? -9 : 9), l.alive_top - 4, to_the_left ? "peak-name end" : "peak-name",
         markup("peak: step " + std::to_string(peak) + ", " + operator_text(plan_.steps()[peak]) + ", " + size_text(timeline_.steps[peak].alive_bytes)));
  }

  void write_step_axis() {
    const Layout& l = layout_;
    const double y = l.block_top + l.block_height;
    const double distance = std::max(1.0, tick_distance(l.steps, names_shown_ ? 40 : 24));
    for (double s = 0; s < static_cast<double>(timeline_.steps.size()); s += distance) {
      const double x = l.x(s + 0.5);
      print("<path class=\"tick-mark\" d=\"M%.2f %.1fv4\"/>", x, y);
      text(x, y + 15, "tick middle", oneweight::format_text("%.0f", s));
    }
    for (size_t s = 0; names_shown_ && s < plan_.steps().size(); ++s) {
      const std::string name = markup(operator_text(plan_.steps()[s]));
      const double x = l.x(static_cast<double>(s) + 0.5) + (names_angle_ == 90 ? 3.5 : 0);
      const double below = y + (names_angle_ == 90 ? 22 : 27);
      std::string classes = names_angle_ > 0 ? "operator end" : "operator middle";
      if (static_cast<int>(s) == timeline_.peak_step) classes += " peak-name";
      const std::string turn = names_angle_ > 0 ? oneweight::format_text(" transform=\"rotate(%.0f %.1f %.1f)\"", -names_angle_, x, below) : "";
      text(x, below, classes.c_str(), name, turn.c_str());
    }
    text(kLeft + (kWidth - kLeft - kRight) / 2, l.bottom - 8, "axis middle", "step, in the order of execution");
  }

  std::FILE* file_;
  const oneweight::Plan& plan_;
  const Timeline& timeline_;
  const std::string& model_;
  bool in_page_, names_shown_ = false;
  double names_angle_ = 0;           // of the operators below the panel, in degrees
  Layout layout_{};

 public:
  // "A context: 11.9 MiB, 66 steps; most is alive at step 3, DEPTHWISE_CONV_2D: 11.8 MiB".
  static std::string summary(const oneweight::Plan& plan, const Timeline& timeline) {
    std::string text = oneweight::format_text("A context has %s and runs %zu steps", size_text(timeline.block_bytes).c_str(), timeline.steps.size());
    if (timeline.steps.empty()) return text;
    const auto peak = static_cast<size_t>(timeline.peak_step);
    const TimelineStep& step = timeline.steps[peak];
    text += oneweight::format_text("; most is alive at step %zu, ", peak) + operator_text(plan.steps()[peak]) + ": " + size_text(step.alive_bytes);
    return step.scratch_bytes ? text + ", " + size_text(step.scratch_bytes) + " of it scratch" : text;
  }
};

// What the page's script knows: the panels, the steps as [operator, alive, outputs, scratch], the items as
// [kind, offset, bytes, first, last, [[name, type and shape, bytes, producer]...]].
void write_data(std::FILE* file, const PictureSource& source, const Layout& layout) {
  const Timeline& timeline = source.timeline;
  std::fprintf(file, "{\"left\":%g,\"right\":%g,\"top\":%g,\"bottom\":%g,\"alive_top\":%g,\"bytes\":%.0f,\"peak\":%d,\"kinds\":[", kLeft, kWidth - kRight,
               layout.block_top, layout.block_top + layout.block_height, layout.alive_top, layout.bytes, timeline.peak_step);
  for (int k = 0; k < kItemKinds; ++k) std::fprintf(file, "%s\"%s\"", k ? "," : "", name_of(static_cast<ItemKind>(k)));
  std::fputs("],\"steps\":[", file);
  for (size_t s = 0; s < timeline.steps.size(); ++s) {
    const TimelineStep& step = timeline.steps[s];
    std::fprintf(file, "%s\n[%s,%lld,%lld,%lld]", s ? "," : "", script_string(beginning(printable(source.plan.steps()[s].name), kLongest)).c_str(),
                 static_cast<long long>(step.alive_bytes), static_cast<long long>(step.output_bytes), static_cast<long long>(step.scratch_bytes));
  }
  std::fputs("],\"items\":[", file);
  for (size_t i = 0; i < timeline.items.size(); ++i) {
    const TimelineItem& item = timeline.items[i];
    std::fprintf(file, "%s\n[%d,%lld,%lld,%d,%d,[", i ? "," : "", static_cast<int>(item.kind), static_cast<long long>(item.offset),
                 static_cast<long long>(item.bytes), item.first, item.last);
    const auto tensors = timeline.tensors_of(item);
    for (size_t k = 0; k < tensors.size(); ++k) {
      const PlanTensor& t = source.plan.tensors()[static_cast<size_t>(tensors[k])];
      std::fprintf(file, "%s[%s,%s,%lld,%d]", k ? "," : "", script_string(beginning(printable(t.name), kLongest)).c_str(), script_string(tensor_text(t)).c_str(),
                   static_cast<long long>(t.bytes), timeline.producers[static_cast<size_t>(tensors[k])]);
    }
    std::fputs("]]", file);
  }
  std::fputs("]}", file);
}

bool ends_with(const std::string& path, std::string_view end) {
  return path.size() > end.size() && std::equal(end.begin(), end.end(), path.end() - static_cast<ptrdiff_t>(end.size()),
                                                [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + ('a' - 'A') : b); });
}

}  // namespace

void write_svg(std::FILE* file, const PictureSource& source) {
  std::fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", file);
  PictureWriter(file, source, false).write();
}

void write_html(std::FILE* file, const PictureSource& source) {
  const std::string title = markup(beginning(printable(source.model), 80));
  std::fprintf(file,
               "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
               "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-%s' 'sha256-%s'; script-src 'sha256-%s'; "
               "base-uri 'none'; form-action 'none'\">\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Memory of %s</title>\n<style>%s</style>\n</head>\n<body>\n",
               kPictureStyleHash, kPageStyleHash, kPageScriptHash, title.c_str(), kPageStyle);
  std::fprintf(file, "<header><h1>%s</h1>\n<p>%s</p></header>\n", title.c_str(), markup(PictureWriter::summary(source.plan, source.timeline)).c_str());
  const std::string_view body = kPageBody, place = "<!-- picture -->";
  const size_t at = body.find(place);
  PictureWriter writer(file, source, true);
  writer.write_legend();
  std::fwrite(body.data(), 1, at, file);
  writer.write();
  std::fputs(kPageBody + at + place.size(), file);
  std::fputs("<script type=\"application/json\" id=\"data\">", file);
  write_data(file, source, writer.layout());
  std::fprintf(file, "</script>\n<script>%s</script>\n</body>\n</html>\n", kPageScript);
}

oneweight::Status check_picture_path(const std::string& path) {
  if (ends_with(path, ".svg") || ends_with(path, ".html")) return {};
  return make_error(ErrorCode::invalid_argument, "--timeline %s: expected a name that ends with .svg or .html", path.c_str());
}

oneweight::Status write_picture(const std::string& path, const PictureSource& source) {
  ONEWEIGHT_RETURN_IF_ERROR(check_picture_path(path));
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return make_error(ErrorCode::io_error, "%s cannot be written", path.c_str());
  ends_with(path, ".svg") ? write_svg(file, source) : write_html(file, source);
  const bool failed = std::ferror(file) != 0;
  if (std::fclose(file) != 0 || failed) return make_error(ErrorCode::io_error, "%s cannot be written", path.c_str());
  return {};
}

}  // namespace program
