// In what results differ: by the facts that both know.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "report/page.h"
#include "report/words.h"

namespace spillway::report {
namespace {

// What a process may use changes a little from start to start.
constexpr double kMemoryPlay = 0.05;

bool differ(const std::string& a, const std::string& b) { return !a.empty() && !b.empty() && a != b; }
bool differ(uint64_t a, uint64_t b) { return a > 0 && b > 0 && a != b; }
bool both(const std::string& a, const std::string& b) { return !a.empty() && !b.empty(); }

std::string known(std::vector<std::string> parts) {
  std::erase(parts, "");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string described(const std::string& name, const std::string& details) {
  if (name.empty()) return details;
  return details.empty() ? name : fmt::format("{} ({})", name, details);
}

std::string content_text(const std::string& content) { return content.empty() ? "" : "content " + content; }

std::string text_of(const Build& build) { return known({build.version, build.compiler, build.type}); }

std::string text_of(const Model& model) {
  return described(
      model.name.empty() ? model.file : model.name,
      known({model.bytes > 0 ? count_text(model.bytes, "byte") : "", content_text(model.content)}));
}

std::string processor_text(const Machine& machine) {
  return known({machine.cpu, machine.cores > 0 ? count_text(machine.cores, "core") : ""});
}

std::string device_text(const Machine& machine) {
  const auto bytes = static_cast<double>(machine.device_bytes);
  return described(machine.device, known({machine.driver.empty() ? "" : "driver " + machine.driver,
                                          bytes > 0 ? bytes_text(bytes) : ""}));
}

std::string text_of(const Workload& workload) {
  if (workload.requests == 0) return workload.name;
  return described(workload.name,
                   known({count_text(workload.requests, "request"), count_text(workload.users, "user"),
                          content_text(workload.content)}));
}

bool differ(const Build& a, const Build& b) {
  return differ(a.version, b.version) || differ(a.compiler, b.compiler) || differ(a.type, b.type);
}

// The content decides where both know it: files get renamed.
bool differ(const Model& a, const Model& b) {
  if (both(a.content, b.content)) return a.content != b.content;
  return differ(a.bytes, b.bytes) || differ(a.name, b.name);
}

bool differ(const Workload& a, const Workload& b) {
  if (both(a.content, b.content)) return a.content != b.content;
  return differ(a.name, b.name) || (both(a.name, b.name) && (a.requests != b.requests || a.users != b.users));
}

bool memory_differs(const Machine& a, const Machine& b) {
  const auto bytes_a = static_cast<double>(a.memory_bytes), bytes_b = static_cast<double>(b.memory_bytes);
  return differ(a.memory_bytes, b.memory_bytes) &&
         std::abs(bytes_a - bytes_b) > kMemoryPlay * std::max(bytes_a, bytes_b);
}

}  // namespace

std::vector<std::string> differences(const ResultFile& here, const ResultFile& other) {
  std::vector<std::string> all;
  const auto add = [&](bool is_other, const char* what, const std::string& of_here,
                       const std::string& of_other) {
    if (is_other) all.push_back(fmt::format("{} {}, not {}", what, of_other, of_here));
  };
  if (differ(here.kind, other.kind)) all.push_back(fmt::format("another kind of result ({})", other.kind));
  const Machine &a = here.machine, &b = other.machine;
  add(differ(here.build, other.build), "build", text_of(here.build), text_of(other.build));
  add(differ(here.model, other.model), "model", text_of(here.model), text_of(other.model));
  add(differ(a.cpu, b.cpu) || differ(a.cores, b.cores), "processor", processor_text(a), processor_text(b));
  add(memory_differs(a, b), "memory", bytes_text(static_cast<double>(a.memory_bytes)),
      bytes_text(static_cast<double>(b.memory_bytes)));
  add(differ(a.device, b.device) || differ(a.driver, b.driver) || differ(a.device_bytes, b.device_bytes),
      "device", device_text(a), device_text(b));
  add(differ(a.system, b.system), "system", a.system, b.system);
  add(differ(here.workload, other.workload), "workload", text_of(here.workload), text_of(other.workload));
  return all;
}

std::vector<std::string> not_known(const ResultFile& here, const ResultFile& other) {
  std::vector<std::string> all;
  const auto add = [&](const char* what, const std::string& a, const std::string& b) {
    if (!both(a, b)) all.emplace_back(what);
  };
  add("the build", here.build.version, other.build.version);
  add("the model's content", here.model.content, other.model.content);
  add("the processor", here.machine.cpu, other.machine.cpu);
  add("the device", here.machine.device, other.machine.device);
  add("the system", here.machine.system, other.machine.system);
  add("the workload", here.workload.name, other.workload.name);
  return all;
}

}  // namespace spillway::report
