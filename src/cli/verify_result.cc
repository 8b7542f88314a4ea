#include "cli/verify_result.h"

#include "cli/common.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;
using tune::Quality;
using tune::WithError;

constexpr double kSigmas = 1.96;  // of a 95 % interval

std::string plus_minus(const WithError& e) { return fmt::format("{:.5g} +- {:.2g}", e.value, e.error); }

std::string quality_words(const Quality& q) {
  return fmt::format(
      "  divergence: mean {} nats, most {:.3g} at token {}\n"
      "  perplexity: {}, the reference's {}; ratio {}\n"
      "  same likeliest token: {:.2f} % of {}\n",
      plus_minus(q.mean_kl()), q.max_kl(), q.max_kl_row(), plus_minus(q.other_perplexity()),
      plus_minus(q.reference_perplexity()), plus_minus(q.perplexity_ratio()), 100 * q.top1(), q.rows());
}

std::string answer_words(const Compared& c) {
  if (c.answer_tokens == 0) return {};
  if (!c.answer) return fmt::format("  answer: the same {} tokens\n", c.answer_tokens);
  const auto shown = [](const std::string& text) {
    return text.empty() ? "its end" : "'" + printable(text) + "'";
  };
  return fmt::format("  answer: differs from token {} of {} on: {} instead of {}\n", c.answer->token,
                     c.answer_tokens, shown(c.answer->other), shown(c.answer->reference));
}

std::string compared_words(const Compared& c) {
  if (!c.skipped.empty()) return fmt::format("skipped    {}: {}\n", printable(c.name), printable(c.skipped));
  const bool identical = c.quality.first_difference() == std::nullopt;
  std::string words = fmt::format("{}  {}{}\n",
                                  !c.shortfalls.empty() ? "FAILS    "
                                  : identical           ? "identical"
                                                        : "within   ",
                                  printable(c.name), c.must_be_equal ? " (every bit is promised)" : "");
  if (identical)
    words += fmt::format("  all {} rows of logits are equal bit for bit\n", c.quality.rows());
  else
    words += quality_words(c.quality);
  words += answer_words(c);
  for (const std::string& what : c.shortfalls) words += fmt::format("  falls short: {}\n", printable(what));
  return words;
}

Json estimate_json(const WithError& e) { return {{"value", e.value}, {"standard_error", e.error}}; }

Json compared_json(const Compared& c) {
  Json json{{"name", c.name}, {"must_be_equal", c.must_be_equal}};
  if (!c.skipped.empty()) {
    json["result"] = "skipped";
    json["why"] = c.skipped;
    return json;
  }
  const Quality& q = c.quality;
  json["result"] = !c.shortfalls.empty() ? "fails" : !q.first_difference() ? "identical" : "within limits";
  json["rows"] = q.rows();
  json["identical_rows"] = q.identical_rows();
  if (const auto first = q.first_difference()) json["first_different_row"] = *first;
  json["not_finite_rows"] = q.bad_rows();
  json["mean_kl"] = estimate_json(q.mean_kl());
  json["max_kl"] = {{"value", q.max_kl()}, {"token", q.max_kl_row()}};
  json["top1"] = q.top1();
  json["perplexity"] = estimate_json(q.other_perplexity());
  json["reference_perplexity"] = estimate_json(q.reference_perplexity());
  json["perplexity_ratio"] = estimate_json(q.perplexity_ratio());
  json["answer_tokens"] = c.answer_tokens;
  if (c.answer)
    json["answer_differs"] = {
        {"token", c.answer->token}, {"reference", c.answer->reference}, {"other", c.answer->other}};
  json["shortfalls"] = c.shortfalls;
  return json;
}

std::string conclusion(const Verification& found) {
  size_t failed = 0, identical = 0, skipped = 0;
  for (const Compared& c : found.compared) {
    failed += !c.shortfalls.empty();
    skipped += !c.skipped.empty();
    identical += c.skipped.empty() && !c.quality.first_difference();
  }
  std::string words =
      fmt::format("{} of {} comparisons keep to the limits; {} of them are identical to the last bit",
                  found.compared.size() - failed - skipped, found.compared.size(), identical);
  if (skipped > 0) words += fmt::format("; {} skipped", skipped);
  if (found.interrupted) words += "; stopped before the end";
  return words + ".";
}

}  // namespace

bool Verification::passed() const {
  return std::ranges::all_of(compared, [](const Compared& c) { return c.shortfalls.empty(); });
}

std::string verification_text(const Verification& found, const tune::QualityLimits& limits) {
  std::string words = fmt::format("reference: the CPU alone, KV cache f16; {} tokens of {}; all measured\n",
                                  found.tokens, printable(found.text));
  for (const Compared& c : found.compared) words += compared_words(c);
  return words +
         fmt::format(
             "{} Limits: mean divergence {:.4g}, same likeliest token {:.4g}, perplexity ratio {:.4g}.\n",
             conclusion(found), limits.max_kl, limits.min_top1, limits.max_perplexity_ratio);
}

Json verification_json(const Verification& found, const tune::QualityLimits& limits) {
  Json list = Json::array();
  for (const Compared& c : found.compared) list.push_back(compared_json(c));
  return {{"schema", 1},
          {"label", "measured"},
          {"text", found.text},
          {"tokens", found.tokens},
          {"limits",
           {{"max_kl", limits.max_kl},
            {"min_top1", limits.min_top1},
            {"max_ppl_ratio", limits.max_perplexity_ratio}}},
          {"compared", list},
          {"interrupted", found.interrupted},
          {"passed", found.passed()}};
}

void add_to_result(const Verification& found, report::ResultFile& result) {
  for (const Compared& c : found.compared) {
    if (!c.skipped.empty()) {
      result.notes.push_back(fmt::format("{} was skipped: {}.", c.name, c.skipped));
      continue;
    }
    const auto add = [&](const char* what, const char* unit, double value, std::optional<double> error) {
      report::Term term{.name = fmt::format("{}: {}", c.name, what), .unit = unit, .value = value};
      if (error) term.low = value - kSigmas * *error, term.high = value + kSigmas * *error;
      result.terms.push_back(std::move(term));
    };
    const auto add_estimate = [&](const char* what, const char* unit, const WithError& e) {
      add(what, unit, e.value, e.error);
    };
    const Quality& q = c.quality;
    add("rows that differ", "rows", static_cast<double>(q.rows() - q.identical_rows()), {});
    add_estimate("mean divergence", "nats", q.mean_kl());
    add("largest divergence", "nats", q.max_kl(), {});
    add("same likeliest token", "share", q.top1(), {});
    add_estimate("perplexity", "", q.other_perplexity());
    add_estimate("perplexity of the reference", "", q.reference_perplexity());
    add_estimate("perplexity ratio", "", q.perplexity_ratio());
    if (c.answer_tokens > 0) add("answer", "tokens", static_cast<double>(c.answer_tokens), {});
    if (c.answer)
      add("first different token of the answer", "token", static_cast<double>(c.answer->token), {});
    result.notes.push_back(fmt::format("{}: {}{}.", c.name,
                                       c.must_be_equal ? "every bit is promised" : "held to the limits",
                                       c.answer || c.answer_tokens == 0 ? "" : "; the answers are the same"));
    for (const std::string& what : c.shortfalls)
      result.notes.push_back(fmt::format("{} falls short: {}.", c.name, what));
  }
  result.conclusion = conclusion(found);
}

}  // namespace spillway::cli
