#include "tune/profile_result.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/words.h"

namespace spillway::tune {
namespace {

using report::CurvePoint;
using report::CurveSet;
using report::Term;

constexpr double kMb = 1e6, kGiB = 1 << 30;

// docs/hardware-profile.md says more.
const std::map<std::string_view, const char*> kQuantityWords = {
    {"device_gb_s", "device memory, reading experts"},
    {"dram_gb_s", "host memory, read by whatever reads it"},
    {"cpu_gb_s", "the CPU's experts at one token, alone"},
    {"link_gb_s", "host to device, alone"},
    {"cpu_contended_gb_s", "the CPU's experts while experts are copied"},
    {"link_contended_gb_s", "host to device while the CPU computes experts"},
    {"cpu_tokens", "tokens from which on an expert takes the CPU longer than reading it"},
    {"device_tokens", "tokens from which on an expert takes the device longer than reading it"},
    {"step_us", "a step besides its layers"},
    {"layer_us", "what a layer costs more because the host plans it"},
    {"cpu_start_us", "the CPU's part of a layer besides its experts"},
    {"copy_us", "a copy besides its bytes"},
    {"device_expert_us", "an expert on the device besides its bytes"}};

const std::map<std::string_view, const char*> kWaitWords = {{"pool_wake", "waking the threads"},
                                                            {"device_wait", "waiting for an idle device"},
                                                            {"hand_over", "handing over the CPU's results"},
                                                            {"planned_layer", "routing, read by the host"},
                                                            {"resident_layer", "routing, not waited for"},
                                                            {"device_operation", "an operation of experts"}};

std::string words_for(const std::map<std::string_view, const char*>& words, std::string_view name) {
  const auto found = words.find(name);
  return found == words.end() ? "" : found->second;
}

std::string unit_of(std::string_view name) {
  return name.ends_with("_gb_s") ? "GB/s" : name.ends_with("_us") ? "us" : "tokens";
}

void set_spread(Term& term, const Sample& sample) {
  if (sample.repeats == 0) return;
  term.low = sample.low;
  term.high = sample.high;
}

CurvePoint point_of(double x, const Sample& sample) {
  CurvePoint point{.x = x, .value = sample.median};
  if (sample.repeats > 0) point.low = sample.low, point.high = sample.high;
  return point;
}

void add_quantities(const ProfileFile& file, std::vector<Term>& terms) {
  for (const auto& [key, quantity] : file.profile.quantities()) {
    const std::string name(key);
    Term term{.name = name, .unit = unit_of(name), .value = quantity->value, .label = quantity->label};
    term.note = words_for(kQuantityWords, name);
    if (name.ends_with("contended_gb_s") && !(quantity->value > 0)) term.note += "; 0: not known";
    if (const auto reason = file.reasons.find(name); reason != file.reasons.end())
      term.note += "; not measured: " + reason->second;
    if (const auto spread = file.spreads.find(name); spread != file.spreads.end())
      set_spread(term, spread->second);
    term.group = "What planner, replay and estimates use";
    terms.push_back(std::move(term));
  }
}

void add_links(const ProfileFile& file, report::ResultFile& result) {
  for (const LinkRate& link : file.link) {
    const std::string name = fmt::format(
        "{}, {} memory", link.direction == "up" ? "To the device" : "From the device", link.memory);
    if (!link.why_not.empty()) {
      result.notes.push_back(fmt::format("{}: not measured, {}.", name, link.why_not));
      continue;
    }
    const char* group = "The link";
    result.terms.push_back({.name = name, .unit = "GB/s", .value = link.gb_s, .group = group});
    result.terms.push_back({.name = name,
                            .unit = "us",
                            .value = link.copy_us,
                            .note = "a copy besides its bytes",
                            .group = group});
  }
}

void add_waits(const ProfileFile& file, std::vector<Term>& terms) {
  for (const auto& [name, sample] : file.waits_us) {
    Term term{.name = name, .unit = "us", .value = sample.median, .note = words_for(kWaitWords, name)};
    set_spread(term, sample);
    term.group = "Fixed costs";
    terms.push_back(std::move(term));
  }
}

void add_limits(const ProfileFile& file, report::ResultFile& result) {
  std::vector<std::string> unlimited;
  const auto add = [&](const char* name, const char* unit, auto limit, double in_unit) {
    if (!limit)
      unlimited.emplace_back(name);
    else
      result.terms.push_back({.name = name,
                              .unit = unit,
                              .value = static_cast<double>(*limit) / in_unit,
                              .group = "Limits of the process"});
  };
  add("memory of the control group", "GiB", file.limits.group_memory_bytes, kGiB);
  add("CPUs of the control group", "CPUs", file.limits.group_cpus, 1);
  add("locked memory", "GiB", file.limits.locked_bytes, kGiB);
  if (!unlimited.empty())
    result.notes.push_back(fmt::format("Without a limit: {}.", fmt::join(unlimited, ", ")));
}

// The curve of that name, at the end of the others where there is none yet.
report::Curve& curve_at(CurveSet& set, const std::string& name) {
  const auto found = std::ranges::find(set.curves, name, &report::Curve::name);
  if (found != set.curves.end()) return *found;
  return set.curves.emplace_back(report::Curve{.name = name, .points = {}});
}

void add_set(report::ResultFile& result, CurveSet set) {
  for (report::Curve& curve : set.curves) std::ranges::sort(curve.points, {}, &CurvePoint::x);
  if (!set.curves.empty()) result.curves.push_back(std::move(set));
}

void add_curves(const ProfileFile& file, report::ResultFile& result) {
  CurveSet memory{.title = "Reading memory", .x = "threads", .unit = "GB/s", .curves = {}};
  for (const ReadRate& rate : file.memory)
    curve_at(memory, "memory").points.push_back(point_of(rate.threads, rate.gb_s));

  // At one token over the threads; with all threads over the tokens.
  uint32_t all = 0;
  for (const CpuRate& rate : file.cpu_kernels) all = std::max(all, rate.threads);
  CurveSet threads{
      .title = "Experts on the CPU at one token", .x = "threads", .unit = "GB/s of weights", .curves = {}};
  CurveSet tokens{.title = fmt::format("Experts on the CPU with {}", report::count_text(all, "thread")),
                  .x = "tokens",
                  .unit = "GB/s of weights",
                  .curves = {}};
  bool many = false;
  for (const CpuRate& rate : file.cpu_kernels) {
    if (rate.tokens == 1) curve_at(threads, rate.type).points.push_back(point_of(rate.threads, rate.gb_s));
    if (rate.threads == all) curve_at(tokens, rate.type).points.push_back(point_of(rate.tokens, rate.gb_s));
    many = many || (rate.threads == all && rate.tokens > 1);
  }
  if (!many) tokens.curves.clear();

  CurveSet device{
      .title = "An operation of experts on the device", .x = "tokens", .unit = "us", .curves = {}};
  for (const DeviceTime& time : file.device)
    curve_at(device, fmt::format("{} of {} MB", report::count_text(time.experts, "expert"),
                                 report::short_number(static_cast<double>(time.expert_bytes) / kMb)))
        .points.push_back(point_of(time.tokens, time.us));

  for (CurveSet* set : {&memory, &threads, &tokens, &device}) add_set(result, std::move(*set));
}

}  // namespace

report::ResultFile result_of(const ProfileFile& file) {
  report::ResultFile result;
  result.kind = "probe";
  result.created = file.created;
  result.machine = file.machine;
  result.conclusion = file.profile.name;
  if (!file.profile.source.empty())
    result.conclusion += (result.conclusion.empty() ? "" : ": ") + file.profile.source;
  if (file.seconds > 0)
    result.conclusion += fmt::format(
        "{}It took {} s; other programs kept {} cores busy meanwhile.", result.conclusion.empty() ? "" : ". ",
        report::short_number(file.seconds), report::short_number(file.other_cores));
  result.notes = file.notes;
  add_quantities(file, result.terms);
  add_links(file, result);
  add_waits(file, result.terms);
  add_limits(file, result);
  add_curves(file, result);
  return result;
}

}  // namespace spillway::tune
