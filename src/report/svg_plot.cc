#include <cmath>

#include "report/svg_axis.h"
#include "report/svg_draw.h"
#include "report/svg_pen.h"

namespace spillway::report {
namespace {

constexpr double kTop = 26;     // the y axis' title stands above it
constexpr double kBottom = 40;  // ticks, and the x axis' title below them
constexpr double kRight = 16;
constexpr double kDigit = 6.8;  // width of a digit of the ticks' font, 12 pixels
constexpr double kTickGap = 8;  // from a tick's text to the axis

class PlotDrawer {
 public:
  PlotDrawer(const Plot& plot, Width width)
      : plot_(plot),
        width_(pixels(width)),
        height_(width == Width::kWide ? 340 : 270),
        x_(plot.x, values(&Point::x), width == Width::kWide ? 8 : 4),
        y_(plot.y, values(&Point::y), width == Width::kWide ? 6 : 5) {
    size_t digits = 1;
    for (const Tick& tick : y_.ticks()) digits = std::max(digits, tick.text.size());
    left_ = static_cast<double>(digits) * kDigit + kTickGap + 4;
  }

  std::string draw(std::string_view id) {
    if (x_.empty() || y_.empty()) {
      pen_.text("axis", width_ / 2, height_ / 2, Anchor::kMiddle, "There is nothing that can be drawn.");
    } else {
      draw_axes();
      for (const Series& series : plot_.series)
        if (series.band) draw_band(series);
      for (const Series& series : plot_.series)
        if (series.joined) draw_line(series);
      // What was measured lies on top of what was thought.
      for (const Marker marker : {Marker::kHollow, Marker::kFilled, Marker::kRing})
        for (const Series& series : plot_.series)
          if (series.marker == marker) draw_markers(series);
    }
    return pen_.picture(width_, height_, id, plot_.title, plot_.description);
  }

 private:
  std::vector<double> values(double Point::* of) const {
    std::vector<double> all;
    for (const Series& series : plot_.series)
      for (const Point& point : series.points) {
        all.push_back(point.*of);
        if (of == &Point::y && point.low) all.push_back(*point.low);
        if (of == &Point::y && point.high) all.push_back(*point.high);
      }
    return all;
  }

  double at_x(double value) const { return left_ + x_.at(value) * (width_ - kRight - left_); }
  double at_y(double value) const { return height_ - kBottom - y_.at(value) * (height_ - kBottom - kTop); }
  bool draws(const Point& point) const { return x_.draws(point.x) && y_.draws(point.y); }

  void draw_axes() {
    const double bottom = height_ - kBottom;
    for (const Tick& tick : y_.ticks()) {
      const double y = at_y(tick.value);
      pen_.line("grid", left_, y, width_ - kRight, y);
      pen_.text("tick", left_ - kTickGap, y + 4, Anchor::kEnd, tick.text);
    }
    for (const Tick& tick : x_.ticks()) {
      const double x = at_x(tick.value);
      pen_.line("notch", x, bottom, x, bottom + 4);
      pen_.text("tick", x, bottom + 17, Anchor::kMiddle, tick.text);
    }
    pen_.line("base", left_, bottom, width_ - kRight, bottom);
    pen_.text("axis", 2, 13, Anchor::kStart, plot_.y.title);
    pen_.text("axis", width_ - kRight, height_ - 5, Anchor::kEnd, plot_.x.title);
  }

  void draw_band(const Series& series) {
    std::string there, back;
    for (const Point& point : series.points) {
      if (!draws(point) || !point.low || !point.high || !y_.draws(*point.low) || !y_.draws(*point.high))
        continue;
      there += fmt::format("{:.1f},{:.1f} ", at_x(point.x), at_y(*point.low));
      back.insert(0, fmt::format("{:.1f},{:.1f} ", at_x(point.x), at_y(*point.high)));
    }
    if (!there.empty()) pen_.area("band " + colour_class(series.colour), there + back);
  }

  void draw_line(const Series& series) {
    std::string points;
    std::optional<double> last_y;
    for (const Point& point : series.points) {
      if (!draws(point)) continue;
      const double x = at_x(point.x), y = at_y(point.y);
      if (series.stepped && last_y) points += fmt::format("{:.1f},{:.1f} ", x, *last_y);
      points += fmt::format("{:.1f},{:.1f} ", x, y);
      last_y = y;
    }
    if (!points.empty()) pen_.path("line " + colour_class(series.colour), series.dash, points);
  }

  void draw_markers(const Series& series) {
    for (const Point& point : series.points) {
      if (!draws(point)) continue;
      const double x = at_x(point.x);
      if (!series.band && point.low && point.high && y_.draws(*point.low) && y_.draws(*point.high))
        pen_.whisker(series.colour, x, at_y(*point.low), x, at_y(*point.high));
      if (!point.unmarked) pen_.marker(series.colour, series.marker, x, at_y(point.y), point.words);
    }
  }

  const Plot& plot_;
  const double width_, height_;
  const AxisScale x_, y_;
  double left_ = 0;
  Pen pen_;
};

}  // namespace

std::string draw_plot(const Plot& plot, Width width, std::string_view id) {
  return PlotDrawer(plot, width).draw(id);
}

}  // namespace spillway::report
