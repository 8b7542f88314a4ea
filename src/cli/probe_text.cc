#include "cli/probe_text.h"

#include <map>
#include <set>

#include "cli/common.h"

namespace spillway::cli {
namespace {

using tune::Sample;

std::string rate(const Sample& s) {
  return fmt::format("{:.1f} GB/s ({:.1f} to {:.1f})", s.median, s.low, s.high);
}

std::string microseconds(const Sample& s) {
  return fmt::format("{:.1f} us ({:.1f} to {:.1f})", s.median, s.low, s.high);
}

bool measured(const experts::Quantity& quantity) { return quantity.label == Label::kMeasured; }

// "<name padded> <words>\n"
std::string line(std::string_view name, const std::string& words) {
  return fmt::format("  {:<17} {}\n", name, words);
}

std::string memory_lines(const tune::ProfileFile& file) {
  std::string words;
  for (const tune::ReadRate& read : file.memory)
    words +=
        line(words.empty() ? "memory, read" : "",
             fmt::format("{} with {} thread{}", rate(read.gb_s), read.threads, read.threads == 1 ? "" : "s"));
  return words;
}

// A row a type, a column for each thread count at one token, and one for many tokens.
std::string kernel_table(const tune::ProfileFile& file) {
  std::vector<std::string> types;
  std::set<uint32_t> threads, tokens;
  for (const tune::CpuRate& r : file.cpu_kernels) {
    if (std::ranges::find(types, r.type) == types.end()) types.push_back(r.type);
    threads.insert(r.threads);
    tokens.insert(r.tokens);
  }
  if (types.empty()) return {};
  const uint32_t all = *threads.rbegin(), many = *tokens.rbegin();
  std::string words = fmt::format("  {:<17} {:<8}", "experts, CPU", "type");
  for (const uint32_t n : threads)
    words += fmt::format("{:>12}", fmt::format("{} thread{}", n, n == 1 ? "" : "s"));
  words += fmt::format("{:>22}   GB/s of weights\n", fmt::format("{} tokens, {} threads", many, all));
  for (const std::string& type : types) {
    const auto find = [&](uint32_t n_threads, uint32_t n_tokens) {
      for (const tune::CpuRate& r : file.cpu_kernels)
        if (r.type == type && r.threads == n_threads && r.tokens == n_tokens)
          return fmt::format("{:.1f}", r.gb_s.median);
      return std::string("-");
    };
    words += fmt::format("  {:<17} {:<8}", "", type);
    for (const uint32_t n : threads) words += fmt::format("{:>12}", find(n, 1));
    words += fmt::format("{:>22}\n", find(all, many));
  }
  const experts::HardwareProfile& p = file.profile;
  if (measured(p.cpu_tokens))
    words +=
        line("", fmt::format("an expert takes longer from {:.1f} tokens on; starting the CPU's part costs "
                             "{:.1f} us a layer",
                             p.cpu_tokens.value, p.cpu_start_us.value));
  return words;
}

std::string link_lines(const tune::ProfileFile& file) {
  std::string words;
  for (const tune::LinkRate& link : file.link)
    words += line(words.empty() ? "link" : "",
                  fmt::format("{}, {} memory: {}",
                              link.direction == "up" ? "to the device" : "from the device", link.memory,
                              link.why_not.empty()
                                  ? fmt::format("{:.1f} GB/s and {:.1f} us a copy", link.gb_s, link.copy_us)
                                  : "not measured: " + printable(link.why_not)));
  return words;
}

std::string device_lines(const tune::ProfileFile& file) {
  const experts::HardwareProfile& p = file.profile;
  std::string words;
  const auto spread = [&](const char* name) {
    const auto found = file.spreads.find(name);
    return found == file.spreads.end() ? Sample{} : found->second;
  };
  if (measured(p.device_gb_s))
    words += line("device memory",
                  fmt::format("{}, and {:.1f} us an expert; an expert takes longer from {:.0f} "
                              "tokens on",
                              rate(spread("device_gb_s")), p.device_expert_us.value, p.device_tokens.value));
  if (measured(p.cpu_contended_gb_s))
    words += line("at the same time", fmt::format("CPU {}, link {}", rate(spread("cpu_contended_gb_s")),
                                                  rate(spread("link_contended_gb_s"))));
  if (measured(p.layer_us))
    words +=
        line("a planned layer", fmt::format("waits {:.1f} us longer than a resident one", p.layer_us.value));
  return words;
}

std::string wait_lines(const tune::ProfileFile& file) {
  static const std::map<std::string, const char*> kWords = {
      {"pool_wake", "waking the threads"},           {"device_wait", "waiting for an idle device"},
      {"hand_over", "handing over CPU results"},     {"planned_layer", "routing, read by the host"},
      {"resident_layer", "routing, not waited for"}, {"device_operation", "an operation of experts"}};
  std::string words;
  for (const auto& [name, sample] : file.waits_us) {
    const auto known = kWords.find(name);
    words += line(
        words.empty() ? "fixed costs" : "",
        fmt::format("{}: {}", known == kWords.end() ? printable(name) : known->second, microseconds(sample)));
  }
  return words;
}

std::string limit_lines(const tune::ProfileFile& file) {
  const tune::MachineLimits& limits = file.limits;
  std::string words =
      fmt::format("memory of this process {}; CPUs {}; locked memory {}",
                  limits.group_memory_bytes ? format_bytes(*limits.group_memory_bytes) : "unlimited",
                  limits.group_cpus ? fmt::format("{:.2g}", *limits.group_cpus) : "unlimited",
                  limits.locked_bytes ? format_bytes(*limits.locked_bytes) : "unlimited");
  return line("limits", words);
}

// A line a reason, with all that it is the reason of.
std::string reason_lines(const tune::ProfileFile& file) {
  std::map<std::string, std::string> names;
  for (const auto& [name, reason] : file.reasons) names[reason] += (names[reason].empty() ? "" : ", ") + name;
  std::string words;
  for (const auto& [reason, list] : names)
    words += line(words.empty() ? "not measured" : "", fmt::format("{}: {}", list, printable(reason)));
  return words.empty() ? words : words + line("", "there, default values stay");
}

}  // namespace

std::string probe_text(const tune::ProfileFile& file) {
  const report::Machine& m = file.machine;
  std::string words = fmt::format("{}, {} cores, {}; device: {}{}\n", printable(m.cpu), m.cores,
                                  format_bytes(m.memory_bytes), printable(m.device),
                                  m.driver.empty() ? "" : fmt::format(" (driver {})", printable(m.driver)));
  words +=
      fmt::format("All measured, in {:.1f} s: medians, and the middle half of the repetitions in brackets.\n",
                  file.seconds);
  words += memory_lines(file) + kernel_table(file) + link_lines(file) + device_lines(file) +
           wait_lines(file) + limit_lines(file);
  words += reason_lines(file);
  for (const std::string& text : file.notes) words += fmt::format("note: {}\n", printable(text));
  return words;
}

}  // namespace spillway::cli
