// What runs come to: totals over time, never means of rates.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/result.h"
#include "report/statistics.h"

namespace spillway::report {

// A token that takes more than this many times the median between tokens is a stall: people notice it.
inline constexpr double kStallMultiple = 3;

// Of runs together. 0 where nothing of the kind was seen.
struct Summary {
  uint32_t runs = 0, requests = 0;
  uint64_t generated_tokens = 0;
  double seconds = 0;        // of the runs, added up
  double decode_tok_s = 0;   // of each user: tokens between tokens, over the time between them
  double prefill_tok_s = 0;  // tokens that were computed, over the time that they took
  double ttft_s = 0;         // median over requests
  double p50_itl_ms = 0, p95_itl_ms = 0, p99_itl_ms = 0;
  uint64_t itl_count = 0, stalls = 0;
  std::optional<double> hit_rate;
  uint64_t bytes_up = 0;
  double cpu_s = 0;
  uint64_t host_peak_bytes = 0, device_peak_bytes = 0;
  std::map<std::string, uint32_t> finishes;  // requests by how they ended
};
Summary summarize(std::span<const Run* const> runs);

// Tokens that followed another, and the time that they took; tokens of prompts that were computed, and
// theirs.
Amount decode_amount(const Run& run);
Amount prefill_amount(const Run& run);
// Of the runs that have a rate, for bootstrap_rate().
std::vector<Amount> amounts_of(std::span<const Run* const> runs, Amount (*amount)(const Run&));
// Tokens that followed another over the time that they took, of all requests: what one user sees. 0 where
// there were none.
double decode_tok_s(const Run& run);
double prefill_tok_s(const Run& run);  // tokens computed over the time for it; 0 where no prompt was computed

double ttft_s(const Run& run);  // median over its requests; 0 where none is known

// The runs of a setting, warm or cold ones, in the order in which they ran.
std::vector<const Run*> runs_of(const ResultFile& result, uint32_t setting, bool warm);
std::vector<double> rates_of(std::span<const Run* const> runs, double (*rate)(const Run&));

// What to know before believing the runs, whole sentences: others used the machine, the quota held this
// program back, speeds drifted or jumped between two levels, single runs were far from the others, runs or
// answers ended early. Empty where there is nothing to say.
std::vector<std::string> notes_about(const ResultFile& result);

// Of these, what did not come from the runs themselves: others used the machine, the quota held this program
// back, the measurement was cut short.
std::vector<std::string> disturbances(const ResultFile& result);

}  // namespace spillway::report
