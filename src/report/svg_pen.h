// Writes SVG elements into one picture. Coordinates are CSS pixels of the picture's own size.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "report/chart.h"

namespace spillway::report {

// Colours are classes c0..c5 of the style sheet, which set `color`; later numbers begin again, with other
// shapes.
inline constexpr uint32_t kColours = 6;
std::string colour_class(uint32_t colour);

enum class Anchor : uint8_t { kStart, kMiddle, kEnd };

class Pen {
 public:
  // A picture of what was drawn, which says what it is to those who don't see it.
  std::string picture(double width, double height, std::string_view id, std::string_view title,
                      std::string_view description) const;
  // The same for legends, passed over by those who don't see it.
  std::string swatch() const;
  static constexpr double kSwatchWidth = 30, kSwatchHeight = 14;

  void line(std::string_view style, double x1, double y1, double x2, double y2);
  void rectangle(std::string_view style, double x, double y, double width, double height,
                 std::string_view words = {});
  void text(std::string_view style, double x, double y, Anchor anchor, std::string_view text);
  // Through points "x,y x,y ...".
  void path(std::string_view style, Dash dash, std::string_view points);
  void area(std::string_view style, std::string_view points);
  // The shape belongs to the colour. `words` are shown when it is pointed at.
  void marker(uint32_t colour, Marker marker, double x, double y, std::string_view words);
  // low to high, with feet.
  void whisker(uint32_t colour, double x1, double y1, double x2, double y2);

 private:
  std::string out_;
};

}  // namespace spillway::report
