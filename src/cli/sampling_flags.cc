#include "cli/sampling_flags.h"

#include <charconv>
#include <cmath>
#include <random>

namespace spillway::cli {
namespace {

// "ID(+|-)NUMBER" as llama.cpp's --logit-bias.
Result<std::pair<int32_t, float>> parse_bias(const std::string& text) {
  const size_t sign = text.find_first_of("+-", 1);
  int32_t id = 0;
  const char* id_end = text.data() + std::min(sign, text.size());
  const auto [end_of_id, wrong] = std::from_chars(text.data(), id_end, id);
  if (sign == std::string::npos || wrong != std::errc() || end_of_id != id_end)
    return invalid("--logit-bias '{}': needed is TOKEN_ID+NUMBER or TOKEN_ID-NUMBER, for example 15043-inf",
                   text);
  char* end = nullptr;
  const float value = std::strtof(text.c_str() + sign, &end);
  if (*end != '\0' || std::isnan(value))
    return invalid("--logit-bias '{}': '{}' is not a number", text, text.substr(sign));
  return std::pair(id, value);
}

}  // namespace

void SamplingFlags::add_to(CLI::App& command) {
  const char* group = "Sampling (given, else the model file's, else the default)";
  command.add_option("--temp", params.temperature, "temperature; 0: always the most likely token")
      ->capture_default_str()
      ->group(group);
  command.add_option("--top-k", params.top_k, "keep the K most likely; 0: all")
      ->capture_default_str()
      ->group(group);
  command.add_option("--top-p", params.top_p, "keep the most likely up to this probability; 1: all")
      ->capture_default_str()
      ->group(group);
  command.add_option("--min-p", params.min_p, "drop below this times the most likely; 0: none")
      ->capture_default_str()
      ->group(group);
  command.add_option("--repeat-penalty", params.repeat_penalty, "penalty on recent tokens; 1: off")
      ->capture_default_str()
      ->group(group);
  command.add_option("--presence-penalty", params.presence_penalty, "subtracted from recent tokens")
      ->capture_default_str()
      ->group(group);
  command.add_option("--frequency-penalty", params.frequency_penalty, "subtracted per occurrence")
      ->capture_default_str()
      ->group(group);
  command.add_option("--repeat-last-n", params.repeat_last_n, "how many tokens are recent; -1: all")
      ->capture_default_str()
      ->group(group);
  command.add_option("--logit-bias", logit_bias, "TOKEN_ID+BIAS or TOKEN_ID-BIAS; may be repeated")
      ->group(group);
  command.add_option("-s,--seed", seed, "seed; the same seed gives the same text; -1: random")
      ->check(CLI::Range(int64_t{-1}, INT64_MAX - 1))  // CLI11 reads what is larger as INT64_MAX
      ->capture_default_str()
      ->group(group);
}

Result<sample::SamplerParams> SamplingFlags::resolve(const CLI::App& command, const gguf::Metadata& metadata,
                                                     uint32_t vocabulary) const {
  sample::SamplerParams resolved = params;
  const auto from_file = [&](const char* flag, const char* key, float& value) -> Result<void> {
    if (command.count(flag) > 0) return {};
    SW_ASSIGN(const auto found, metadata.find_float(fmt::format("general.sampling.{}", key)));
    if (found) value = static_cast<float>(*found);
    return {};
  };
  SW_TRY(from_file("--temp", "temp", resolved.temperature));
  SW_TRY(from_file("--top-p", "top_p", resolved.top_p));
  SW_TRY(from_file("--min-p", "min_p", resolved.min_p));
  SW_TRY(from_file("--repeat-penalty", "penalty_repeat", resolved.repeat_penalty));
  if (command.count("--top-k") == 0) {
    SW_ASSIGN(const auto top_k, metadata.find_uint("general.sampling.top_k", INT32_MAX));
    if (top_k) resolved.top_k = static_cast<int32_t>(*top_k);
  }
  for (const std::string& text : logit_bias) {
    SW_ASSIGN(auto bias, parse_bias(text));
    resolved.logit_bias.push_back(bias);
  }
  resolved.seed = seed >= 0 ? static_cast<uint64_t>(seed) : std::random_device{}() & 0x7fffffff;
  SW_TRY(sample::validate(resolved, vocabulary));
  return resolved;
}

}  // namespace spillway::cli
