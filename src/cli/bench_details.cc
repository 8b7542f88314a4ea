#include "cli/bench_details.h"

#include <cmath>

#include "cli/expert_report.h"
#include "cli/load_flags.h"
#include "cli/read_bandwidth.h"
#include "engine/memory_plan.h"
#include "model/sizes.h"
#include "report/page_data.h"
#include "report/summary.h"
#include "report/words.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<double> warm_rates(const report::ResultFile& result, double (*rate)(const report::Run&)) {
  return report::rates_of(report::runs_of(result, 0, true), rate);
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {  // of the sample
  if (values.size() < 2) return 0;
  double sum = 0;
  for (const double value : values) sum += (value - mean(values)) * (value - mean(values));
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

Json series_json(const std::vector<double>& tok_s, uint32_t tokens) {
  return {{"tokens", tokens}, {"tok_s", tok_s}, {"mean", mean(tok_s)}, {"deviation", deviation(tok_s)}};
}

std::string reading_text(double read, double bandwidth, uint32_t threads) {
  // Both are measured, and scatter by a few per cent.
  constexpr double kMost = 1.05;
  if (read <= kMost * bandwidth)
    return fmt::format(
        "decoding reads {:.1f} GB/s of weights = {:.0f} % of the {:.1f} GB/s that this machine reads with {} "
        "(measured)\n",
        read * 1e-9, 100 * read / bandwidth, bandwidth * 1e-9, report::count_text(threads, "thread"));
  return fmt::format(
      "decoding reads {:.1f} GB/s of weights (measured). Reading memory alone with {} came to less, {:.1f} "
      "GB/s: either "
      "other programs kept the machine busy then, or the weights come from the CPU's caches. So there is no "
      "speed of the memory to hold it against\n",
      read * 1e-9, report::count_text(threads, "thread"), bandwidth * 1e-9);
}

}  // namespace

std::string load_details(const engine::Engine& engine) {
  std::string text = describe_load(engine) + "\n";
  if (engine.device() != nullptr)
    text += describe_placement(engine.memory(), engine.placement(), *engine.device()) + "\n";
  return text;
}

Result<std::string> run_details(const engine::Engine& engine, const report::ResultFile& result,
                                const BenchWork& work) {
  std::string text;
  const double decode = report::summarize(report::runs_of(result, 0, true)).decode_tok_s;
  // With a device, which memory the weights were read from differs from expert to expert.
  if (engine.device() == nullptr && work.workload.empty() && decode > 0) {
    SW_ASSIGN(const double bandwidth, measure_read_bandwidth(engine.memory().threads));
    const double read =
        decode * static_cast<double>(model::measure_sizes(engine.description()).bytes_per_token);
    text += reading_text(read, bandwidth, engine.memory().threads);
  }
  return text + counters_text(engine.expert_stats());
}

Result<Json> details_json(const engine::Engine& engine, const report::ResultFile& result,
                          const BenchWork& work) {
  SW_ASSIGN(const double bandwidth, measure_read_bandwidth(engine.memory().threads));
  const uint64_t bytes_per_token = model::measure_sizes(engine.description()).bytes_per_token;
  const std::vector<double> decode = warm_rates(result, report::decode_tok_s);
  const engine::MemoryPlan& plan = engine.memory();
  Json json{{"label", "measured"},
            {"model", engine.description().name},
            {"settings",
             {{"threads", plan.threads},
              {"context", plan.context},
              {"ubatch", plan.ubatch},
              {"load_mode", engine::load_mode_name(plan.mode)},
              {"kernels", plan.instruction_set},
              {"key_type", backend::kv_type_name(plan.kv_types.key)},
              {"value_type", backend::kv_type_name(plan.kv_types.value)},
              {"device", engine.device() ? engine.device()->id : "none"}}},
            {"prefill", series_json(warm_rates(result, report::prefill_tok_s), work.prompt)},
            {"decode", series_json(decode, work.generate)},
            {"weights_read_per_token_bytes", bytes_per_token},
            {"memory_read_bytes_s", bandwidth}};
  if (engine.device() == nullptr) {
    json["decode_fraction_of_read_bandwidth"] =
        mean(decode) * static_cast<double>(bytes_per_token) / bandwidth;
  } else {
    json["experts"] = experts_json(engine.expert_stats());
    json["placement"] = placement_json(plan, engine.placement(), *engine.device());
  }
  json["load_s"] = engine.load_seconds();
  return json;
}

}  // namespace spillway::cli
