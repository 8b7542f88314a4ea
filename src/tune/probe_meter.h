// Repeats a measurement within a time budget.
#pragma once

#include <functional>

#include "tune/probe.h"

namespace spillway::tune {

class Meter {
 public:
  Meter(ProbeTarget& target, double seconds, const ProbeProgress& progress)
      : target_(target), total_us_(seconds * 1e6), progress_(progress) {}

  // Does `run` with so many units that it lasts long enough to be timed, again and again for `share` of the
  // budget: the time of one unit. Once before that does not count: it warms up, and says how many units.
  Result<Sample> sample(double share, uint32_t most_units,
                        const std::function<Result<double>(uint32_t units)>& run);
  Result<Sample> sample(double share, const std::function<Result<double>()>& run);

  // `share` of the budget is used, whatever it took. kCancelled where the person wants to stop.
  Result<void> pass(double share);
  double total_us() const { return total_us_; }

 private:
  ProbeTarget& target_;
  const double total_us_;
  const ProbeProgress& progress_;
  double done_ = 0;
};

}  // namespace spillway::tune
