#include "tune/workload.h"

#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "tune/content_hash.h"

namespace spillway::tune {

uint32_t Workload::users() const {
  uint32_t users = 1;
  for (const Conversation& conversation : conversations) users = std::max(users, conversation.user + 1);
  return users;
}

uint64_t Workload::requests() const {
  uint64_t n = 0;
  for (const Conversation& conversation : conversations)
    for (const Turn& turn : conversation.turns) n += turn.given_answer ? 0 : 1;
  return n;
}

uint64_t Workload::max_tokens() const {
  uint64_t n = 0;
  for (const Conversation& conversation : conversations)
    for (const Turn& turn : conversation.turns) n += turn.given_answer ? 0 : turn.max_tokens;
  return n;
}

Result<uint64_t> Workload::context_needed(const text::Tokenizer& tokenizer) const {
  constexpr uint64_t kMarkup = 32;  // what a chat template adds to a message, as tokens
  std::vector<uint64_t> longest(users());
  for (const Conversation& conversation : conversations) {
    std::string texts = conversation.system;
    uint64_t n = kMarkup;
    for (const Turn& turn : conversation.turns) {
      texts += "\n" + turn.text + "\n" + turn.given_answer.value_or("");
      n += 2 * kMarkup + (turn.given_answer ? 0 : turn.max_tokens);
    }
    auto tokens = tokenizer.encode(texts);
    if (!tokens)
      return std::unexpected(tokens.error().in(fmt::format("conversation '{}'", conversation.topic)));
    longest[conversation.user] = std::max(longest[conversation.user], n + tokens->size());
  }
  uint64_t sum = 0;
  for (const uint64_t n : longest) sum += n;
  return sum;
}

report::Workload Workload::facts() const {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Conversation& conversation : conversations) {
    nlohmann::ordered_json turns = nlohmann::ordered_json::array();
    for (const Turn& turn : conversation.turns)
      turns.push_back({turn.text, turn.given_answer ? nlohmann::ordered_json(*turn.given_answer) : nullptr,
                       turn.max_tokens});
    all.push_back({conversation.user, conversation.system, turns});
  }
  const std::string text = all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return {.name = name,
          .content = content_hash(std::as_bytes(std::span(text))),
          .requests = static_cast<uint32_t>(requests()),
          .users = users()};
}

Result<void> deal_out(Workload& workload, uint32_t users) {
  if (users == 0 || users > limits::kMaxUsers)
    return invalid("{} users: from 1 to {} are possible", users, limits::kMaxUsers);
  if (users > workload.conversations.size())
    return invalid("{} users need {} conversations, and the workload '{}' has {}: at most {} users", users,
                   users, workload.name, workload.conversations.size(), workload.conversations.size());
  for (uint32_t i = 0; i < workload.conversations.size(); ++i) workload.conversations[i].user = i % users;
  return {};
}

void limit_answers(Workload& workload, uint32_t max_tokens) {
  for (Conversation& conversation : workload.conversations)
    for (Turn& turn : conversation.turns) turn.max_tokens = std::min(turn.max_tokens, max_tokens);
}

Halves split(const Workload& workload) {
  if (workload.conversations.size() < 2) return {.calibration = workload, .held_out = workload, .same = true};
  Halves halves;
  halves.calibration.name = workload.name + ", first half";
  halves.held_out.name = workload.name + ", second half";
  for (size_t i = 0; i < workload.conversations.size(); ++i)
    (i % 2 == 0 ? halves.calibration : halves.held_out).conversations.push_back(workload.conversations[i]);
  for (Workload* half : {&halves.calibration, &halves.held_out}) {
    const auto most = static_cast<uint32_t>(half->conversations.size());
    for (uint32_t i = 0; i < most; ++i) half->conversations[i].user = i % std::min(workload.users(), most);
  }
  return halves;
}

}  // namespace spillway::tune
