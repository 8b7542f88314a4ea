// What happens beside the requests while they run: experts, hit rates over tokens, CPU time, memory, other
// load.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "report/result.h"
#include "sys/clock.h"
#include "sys/usage.h"

namespace spillway::tune {

// "2026-11-30T13:05:00Z"
std::string utc_now();

// Of this run alone: differences to what the counters said at its start.
report::Experts experts_between(const engine::ExpertStats& before, const engine::ExpertStats& after);

// Cores that others kept busy over so many seconds, where `cpu_s` of CPU time were theirs: at most all
// `cores` (0: not known), and 0 where the time is too short to say (report::kShortestLoadSeconds).
double other_cores(double cpu_s, double seconds, uint32_t cores);

class RunRecorder {
 public:
  // Starts. Both must outlive it. Where the engine's device is simulated, `clock` is its clock; how busy the
  // machine is, is always measured with the real one.
  RunRecorder(const engine::Engine& engine, const sys::Clock& clock);

  // After each step, with the tokens that it computed.
  void computed(uint64_t tokens);
  double seconds() const { return clock_.now_s() - start_s_; }

  // Fills everything but setting, seed, warm, requests and cut_short.
  void finish(report::Run& run);

 private:
  void add_hit_point();

  const engine::Engine& engine_;
  const sys::Clock& clock_;
  const sys::MonotonicClock real_clock_;
  const std::string started_ = utc_now();
  const bool peak_is_of_this_run_ = sys::reset_peak_memory();
  const engine::ExpertStats before_;
  const sys::Usage usage_ = sys::read_usage();
  const double start_s_;
  const double real_start_s_;
  uint64_t tokens_ = 0, point_tokens_ = 0, point_hits_, point_misses_;
  std::vector<report::HitPoint> points_;
};

}  // namespace spillway::tune
