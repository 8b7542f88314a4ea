// `spillway plan`: what a model would do on machines that need not be here, from the header of its file.
#include "tune/plan.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "cli/arguments.h"
#include "cli/common.h"
#include "cli/model_text.h"
#include "cli/output_file.h"
#include "cli/profiles.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"
#include "cli/trace_file.h"
#include "experts/machines.h"
#include "gguf/reader.h"
#include "sys/file.h"
#include "tune/fingerprint.h"
#include "tune/run_recorder.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PlanFlags {
  std::string model, trace, out;
  std::vector<std::string> machines;
  uint64_t device_mib = 0, host_mib = 0;
  tune::PlanUse use{.context = 0};  // 0: the model's
  bool json = false;
};

// The header of one file, read in growing pieces until it is whole. The file may end behind it: the beginning
// of a download will do.
Result<gguf::Header> read_header(const std::string& path, uint64_t& file_bytes) {
  constexpr uint64_t kFirstPiece = 1 << 20, kAsIfWhole = uint64_t{1} << 60;
  SW_ASSIGN(const auto file, sys::open_file(path));
  file_bytes += file->size();
  std::vector<std::byte> prefix(std::min(kFirstPiece, file->size()));
  while (true) {
    SW_TRY(file->read_at(0, prefix));
    SW_ASSIGN(gguf::PrefixResult result, gguf::parse_prefix(prefix, kAsIfWhole));
    if (result.header) return *std::move(result.header);
    if (prefix.size() == file->size())
      return invalid("the file ends within its header, after {} bytes", file->size());
    prefix.resize(std::min(std::max(result.need_bytes, 2 * uint64_t{prefix.size()}), file->size()));
  }
}

Result<tune::PlanMachine> find_machine(const std::string& name) {
  if (auto known = tune::known_plan_machine(name)) return known;
  SW_ASSIGN(const tune::ProfileFile file, find_measured("--machine", name));
  return tune::plan_machine_of(file);
}

Result<std::vector<tune::PlanMachine>> find_machines(const PlanFlags& flags) {
  std::vector<tune::PlanMachine> machines;
  for (const std::string& name : flags.machines) {
    SW_ASSIGN(tune::PlanMachine machine, find_machine(name));
    if (flags.device_mib > 0) machine.device_bytes = flags.device_mib << 20;
    if (flags.host_mib > 0) machine.host_bytes = flags.host_mib << 20;
    if (machine.device_bytes == 0 && machine.has_no_device)
      return invalid(
          "--machine {}: it was measured without a device, and a plan needs one; 'spillway probe --device "
          "...' "
          "measures one, a known machine has one, and --device-mib supposes one with default rates",
          name);
    if (machine.device_bytes == 0 || machine.host_bytes == 0)
      return invalid("--machine {}: its {} memory is not known; give {}", name,
                     machine.device_bytes == 0 ? "device's" : "host's",
                     machine.device_bytes == 0 ? "--device-mib" : "--host-mib");
    machines.push_back(std::move(machine));
  }
  return machines;
}

// The same routes in all three where they are from a trace.
Result<tune::RoutesByRepetition> make_routes(const PlanFlags& flags, const tune::PlanModel& model,
                                             const std::function<bool()>& go_on) {
  SW_ASSIGN(tune::RoutesByRepetition routes, tune::routes_from_statistic(model, flags.use, go_on));
  if (flags.trace.empty()) return routes;
  SW_ASSIGN(const experts::Trace trace, read_trace(flags.trace));
  auto recorded = tune::routes_from_trace(model, trace);
  if (!recorded) return std::unexpected(recorded.error().in(flags.trace));
  uint32_t longest = 0;
  for (const experts::Routes::Step& step : recorded->prefill.steps())
    longest = std::max(longest, step.n_tokens);
  if (longest > 0 && longest < flags.use.ubatch)
    note(fmt::format(
        "prefill is that of the recorded prompt, in micro-batches of at most {} tokens: each expert's "
        "weights are read for fewer tokens than in one of {}",
        longest, flags.use.ubatch));
  for (tune::PlanRoutes& r : routes) {
    r.decode = recorded->decode;
    if (!recorded->prefill.steps().empty()) r.prefill = recorded->prefill;
  }
  return routes;
}

std::string routes_words(const PlanFlags& flags) {
  return flags.trace.empty()
             ? "from a statistic (seeded; as repetitive as public route traces, a little less, a little more)"
             : "recorded in " + flags.trace;
}

// "82 tok/s (61 to 104)"
std::string speed_text(double typical, double low, double high) {
  const auto number = [](double v) { return fmt::format("{:.{}f}", v, v < 10 ? 1 : 0); };
  return fmt::format("{} tok/s ({} to {})", number(typical), number(low), number(high));
}

// "x 1.22, 100 tok/s"
std::string gain_text(double speed, double before, double no_difference) {
  const double ratio = speed / before;
  if (std::abs(ratio - 1) < no_difference) return "no difference";
  return fmt::format("x {:.2f}, {:.{}f} tok/s", ratio, speed, speed < 10 ? 1 : 0);
}

void print_placement(const tune::MachinePlan& plan) {
  const engine::Placement& p = plan.layout.placement;
  const size_t n_layers = p.layers.size(), on_device = n_layers - p.first_device_layer;
  fmt::print("  placement   {} of {} layers on the device; experts: {} layers resident", on_device, n_layers,
             p.n_resident_layers());
  if (p.n_planned_layers() > 0)
    fmt::print(", {} share a cache of {} ({:.0f} % of theirs)", p.n_planned_layers(),
               format_bytes(p.cache_bytes()),
               100.0 * static_cast<double>(p.cache_bytes()) / static_cast<double>(p.cacheable_bytes()));
  fmt::print("\n  host memory {} needed of {}\n", format_bytes(plan.layout.host_needed_bytes),
             format_bytes(plan.machine.host_bytes));
}

// Empty where the model fits.
std::string why_not(const PlanFlags& flags, const tune::MachinePlan& plan) {
  if (plan.estimate) return {};
  if (plan.device_too_small)
    return fmt::format(
        "the dense weights, the KV cache of {} positions and the scratch of micro-batches of {} leave "
        "nothing of "
        "{} of device memory ({} of it are left to others); a smaller -c or -ub needs less",
        flags.use.context, flags.use.ubatch, format_bytes(plan.machine.device_bytes),
        format_bytes(
            std::min(plan.machine.device_bytes, engine::device_reserve_bytes(plan.machine.device_bytes))));
  return fmt::format("{} of host memory are missing (the need includes {} for the system and other programs)",
                     format_bytes(plan.layout.host_missing_bytes), format_bytes(tune::kHostReserveBytes));
}

void print_plan(const PlanFlags& flags, const tune::MachinePlan& plan) {
  fmt::print("\n{} ({} on the device, {} on the host; rates {}), all of it estimated\n", plan.name,
             format_bytes(plan.machine.device_bytes), format_bytes(plan.machine.host_bytes),
             label_name(plan.machine.profile.link_gb_s.label));
  if (!plan.device_too_small) print_placement(plan);
  for (const std::string& doubt : plan.machine.notes) fmt::print("  rates       {}\n", printable(doubt));
  if (!plan.estimate) {
    fmt::print("  does not fit: {}\n", why_not(flags, plan));
    return;
  }
  const tune::Estimate& e = *plan.estimate;
  fmt::print("  decode      {}; reading alone, without fixed costs, would allow {:.0f}\n",
             speed_text(e.typical.decode_tok_s, e.low.decode_tok_s, e.high.decode_tok_s), plan.limit_tok_s);
  fmt::print("  prefill     {}\n",
             speed_text(e.typical.prefill_tok_s, e.low.prefill_tok_s, e.high.prefill_tok_s));
  fmt::print("  hits        {:.0f} % ({:.0f} to {:.0f}) of the experts that decoding needs\n",
             100 * e.typical.hit_rate, 100 * e.low.hit_rate, 100 * e.high.hit_rate);
  const report::Resources& r = e.typical.resources;
  const auto share = [&](double us) { return 100 * us / r.total_us; };
  fmt::print(
      "  time        of {:.2f} ms a token: device {:.0f} %, link {:.0f} %, CPU {:.0f} %, fixed {:.0f} % "
      "(they overlap)\n",
      r.total_us / 1000, share(r.device_us), share(r.link_us), share(r.cpu_us), share(r.wait_us));
  const experts::HardwareProfile& rates = plan.machine.profile;
  fmt::print("  fixed costs {:.0f} us a step ({}), {:.0f} us a layer ({})\n", rates.step_us.value,
             label_name(rates.step_us.label), rates.layer_us.value, label_name(rates.layer_us.label));
  fmt::print("  bottleneck  {}\n", plan.bottleneck);
  fmt::print("  what would help            decode               prefill\n");
  for (const tune::ChangedEstimate& changed : plan.changes) {
    const tune::Speed& s = changed.estimate.typical;
    fmt::print("    {:<24} {:<19}  {}\n", changed.change.name,
               gain_text(s.decode_tok_s, e.typical.decode_tok_s, tune::kNoDifference),
               gain_text(s.prefill_tok_s, e.typical.prefill_tok_s, tune::kNoPrefillDifference));
  }
}

Json estimate_json(const tune::Estimate& e) {
  const auto range = [](double typical, double low, double high) {
    return Json{{"typical", typical}, {"low", low}, {"high", high}};
  };
  const report::Resources& r = e.typical.resources;
  return {{"decode_tok_s", range(e.typical.decode_tok_s, e.low.decode_tok_s, e.high.decode_tok_s)},
          {"prefill_tok_s", range(e.typical.prefill_tok_s, e.low.prefill_tok_s, e.high.prefill_tok_s)},
          {"hit_rate", range(e.typical.hit_rate, e.low.hit_rate, e.high.hit_rate)},
          {"token_us",
           {{"device", r.device_us},
            {"link", r.link_us},
            {"cpu", r.cpu_us},
            {"fixed", r.wait_us},
            {"all", r.total_us}}}};
}

Json plan_json(const PlanFlags& flags, const tune::MachinePlan& plan) {
  const engine::Placement& p = plan.layout.placement;
  Json json = {{"machine", plan.name},
               {"label", "estimated"},
               {"device_bytes", plan.machine.device_bytes},
               {"host_bytes", plan.machine.host_bytes},
               {"layers_on_device", p.layers.size() - p.first_device_layer},
               {"resident_expert_layers", p.n_resident_layers()},
               {"cached_expert_layers", p.n_planned_layers()},
               {"cache_bytes", p.cache_bytes()},
               {"host_needed_bytes", plan.layout.host_needed_bytes},
               {"fits", plan.estimate.has_value()},
               {"host_missing_bytes", plan.layout.host_missing_bytes},
               {"limit_tok_s", plan.limit_tok_s}};
  if (!plan.estimate) {
    json["why_not"] = why_not(flags, plan);
    return json;
  }
  json["estimate"] = estimate_json(*plan.estimate);
  json["bottleneck"] = plan.bottleneck;
  json["changes"] = Json::array();
  for (const tune::ChangedEstimate& changed : plan.changes) {
    Json entry = {{"change", changed.change.name}, {"cache_bytes", changed.cache_bytes}};
    entry.update(estimate_json(changed.estimate));
    json["changes"].push_back(std::move(entry));
  }
  return json;
}

std::vector<std::string> notes_of(const PlanFlags& flags, const std::vector<tune::MachinePlan>& plans) {
  std::vector<std::string> notes = {
      fmt::format("Everything is estimated: nothing ran. Routing is {}.", routes_words(flags)),
      "The low end of a range takes rates a little lower and routing that repeats itself less; the high end "
      "the "
      "other way round.",
      fmt::format("A token looks at half of a context of {}; prompts run in micro-batches of {}.",
                  flags.use.context, flags.use.ubatch)};
  for (const tune::MachinePlan& plan : plans) {
    notes.push_back(fmt::format("{}: {} of device memory, {} of host memory.", plan.name,
                                format_bytes(plan.machine.device_bytes),
                                format_bytes(plan.machine.host_bytes)));
    for (const std::string& doubt : plan.machine.notes)
      notes.push_back(fmt::format("{}, when it was measured: {}", plan.name, doubt));
    if (!plan.estimate)
      notes.push_back(fmt::format("{}: the model does not fit: {}.", plan.name, why_not(flags, plan)));
    for (const tune::ChangedEstimate& changed : plan.changes)
      if (!changed.change.assumption.empty() &&
          std::ranges::find(notes, changed.change.assumption) == notes.end())
        notes.push_back(changed.change.assumption);
  }
  return notes;
}

// What a plan supposes, and the placement that it came to.
report::Setting setting_of(const PlanFlags& flags, const tune::MachinePlan& plan) {
  const auto mib = [](uint64_t bytes) {
    return fmt::format("{:.6g}", static_cast<double>(bytes) / (1 << 20));
  };
  const engine::Placement& placement = plan.layout.placement;
  report::Setting setting{
      .name = plan.name,
      .flags = {{"-m", flags.model},
                {"--machine", plan.name},
                {"--device-mib", mib(plan.machine.device_bytes)},
                {"--host-mib", mib(plan.machine.host_bytes)},
                {"-c", fmt::format("{}", flags.use.context)},
                {"-ub", fmt::format("{}", flags.use.ubatch)},
                {"-ngl", fmt::format("{}", placement.layers.size() - placement.first_device_layer)},
                {"--moe-cache-mib", mib(placement.cache_bytes())},
                {"--moe-cache-cpu-share", "auto"}}};
  if (!flags.trace.empty()) setting.flags["--trace"] = flags.trace;
  return setting;
}

report::ResultFile result_of(const PlanFlags& flags, const std::string& typed, const tune::PlanModel& model,
                             uint64_t file_bytes, const std::vector<tune::MachinePlan>& plans) {
  report::ResultFile result;
  result.kind = "plan";
  result.created = tune::utc_now();
  result.command = typed;
  result.build = tune::build_facts();
  // No hash of the content: a plan reads no weights.
  result.model = {model.description.name, std::filesystem::path(flags.model).filename().string(), "",
                  file_bytes};
  for (const tune::MachinePlan& plan : plans) {
    result.settings.push_back(setting_of(flags, plan));
    tune::add_to_result(result, plan);
  }
  result.notes = notes_of(flags, plans);
  for (const tune::MachinePlan& plan : plans)
    result.conclusion += fmt::format(
        "{}{}: {}.", result.conclusion.empty() ? "" : "\n", plan.name,
        plan.estimate
            ? fmt::format("{}; relieving {} would help decoding most",
                          speed_text(plan.estimate->typical.decode_tok_s, plan.estimate->low.decode_tok_s,
                                     plan.estimate->high.decode_tok_s),
                          plan.bottleneck)
            : "the model does not fit");
  return result;
}

Result<void> make_plan(PlanFlags flags, const std::string& typed) {
  std::vector<std::string> inputs = flags.machines;
  inputs.insert(inputs.end(), {flags.model, flags.trace});
  SW_TRY(check_output_file(flags.out, inputs));
  SW_ASSIGN(const std::vector<tune::PlanMachine> machines, find_machines(flags));
  uint64_t file_bytes = 0;
  auto file =
      gguf::open_model(flags.model, [&](const std::string& shard) { return read_header(shard, file_bytes); });
  if (!file) return std::unexpected(file.error());
  auto model = tune::describe_for_plan(*file);
  if (!model) return std::unexpected(model.error().in(flags.model));
  if (flags.use.context == 0)
    flags.use.context = std::min(model->description.trained_context, engine::kDefaultContext);

  catch_interrupts();
  ProgressBar bar("planning", ProgressBar::Unit::kNumber);
  uint64_t done = 0;
  // Steps of the statistic, then three replays for each machine and each change of it.
  const uint64_t total =
      tune::kStatisticSteps + machines.size() * tune::kReplaysOfMachine * tune::kReplayWeight;
  const auto advance = [&](uint64_t by) {
    bar.update(std::min(done += by, total), total);
    return !interrupted();
  };
  SW_ASSIGN(const tune::RoutesByRepetition routes, make_routes(flags, *model, [&] { return advance(1); }));
  std::vector<tune::MachinePlan> plans;
  for (const tune::PlanMachine& machine : machines) {
    auto plan = tune::plan_on_machine(*model, machine, flags.use, routes,
                                      [&] { return advance(tune::kReplayWeight); });
    if (!plan)
      return std::unexpected(plan.error().kind == Error::Kind::kCancelled
                                 ? plan.error()
                                 : plan.error().in(machine.profile.name));
    plans.push_back(*std::move(plan));
  }
  bar.clear();
  if (!flags.out.empty())
    SW_TRY(write_output_file(flags.out, report::to_json(result_of(flags, typed, *model, file_bytes, plans))));
  if (flags.json) {
    Json json = {{"schema", 1},
                 {"model", model->description.name},
                 {"expert_bytes", model->expert_bytes},
                 {"dense_bytes", model->dense_bytes},
                 {"read_per_token_bytes", model->token_bytes},
                 {"routing", routes_words(flags)},
                 {"plans", Json::array()}};
    for (const tune::MachinePlan& plan : plans) json["plans"].push_back(plan_json(flags, plan));
    fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
    return {};
  }
  fmt::print("{}: {} of experts, {} of other weights; {} read per token\n",
             model->description.name.empty() ? flags.model : printable(model->description.name),
             format_bytes(model->expert_bytes), format_bytes(model->dense_bytes),
             format_bytes(model->token_bytes));
  fmt::print("routing {}\n", routes_words(flags));
  for (const tune::MachinePlan& plan : plans) print_plan(flags, plan);
  if (!flags.out.empty() && flags.out != "-") fmt::print("\n{}: 'spillway report' draws it\n", flags.out);
  return {};
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* command = app.add_subcommand(
      "plan", "Estimate what a model would do on other machines, from the header of its file");
  command
      ->add_option("-m,--model", flags->model,
                   "GGUF file, or any shard of a split one; its beginning will do")
      ->required();
  std::string names;
  for (const experts::HardwareProfile& machine : experts::known_machines())
    names += (names.empty() ? "" : ", ") + machine.name;
  command
      ->add_option(
          "--machine", flags->machines,
          "a machine by name (" + names +
              "), a profile that 'probe' wrote, or 'this': the one that it saved here; can be repeated")
      ->required();
  command->add_option("--trace", flags->trace,
                      "routes recorded by 'trace record' with this model; without it, a statistic");
  command
      ->add_option("--device-mib", flags->device_mib,
                   "device memory of the machines, in MiB, instead of their own")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 30));
  command
      ->add_option("--host-mib", flags->host_mib, "host memory of the machines, in MiB, instead of their own")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 30));
  command
      ->add_option("-c,--ctx-size", flags->use.context,
                   "positions of the KV cache; 0: the model's, at most 4096")
      ->check(CLI::Range(0u, limits::kMaxContext))
      ->capture_default_str();
  command->add_option("--ub,--ubatch-size", flags->use.ubatch, "most tokens of one micro-batch of a prompt")
      ->check(CLI::Range(1u, limits::kMaxUbatch))
      ->capture_default_str();
  command->add_option("--out", flags->out, "also write a result file for 'spillway report'");
  command->add_flag("--json", flags->json, "print JSON");
  command->callback([flags, command, &exit_code] {
    const auto result = make_plan(*flags, command_line(*command));
    exit_code = !result && result.error().kind == Error::Kind::kCancelled ? kExitInterrupted
                : result                                                  ? finish_output()
                                                                          : report(result.error());
  });
}

}  // namespace spillway::cli
