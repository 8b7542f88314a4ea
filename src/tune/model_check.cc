// How far the fitted time model is from what was recorded, and through which of its terms.
#include <algorithm>
#include <array>
#include <cmath>

#include "tune/plan_rows.h"
#include "tune/time_model.h"

namespace spillway::tune {
namespace {

double us(uint64_t ns) { return static_cast<double>(ns) / 1000.0; }

// Seen and predicted time of each term over a run, the recorded decisions given.
enum Part : uint8_t { kDevice, kLink, kCpu, kFixed, kGap, kParts };
constexpr std::array<const char*, kParts> kNames = {"device_gb_s", "link_gb_s", "cpu_gb_s", "layer_us",
                                                    "step_us"};
constexpr std::array<const char*, kParts> kWords = {"the device's part", "copies over the link",
                                                    "the CPU's part", "the fixed cost of a layer that waits",
                                                    "the time between the experts' parts"};

struct PartSums {
  std::array<double, kParts> seen{}, predicted{};
};

PartSums parts_of(const TimeModel& model, const experts::Trace& trace) {
  const experts::CostModel cost(model.profile);
  const experts::Trace* traces[] = {&trace};
  const Rows rows = rows_of(traces);
  PartSums sums;
  for (const PlanRow& row : rows.plans) {
    experts::Work work = experts::work_of(row.plan->entries, row.expert_bytes, cost, 0.0);
    work.behind_us = us(row.seen.background_ns);
    const experts::Observation predicted = cost.observe(work).seen;
    const auto rest = [](const experts::Observation& o) {
      return us(o.total_ns) - us(std::max(o.device_ns, o.cpu_ns));
    };
    // Copies under way make the device wait, which the record does not say enough of.
    if (row.n_joins == 0) {
      sums.seen[kDevice] += us(row.seen.device_ns), sums.predicted[kDevice] += us(predicted.device_ns);
      sums.seen[kLink] += us(row.seen.link_ns), sums.predicted[kLink] += us(predicted.link_ns);
    }
    sums.seen[kCpu] += us(row.seen.cpu_ns), sums.predicted[kCpu] += us(predicted.cpu_ns);
    sums.seen[kFixed] += std::max(0.0, rest(row.seen)), sums.predicted[kFixed] += rest(predicted);
  }
  for (const StepRow& step : rows.steps) {
    sums.seen[kGap] += step.step_us - step.parts_us;
    sums.predicted[kGap] += model.gap_us + model.token_gap_us * (step.n_tokens - 1);
  }
  return sums;
}

double measured_us(const experts::Trace& trace) {
  double sum = 0;
  for (const experts::Trace::Event& event : trace.events)
    if (event.kind == experts::Trace::Kind::kStepEnd) sum += us(event.value);
  return sum;
}

}  // namespace

Result<ModelCheck> check_time_model(const TimeModel& model, std::span<const Recorded> records) {
  ModelCheck check;
  double farthest = -1;
  for (const Recorded& record : records) {
    experts::SimulationSetup setup = experts::setup_of(record.trace->head);
    setup.believed = record.trace->head.profile;
    SW_ASSIGN(const experts::SimulationResult replayed,
              model.replay(experts::routes_of(*record.trace), setup));
    const double measured = measured_us(*record.trace);
    if (measured <= 0) continue;
    check.runs.push_back({record.name, measured, replayed.us});
    check.error = std::max(check.error, std::abs(check.runs.back().error()));
    const PartSums sums = parts_of(model, *record.trace);
    for (size_t part = 0; part < kParts; ++part) {
      const double off = std::abs(sums.seen[part] - sums.predicted[part]) / measured;
      if (off <= farthest) continue;
      farthest = off;
      check.worst_term = kNames[part];
      check.words = fmt::format(
          "with {}, {} took {:.0f} ms of the run's {:.0f} ms where the model says {:.0f} ms", record.name,
          kWords[part], sums.seen[part] / 1000, measured / 1000, sums.predicted[part] / 1000);
    }
  }
  return check;
}

}  // namespace spillway::tune
