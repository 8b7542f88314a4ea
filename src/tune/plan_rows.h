// The plans of a record with what was seen of them, as numbers that can be fitted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/trace.h"

namespace spillway::tune {

struct PlanRow {
  const experts::Trace::Planned* plan = nullptr;
  experts::Observation seen;
  uint64_t expert_bytes = 0;  // of one expert
  uint32_t n_hits = 0, n_copies = 0, n_joins = 0, n_cpu = 0;
  uint32_t block = 0;  // of neighbouring steps, over all records

  bool waits() const { return n_copies + n_joins + n_cpu > 0; }
  uint32_t n_device() const { return n_hits + n_copies + n_joins; }
  uint64_t link_busy_ns() const { return seen.link_ns + seen.background_ns; }
  // Bytes of the CPU's experts, or the device's, as if each were read once for every `tokens` of its tokens.
  double cpu_bytes(double tokens) const { return read_bytes(tokens, true); }
  double device_bytes(double tokens) const { return read_bytes(tokens, false); }

 private:
  double read_bytes(double tokens, bool cpu) const;
};

// A step: its whole time and that of its layers' expert parts.
struct StepRow {
  uint32_t n_tokens = 0;
  uint32_t block = 0;
  double step_us = 0, parts_us = 0;
};

struct Rows {
  std::vector<PlanRow> plans;
  std::vector<StepRow> steps;
};

// Plans without times (something failed, or the device has no clock) are left out, and so are steps with one.
// The traces must outlive the rows.
Rows rows_of(std::span<const experts::Trace* const> traces);

}  // namespace spillway::tune
