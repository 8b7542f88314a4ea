#include "tune/workload.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace spillway::tune {
namespace {

std::string error_of(std::string_view jsonl) {
  const auto parsed = parse_workload("mine.jsonl", jsonl);
  return parsed ? "" : parsed.error().message;
}

TEST(Workload, BuiltInOnesAreWhole) {
  for (const std::string& name : workload_names()) {
    const auto workload = builtin_workload(name);
    ASSERT_TRUE(workload) << workload.error().message;
    EXPECT_EQ(workload->name, name);
    EXPECT_GE(workload->conversations.size(), 2);
    EXPECT_GE(workload->requests(), 3);
    EXPECT_EQ(workload->users(), name == "users" ? 4 : 1);
    EXPECT_FALSE(split(*workload).same);
    for (const Conversation& conversation : workload->conversations) {
      EXPECT_FALSE(conversation.topic.empty());
      EXPECT_FALSE(conversation.turns.empty());
      for (const Turn& turn : conversation.turns) {
        EXPECT_FALSE(turn.text.empty());
        EXPECT_GE(turn.max_tokens, 16);
      }
    }
  }
  const auto unknown = builtin_workload("chatter");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("chat, code, document, long, users"), std::string::npos);
}

TEST(Workload, LinesAreConversations) {
  const auto workload = parse_workload("mine.jsonl", R"({"messages": [{"role": "user", "content": "one"}]}

  {"model": "x", "temperature": 0.7, "topic": "t", "max_tokens": 7, "messages": [{"role": "system", "content": "s"},
)");
  ASSERT_FALSE(workload);  // a line is a line
  const auto good = parse_workload("mine.jsonl",
                                   "{\"messages\": [{\"role\": \"user\", \"content\": \"one\"}]}\n\n"
                                   "{\"model\": \"x\", \"topic\": \"t\", \"max_tokens\": 7, \"messages\": "
                                   "[{\"role\": \"system\", \"content\": "
                                   "\"s\"}, {\"role\": \"user\", \"content\": [{\"type\": \"text\", "
                                   "\"text\": \"a\"}, {\"type\": \"text\", "
                                   "\"text\": \"b\"}]}, {\"role\": \"assistant\", \"content\": \"given\"}, "
                                   "{\"role\": \"user\", \"content\": "
                                   "\"c\"}, {\"role\": \"user\", \"content\": \"d\"}]}\r\n");
  ASSERT_TRUE(good) << good.error().message;
  ASSERT_EQ(good->conversations.size(), 2);
  EXPECT_EQ(good->conversations[0],
            (Conversation{.topic = "line 1", .turns = {{.text = "one", .max_tokens = kDefaultMaxTokens}}}));
  EXPECT_EQ(good->conversations[1],
            (Conversation{.topic = "t",
                          .system = "s",
                          .turns = {{.text = "ab", .given_answer = "given", .max_tokens = 7},
                                    {.text = "c", .max_tokens = 7},
                                    {.text = "d", .max_tokens = 7}}}));
  EXPECT_EQ(good->unused, std::vector<std::string>{"'model' (line 3)"});
  EXPECT_EQ(good->requests(), 3);
  EXPECT_EQ(good->max_tokens(), kDefaultMaxTokens + 14);
}

TEST(Workload, WhatHasNoEffectIsNamed) {
  const auto workload = parse_workload("mine.jsonl",
                                       R"({"messages": [{"role": "user", "content": "x", "name": "me"}]}
{"messages": [{"role": "user", "content": "x"}], "max_token": 5, "temperature": 0.9}
{"messages": [{"role": "user", "content": "x"}], "temperature": 0.1})");
  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_EQ(
      words_for_unused(*workload),
      "The workload 'mine.jsonl' holds what has no effect here: 'messages[].name' (line 1), 'max_token' "
      "(line 2), 'temperature' (line 2).");
  EXPECT_EQ(words_for_unused(builtin_topics()), "");
}

TEST(Workload, FaultsAreNamedByLine) {
  const std::string good = R"({"messages": [{"role": "user", "content": "x"}]})";
  const std::pair<const char*, const char*> kFaults[] = {
      {"hello", "no JSON"},
      {"[1]", "an object is needed, found a list"},
      {R"({"messages": [{"role": [], "content": "x"}]})", "found a list"},
      {"{}", "no list 'messages'"},
      {R"({"messages": []})", "no list 'messages'"},
      {R"({"messages": [5]})", "messages[0]: an object"},
      {R"({"messages": [{"role": "tool", "content": "x"}]})", "found \"tool\""},
      {R"({"messages": [{"role": "user"}]})", "content: a text is needed, found nothing"},
      {R"({"messages": [{"role": "user", "content": ""}]})", "empty"},
      {R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
       "only parts of type 'text'"},
      {R"({"messages": [{"role": "assistant", "content": "x"}]})", "must follow"},
      {R"({"messages": [{"role": "system", "content": "x"}]})", "no message of the user"},
      {R"({"messages": [{"role": "user", "content": "x"}, {"role": "system", "content": "y"}]})",
       "at the start"},
      {R"({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]})",
       "last message"},
      {R"({"max_tokens": 0, "messages": [{"role": "user", "content": "x"}]})", "max_tokens"},
      {R"({"max_tokens": "many", "messages": [{"role": "user", "content": "x"}]})", "found \"many\""},
  };
  for (const auto& [line, words] : kFaults) {
    const std::string message = error_of(good + "\n" + line + "\n" + good);
    EXPECT_NE(message.find("line 2: "), std::string::npos) << message;
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_NE(message.find("1 line "), std::string::npos) << message;
  }
  const std::string many = error_of("a\nb\n" + good + "\nc\nd\ne\nf\ng\n");
  for (const char* words : {"7 lines", "line 1:", "line 6:", "and 2 more"})
    EXPECT_NE(many.find(words), std::string::npos) << many;
  EXPECT_EQ(many.find("line 7:"), std::string::npos);
  EXPECT_NE(error_of("").find("is empty"), std::string::npos);
  EXPECT_NE(error_of("\n \n").find("is empty"), std::string::npos);
}

TEST(Workload, WhatIsTooLargeOrTooDeepIsRefused) {
  EXPECT_NE(error_of(std::string(limits::kMaxWorkloadBytes + 1, ' ')).find("bytes"), std::string::npos);
  std::string lines;
  for (uint32_t i = 0; i <= limits::kMaxConversations; ++i)
    lines += "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}\n";
  EXPECT_NE(error_of(lines).find("more than"), std::string::npos);
  // A million levels, which would take as deep a stack to copy or delete.
  const std::string deep(1'000'000, '['), closed = deep + std::string(1'000'000, ']');
  for (const std::string& line :
       {deep, closed, "{\"messages\": [{\"role\": " + closed + ", \"content\": \"x\"}]}",
        "{\"other\": " + closed + ", \"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}"})
    EXPECT_NE(error_of(line).find("line 1: lists and objects are nested deeper"), std::string::npos);
}

TEST(Workload, UsersTakeTurns) {
  Workload workload = *builtin_workload("chat");
  const std::string content = workload.facts().content;
  ASSERT_TRUE(deal_out(workload, 3));
  EXPECT_EQ(workload.users(), 3);
  EXPECT_EQ(workload.conversations[4].user, 1);
  EXPECT_NE(workload.facts().content, content);
  EXPECT_FALSE(deal_out(workload, 0));
  const auto too_many = deal_out(workload, 7);
  ASSERT_FALSE(too_many);
  EXPECT_NE(too_many.error().message.find("at most 6"), std::string::npos);
}

TEST(Workload, LimitsShortenAnswers) {
  Workload workload = *builtin_workload("long");
  const auto before = workload.facts();
  limit_answers(workload, 5);
  EXPECT_EQ(workload.max_tokens(), 15);
  EXPECT_NE(workload.facts().content, before.content);
  EXPECT_EQ(workload.facts().requests, before.requests);
}

TEST(Workload, HalvesShareNothing) {
  const Workload workload = *builtin_workload("users");
  const Halves halves = split(workload);
  EXPECT_EQ(halves.calibration.conversations.size(), 4);
  EXPECT_EQ(halves.held_out.conversations.size(), 4);
  EXPECT_EQ(halves.calibration.users(), 4);
  for (const Conversation& a : halves.calibration.conversations)
    for (const Conversation& b : halves.held_out.conversations) EXPECT_NE(a.topic, b.topic);
  Workload one = workload;
  one.conversations.resize(1);
  EXPECT_TRUE(split(one).same);
  EXPECT_EQ(split(one).held_out, one);
}

}  // namespace
}  // namespace spillway::tune
