// Reading a workload's lines (tune/workload.h says what they are).
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/limits.h"
#include "tune/workload.h"

namespace spillway::tune {
namespace {

using Json = nlohmann::ordered_json;

// For messages. Lists and objects are not written out, since one that is nested a million deep would take as
// deep a stack.
std::string shown(const Json& json) {
  constexpr size_t kMost = 40;
  if (json.is_structured()) return json.is_array() ? "a list" : "an object";
  if (json.is_null()) return "nothing";
  const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

// Null where it isn't there.
const Json& member(const Json& object, const char* key) {
  static const Json kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

Result<std::string> content_of(const Json& message) {
  const Json& content = member(message, "content");
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return invalid("content: a text is needed, found {}", shown(content));
  std::string text;
  for (const Json& part : content) {
    if (!part.is_object() || member(part, "type") != "text" || !member(part, "text").is_string())
      return invalid("content: only parts of type 'text' can be run, found {}", shown(part));
    text += part["text"].get<std::string>();
  }
  return text;
}

Result<uint32_t> max_tokens_of(const Json& line) {
  for (const char* key : {"max_completion_tokens", "max_tokens"}) {
    const Json& value = member(line, key);
    if (value.is_null()) continue;
    if (!value.is_number_unsigned() || value.get<uint64_t>() < 1 ||
        value.get<uint64_t>() > limits::kMaxContext)
      return invalid("{}: a whole number from 1 to {} is needed, found {}", key, limits::kMaxContext,
                     shown(value));
    return value.get<uint32_t>();
  }
  return kDefaultMaxTokens;
}

// Keys that nothing here looks at, with the line that has them first.
class UnusedKeys {
 public:
  void look_at(const Json& object, std::span<const std::string_view> used, std::string_view place,
               size_t line) {
    for (const auto& [key, value] : object.items()) {
      if (std::ranges::find(used, key) != used.end()) continue;
      std::string name = fmt::format("'{}{}'", place, shown_key(key));
      if (keys_.size() < kMost && std::ranges::find(keys_, name) == keys_.end()) {
        words_.push_back(fmt::format("{} (line {})", name, line));
        keys_.push_back(std::move(name));
      }
    }
  }
  std::vector<std::string> words() && { return std::move(words_); }

 private:
  static constexpr size_t kMost = 20;
  static std::string shown_key(const std::string& key) {
    constexpr size_t kMostBytes = 40;
    return key.size() <= kMostBytes ? key : key.substr(0, kMostBytes) + "...";
  }
  std::vector<std::string> keys_, words_;
};

Result<void> add_message(const Json& message, uint32_t max_tokens, Conversation& conversation) {
  if (!message.is_object()) return invalid("an object is needed, found {}", shown(message));
  const Json& role = member(message, "role");
  SW_ASSIGN(std::string text, content_of(message));
  std::vector<Turn>& turns = conversation.turns;
  if (role == "system" || role == "developer") {
    if (!turns.empty() || !conversation.system.empty())
      return invalid("a system message can stand at the start only, and once");
    conversation.system = std::move(text);
  } else if (role == "user") {
    if (turns.size() == limits::kMaxTurns)
      return invalid("more than {} messages of the user", limits::kMaxTurns);
    if (text.empty()) return invalid("the user's message is empty");
    turns.push_back({.text = std::move(text), .max_tokens = max_tokens});
  } else if (role == "assistant") {
    if (turns.empty() || turns.back().given_answer)
      return invalid("an assistant's message must follow one of the user");
    turns.back().given_answer = std::move(text);
  } else {
    return invalid("role: system, user or assistant is needed, found {}", shown(role));
  }
  return {};
}

Result<Conversation> parse_line(std::string_view text, size_t number, UnusedKeys& unused) {
  static constexpr std::string_view kUsed[] = {"messages", "max_tokens", "max_completion_tokens", "topic"};
  static constexpr std::string_view kUsedOfMessage[] = {"role", "content"};
  SW_TRY(check_json_size(text));
  const Json line = Json::parse(text, nullptr, false);
  if (line.is_discarded()) return invalid("this is no JSON");
  if (!line.is_object()) return invalid("an object is needed, found {}", shown(line));
  const Json& messages = member(line, "messages");
  if (!messages.is_array() || messages.empty()) return invalid("it has no list 'messages'");
  SW_ASSIGN(const uint32_t max_tokens, max_tokens_of(line));
  Conversation conversation;
  if (const Json& topic = member(line, "topic"); topic.is_string())
    conversation.topic = topic.get<std::string>();
  for (size_t i = 0; i < messages.size(); ++i)
    if (const auto added = add_message(messages[i], max_tokens, conversation); !added)
      return std::unexpected(added.error().in(fmt::format("messages[{}]", i)));
  unused.look_at(line, kUsed, "", number);
  for (const Json& message : messages) unused.look_at(message, kUsedOfMessage, "messages[].", number);
  if (conversation.turns.empty()) return invalid("it has no message of the user");
  if (conversation.turns.back().given_answer) return invalid("its last message must be the user's");
  return conversation;
}

}  // namespace

Result<Workload> parse_workload(std::string name, std::string_view jsonl) {
  constexpr size_t kNamed = 5;
  if (jsonl.size() > limits::kMaxWorkloadBytes)
    return invalid("the workload '{}' has {} bytes, at most {} are read", name, jsonl.size(),
                   limits::kMaxWorkloadBytes);
  Workload workload{.name = std::move(name)};
  UnusedKeys unused;
  std::string faults;
  size_t n_faults = 0;
  for (size_t number = 1; !jsonl.empty(); ++number) {
    const std::string_view line = jsonl.substr(0, jsonl.find('\n'));
    jsonl.remove_prefix(std::min(line.size() + 1, jsonl.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    if (workload.conversations.size() == limits::kMaxConversations)
      return invalid("the workload '{}' has more than {} conversations", workload.name,
                     limits::kMaxConversations);
    auto conversation = parse_line(line, number, unused);
    if (conversation) {
      if (conversation->topic.empty()) conversation->topic = fmt::format("line {}", number);
      workload.conversations.push_back(std::move(*conversation));
    } else if (++n_faults <= kNamed) {
      faults += fmt::format("\n  line {}: {}", number, conversation.error().message);
    }
  }
  if (n_faults > kNamed) faults += fmt::format("\n  and {} more", n_faults - kNamed);
  if (n_faults > 0)
    return invalid("the workload '{}' has {} line{} that can't be run:{}", workload.name, n_faults,
                   n_faults == 1 ? "" : "s", faults);
  if (workload.conversations.empty())
    return invalid(
        "the workload '{}' is empty: each line is a conversation, such as "
        "{{\"messages\": [{{\"role\": \"user\", \"content\": \"...\"}}], \"max_tokens\": 128}}",
        workload.name);
  workload.unused = std::move(unused).words();
  return workload;
}

std::string words_for_unused(const Workload& workload) {
  if (workload.unused.empty()) return {};
  return fmt::format("The workload '{}' holds what has no effect here: {}.", workload.name,
                     fmt::join(workload.unused, ", "));
}

}  // namespace spillway::tune
