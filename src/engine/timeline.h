// What ran when, in lanes, for Chrome's trace viewer or Perfetto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::engine {

enum class Lane : uint8_t { kDevice, kLink, kCpu, kPlanner };
std::string_view lane_name(Lane lane);

class Timeline {
 public:
  // Events past this many are counted, not kept: 24 bytes of memory each for a 60-layer model's 2,000 tokens.
  static constexpr size_t kMaxEvents = 1'000'000;

  void add(Lane lane, std::string_view name, uint32_t layer, uint64_t begin_ns, uint64_t end_ns);
  size_t size() const { return events_.size(); }
  uint64_t dropped() const { return dropped_; }

  // The JSON object format of trace events: complete events ("ph":"X") in microseconds, a thread for each
  // lane.
  std::string json() const;

 private:
  struct Event {
    uint64_t begin_ns, end_ns;
    std::string_view name;  // a literal
    uint32_t layer;
    Lane lane;
  };
  std::vector<Event> events_;
  uint64_t dropped_ = 0;
};

}  // namespace spillway::engine
