// What `verify` found, for people, as JSON and as a result file.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/result.h"
#include "tune/quality.h"

namespace spillway::cli {

// The answers of both, token by token.
struct AnswerDifference {
  uint64_t token = 0;            // index of the first that differs
  std::string reference, other;  // their texts; empty: the answer has ended
};

struct Compared {
  std::string name;
  bool must_be_equal = false;
  std::string skipped;  // why it was not compared
  tune::Quality quality;
  uint64_t answer_tokens = 0;
  std::optional<AnswerDifference> answer;
  std::vector<std::string> shortfalls;
};

struct Verification {
  std::string text;  // of what: "the built-in text"
  uint64_t tokens = 0;
  std::vector<Compared> compared;
  bool interrupted = false;

  bool passed() const;
};

std::string verification_text(const Verification& found, const tune::QualityLimits& limits);
nlohmann::ordered_json verification_json(const Verification& found, const tune::QualityLimits& limits);
// Its terms, notes and conclusion.
void add_to_result(const Verification& found, report::ResultFile& result);

}  // namespace spillway::cli
