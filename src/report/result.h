// What a command found, as values that can be kept, repeated, compared and shown: the record behind `bench`,
// `tune`, `verify` and `plan`, and what `report` draws. docs/results.md is the format of the file.
//
// Times are seconds unless the name says otherwise, sizes are bytes. A vector that is empty, a text that is
// empty and an optional that is unset mean "not known"; nothing is made up.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/label.h"
#include "base/result.h"

namespace spillway::report {

inline constexpr uint32_t kResultSchema = 1;

// Which program.
struct Build {
  std::string version;   // with the commit where it is known
  std::string compiler;  // and its version
  std::string type;      // Release, Debug, with sanitizers
  bool operator==(const Build&) const = default;
};

struct Model {
  std::string name;     // as the file calls itself
  std::string file;     // its name without folders
  std::string content;  // hash of what it holds (tune/fingerprint.h says of what), hexadecimal
  uint64_t bytes = 0;   // of all shards
  bool operator==(const Model&) const = default;
};

struct Machine {
  std::string cpu;
  uint32_t cores = 0;         // that this process may use
  uint64_t memory_bytes = 0;  // that this process may use
  std::string device;         // "none" without one
  std::string driver;         // its version
  uint64_t device_bytes = 0;
  std::string system;  // operating system and kernel
  bool operator==(const Machine&) const = default;
};

struct Workload {
  std::string name;       // of a built-in one, or the file's without folders
  std::string content;    // hash of its messages, hexadecimal
  uint32_t requests = 0;  // of one run
  uint32_t users = 1;     // at once
  bool operator==(const Workload&) const = default;
};

// All that is in force, by flag: {"--moe-cache-mib", "25%"}. Complete: with it the run can be repeated.
struct Setting {
  std::string name;  // short, for tables: what is special about it
  std::map<std::string, std::string> flags;
  bool operator==(const Setting&) const = default;
};

// One request of a run. All measured.
struct Request {
  uint32_t user = 0;  // 0..
  std::string topic;  // of the workload's
  uint32_t turn = 0;  // of the conversation, 0..
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;  // of it, in the KV cache already
  uint32_t generated_tokens = 0;
  double ttft_s = 0;           // from the request to its first token
  double prefill_s = 0;        // of it, computing the prompt
  double decode_s = 0;         // all tokens after the first
  std::vector<double> itl_ms;  // between tokens, each (generated_tokens - 1)
  std::string finish;          // stop, length, context, interrupted
  bool operator==(const Request&) const = default;
};

// Of the expert cache. Names as in --stats-json (docs/expert-cache.md).
struct Experts {
  uint64_t tokens = 0;  // computed, each once whatever the number of layers
  uint64_t hits = 0, misses = 0, cpu = 0, uploaded = 0, promoted = 0, evicted = 0;
  uint64_t bytes_up = 0;  // host to device
  uint64_t waits = 0;
  double device_s = 0, link_s = 0, cpu_s = 0, wait_s = 0, plan_s = 0;
  bool operator==(const Experts&) const = default;
};

// A stretch of a run, for hit rates over tokens.
struct HitPoint {
  uint64_t tokens = 0;            // since the run's start, at the end of the stretch
  uint64_t hits = 0, misses = 0;  // within it
  bool operator==(const HitPoint&) const = default;
};

// How busy the machine was with other things. What others used is counted in ticks of 10 ms on each core: in
// runs that are shorter than this it is not known, and 0.
inline constexpr double kShortestLoadSeconds = 0.1;
struct Load {
  double other_cpu = 0;    // cores that other processes used during the run, mean; at most those there are
  double throttled_s = 0;  // time this process was kept from running by its CPU quota
  bool operator==(const Load&) const = default;
};

// One pass through the workload with one setting.
struct Run {
  uint32_t setting = 0;  // index
  uint64_t seed = 0;
  std::string started;  // UTC, ISO 8601
  bool warm = false;    // after this setting's warm-up; only warm runs are compared
  double seconds = 0;
  std::vector<Request> requests;
  std::optional<Experts> experts;  // of this run alone
  std::vector<HitPoint> hit_points;
  double cpu_s = 0;  // of this process, all threads
  uint64_t host_peak_bytes = 0;
  uint64_t device_peak_bytes = 0;
  Load load;
  std::string cut_short;  // why it ended early
  bool operator==(const Run&) const = default;
};

// Where the time of a token goes, microseconds per token; they overlap, so they don't add up to the whole.
struct Resources {
  double device_us = 0, link_us = 0, cpu_us = 0, wait_us = 0;
  double total_us = 0;
  bool operator==(const Resources&) const = default;
};

// What a setting comes to, with where the numbers are from. Rows of tables and points of curves.
struct Row {
  std::string setting;  // its name
  Label label = Label::kMeasured;
  double cache_bytes = 0;  // of the expert cache
  std::string share;       // "auto" or a number
  double decode_tok_s = 0;
  std::optional<double> decode_low, decode_high;  // of its 95 % interval, or an estimate's range
  double prefill_tok_s = 0;
  std::optional<double> ttft_s, p95_itl_ms;
  std::optional<double> hit_rate;         // warm
  std::optional<double> predicted_tok_s;  // of a measured row, where it had been predicted
  std::optional<Resources> resources;
  std::string verdict;  // against the first row: "faster", "slower", "no difference seen", "not resolved"
  std::string machine;  // where it is not the result's own: of a plan
  bool operator==(const Row&) const = default;
};

// A term of the time model, or a value of a hardware profile.
struct Term {
  std::string name, unit;
  double value = 0;
  Label label = Label::kMeasured;
  std::optional<double> low, high;  // 95 %; of kind probe the middle half of the repetitions
  std::string note;
  std::string group;  // title of its table; empty: the first one
  bool operator==(const Term&) const = default;
};

// One value over another for each of some names: what each type reads over the number of threads. Low and
// high as of terms.
struct CurvePoint {
  double x = 0, value = 0;
  std::optional<double> low, high;
  bool operator==(const CurvePoint&) const = default;
};
struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  // x ascending
  bool operator==(const Curve&) const = default;
};
struct CurveSet {
  std::string title, x, unit;  // "threads", "GB/s"
  Label label = Label::kMeasured;
  std::vector<Curve> curves;
  bool operator==(const CurveSet&) const = default;
};

struct ResultFile {
  uint32_t schema = kResultSchema;
  std::string kind;     // bench, tune, plan, verify; probe: of a hardware profile (tune/profile_result.h)
  std::string created;  // UTC, ISO 8601
  std::string command;  // what was typed
  Build build;
  Model model;
  Machine machine;
  Workload workload;
  std::string goal;  // what verdicts are about: decode, ttft, p95, mixed (tune/figures.h); empty: decode
  std::vector<Setting> settings;
  std::vector<Run> runs;  // in the order in which they ran
  std::vector<Row> rows;
  std::vector<Term> terms;
  std::vector<CurveSet> curves;
  std::vector<std::string> notes;  // whole sentences: what to know before believing it
  std::string conclusion;          // what was found, whole sentences
  bool operator==(const ResultFile&) const = default;
};

// Any bytes give a result or an error that names the place: not JSON, another schema, a wrong type.
Result<ResultFile> parse_result(std::string_view json);
std::string to_json(const ResultFile& result);

}  // namespace spillway::report
