#include "tune/probe_meter.h"

namespace spillway::tune {
namespace {

// Three give a median that one outlier can't move; of 200, the median's error is a tenth of the spread.
constexpr size_t kFewest = 3, kMost = 200;
// A run lasts 2 ms where that leaves room for ten: long enough that starting and waiting are a percent.
constexpr double kRunUs = 2000, kRuns = 10;

}  // namespace

Result<Sample> Meter::sample(double share, uint32_t most_units,
                             const std::function<Result<double>(uint32_t units)>& run) {
  const double begin_us = target_.now_us(), slice_us = share * total_us_;
  SW_ASSIGN(const double first_us, run(1));
  const double wanted = std::min(kRunUs, slice_us / kRuns) / std::max(first_us, 1e-3);
  const auto units = static_cast<uint32_t>(std::clamp(wanted, 1.0, static_cast<double>(most_units)));
  std::vector<double> times;
  while (times.size() < kFewest || (times.size() < kMost && target_.now_us() - begin_us < slice_us)) {
    SW_ASSIGN(const double us, run(units));
    times.push_back(std::max(us, 1e-6) / units);
    SW_TRY(pass(0));
  }
  SW_TRY(pass(share));
  return sample_of(std::move(times));
}

Result<Sample> Meter::sample(double share, const std::function<Result<double>()>& run) {
  return sample(share, 1, [&](uint32_t) { return run(); });
}

Result<void> Meter::pass(double share) {
  done_ += share;
  if (progress_ && !progress_(std::min(done_, 1.0))) return fail(Error::Kind::kCancelled, "stopped");
  return {};
}

}  // namespace spillway::tune
