#include "report/svg_pen.h"

#include <array>
#include <cmath>

#include "report/svg.h"

namespace spillway::report {
namespace {

constexpr std::array<std::string_view, kDashes> kPatterns = {"", "8 4", "4 3", "1.5 3", "8 3 2 3", "14 4"};

std::string title_element(std::string_view words) {
  return words.empty() ? "" : fmt::format("<title>{}</title>", escaped(words));
}

// Around the origin, about 9 pixels across and of like weight.
constexpr std::array<std::string_view, 6> kShapes = {
    "M-4.4 0a4.4 4.4 0 1 0 8.8 0a4.4 4.4 0 1 0 -8.8 0z",            // circle
    "M-3.9 -3.9h7.8v7.8h-7.8z",                                     // square
    "M0 -5.2L5 3.8H-5z",                                            // triangle
    "M0 -5.6L5.2 0L0 5.6L-5.2 0z",                                  // diamond
    "M-5 -3.8H5L0 5.2z",                                            // triangle, the other way
    "M-1.8 -5h3.6v3.2h3.2v3.6h-3.2v3.2h-3.6v-3.2h-3.2v-3.6h3.2z"};  // cross

}  // namespace

std::string colour_class(uint32_t colour) { return fmt::format("c{}", colour % kColours); }

std::string Pen::picture(double width, double height, std::string_view id, std::string_view title,
                         std::string_view description) const {
  return fmt::format(
      "<svg viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" height=\"{1:g}\" role=\"img\" "
      "aria-labelledby=\"{2}-t "
      "{2}-d\"><title id=\"{2}-t\">{3}</title><desc id=\"{2}-d\">{4}</desc>{5}</svg>\n",
      width, height, id, escaped(title), escaped(description), out_);
}

std::string Pen::swatch() const {
  return fmt::format(
      "<svg viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" height=\"{1:g}\" aria-hidden=\"true\">{2}</svg>",
      kSwatchWidth, kSwatchHeight, out_);
}

void Pen::line(std::string_view style, double x1, double y1, double x2, double y2) {
  out_ += fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>", style, x1, y1, x2, y2);
}

void Pen::rectangle(std::string_view style, double x, double y, double width, double height,
                    std::string_view words) {
  out_ +=
      fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">{}</rect>",
                  style, x, y, width, height, title_element(words));
}

void Pen::text(std::string_view style, double x, double y, Anchor anchor, std::string_view text) {
  constexpr const char* kAnchors[] = {"start", "middle", "end"};
  out_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", style, x,
                      y, kAnchors[static_cast<size_t>(anchor)], escaped(text));
}

void Pen::path(std::string_view style, Dash dash, std::string_view points) {
  const std::string_view pattern = kPatterns[static_cast<size_t>(dash)];
  out_ += fmt::format("<polyline class=\"{}\"{} points=\"{}\"/>", style,
                      pattern.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", pattern), points);
}

void Pen::area(std::string_view style, std::string_view points) {
  out_ += fmt::format("<polygon class=\"{}\" points=\"{}\"/>", style, points);
}

void Pen::marker(uint32_t colour, Marker marker, double x, double y, std::string_view words) {
  if (marker == Marker::kNone) return;
  if (marker == Marker::kRing) {
    out_ += fmt::format("<circle class=\"ring {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"9\">{}</circle>",
                        colour_class(colour), x, y, title_element(words));
    return;
  }
  const size_t shape = (colour + colour / kColours) % kShapes.size();
  out_ += fmt::format("<path class=\"{} {}\" transform=\"translate({:.1f} {:.1f})\" d=\"{}\">{}</path>",
                      marker == Marker::kFilled ? "full" : "hollow", colour_class(colour), x, y,
                      kShapes[shape], title_element(words));
}

void Pen::whisker(uint32_t colour, double x1, double y1, double x2, double y2) {
  // Feet across the direction of the whisker.
  const double length = std::hypot(x2 - x1, y2 - y1);
  const double fx = length > 0 ? 3 * (y2 - y1) / length : 3, fy = length > 0 ? 3 * (x2 - x1) / length : 0;
  out_ += fmt::format(
      "<path class=\"whisker {}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}M{:.1f} {:.1f}L{:.1f} {:.1f}M{:.1f} "
      "{:.1f}L{:.1f} {:.1f}\"/>",
      colour_class(colour), x1, y1, x2, y2, x1 - fx, y1 - fy, x1 + fx, y1 + fy, x2 - fx, y2 - fy, x2 + fx,
      y2 + fy);
}

}  // namespace spillway::report
