#include "tune/workload_run.h"

#include <cmath>

#include "engine/prefix.h"
#include "sample/sampler.h"
#include "text/chat_prompt.h"
#include "text/stream_decoder.h"
#include "tune/run_recorder.h"

namespace spillway::tune {
namespace {

// Templates that print the date get this one: the same tokens every day.
constexpr auto kNow =
    std::chrono::local_seconds(std::chrono::sys_days(std::chrono::January / 1 / 2026).time_since_epoch());

// The text side of a run, the same for all users.
struct Texts {
  const text::Tokenizer& tokenizer;
  const text::ChatTemplate* chat_template;
  sample::SamplerParams sampling;

  Result<std::vector<int32_t>> prompt(const Conversation& conversation,
                                      const std::vector<std::string>& answers) const;
  std::string shown(const std::string& answer) const {
    return chat_template ? text::without_reasoning(answer, chat_template->capabilities().think_tags) : answer;
  }
};

// The tokens of the conversation up to the turn after `answers`.
Result<std::vector<int32_t>> Texts::prompt(const Conversation& conversation,
                                           const std::vector<std::string>& answers) const {
  if (chat_template == nullptr) {
    std::string text = conversation.system.empty() ? "" : conversation.system + "\n\n";
    for (size_t i = 0; i <= answers.size(); ++i)
      text += conversation.turns[i].text + "\n" + (i < answers.size() ? answers[i] + "\n" : "");
    SW_ASSIGN(auto tokens, tokenizer.encode(text, {.add_special = true}));
    if (tokens.empty()) return invalid("the model's tokenizer makes no tokens of the text");
    return tokens;
  }
  text::Json messages = text::Json::array();
  if (!conversation.system.empty())
    messages.push_back({{"role", "system"}, {"content", conversation.system}});
  for (size_t i = 0; i <= answers.size(); ++i) {
    messages.push_back({{"role", "user"}, {"content", conversation.turns[i].text}});
    if (i < answers.size()) messages.push_back({{"role", "assistant"}, {"content", answers[i]}});
  }
  const text::RenderOptions render{.now = kNow, .system_rule = text::SystemRule::kFoldIntoUser};
  SW_ASSIGN(text::ChatPrompt made, text::make_chat_prompt(*chat_template, tokenizer, messages, render));
  return std::move(made.tokens);
}

// One user: goes through conversations, turn by turn, token by token.
class User {
 public:
  User(engine::Engine& engine, const Texts& texts, const sys::Clock& clock, uint32_t number)
      : engine_(engine), texts_(texts), clock_(clock), number_(number) {}
  ~User() { close(); }
  User(const User&) = delete;
  User& operator=(const User&) = delete;

  void add(const Conversation& conversation) { conversations_.push_back(&conversation); }

  // Starts the next request where none is under way. False: nothing is left to ask.
  Result<bool> ask();
  bool is_decoding() const { return request_.generated_tokens > 0; }
  // What the next step has to compute, at most `most` tokens.
  engine::BatchItem item(size_t most) const;
  // The logits of the item's last token, if it was the prompt's last or a token of the answer.
  Result<void> take(std::span<const float> logits);
  // After the step that computed `item`, and took `seconds`.
  void computed(const engine::BatchItem& item, double seconds);
  // Whether the request has ended; it is then handed over.
  std::optional<report::Request> ended();
  void interrupt();
  bool has_request() const { return asked_; }
  std::string place() const;

 private:
  void close();
  const Conversation& conversation() const { return *conversations_[next_]; }
  const Turn& turn() const { return conversation().turns[answers_.size()]; }
  void next_turn();

  engine::Engine& engine_;
  const Texts& texts_;
  const sys::Clock& clock_;
  const uint32_t number_;
  std::vector<const Conversation*> conversations_;
  size_t next_ = 0;
  std::vector<std::string> answers_;  // of the conversation so far
  std::optional<engine::SequenceId> sequence_;
  std::vector<int32_t> history_;  // what the sequence holds

  bool asked_ = false;  // a request is under way
  report::Request request_;
  std::vector<int32_t> pending_;  // to be computed: the rest of the prompt, or the last token
  std::optional<sample::Sampler> sampler_;
  std::vector<int32_t> answer_;
  double asked_s_ = 0, last_token_s_ = 0;
};

void User::close() {
  if (sequence_) engine_.close_sequence(*sequence_);
  sequence_.reset();
  history_.clear();
  answers_.clear();
}

std::string User::place() const {
  return fmt::format("conversation '{}', message {}", conversation().topic, answers_.size() + 1);
}

Result<bool> User::ask() {
  if (asked_) return true;
  for (; next_ < conversations_.size(); ++next_, close()) {
    const std::vector<Turn>& turns = conversation().turns;
    while (answers_.size() < turns.size() && turn().given_answer) answers_.push_back(*turn().given_answer);
    if (answers_.size() < turns.size()) break;
  }
  if (next_ == conversations_.size()) return false;
  if (!sequence_) sequence_ = engine_.open_sequence();
  asked_s_ = clock_.now_s();
  auto prompt = texts_.prompt(conversation(), answers_);
  if (!prompt) return std::unexpected(prompt.error().in(place()));
  if (prompt->size() > engine_.context())
    return fail(Error::Kind::kNoMemory, "{}: its prompt has {} tokens and the context is {}; raise -c",
                place(), prompt->size(), engine_.context());
  const uint32_t kept = engine::keep_common_prefix(engine_, *sequence_, history_, *prompt);
  request_ = {.user = number_,
              .topic = conversation().topic,
              .turn = static_cast<uint32_t>(answers_.size()),
              .prompt_tokens = static_cast<uint32_t>(prompt->size()),
              .cached_tokens = kept};
  sampler_.emplace(texts_.sampling, texts_.tokenizer.vocabulary().size());
  pending_.assign(prompt->begin() + kept, prompt->end());
  answer_.clear();
  asked_ = true;
  return true;
}

engine::BatchItem User::item(size_t most) const {
  const size_t n = std::min(most, pending_.size());
  return {.sequence = *sequence_,
          .tokens = std::span(pending_).first(n),
          .want = n == pending_.size() ? engine::Want::kLast : engine::Want::kNothing};
}

Result<void> User::take(std::span<const float> logits) {
  SW_ASSIGN(const int32_t token, sampler_->sample(logits));
  const double now = clock_.now_s();
  answer_.push_back(token);
  if (answer_.size() == 1)
    request_.ttft_s = now - asked_s_;
  else
    request_.itl_ms.push_back((now - last_token_s_) * 1e3);
  last_token_s_ = now;
  return {};
}

void User::computed(const engine::BatchItem& item, double seconds) {
  history_.insert(history_.end(), item.tokens.begin(), item.tokens.end());
  if (!is_decoding()) request_.prefill_s += seconds;
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(item.tokens.size()));
  request_.generated_tokens = static_cast<uint32_t>(answer_.size());
  if (pending_.empty()) pending_ = {answer_.back()};
}

std::optional<report::Request> User::ended() {
  if (!asked_ || !is_decoding()) return std::nullopt;
  if (texts_.tokenizer.vocabulary().is_end_of_generation(answer_.back()))
    request_.finish = "stop";
  else if (answer_.size() >= turn().max_tokens)
    request_.finish = "length";
  else if (history_.size() >= engine_.context())
    request_.finish = "context";
  else if (request_.finish.empty())
    return std::nullopt;
  for (const double ms : request_.itl_ms) request_.decode_s += ms * 1e-3;
  next_turn();
  return std::move(request_);
}

void User::interrupt() { request_.finish = "interrupted"; }

void User::next_turn() {
  text::StreamDecoder decoder(texts_.tokenizer);
  std::string answer;
  for (const int32_t token : answer_) answer += decoder.push(token);
  answers_.push_back(texts_.shown(answer + decoder.finish()));
  asked_ = false;
}

// All users' work, a step at a time.
class WorkloadRun {
 public:
  WorkloadRun(engine::Engine& engine, const Texts& texts, const Workload& workload, const RunOptions& options,
              const sys::Clock& clock)
      : engine_(engine),
        options_(options),
        clock_(clock),
        recorder_(engine, clock),
        most_(workload.max_tokens()) {
    for (uint32_t i = 0; i < workload.users(); ++i)
      users_.push_back(std::make_unique<User>(engine, texts, clock, i));
    for (const Conversation& conversation : workload.conversations)
      users_[conversation.user]->add(conversation);
  }

  Result<report::Run> run() {
    report::Run run{.seed = options_.seed};
    for (bool going = true; going;) {
      SW_ASSIGN(going, step());
      if (stopped_) {
        run.cut_short = "interrupted";
        going = false;
      }
      collect(run);
    }
    recorder_.finish(run);
    return run;
  }

 private:
  // False: nobody wants anything any more.
  Result<bool> step() {
    std::vector<User*> decoding, reading;
    for (const auto& user : users_) {
      SW_ASSIGN(const bool wants, user->ask());
      if (wants) (user->is_decoding() ? decoding : reading).push_back(user.get());
    }
    if (decoding.empty() && reading.empty()) return false;
    // Answers that are under way first, then prompts with what is left of a micro-batch.
    size_t room = engine_.memory().ubatch;
    std::vector<User*> users;
    std::vector<engine::BatchItem> items;
    for (const auto& group : {decoding, reading})
      for (User* user : group) {
        if (room == 0) break;
        items.push_back(user->item(room));
        room -= items.back().tokens.size();
        users.push_back(user);
      }
    return compute(users, items);
  }

  Result<bool> compute(const std::vector<User*>& users, const std::vector<engine::BatchItem>& items) {
    Result<void> taken;
    const double start = clock_.now_s();
    const auto done = engine_.decode(
        items,
        [&](size_t item, size_t, std::span<const float> logits) {
          if (taken) taken = users[item]->take(logits);
        },
        options_.keep_going);
    if (!done && done.error().kind == Error::Kind::kCancelled) {
      stopped_ = true;
      return true;
    }
    if (!done) return std::unexpected(done.error().in(users[0]->place()));
    SW_TRY(taken);
    const double seconds = clock_.now_s() - start;
    uint64_t tokens = 0;
    for (size_t i = 0; i < users.size(); ++i) {
      users[i]->computed(items[i], seconds);
      tokens += items[i].tokens.size();
      generated_ += users[i]->is_decoding() ? 1 : 0;
    }
    recorder_.computed(tokens);
    if (options_.progress) options_.progress(generated_, most_);
    return true;
  }

  // Requests that have ended; all that have begun to answer where the run was stopped.
  void collect(report::Run& run) {
    for (const auto& user : users_) {
      if (stopped_) user->interrupt();
      if (auto request = user->ended()) run.requests.push_back(std::move(*request));
    }
  }

  engine::Engine& engine_;
  const RunOptions& options_;
  const sys::Clock& clock_;
  RunRecorder recorder_;
  std::vector<std::unique_ptr<User>> users_;
  uint64_t generated_ = 0;
  const uint64_t most_;
  bool stopped_ = false;
};

}  // namespace

Result<report::Run> run_workload(engine::Engine& engine, const text::Tokenizer& tokenizer,
                                 const text::ChatTemplate* chat_template, const Workload& workload,
                                 const RunOptions& options) {
  Texts texts{tokenizer, chat_template, {.temperature = 0, .seed = options.seed}};
  if (options.ignore_eos)
    for (const uint32_t id : tokenizer.vocabulary().end_of_generation())
      texts.sampling.logit_bias.emplace_back(id, -INFINITY);
  const sys::MonotonicClock real_clock;
  return WorkloadRun(engine, texts, workload, options, options.clock ? *options.clock : real_clock).run();
}

}  // namespace spillway::tune
