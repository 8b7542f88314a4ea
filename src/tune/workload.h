// What is run to measure: conversations as people have them. Some are built in, others come from a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/result.h"
#include "text/tokenizer.h"

namespace spillway::tune {

struct Turn {
  std::string text;                         // the user's
  std::optional<std::string> given_answer;  // taken into the conversation as it is; else the model answers
  uint32_t max_tokens = 0;                  // of its answer
  bool operator==(const Turn&) const = default;
};

struct Conversation {
  std::string topic;
  std::string system;  // may be empty
  std::vector<Turn> turns;
  uint32_t user = 0;  // whose it is: a user has one after the other, users talk at once
  bool operator==(const Conversation&) const = default;
};

struct Workload {
  std::string name;
  std::vector<Conversation> conversations;
  std::vector<std::string> unused;  // what the file's lines hold without effect: "'temperature' (line 2)"

  uint32_t users() const;       // the highest number and one
  uint64_t requests() const;    // answers that the model gives
  uint64_t max_tokens() const;  // of all of them
  // Positions of a KV cache that hold the conversations that go on at once: of each user the longest one,
  // with answers of full length and a chat template's words around each message, of which there are few.
  Result<uint64_t> context_needed(const text::Tokenizer& tokenizer) const;
  report::Workload facts() const;  // `content` is of texts, limits and users, not of the name
  bool operator==(const Workload&) const = default;
};

// chat: follow-up questions; code: edits of a program in several steps; document: one long text and short
// questions about it; long: few long answers; users: short conversations of four users at once.
std::vector<std::string> workload_names();
Result<Workload> builtin_workload(std::string_view name);
// chat, code and document in one: conversations in turn, so that both halves (split) have some of each.
Workload builtin_topics();

// One conversation a line, as requests to an OpenAI-style server:
//
//   {"messages": [{"role": "system", "content": "..."}, {"role": "user", "content": "..."}], "max_tokens":
//   200}
//
// A user's message is answered by the model, unless an assistant's message follows it: that one is taken as
// the answer. So a line with several user messages is a conversation with follow-ups. `content` is a text or
// a list of {"type": "text", "text": ...}; "max_tokens" (or "max_completion_tokens") holds for each answer,
// without it kDefaultMaxTokens; "topic" is a name for tables. What else a request holds has no effect, and is
// named in `unused`, where it comes first; a role or part that can't be run is an error. Empty lines are
// passed over. Errors name up to 5 lines by number, each with its reason: a workload is never run in part.
inline constexpr uint32_t kDefaultMaxTokens = 128;
Result<Workload> parse_workload(std::string name, std::string_view jsonl);
// A sentence on what is unused; empty where nothing is.
std::string words_for_unused(const Workload& workload);

// The conversations dealt out to `users`, in turn. Error: fewer conversations than users.
Result<void> deal_out(Workload& workload, uint32_t users);
// At most so many tokens in each answer.
void limit_answers(Workload& workload, uint32_t max_tokens);

// Every second conversation to try things on, and the others to judge by; users keep their number where
// enough are left. A single conversation can't be split: it is in both, and `same` says so.
struct Halves {
  Workload calibration, held_out;
  bool same = false;
};
Halves split(const Workload& workload);

}  // namespace spillway::tune
