// How far the tuner's predictions are from what then runs, by the real clock: calibrates on conversations of
// three topics, predicts settings on others, runs them in turns, and prints both. On a machine without a GPU
// the device is the pretended one, whose threads share the cores with the CPU's part.
//
//   prediction_bench MODEL [minutes] [cache in % of the experts]
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "base/limits.h"
#include "cli/model_text.h"
#include "report/statistics.h"
#include "tune/engine_lab.h"
#include "tune/tuner.h"

namespace spillway {
namespace {

constexpr double kMinutes = 3, kCachePercent = 40;

std::string interval_text(std::span<const double> values, double factor) {
  if (values.size() < 3) return "no interval: too few";
  const report::Interval interval = report::bootstrap_median(values);
  return fmt::format("95 %: {:.1f} to {:.1f}", factor * interval.low, factor * interval.high);
}

Result<void> measure(const std::string& path, double minutes, double cache_percent) {
  const tune::Workload workload = tune::builtin_topics();
  engine::Options options{.path = path, .threads = 1, .context = 4096};
  options.device.device = "host";
  options.device.experts_on_host = true;
  options.device.cache = {.unit = engine::CacheSize::Unit::kPercent, .value = cache_percent};
  const auto load = [&](engine::LoadMode mode) {
    engine::Options asked = options;
    asked.load_mode = mode;
    return engine::Engine::load(asked);
  };
  SW_ASSIGN(auto engine, load(engine::LoadMode::kRead));
  SW_ASSIGN(const auto tokenizer, cli::load_tokenizer(path, engine->metadata(), engine->vocabulary()));
  SW_ASSIGN(const auto chat_template,
            cli::load_chat_template(engine->metadata(), tokenizer->vocabulary(), ""));
  const experts::HardwareProfile start = engine->memory().profile;
  tune::EngineLab lab(std::move(engine), {.load = load,
                                          .tokenizer = tokenizer.get(),
                                          .chat_template = chat_template ? &*chat_template : nullptr,
                                          .workload = workload,
                                          .limited = true});
  SW_ASSIGN(const tune::TuneReport report,
            tune::tune(lab, start, {.seconds = 60 * minutes, .use_failed_model = true}));
  fmt::print("the model reproduces its calibration runs to within {:.1f} %\n", 100 * report.model_error);
  std::vector<double> errors;
  for (const report::Row& row : report.result.rows) {
    if (row.label != Label::kMeasured || !row.predicted_tok_s) continue;
    errors.push_back(std::abs(*row.predicted_tok_s / row.decode_tok_s - 1));
    fmt::print("{:<32} measured {:8.1f} tok/s{}, predicted {:8.1f} ({:+.1f} %)\n", row.setting,
               row.decode_tok_s,
               row.decode_low ? fmt::format(" ({:.1f} to {:.1f})", *row.decode_low, *row.decode_high) : "",
               *row.predicted_tok_s, 100 * (*row.predicted_tok_s / row.decode_tok_s - 1));
  }
  if (errors.empty()) return invalid("nothing was both predicted and measured; more minutes are needed");
  fmt::print("median error on held-out conversations: {:.1f} % of {} settings ({})\n",
             100 * report::median(errors), errors.size(), interval_text(errors, 100));
  return {};
}

}  // namespace
}  // namespace spillway

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "prediction_bench MODEL [minutes] [cache in % of the experts]\n");
    return 2;
  }
  const double minutes = argc > 2 ? std::atof(argv[2]) : spillway::kMinutes;
  const double percent = argc > 3 ? std::atof(argv[3]) : spillway::kCachePercent;
  const auto done = spillway::measure(argv[1], minutes, percent);
  if (!done) fmt::print(stderr, "prediction_bench: {}\n", done.error().message);
  return done ? 0 : 1;
}
