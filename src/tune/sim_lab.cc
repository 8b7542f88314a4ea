#include "tune/sim_lab.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/assert.h"
#include "experts/layer_clock.h"
#include "tune/micro_batches.h"

namespace spillway::tune {
namespace {

using experts::HardwareProfile;
using experts::Planner;
using experts::Routes;

// As the simulator's: the simulated clock does not wait for ring slots.
constexpr uint32_t kRingSlots = 8;

// The seven rates, each by its own factor.
HardwareProfile jittered(HardwareProfile p, double sigma, std::mt19937_64& random) {
  if (sigma <= 0) return p;
  std::normal_distribution<double> normal(0.0, sigma);
  const double cpu = std::exp(normal(random)), link = std::exp(normal(random));
  p.cpu_gb_s.value *= cpu, p.cpu_contended_gb_s.value *= cpu;
  p.link_gb_s.value *= link, p.link_contended_gb_s.value *= link;
  p.device_gb_s.value *= std::exp(normal(random));
  p.layer_us.value *= std::exp(normal(random));
  p.step_us.value *= std::exp(normal(random));
  p.dram_gb_s.value *= std::max({1.0, cpu, link});
  return p;
}

}  // namespace

SimLab::SimLab(const SimMachine& machine, std::vector<SimPrompt> prompts, sys::FakeClock& clock)
    : machine_(machine), prompts_(std::move(prompts)), clock_(clock) {
  SW_ASSERT(!prompts_.empty());
  facts_.groups = prompts_[0].tokens.groups;
  facts_.ring_slots.assign(facts_.groups.size(), kRingSlots);
  facts_.dense_bytes = machine_.dense_bytes;
  const uint64_t all = expert_bytes(facts_.groups);
  facts_.max_cache_bytes = std::min(machine_.max_cache_bytes, all);
  facts_.all_fits = machine_.max_cache_bytes >= all;
  facts_.ubatches = machine_.ubatches;
  facts_.threads = machine_.threads;
  facts_.other_device_bytes = machine_.dense_bytes;
  facts_.load_mode = machine_.load_modes[0].name;
  for (size_t i = 1; i < machine_.load_modes.size(); ++i)
    facts_.load_modes.push_back(machine_.load_modes[i].name);
  for (const SimPrompt& prompt : prompts_) facts_.prompts.push_back(prompt.prompt);
}

// One try.
class SimLab::Session {
 public:
  Session(const SimLab& lab, const Settings& settings, const Task& task, HardwareProfile profile)
      : lab_(lab),
        task_(task),
        profile_(std::move(profile)),
        random_(lab.machine_.seed * 1000003 + lab.runs_) {
    ubatch_ = settings.ubatch > 0 ? settings.ubatch : lab.facts_.default_ubatch;
  }

  Result<Trial> run(const Settings& settings) {
    const LabFacts& facts = lab_.facts_;
    const uint64_t cache = settings.cache_bytes.value_or(facts.max_cache_bytes);
    const std::vector<uint32_t> slots = slots_for(facts.groups, cache);
    const experts::PlannerSettings planner_of = planner_settings(settings);
    SW_ASSIGN(planner_,
              Planner::create(planner_of, facts.groups, slots, facts.ring_slots, lab_.machine_.believed));
    profile_ = jittered(profile_, lab_.machine_.run_noise, random_);

    std::vector<std::byte> bytes;
    std::optional<experts::TraceWriter> writer;
    if (task_.trace) {
      writer.emplace(experts::TraceHead{.source = "simulated",
                                        .settings = planner_of,
                                        .groups = facts.groups,
                                        .slots = slots,
                                        .ring_slots = facts.ring_slots,
                                        .profile = lab_.machine_.believed,
                                        .dense_bytes = facts.dense_bytes},
                     [&](std::span<const std::byte> piece) -> Result<void> {
                       bytes.insert(bytes.end(), piece.begin(), piece.end());
                       return {};
                     });
      writer_ = &*writer;
      planner_->listen(writer_);
    }
    Trial trial;
    for (const uint32_t index : task_.warm_up) answer(index);
    trial.warm_up_steps = steps_;
    const experts::Counters before = planner_->total().all();
    const double began_us = us_;
    for (const uint32_t index : task_.measured) trial.run.requests.push_back(answer(index));
    if (writer_) {
      SW_TRY(writer_->finish());
      SW_ASSIGN(trial.trace, experts::parse_trace(bytes));
    }
    trial.run.warm = true;
    trial.run.seconds = (us_ - began_us) * 1e-6;
    trial.run.cut_short = cut_short_;
    const experts::Counters after = planner_->total().all();
    trial.run.experts = report::Experts{.tokens = after.tokens - before.tokens,
                                        .hits = after.hits - before.hits,
                                        .misses = after.misses - before.misses,
                                        .cpu = after.cpu - before.cpu,
                                        .uploaded = after.uploaded - before.uploaded,
                                        .promoted = after.promoted - before.promoted,
                                        .evicted = after.evicted - before.evicted};
    return trial;
  }

  double us() const { return us_; }

 private:
  bool over() {
    if (task_.most_seconds > 0 && us_ > 1e6 * task_.most_seconds)
      cut_short_ = fmt::format("after {} s, as asked", task_.most_seconds);
    return !cut_short_.empty();
  }

  report::Request answer(uint32_t index) {
    const SimPrompt& prompt = lab_.prompts_[index];
    report::Request request{.topic = prompt.prompt.topic, .prompt_tokens = prompt.prompt_tokens};
    if (over()) {
      request.finish = "interrupted";
      return request;
    }
    const size_t all = prompt.tokens.steps().size();
    double prefill_us = 0;
    for (size_t at = 0; at < prompt.prompt_tokens; at += ubatch_)
      prefill_us += step(prompt.tokens, at, std::min<size_t>(ubatch_, prompt.prompt_tokens - at));
    request.ttft_s = request.prefill_s = prefill_us * 1e-6;
    request.generated_tokens = 1;
    request.finish = "length";
    for (size_t at = prompt.prompt_tokens; at < all && request.generated_tokens < task_.generate; ++at) {
      if (over()) {
        request.finish = "interrupted";
        break;
      }
      const double us = step(prompt.tokens, at, 1);
      request.itl_ms.push_back(us * 1e-3);
      request.decode_s += us * 1e-6;
      ++request.generated_tokens;
    }
    return request;
  }

  double step(const Routes& tokens, size_t first, size_t n) {
    Routes one;
    append_merged(one, tokens, first, n);
    HardwareProfile now = jittered(profile_, lab_.machine_.step_noise, random_);
    const uint32_t slow_every = lab_.machine_.slow_cpu_every;
    if (slow_every > 0 && steps_ % slow_every == 0) {
      now.cpu_gb_s.value /= lab_.machine_.slow_cpu;
      now.cpu_contended_gb_s.value = std::min(now.cpu_contended_gb_s.value, now.cpu_gb_s.value);
    }
    const experts::CostModel machine(now);
    if (writer_) writer_->begin_step(static_cast<uint32_t>(n));
    const auto layers = one.layers(one.steps()[0]);
    const double dense_us = static_cast<double>(lab_.machine_.dense_bytes) / (now.device_gb_s.value * 1000.0);
    const double gap_us =
        (dense_us + now.step_us.value + lab_.machine_.token_us * static_cast<double>(n - 1)) /
        static_cast<double>(layers.size());
    double us = 0;
    for (size_t i = 0; i < layers.size(); ++i)
      us += gap_us + clock_.run(*planner_, machine, one.routing(layers[i]),
                                layers[(i + 1) % layers.size()].layer, gap_us);
    if (writer_) writer_->end_step(static_cast<uint64_t>(us * 1000));
    ++steps_;
    us_ += us;
    return us;
  }

  const SimLab& lab_;
  const Task& task_;
  HardwareProfile profile_;
  std::mt19937_64 random_;
  uint32_t ubatch_ = 0;
  std::unique_ptr<Planner> planner_;
  experts::TraceWriter* writer_ = nullptr;
  experts::LayerClock clock_;
  double us_ = 0;
  size_t steps_ = 0;
  std::string cut_short_;
};

Result<Trial> SimLab::run(const Settings& settings, const Task& task) {
  if (stopped()) return fail(Error::Kind::kCancelled, "stopped");
  if (settings.cache_bytes.value_or(0) > facts_.max_cache_bytes)
    return invalid("a cache of {} MiB is more than the {} MiB there are", *settings.cache_bytes >> 20,
                   facts_.max_cache_bytes >> 20);
  HardwareProfile profile = machine_.profile;
  for (const ThreadChoice& choice : machine_.threads)
    if (choice.threads == settings.threads) {
      profile.cpu_gb_s.value *= choice.cpu_rate;
      profile.cpu_contended_gb_s.value *= choice.cpu_rate;
    }
  size_t mode = 0;
  for (size_t i = 0; i < machine_.load_modes.size(); ++i)
    if (machine_.load_modes[i].name == settings.load_mode) mode = i;
  if (mode != load_mode_) clock_.advance_ns(static_cast<uint64_t>(machine_.load_s * 1e9));
  load_mode_ = mode;
  profile.link_gb_s.value *= machine_.load_modes[mode].link_rate;
  profile.link_contended_gb_s.value *= machine_.load_modes[mode].link_rate;
  ++runs_;
  Session session(*this, settings, task, std::move(profile));
  auto trial = session.run(settings);
  clock_.advance_ns(static_cast<uint64_t>(session.us() * 1000));
  return trial;
}

}  // namespace spillway::tune
