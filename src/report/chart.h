// Charts as values: what is to be seen, not how it is drawn (report/svg.h does that). Colours are numbers,
// the same one for the same thing on a page; nothing is told by colour alone: every colour has a marker of
// its own shape, and lines of one chart that need telling apart have dashes.
//
// Values that cannot be drawn (not finite, or beyond 1e15) are left out by the drawer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spillway::report {

inline constexpr double kMostDrawn = 1e15;

enum class Dash : uint8_t { kSolid, kLong, kShort, kDots, kDashDot, kLongDot };
inline constexpr uint32_t kDashes = 6;
enum class Marker : uint8_t { kNone, kFilled, kHollow, kRing };  // a ring is drawn around another marker

struct Axis {
  std::string title;  // with the unit
  bool logarithmic = false;
  bool from_zero = true;
  std::optional<double> high;                         // the axis ends there at least
  std::vector<std::pair<double, std::string>> named;  // ticks beyond the numbers: "auto"
};

struct Point {
  double x = 0, y = 0;
  std::optional<double> low, high;  // of y
  std::string words;                // shown when it is pointed at
  bool unmarked = false;            // a point of the line only
};

struct Series {
  std::string name;  // of the legend
  uint32_t colour = 0;
  Marker marker = Marker::kNone;
  bool joined = false;   // by a line
  bool stepped = false;  // which stays at a value until the next point
  bool band = false;     // low to high as an area, else as whiskers
  Dash dash = Dash::kSolid;
  std::vector<Point> points;
};

// Points and curves over two axes.
struct Plot {
  std::string title, description;
  Axis x, y;
  std::vector<Series> series;
};

// A value for each of some names, one below the other, each with its range.
struct Dots {
  struct Mark {
    double value = 0;
    std::optional<double> low, high;
    Marker marker = Marker::kFilled;
    uint32_t colour = 0;
    std::string words;
  };
  struct Entry {
    std::string name;
    std::vector<Mark> marks;
  };
  struct Key {
    std::string name;
    Marker marker = Marker::kFilled;
    uint32_t colour = 0;
  };
  std::string title, description, unit;
  std::vector<Entry> entries;
  std::vector<Key> keys;  // the legend
};

// Parts of something for each of some names, one after the other, and the whole as a mark.
struct Stack {
  struct Bar {
    std::string name;
    std::vector<double> parts;
    std::optional<double> whole;
  };
  std::string title, description, unit;
  std::vector<std::string> parts;
  std::string whole;  // what the mark is called
  std::vector<Bar> bars;
};

using Chart = std::variant<Plot, Dots, Stack>;

}  // namespace spillway::report
