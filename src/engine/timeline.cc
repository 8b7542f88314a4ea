#include "engine/timeline.h"

#include <fmt/format.h>

#include <algorithm>

namespace spillway::engine {

std::string_view lane_name(Lane lane) {
  switch (lane) {
    case Lane::kDevice:
      return "device";
    case Lane::kLink:
      return "link";
    case Lane::kCpu:
      return "cpu";
    case Lane::kPlanner:
      return "planner";
  }
  return "";
}

void Timeline::add(Lane lane, std::string_view name, uint32_t layer, uint64_t begin_ns, uint64_t end_ns) {
  if (events_.size() >= kMaxEvents) {
    ++dropped_;
    return;
  }
  events_.push_back({begin_ns, std::max(begin_ns, end_ns), name, layer, lane});
}

std::string Timeline::json() const {
  std::string text = R"({"displayTimeUnit":"ns","otherData":{"label":"measured","dropped_events":")" +
                     std::to_string(dropped_) + R"("},"traceEvents":[)";
  for (const Lane lane : {Lane::kDevice, Lane::kLink, Lane::kCpu, Lane::kPlanner})
    text += fmt::format(R"({}{{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})",
                        lane == Lane::kDevice ? "\n" : ",\n", static_cast<int>(lane) + 1, lane_name(lane));
  uint64_t origin = UINT64_MAX;
  for (const Event& e : events_) origin = std::min(origin, e.begin_ns);
  for (const Event& e : events_)
    text += fmt::format(
        ",\n"
        R"({{"ph":"X","pid":1,"tid":{},"name":"{}","ts":{:.3f},"dur":{:.3f},"args":{{"layer":{}}}}})",
        static_cast<int>(e.lane) + 1, e.name, static_cast<double>(e.begin_ns - origin) / 1000,
        static_cast<double>(e.end_ns - e.begin_ns) / 1000, e.layer);
  return text + "\n]}\n";
}

}  // namespace spillway::engine
