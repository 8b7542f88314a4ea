// The simulated clock: carries out a planner's plans on a machine that behaves exactly as a cost model says.
// It does for the planner what the engine does with the real clock: issues the plan's copies before the
// background ones, asks for promotions while the link would be idle, reports arrivals and what was observed.
#pragma once

#include <array>

#include "experts/planner.h"

namespace spillway {
namespace experts {

class LayerClock {
 public:
  // Runs one layer and the dense part after it, `gap_us` long, in which the link goes on. `next`: the layer
  // that is planned next. Returns the time of the expert part in microseconds.
  double run(Planner& planner, const CostModel& machine, const Routing& routing, LayerId next, double gap_us);
  // How long promotions were on the link, in microseconds of its lone rate.
  double promoted_us() const { return promoted_us_; }

 private:
  struct Copy {
    Ticket ticket;
    double left_us;
  };
  void advance(Planner& planner, double link_us);

  // The planner grants two promotions at a time.
  std::array<Copy, 4> queue_;
  size_t n_queued_ = 0;
  double promoted_us_ = 0.0;
};

}  // namespace experts
}  // namespace spillway
