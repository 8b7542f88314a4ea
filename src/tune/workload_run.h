// Runs a workload on an engine, as a server with its users would: each user asks when the answer before is
// there, and what several users want shares the steps, prompts in pieces beside the others' single tokens.
#pragma once

#include <functional>

#include "base/result.h"
#include "engine/engine.h"
#include "report/result.h"
#include "sys/clock.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "tune/workload.h"

namespace spillway::tune {

struct RunOptions {
  uint64_t seed = 0;        // recorded; answers are greedy, so that they are the same in every run
  bool ignore_eos = false;  // answers have their full length, whatever the model would say
  // The engine's clock where its device is simulated; null: the real one.
  const sys::Clock* clock = nullptr;
  // Asked between micro-batches; false ends the run, which keeps what was measured and says so in
  // `cut_short`.
  std::function<bool()> keep_going;
  // Tokens computed and generated so far (a token of an answer is both), and how many there will be at most,
  // as far as is known.
  std::function<void(uint64_t done, uint64_t most)> progress;
};

// One pass. `chat_template` null: the texts are continued as they are. Requests are in the order in which
// they ended; a request's finish is "stop", "length", "context" (no room for another token) or "interrupted".
// Errors: a prompt that does not fit in the context, a template that refuses a message, a device that is
// lost; each names the conversation. The engine's sequences are closed in any case.
Result<report::Run> run_workload(engine::Engine& engine, const text::Tokenizer& tokenizer,
                                 const text::ChatTemplate* chat_template, const Workload& workload,
                                 const RunOptions& options);

// One pass over plain tokens, in the manner of llama-bench: a prompt of `prompt` tokens, and in an empty
// sequence `generate` single ones, each the text's next whatever the model would say. Requests with the
// topics "prompt" and "tokens"; 0 leaves one out. `text` is repeated where it is too short, and begins
// elsewhere for each `seed`. Requires: a text that is not empty.
Result<report::Run> run_tokens(engine::Engine& engine, std::span<const int32_t> text, uint32_t prompt,
                               uint32_t generate, const RunOptions& options);

}  // namespace spillway::tune
