// Where the values of an axis lie, and the round numbers that are written at it.
#pragma once

#include <string>
#include <vector>

#include "report/chart.h"

namespace spillway::report {

struct Tick {
  double value = 0;
  std::string text;
};

class AxisScale {
 public:
  // `values`: all that are to be seen; those that cannot be drawn are passed over. `most_ticks` is at
  // least 2.
  AxisScale(const Axis& axis, const std::vector<double>& values, uint32_t most_ticks);

  // 0 at the low end, 1 at the high end.
  double at(double value) const;
  bool draws(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }
  // Nothing can be drawn.
  bool empty() const { return empty_; }

 private:
  void linear(double low, double high, uint32_t most);
  void logarithmic(double low, double high, uint32_t most);

  bool logarithmic_ = false;
  bool empty_ = false;
  double low_ = 0, high_ = 1;
  std::vector<Tick> ticks_;
};

}  // namespace spillway::report
