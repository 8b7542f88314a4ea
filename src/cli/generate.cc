#include "cli/generate.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/assert.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"
#include "text/stop_matcher.h"
#include "text/stream_decoder.h"

namespace spillway::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double per_second(uint32_t count, double seconds) { return seconds > 0 ? count / seconds : 0; }

}  // namespace

const char* finish_name(Finish finish) {
  switch (finish) {
    case Finish::kEnd:
      return "stop";
    case Finish::kLength:
      return "length";
    case Finish::kStopString:
      return "stop_string";
    case Finish::kContextFull:
      return "context_full";
    case Finish::kInterrupted:
      return "interrupted";
  }
  return "";
}

std::string format_figures(const Figures& f) {
  const uint32_t computed = f.prompt_tokens - f.cached_tokens;
  const std::string cached = f.cached_tokens > 0 ? fmt::format(" ({} cached)", f.cached_tokens) : "";
  const uint32_t decoded =
      f.generated_tokens > 0 ? f.generated_tokens - 1 : 0;  // the first comes from the prefill
  if (f.prefill_seconds == 0)
    return fmt::format("stopped within the prompt of {} tokens{}: nothing was measured", f.prompt_tokens,
                       cached);
  std::string text = fmt::format("measured: prompt {} tokens{} at {:.1f} tok/s", f.prompt_tokens, cached,
                                 per_second(computed, f.prefill_seconds));
  if (f.generated_tokens > 0) text += fmt::format(", first token after {:.3f} s", f.first_token_seconds);
  text += fmt::format("; generated {} tokens", f.generated_tokens);
  if (decoded > 0) text += fmt::format(" at {:.1f} tok/s", per_second(decoded, f.decode_seconds));
  return text;
}

Result<Answer> generate(engine::Engine& engine, engine::SequenceId sequence, const text::Tokenizer& tokenizer,
                        std::span<const int32_t> prompt, const sample::SamplerParams& sampling,
                        const GenerateOptions& options, std::vector<int32_t>& history,
                        const std::function<bool(const std::string&)>& emit) {
  const text::Vocabulary& vocabulary = tokenizer.vocabulary();
  SW_ASSERT(engine.length(sequence) < prompt.size());
  Answer answer;
  answer.figures.prompt_tokens = static_cast<uint32_t>(prompt.size());
  answer.figures.cached_tokens = engine.length(sequence);
  if (prompt.size() > engine.context())
    return fail(Error::Kind::kNoMemory,
                "the prompt has {} tokens and the context is {}: shorten it, or raise -c", prompt.size(),
                engine.context());

  sample::SamplerParams params = sampling;
  if (options.ignore_eos)
    for (const uint32_t id : vocabulary.end_of_generation()) params.logit_bias.emplace_back(id, -INFINITY);
  sample::Sampler sampler(std::move(params), vocabulary.size());
  for (const int32_t token : prompt) sampler.accept(token);
  text::StreamDecoder decoder(tokenizer, {.skip_special = !options.show_special});
  SW_ASSIGN(text::StopMatcher stops, text::StopMatcher::create(options.stops));
  history.assign(prompt.begin(), prompt.begin() + engine.length(sequence));

  bool closed = false;  // nobody reads any more
  const auto give = [&](const std::string& piece) {
    if (piece.empty()) return;
    answer.text += piece;
    if (!closed && !emit(piece)) closed = true;
  };
  const auto finish = [&](Finish reason) {
    if (!stops.stopped()) {
      const auto last = stops.push(decoder.finish());
      give(last.text + (last.stop ? "" : stops.finish()));
    }
    answer.finish = reason;
    return answer;
  };

  const auto start = Clock::now();
  auto first_token = start;
  std::span<const int32_t> next = prompt.subspan(engine.length(sequence));
  int32_t token = 0;
  ProgressBar bar("reading the prompt");
  for (;;) {
    Result<int32_t> chosen = 0;
    const engine::BatchItem item{.sequence = sequence, .tokens = next, .want = engine::Want::kLast};
    const bool is_prefill = answer.figures.generated_tokens == 0;
    const auto decoded = engine.decode(
        {&item, 1},
        [&](size_t, size_t, std::span<const float> logits) {
          if (is_prefill) answer.figures.prefill_seconds = seconds_since(start);
          chosen = sampler.sample(logits);
        },
        [&] {
          if (is_prefill) bar.update(engine.length(sequence), prompt.size());
          return !interrupted();
        });
    bar.clear();
    if (!decoded && decoded.error().kind == Error::Kind::kCancelled) return finish(Finish::kInterrupted);
    SW_TRY(decoded);
    history.insert(history.end(), next.begin(), next.end());
    if (options.max_tokens == 0) return finish(Finish::kLength);
    SW_TRY(chosen);
    token = *chosen;
    ++answer.figures.generated_tokens;
    if (is_prefill) {
      first_token = Clock::now();
      answer.figures.first_token_seconds = seconds_since(start);
    } else {
      answer.figures.decode_seconds = seconds_since(first_token);
    }

    if (vocabulary.is_end_of_generation(token)) return finish(Finish::kEnd);
    const auto piece = stops.push(decoder.push(token));
    give(piece.text);
    if (piece.stop) return finish(Finish::kStopString);
    if (options.max_tokens >= 0 && answer.figures.generated_tokens >= options.max_tokens)
      return finish(Finish::kLength);
    if (interrupted() || closed) return finish(Finish::kInterrupted);
    if (engine.length(sequence) >= engine.context()) return finish(Finish::kContextFull);
    next = {&token, 1};
  }
}

}  // namespace spillway::cli
