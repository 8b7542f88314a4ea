// The form of llama-bench (run_tokens() of tune/workload_run.h).
#include "base/assert.h"
#include "tune/run_recorder.h"
#include "tune/workload_run.h"

namespace spillway::tune {
namespace {

// Another place in the text for each seed, so that no run profits from the one before.
std::vector<int32_t> piece_of(std::span<const int32_t> text, size_t n, uint64_t seed) {
  constexpr uint64_t kStride = 131;
  std::vector<int32_t> tokens(n);
  for (size_t i = 0; i < n; ++i) tokens[i] = text[(seed * kStride + i) % text.size()];
  return tokens;
}

class TokenRun {
 public:
  TokenRun(engine::Engine& engine, const RunOptions& options, const sys::Clock& clock, uint64_t most)
      : engine_(engine), options_(options), clock_(clock), recorder_(engine, clock), most_(most) {}

  Result<void> prompt(std::span<const int32_t> tokens) {
    report::Request request{
        .topic = "prompt", .prompt_tokens = static_cast<uint32_t>(tokens.size()), .finish = "length"};
    const engine::SequenceId sequence = engine_.open_sequence();
    const double start = clock_.now_s();
    const auto done = decode(sequence, tokens);
    request.prefill_s = clock_.now_s() - start;
    request.ttft_s = request.prefill_s;
    engine_.close_sequence(sequence);
    return take(std::move(request), done);
  }

  Result<void> single(std::span<const int32_t> tokens) {
    report::Request request{.topic = "tokens", .finish = "length"};
    const engine::SequenceId sequence = engine_.open_sequence();
    Result<void> done;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const double start = clock_.now_s();
      done = decode(sequence, tokens.subspan(i, 1));
      if (!done) break;
      request.itl_ms.push_back((clock_.now_s() - start) * 1e3);
      request.decode_s += request.itl_ms.back() * 1e-3;
      ++request.generated_tokens;
    }
    engine_.close_sequence(sequence);
    return take(std::move(request), done);
  }

  report::Run finish() {
    recorder_.finish(run_);
    run_.seed = options_.seed;
    return std::move(run_);
  }
  bool stopped() const { return !run_.cut_short.empty(); }

 private:
  Result<void> decode(engine::SequenceId sequence, std::span<const int32_t> tokens) {
    const engine::BatchItem item{.sequence = sequence, .tokens = tokens, .want = engine::Want::kLast};
    SW_TRY(engine_.decode({&item, 1}, [](size_t, size_t, std::span<const float>) {}, options_.keep_going));
    recorder_.computed(tokens.size());
    done_ += tokens.size();
    if (options_.progress) options_.progress(done_, most_);
    return {};
  }

  // A prompt that was not computed to its end says nothing; the tokens before a stop do.
  Result<void> take(report::Request request, const Result<void>& done) {
    const bool stopped = !done && done.error().kind == Error::Kind::kCancelled;
    if (!done && !stopped) return done;
    if (stopped) request.finish = run_.cut_short = "interrupted";
    if (!stopped || request.generated_tokens > 0) run_.requests.push_back(std::move(request));
    return {};
  }

  engine::Engine& engine_;
  const RunOptions& options_;
  const sys::Clock& clock_;
  RunRecorder recorder_;
  report::Run run_;
  uint64_t done_ = 0;
  const uint64_t most_;
};

}  // namespace

Result<report::Run> run_tokens(engine::Engine& engine, std::span<const int32_t> text, uint32_t prompt,
                               uint32_t generate, const RunOptions& options) {
  SW_ASSERT(!text.empty());
  const sys::MonotonicClock real_clock;
  TokenRun run(engine, options, options.clock ? *options.clock : real_clock, uint64_t{prompt} + generate);
  if (prompt > 0) SW_TRY(run.prompt(piece_of(text, prompt, options.seed)));
  if (generate > 0 && !run.stopped()) SW_TRY(run.single(piece_of(text, generate, options.seed)));
  return run.finish();
}

}  // namespace spillway::tune
