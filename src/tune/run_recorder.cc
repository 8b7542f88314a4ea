#include "tune/run_recorder.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <thread>

namespace spillway::tune {
namespace {

// Short enough to see a cache fill, long enough that 10,000 tokens make a small file.
constexpr uint64_t kTokensOfPoint = 32;

double seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

std::string utc_now() {
  return fmt::format("{:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()));
}

report::Experts experts_between(const engine::ExpertStats& before, const engine::ExpertStats& after) {
  const experts::Counters was = before.total.all(), is = after.total.all();
  const uint64_t layers = std::max<size_t>(after.layers.size(), 1);
  return {.tokens = (is.tokens - was.tokens) / layers,
          .hits = is.hits - was.hits,
          .misses = is.misses - was.misses,
          .cpu = is.cpu - was.cpu,
          .uploaded = is.uploaded + is.streamed - was.uploaded - was.streamed,
          .promoted = is.promoted - was.promoted,
          .evicted = is.evicted - was.evicted,
          .bytes_up = is.bytes_uploaded + is.bytes_promoted - was.bytes_uploaded - was.bytes_promoted,
          .waits = after.times.waits - before.times.waits,
          .device_s = seconds(is.device_ns - was.device_ns),
          .link_s = seconds(is.link_ns - was.link_ns),
          .cpu_s = seconds(is.cpu_ns - was.cpu_ns),
          .wait_s = seconds(after.times.wait_ns - before.times.wait_ns),
          .plan_s = seconds(after.times.plan_ns - before.times.plan_ns)};
}

double other_cores(double cpu_s, double seconds, uint32_t cores) {
  if (seconds < report::kShortestLoadSeconds) return 0;
  const double used = std::max(0.0, cpu_s / seconds);
  return cores > 0 ? std::min(used, static_cast<double>(cores)) : used;
}

RunRecorder::RunRecorder(const engine::Engine& engine, const sys::Clock& clock)
    : engine_(engine),
      clock_(clock),
      before_(engine.expert_stats()),
      start_s_(clock.now_s()),
      real_start_s_(real_clock_.now_s()),
      point_hits_(before_.total.all().hits),
      point_misses_(before_.total.all().misses) {}

void RunRecorder::computed(uint64_t tokens) {
  tokens_ += tokens;
  if (tokens_ - point_tokens_ >= kTokensOfPoint) add_hit_point();
}

void RunRecorder::add_hit_point() {
  const experts::Counters now = engine_.expert_stats().total.all();
  points_.push_back(
      {.tokens = tokens_, .hits = now.hits - point_hits_, .misses = now.misses - point_misses_});
  point_tokens_ = tokens_;
  point_hits_ = now.hits;
  point_misses_ = now.misses;
}

void RunRecorder::finish(report::Run& run) {
  run.seconds = seconds();
  const double real_seconds = real_clock_.now_s() - real_start_s_;
  const sys::Usage now = sys::read_usage();
  run.started = started_;
  run.cpu_s = now.process_cpu_s - usage_.process_cpu_s;
  run.load.other_cpu = other_cores(now.machine_cpu_s - usage_.machine_cpu_s - run.cpu_s, real_seconds,
                                   std::thread::hardware_concurrency());
  run.load.throttled_s = now.throttled_s - usage_.throttled_s;
  if (peak_is_of_this_run_) run.host_peak_bytes = sys::peak_memory_bytes();
  run.device_peak_bytes = engine_.placement().bytes.total();
  if (engine_.placement().n_planned_layers() == 0) return;
  if (tokens_ > point_tokens_) add_hit_point();
  run.experts = experts_between(before_, engine_.expert_stats());
  run.hit_points = std::move(points_);
}

}  // namespace spillway::tune
