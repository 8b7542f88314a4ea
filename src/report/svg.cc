#include "report/svg.h"

#include "report/svg_draw.h"
#include "report/svg_pen.h"
#include "report/words.h"

namespace spillway::report {
namespace {

struct Drawer {
  Width width;
  std::string_view id;
  std::string operator()(const Plot& plot) const { return draw_plot(plot, width, id); }
  std::string operator()(const Dots& dots) const { return draw_dots(dots, width, id); }
  std::string operator()(const Stack& stack) const { return draw_stack(stack, width, id); }
};

struct Legend {
  static constexpr double kMiddle = Pen::kSwatchHeight / 2, kCentre = Pen::kSwatchWidth / 2;

  static std::string entry(const Pen& pen, std::string_view name) {
    return fmt::format("<li>{}<span>{}</span></li>", pen.swatch(), escaped(name));
  }
  std::string operator()(const Plot& plot) const {
    std::string entries;
    for (const Series& series : plot.series) {
      if (series.name.empty()) continue;
      Pen pen;
      const std::string colour = colour_class(series.colour);
      if (series.band) pen.area("band " + colour, "1,1 29,1 29,13 1,13");
      if (series.joined) pen.path("line " + colour, series.dash, fmt::format("1,{0} 29,{0}", kMiddle));
      pen.marker(series.colour, series.marker, kCentre, kMiddle, "");
      entries += entry(pen, series.name);
    }
    return entries;
  }
  std::string operator()(const Dots& dots) const {
    std::string entries;
    for (const Dots::Key& k : dots.keys) {
      Pen pen;
      pen.marker(k.colour, k.marker, kCentre, kMiddle, "");
      entries += entry(pen, k.name);
    }
    return entries;
  }
  std::string operator()(const Stack& stack) const {
    std::string entries;
    for (uint32_t i = 0; i < stack.parts.size(); ++i) {
      Pen pen;
      pen.rectangle(fmt::format("part p{} {}", i, colour_class(i)), 4, 1, 22, 12);
      entries += entry(pen, stack.parts[i]);
    }
    Pen pen;
    pen.line("whole", kCentre, 0, kCentre, Pen::kSwatchHeight);
    if (!stack.whole.empty()) entries += entry(pen, stack.whole);
    return entries;
  }
};

}  // namespace

std::string draw(const Chart& chart, Width width, std::string_view id) {
  return std::visit(Drawer{width, id}, chart);
}

std::string draw_legend(const Chart& chart) {
  const std::string entries = std::visit(Legend{}, chart);
  return entries.empty() ? "" : fmt::format("<ul class=\"legend\">{}</ul>\n", entries);
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : clean_text(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace spillway::report
