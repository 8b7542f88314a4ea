#include "tune/time_model.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "tune/nnls.h"
#include "tune/plan_rows.h"

namespace spillway::tune {
namespace {

using experts::HardwareProfile;
using experts::Quantity;

constexpr double kBytesPerUs = 1000.0;  // of 1 GB/s
// Fewer plans than that say nothing that noise could not.
constexpr size_t kFewest = 8;
// A resource worked alone where the other was busy for less than this part of its time, side by side where
// for more than that.
constexpr double kAlone = 0.02, kTogether = 0.2;
constexpr uint64_t kShortestNs = 1000;  // as the cost model: below it the clock is what is measured
// The device was busy by itself, not waiting for the link, where it took so much longer.
constexpr double kDeviceBound = 1.3;
constexpr double kMostSlowed = 15.0 / 16;  // a slowdown of 16, the cost model's most

double us(uint64_t ns) { return static_cast<double>(ns) / 1000.0; }

class Fitter {
 public:
  Fitter(Rows rows, const experts::TraceHead& head, const HardwareProfile& start)
      : rows_(std::move(rows)), head_(head) {
    model_.profile = start;
  }

  TimeModel run() {
    fit_link();
    fit_cpu();
    fit_device();
    fit_contended();
    fit_layer();
    fit_gaps();
    settle();
    return std::move(model_);
  }

 private:
  HardwareProfile& profile() { return model_.profile; }

  // Fitted is what a term's name is found in.
  void found(std::string_view name, double value, std::optional<double> low, std::optional<double> high,
             std::string note) {
    for (const auto& [key, quantity] : profile().quantities())
      if (key == name) *quantity = {value, Label::kPredicted};
    fitted_.push_back({.name = std::string(name),
                       .value = value,
                       .label = Label::kPredicted,
                       .low = low,
                       .high = high,
                       .note = std::move(note)});
  }
  // A value that another one bounds: then it is not a finding of its own, and has no interval.
  void keep_to(std::string_view name, double bound, const char* why) {
    for (const auto& [key, quantity] : profile().quantities()) {
      if (key != name || quantity->value == bound) continue;
      std::erase_if(fitted_, [&](const report::Term& term) { return term.name == name; });
      found(name, bound, {}, {}, why);
    }
  }
  void found_rate(std::string_view name, const Coefficient& us_per_byte, size_t n, const char* what) {
    const auto rate = [](double per_byte) { return 1.0 / (std::max(per_byte, 1e-12) * kBytesPerUs); };
    found(name, rate(us_per_byte.value), rate(us_per_byte.high), rate(us_per_byte.low),
          fmt::format("fitted to {} plans with {}", n, what));
  }

  // Time = bytes / rate + n fixed, by (bytes, n) rows; where the two can't be told apart, with the fixed cost
  // that is known.
  void fit_rate(std::vector<FitRow> rows, std::string_view rate, Quantity& fixed, std::string_view fixed_name,
                const char* what) {
    if (rows.size() < kFewest) return;
    if (!are_collinear(rows)) {
      const Fit fit = fit_rows(rows, 2);
      if (fit.of[0].value > 0) {
        found_rate(rate, fit.of[0], fit.rows, what);
        found(fixed_name, fit.of[1].value, fit.of[1].low, fit.of[1].high,
              fmt::format("fitted to {} plans with {}", fit.rows, what));
        return;
      }
    }
    for (FitRow& row : rows) {
      row.y = std::max(row.y - row.x[1] * fixed.value, 0.1 * row.y);
      row.x[1] = 0;
    }
    found_rate(rate, fit_rows(rows, 1).of[0], rows.size(), what);
  }

  void fit_link() {
    std::vector<FitRow> rows;
    for (const PlanRow& row : rows_.plans)
      if (row.n_copies > 0 && row.n_cpu == 0 && row.seen.link_ns > kShortestNs)
        rows.push_back({.x = {static_cast<double>(row.n_copies * row.expert_bytes), double(row.n_copies)},
                        .y = us(row.seen.link_ns),
                        .block = row.block});
    fit_rate(std::move(rows), "link_gb_s", profile().copy_us, "copy_us", "copies and nothing on the CPU");
  }

  static bool single_tokens(const PlanRow& row) { return row.plan->n_tokens == 1; }

  // From what number of tokens on an expert takes longer: of the candidates that which explains the plans of
  // many tokens best. `predict`: a plan's time if that number were so.
  template <class Predict>
  void fit_tokens(std::string_view name, std::span<const PlanRow* const> rows, const Predict& predict,
                  double (*seen)(const PlanRow&)) {
    if (rows.size() < kFewest) return;
    std::vector<double> candidates;
    for (double tokens = 1; tokens < 100; tokens *= 1.08) candidates.push_back(tokens);
    std::vector<std::vector<float>> errors(candidates.size());
    for (size_t c = 0; c < candidates.size(); ++c)
      for (const PlanRow* row : rows)
        errors[c].push_back(
            static_cast<float>(std::min(1.0, std::abs(std::log(predict(*row, candidates[c]) / seen(*row))))));
    const auto best_of = [&](const std::vector<uint32_t>& picked) {
      size_t best = 0;
      double least = 1e300;
      for (size_t c = 0; c < candidates.size(); ++c) {
        double sum = 0;
        for (const uint32_t i : picked) sum += errors[c][i];
        if (sum < least) least = sum, best = c;
      }
      return candidates[best];
    };
    std::vector<uint32_t> picked(rows.size());
    for (uint32_t i = 0; i < picked.size(); ++i) picked[i] = i;
    const double value = best_of(picked);
    constexpr int kResamples = 40;
    std::vector<double> resampled;
    std::mt19937 random(1);
    for (int k = 0; k < kResamples; ++k) {
      for (uint32_t& i : picked) i = random() % static_cast<uint32_t>(rows.size());
      resampled.push_back(best_of(picked));
    }
    std::sort(resampled.begin(), resampled.end());
    found(name, value, resampled[1], resampled[kResamples - 2],
          fmt::format("fitted to {} plans of prompts", rows.size()));
  }

  void fit_cpu() {
    std::vector<FitRow> rows;
    std::vector<const PlanRow*> prompts;
    for (const PlanRow& row : rows_.plans) {
      if (row.n_cpu == 0 || row.seen.cpu_ns <= kShortestNs ||
          us(row.link_busy_ns()) > kAlone * us(row.seen.cpu_ns))
        continue;
      if (!single_tokens(row)) {
        prompts.push_back(&row);
        continue;
      }
      rows.push_back({.x = {row.cpu_bytes(1.0), 1.0}, .y = us(row.seen.cpu_ns), .block = row.block});
    }
    fit_rate(std::move(rows), "cpu_gb_s", profile().cpu_start_us, "cpu_start_us",
             "experts on the CPU and no copies");
    const HardwareProfile& p = profile();
    fit_tokens(
        "cpu_tokens", prompts,
        [&](const PlanRow& row, double tokens) {
          return row.cpu_bytes(tokens) / (p.cpu_gb_s.value * kBytesPerUs) + p.cpu_start_us.value;
        },
        [](const PlanRow& row) { return us(row.seen.cpu_ns); });
  }

  void fit_device() {
    std::vector<FitRow> rows;
    std::vector<const PlanRow*> prompts;
    for (const PlanRow& row : rows_.plans) {
      if (row.n_device() == 0 || row.n_joins > 0 || row.seen.device_ns <= kShortestNs) continue;
      if (!single_tokens(row)) {
        if (us(row.seen.device_ns) > kDeviceBound * us(row.link_busy_ns())) prompts.push_back(&row);
      } else if (row.n_copies == 0) {
        rows.push_back({.x = {row.device_bytes(1.0), double(row.n_device())},
                        .y = us(row.seen.device_ns),
                        .block = row.block});
      }
    }
    fit_rate(std::move(rows), "device_gb_s", profile().device_expert_us, "device_expert_us",
             "hits and no copies");
    const HardwareProfile& p = profile();
    fit_tokens(
        "device_tokens", prompts,
        [&](const PlanRow& row, double tokens) {
          return row.device_bytes(tokens) / (p.device_gb_s.value * kBytesPerUs) +
                 row.n_device() * p.device_expert_us.value;
        },
        [](const PlanRow& row) { return us(row.seen.device_ns); });
  }

  // What took `seen` and would have taken `alone` by itself, the first `met` of it beside the other:
  // seen = alone + q met, where it runs at (1 - q) of its lone rate while the other does.
  void fit_contended() {
    std::vector<RatioRow> cpu, link;
    const HardwareProfile& p = profile();
    const auto add = [](std::vector<RatioRow>& rows, double seen, double alone, double met, uint32_t block) {
      if (seen > 1.0 && met > kTogether * seen)
        rows.push_back(
            {.num = std::clamp((seen - alone) / seen, -1.0, 1.0), .den = met / seen, .block = block});
    };
    for (const PlanRow& row : rows_.plans) {
      if (row.n_cpu == 0 || row.link_busy_ns() == 0 || row.seen.cpu_ns <= kShortestNs) continue;
      const double cpu_us = us(row.seen.cpu_ns) - p.cpu_start_us.value;
      add(cpu, cpu_us, row.cpu_bytes(p.cpu_tokens.value) / (p.cpu_gb_s.value * kBytesPerUs),
          std::min(cpu_us, us(row.link_busy_ns())), row.block);
      if (row.n_copies == 0) continue;
      const double link_us = us(row.seen.link_ns);
      add(link, link_us,
          row.n_copies *
              (static_cast<double>(row.expert_bytes) / (p.link_gb_s.value * kBytesPerUs) + p.copy_us.value),
          std::min(link_us, cpu_us), row.block);
    }
    const auto rate = [&](std::string_view name, const std::vector<RatioRow>& rows, double lone) {
      if (rows.size() < kFewest) return;
      const Coefficient q = fit_ratio(rows);
      const auto of = [&](double slowed) { return lone * (1.0 - std::clamp(slowed, 0.0, kMostSlowed)); };
      found(name, of(q.value), of(q.high), of(q.low),
            fmt::format("fitted to {} plans with copies beside the CPU", rows.size()));
    };
    rate("cpu_contended_gb_s", cpu, p.cpu_gb_s.value);
    rate("link_contended_gb_s", link, p.link_gb_s.value);
  }

  void fit_layer() {
    std::vector<RatioRow> waiting, resident;
    for (const PlanRow& row : rows_.plans) {
      const double rest = us(row.seen.total_ns) - us(std::max(row.seen.device_ns, row.seen.cpu_ns));
      (row.waits() ? waiting : resident).push_back({.num = std::max(rest, 0.0), .block = row.block});
    }
    // What a layer of hits takes beside them, every layer does: it is counted with the gaps.
    if (resident.size() >= kFewest) every_layer_us_ = fit_ratio(resident).value;
    if (waiting.size() < kFewest) return;
    const Coefficient fit = fit_ratio(waiting);
    const auto beyond = [&](double value) { return std::max(0.0, value - every_layer_us_); };
    found("layer_us", beyond(fit.value), beyond(fit.low), beyond(fit.high),
          fmt::format("mean of {} layers that waited for the host", waiting.size()));
  }

  void fit_gaps() {
    uint32_t fewest = ~uint32_t{0};
    for (const StepRow& step : rows_.steps) fewest = std::min(fewest, step.n_tokens);
    std::vector<RatioRow> first, further;
    for (const StepRow& step : rows_.steps)
      if (step.n_tokens == fewest)
        first.push_back({.num = std::max(0.0, step.step_us - step.parts_us), .block = step.block});
    const double dense_us =
        static_cast<double>(head_.dense_bytes) / (profile().device_gb_s.value * kBytesPerUs);
    if (first.empty()) {
      model_.gap_us = dense_us + profile().step_us.value;
      return;
    }
    const double layers = experts::count_layers(head_.groups);
    const Coefficient fit = fit_ratio(first);
    model_.gap_us = fit.value + every_layer_us_ * layers;
    const auto beyond = [&](double value) {
      return std::max(0.0, value + every_layer_us_ * layers - dense_us);
    };
    found("step_us", beyond(fit.value), beyond(fit.low), beyond(fit.high),
          fmt::format("mean of {} steps, less {:.0f} us for the dense weights", first.size(), dense_us));
    for (const StepRow& step : rows_.steps)
      if (step.n_tokens > fewest)
        further.push_back({.num = step.step_us - step.parts_us - fit.value,
                           .den = static_cast<double>(step.n_tokens - fewest),
                           .block = step.block});
    if (further.empty()) return;
    const Coefficient each = fit_ratio(further);
    model_.token_gap_us = std::max(0.0, each.value);
    fitted_.push_back(
        {.name = "token_us",
         .value = model_.token_gap_us,
         .label = Label::kPredicted,
         .low = std::max(0.0, each.low),
         .high = std::max(0.0, each.high),
         .note = fmt::format("of each further token of a micro-batch outside of the experts, from {} "
                             "steps of prompts",
                             further.size())});
  }

  // A profile that check() takes, and the list of terms.
  void settle() {
    HardwareProfile& p = profile();
    p.name = "fitted";
    p.source = "records of this machine, over: " + p.source;
    keep_to("dram_gb_s", std::max({p.dram_gb_s.value, p.cpu_gb_s.value, p.link_gb_s.value}),
            "at least what the processor or the link was seen to read");
    keep_to("cpu_contended_gb_s", std::min(p.cpu_contended_gb_s.value, p.cpu_gb_s.value),
            "at most as fast as the processor alone");
    keep_to("link_contended_gb_s", std::min(p.link_contended_gb_s.value, p.link_gb_s.value),
            "at most as fast as the link alone");
    for (const auto& [name, quantity] : p.quantities()) {
      const auto it = std::ranges::find(fitted_, name, &report::Term::name);
      report::Term term = it != fitted_.end() ? *it
                                              : report::Term{.name = std::string(name),
                                                             .value = quantity->value,
                                                             .label = quantity->label,
                                                             .note = "the records say nothing about it"};
      term.unit = name.ends_with("gb_s") ? "GB/s" : name.ends_with("tokens") ? "tokens" : "us";
      model_.terms.push_back(std::move(term));
    }
    for (const report::Term& term : fitted_)
      if (term.name == "token_us") model_.terms.push_back(term), model_.terms.back().unit = "us";
  }

  Rows rows_;
  const experts::TraceHead& head_;
  TimeModel model_;
  std::vector<report::Term> fitted_;
  double every_layer_us_ = 0;
};

}  // namespace

Result<TimeModel> fit_time_model(std::span<const Recorded> records, const HardwareProfile& start) {
  std::vector<const experts::Trace*> traces;
  for (const Recorded& record : records) traces.push_back(record.trace);
  Rows rows = rows_of(traces);
  if (rows.plans.empty())
    return invalid("{} recorded runs hold no layer with times; the device may have no clock", records.size());
  TimeModel model = Fitter(std::move(rows), traces[0]->head, start).run();
  SW_TRY(model.profile.check());
  return model;
}

Result<experts::SimulationResult> TimeModel::replay(const experts::Routes& routes,
                                                    experts::SimulationSetup setup) const {
  setup.machine = profile;
  setup.dense_bytes = 0;
  setup.step_us = gap_us;
  auto result = experts::simulate(routes, setup);
  if (!result) return result;
  for (size_t i = 0; i < result->steps_us.size(); ++i) {
    const double more = token_gap_us * (routes.steps()[i].n_tokens - 1);
    result->steps_us[i] += more;
    result->us += more;
  }
  return result;
}

}  // namespace spillway::tune
