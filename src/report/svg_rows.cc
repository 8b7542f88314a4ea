// Charts of one line for each name: the name above, so that long ones have the whole width, its marks or bar
// below.
#include "report/svg_axis.h"
#include "report/svg_draw.h"
#include "report/svg_pen.h"
#include "report/words.h"

namespace spillway::report {
namespace {

constexpr double kRowHeight = 42;
constexpr double kMarksBelowTop = 27;  // of a row, the middle of what is drawn
constexpr double kSide = 26;
constexpr double kAboveRows = 8;
constexpr double kBelowRows = 40;
constexpr double kLetter = 6.4;  // mean width of a letter, 12 pixels

class Rows {
 public:
  Rows(std::string_view unit, const std::vector<double>& values, size_t n, Width width)
      : width_(pixels(width)),
        height_(kAboveRows + static_cast<double>(n) * kRowHeight + kBelowRows),
        unit_(unit),
        x_({.title = unit_}, values, width == Width::kWide ? 8 : 4) {}

  double at(double value) const { return kSide + x_.at(value) * (width_ - 2 * kSide); }
  bool draws(double value) const { return !x_.empty() && x_.draws(value); }
  double middle(size_t row) const {
    return kAboveRows + static_cast<double>(row) * kRowHeight + kMarksBelowTop;
  }
  Pen& pen() { return pen_; }

  void draw_axis() {
    const double bottom = height_ - kBelowRows;
    for (const Tick& tick : x_.ticks()) {
      pen_.line("grid", at(tick.value), kAboveRows, at(tick.value), bottom);
      pen_.text("tick", at(tick.value), bottom + 15, Anchor::kMiddle, tick.text);
    }
    pen_.text("axis", width_ - kSide, height_ - 5, Anchor::kEnd, unit_);
  }
  void draw_name(size_t row, std::string_view name) {
    pen_.text("name", kSide, middle(row) - 13, Anchor::kStart, name);
  }
  // What there is room for of names that come here.
  std::vector<std::string> fitted(const auto& named) const {
    std::vector<std::string> names;
    names.reserve(named.size());
    for (const auto& each : named) names.push_back(clean_text(each.name));
    return told_apart(std::move(names), static_cast<size_t>((width_ - 2 * kSide) / kLetter));
  }
  std::string picture(std::string_view id, std::string_view title, std::string_view description) const {
    return pen_.picture(width_, height_, id, title, description);
  }

 private:
  const double width_, height_;
  const std::string unit_;
  const AxisScale x_;
  Pen pen_;
};

}  // namespace

std::string draw_dots(const Dots& dots, Width width, std::string_view id) {
  std::vector<double> values;
  for (const Dots::Entry& entry : dots.entries)
    for (const Dots::Mark& mark : entry.marks) {
      values.push_back(mark.value);
      if (mark.low) values.push_back(*mark.low);
      if (mark.high) values.push_back(*mark.high);
    }
  Rows rows(dots.unit, values, dots.entries.size(), width);
  rows.draw_axis();
  const std::vector<std::string> names = rows.fitted(dots.entries);
  for (size_t i = 0; i < dots.entries.size(); ++i) {
    rows.draw_name(i, names[i]);
    const double y = rows.middle(i);
    rows.pen().line("base", kSide, y, pixels(width) - kSide, y);
    for (const Dots::Mark& mark : dots.entries[i].marks) {
      if (!rows.draws(mark.value)) continue;
      if (mark.low && mark.high && rows.draws(*mark.low) && rows.draws(*mark.high))
        rows.pen().whisker(mark.colour, rows.at(*mark.low), y, rows.at(*mark.high), y);
      rows.pen().marker(mark.colour, mark.marker, rows.at(mark.value), y, mark.words);
    }
  }
  return rows.picture(id, dots.title, dots.description);
}

std::string draw_stack(const Stack& stack, Width width, std::string_view id) {
  std::vector<double> values;
  for (const Stack::Bar& bar : stack.bars) {
    double sum = 0;
    for (const double part : bar.parts) sum += std::max(part, 0.0);
    values.push_back(sum);
    if (bar.whole) values.push_back(*bar.whole);
  }
  Rows rows(stack.unit, values, stack.bars.size(), width);
  rows.draw_axis();
  const std::vector<std::string> names = rows.fitted(stack.bars);
  constexpr double kHalfBar = 7;
  for (size_t i = 0; i < stack.bars.size(); ++i) {
    const Stack::Bar& bar = stack.bars[i];
    rows.draw_name(i, names[i]);
    const double y = rows.middle(i);
    double sum = 0;
    for (uint32_t p = 0; p < bar.parts.size(); ++p) {
      const double part = bar.parts[p];
      if (!(part > 0) || !rows.draws(sum + part)) continue;
      rows.pen().rectangle(fmt::format("part p{} {}", p, colour_class(p)), rows.at(sum), y - kHalfBar,
                           rows.at(sum + part) - rows.at(sum), 2 * kHalfBar,
                           fmt::format("{}: {} {}", stack.parts[p], number_text(part), stack.unit));
      // Its name on it where there is room: colour alone tells nobody.
      const double wide = rows.at(sum + part) - rows.at(sum);
      if (wide > static_cast<double>(stack.parts[p].size()) * kLetter + 6)
        rows.pen().text("on-part", rows.at(sum) + wide / 2, y + 4, Anchor::kMiddle, stack.parts[p]);
      sum += part;
    }
    if (bar.whole && rows.draws(*bar.whole))
      rows.pen().line("whole", rows.at(*bar.whole), y - kHalfBar - 3, rows.at(*bar.whole), y + kHalfBar + 3);
  }
  return rows.picture(id, stack.title, stack.description);
}

}  // namespace spillway::report
