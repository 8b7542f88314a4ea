// One answer: prompt tokens in, text out piece by piece, with the figures of what was measured.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "sample/sampler.h"
#include "text/tokenizer.h"

namespace spillway::cli {

enum class Finish {
  kEnd,          // the model ended its answer
  kLength,       // -n tokens were made
  kStopString,   // a stop string appeared
  kContextFull,  // no room for another token
  kInterrupted,  // Ctrl-C
};
const char* finish_name(Finish finish);  // "stop", "length", ...

struct GenerateOptions {
  int64_t max_tokens = -1;  // -1: until the end of text
  bool ignore_eos = false;  // end-of-generation tokens are banned
  bool show_special = false;
  std::vector<std::string> stops;
};

// All measured with the wall clock.
struct Figures {
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;  // of the prompt, already in the KV cache
  uint32_t generated_tokens = 0;
  double prefill_seconds = 0;      // until the prompt's logits
  double first_token_seconds = 0;  // until the first token was chosen
  double decode_seconds = 0;       // all tokens after the first
};
std::string format_figures(const Figures& figures);

struct Answer {
  std::string text;
  Finish finish = Finish::kEnd;
  Figures figures;
};

// Appends `prompt` (its part beyond what `sequence` already holds, which must be the prompt's beginning) and
// generates. `emit` gets each piece as it is made; false from it stops like Ctrl-C. `history` receives every
// token that the sequence holds afterwards.
Result<Answer> generate(engine::Engine& engine, engine::SequenceId sequence, const text::Tokenizer& tokenizer,
                        std::span<const int32_t> prompt, const sample::SamplerParams& sampling,
                        const GenerateOptions& options, std::vector<int32_t>& history,
                        const std::function<bool(const std::string&)>& emit);

}  // namespace spillway::cli
