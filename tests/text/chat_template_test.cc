#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace spillway {
namespace text {
namespace {

// The templates that tests/oracle/templates.py compares with Jinja2.
std::string source_of(const std::string& name) {
  std::ifstream file(std::string(SPILLWAY_SOURCE_DIR) + "/tests/oracle/templates/" + name + ".jinja",
                     std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

ChatTemplate load(const std::string& name) {
  auto parsed = ChatTemplate::parse(source_of(name), {.bos = "<s>", .eos = "</s>"});
  EXPECT_TRUE(parsed) << name << ": " << (parsed ? "" : parsed.error().message);
  return *parsed;
}

Json message(const std::string& role, const Json& content) {
  return Json{{"role", role}, {"content", content}};
}
Json user(const Json& content) { return message("user", content); }

Json tools() {
  return Json::parse(
      R"([{"type":"function","function":{"name":"look","description":"d","parameters":{"type":"object",
    "properties":{"zeta":{"type":"string"},"alpha":{"type":"integer"}},"required":["zeta"]}}}])");
}

Json call(const std::string& arguments) {
  return Json{
      {"role", "assistant"},
      {"content", nullptr},
      {"tool_calls", Json::array({Json{{"id", "abcdefghi"},
                                       {"type", "function"},
                                       {"function", Json{{"name", "look"}, {"arguments", arguments}}}}})}};
}

TEST(ChatTemplate, ProbesFindWhatATemplateDoes) {
  struct Expected {
    const char* name;
    bool system, typed, alternation, tools, calls, parallel, results, objects, thinking, opens;
  };
  // Read off the templates' text by hand.
  const Expected all[] = {
      {"chatml", true, true, false, false, false, false, true, true, false, false},
      {"qwen3", true, false, false, true, true, true, true, true, true, false},
      {"llama31", true, false, false, true, true, false, true, true, false, false},
      {"mistral", true, false, true, true, true, true, true, true, false, false},
      {"mixtral", false, false, true, false, false, false, false, true, false, false},
      {"gemma", false, false, true, false, false, false, false, true, false, false},
      {"deepseek_r1", true, false, false, false, true, true, true, false, false, true},
      {"glm4", true, true, false, true, true, true, true, true, true, false},
      {"harmony", true, false, false, true, true, false, true, true, false, false},
  };
  for (const Expected& e : all) {
    const Capabilities can = load(e.name).capabilities();
    EXPECT_TRUE(can.string_content) << e.name;
    EXPECT_EQ(can.system_role, e.system) << e.name;
    EXPECT_EQ(can.typed_content, e.typed) << e.name;
    EXPECT_EQ(can.needs_alternation, e.alternation) << e.name;
    EXPECT_EQ(can.tools, e.tools) << e.name;
    EXPECT_EQ(can.tool_calls, e.calls) << e.name;
    EXPECT_EQ(can.parallel_tool_calls, e.parallel) << e.name;
    EXPECT_EQ(can.tool_results, e.results) << e.name;
    EXPECT_EQ(can.object_arguments, e.objects) << e.name;
    EXPECT_EQ(can.enable_thinking, e.thinking) << e.name;
    EXPECT_EQ(can.opens_thinking, e.opens) << e.name;
  }
  EXPECT_EQ(load("qwen3").capabilities().think_tags, (ThinkTags{"<think>", "</think>"}));
  EXPECT_EQ(load("harmony").capabilities().think_tags,
            (ThinkTags{"<|channel|>analysis<|message|>", "<|end|>"}));
  EXPECT_EQ(load("gemma").capabilities().think_tags, std::nullopt);
}

TEST(ChatTemplate, WritesAConversation) {
  const auto prompt = load("qwen3").render(Json::array({message("system", "Be brief."), user("Hi")}));
  ASSERT_TRUE(prompt) << prompt.error().message;
  EXPECT_EQ(
      prompt->text,
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(prompt->generation_prompt, "<|im_start|>assistant\n");
  EXPECT_FALSE(prompt->starts_with_bos);
  EXPECT_TRUE(load("gemma").render(Json::array({user("Hi")}))->starts_with_bos);
}

// C5: the template's own words, told apart from faults; nothing is rendered in another way instead.
TEST(ChatTemplate, ARefusalIsTheTemplatesOwn) {
  const auto chat = load("mixtral");
  const auto prompt =
      chat.render(Json::array({user("a"), user("b"), message("assistant", "c"), message("assistant", "d")}));
  ASSERT_FALSE(prompt);
  EXPECT_EQ(prompt.error().kind, Error::Kind::kRefused);
  EXPECT_NE(
      prompt.error().message.find("Conversation roles must alternate user/assistant/user/assistant/..."),
      std::string::npos);
}

// C7
TEST(ChatTemplate, NoPlaceForASystemMessage) {
  const auto chat = load("gemma");
  const Json messages =
      Json::array({message("system", "Be brief."), user("Hi"), message("assistant", "yes"), user("ok")});
  const auto refused = chat.render(messages);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::Kind::kUnsupported);
  EXPECT_NE(refused.error().message.find("no place for a system message"), std::string::npos);
  RenderOptions fold;
  fold.system_rule = SystemRule::kFoldIntoUser;
  const auto folded = chat.render(messages, fold);
  ASSERT_TRUE(folded) << folded.error().message;
  EXPECT_TRUE(folded->text.starts_with(
      "<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nyes"));
  // A template with a system role keeps it.
  EXPECT_EQ(load("chatml").render(messages, fold)->text, load("chatml").render(messages)->text);
}

// C9: arguments come as JSON text; the template encodes with tojson. One encoding, keys in their order.
TEST(ChatTemplate, ArgumentsAreEncodedOnce) {
  const auto text = [](const std::string& name, const std::string& arguments) {
    RenderOptions options;
    options.tools = tools();
    options.now = std::chrono::local_days(std::chrono::year(2026) / 11 / 29);  // harmony writes the date
    const auto prompt = load(name).render(Json::array({user("q"), call(arguments)}), options);
    return prompt ? prompt->text : "ERROR " + prompt.error().message;
  };
  for (const auto* name : {"llama31", "qwen3", "mistral", "harmony"}) {
    EXPECT_NE(text(name, R"({"zeta":"a\"b","alpha":1})").find(R"({"zeta": "a\"b", "alpha": 1})"),
              std::string::npos)
        << name;
    EXPECT_EQ(text(name, R"({"zeta":"a"})").find(R"(\"zeta\")"), std::string::npos) << name;
    // Not JSON: kept as text.
    EXPECT_NE(text(name, "not json").find("not json"), std::string::npos) << name;
  }
  // A template that appends the text gets the text.
  const auto appended = load("deepseek_r1").render(Json::array({user("q"), call(R"({"zeta":1})")}));
  ASSERT_TRUE(appended) << appended.error().message;
  EXPECT_NE(appended->text.find("```json\n{\"zeta\":1}\n```"), std::string::npos);
}

TEST(ChatTemplate, ToolsKeepTheOrderOfTheirKeys) {
  RenderOptions options;
  options.tools = tools();
  const auto prompt = load("qwen3").render(Json::array({user("q")}), options);
  ASSERT_TRUE(prompt);
  EXPECT_LT(prompt->text.find("\"zeta\""), prompt->text.find("\"alpha\""));
}

// C11, C13
TEST(ChatTemplate, SaysWhetherThePromptEndsInsideThinking) {
  const auto opened = load("deepseek_r1").render(Json::array({user("Hi")}));
  EXPECT_EQ(opened->inside_thinking, (ThinkTags{"<think>", "</think>"}));
  EXPECT_TRUE(opened->text.ends_with("<think>\n"));
  // A message that speaks of the tag opens nothing.
  EXPECT_EQ(load("qwen3").render(Json::array({user("what is <think>")}))->inside_thinking, std::nullopt);
  RenderOptions off;
  off.extra = Json{{"enable_thinking", false}};
  const auto closed = load("qwen3").render(Json::array({user("Hi")}), off);
  EXPECT_TRUE(closed->text.ends_with("<think>\n\n</think>\n\n"));
  EXPECT_EQ(closed->inside_thinking, std::nullopt);
  RenderOptions no_prompt;
  no_prompt.add_generation_prompt = false;
  EXPECT_EQ(load("deepseek_r1").render(Json::array({user("Hi")}), no_prompt)->inside_thinking, std::nullopt);
}

// C15: no other style is put in its place.
TEST(ChatTemplate, ATemplateThatIsNoneIsRefused) {
  for (const auto* source : {"{{- if .System }}{{ .System }}{{ end }}", "{{- if .System }}",
                             "{% for m in messages %}", "{{ nothing.at.all }}"}) {
    const auto parsed = ChatTemplate::parse(source);
    ASSERT_FALSE(parsed) << source;
    EXPECT_NE(parsed.error().message.find("--chat-template-file"), std::string::npos)
        << parsed.error().message;
  }
  EXPECT_NE(ChatTemplate::parse("{{- if .System }}").error().message.find("Go template"), std::string::npos);
}

TEST(ChatTemplate, ContentPartsAreJoinedOrKept) {
  const Json parts = Json::parse(R"([{"type":"text","text":"one"},{"type":"text","text":"two"}])");
  EXPECT_NE(load("qwen3").render(Json::array({user(parts)}))->text.find("user\none\ntwo<|im_end|>"),
            std::string::npos);
  EXPECT_NE(load("glm4").render(Json::array({user(parts)}))->text.find("<|user|>\nonetwo"),
            std::string::npos);
  const auto image = load("qwen3").render(
      Json::array({user(Json::parse(R"([{"type":"image_url","image_url":{"url":"x"}}])"))}));
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().kind, Error::Kind::kUnsupported);
  EXPECT_NE(image.error().message.find("image_url"), std::string::npos);
  // A template that knows nothing but parts gets its strings wrapped.
  const auto wrapped = ChatTemplate::parse(
      "{% for m in messages %}{% for p in m.content %}{{ p.type + p.text }}{% endfor %}{% endfor %}");
  ASSERT_TRUE(wrapped);
  EXPECT_FALSE(wrapped->capabilities().string_content);
  EXPECT_EQ(wrapped->render(Json::array({user("hi")}))->text, "texthi");
}

TEST(ChatTemplate, NothingIsDroppedInSilence) {
  RenderOptions options;
  options.tools = tools();
  const auto with_tools = load("gemma").render(Json::array({user("q")}), options);
  ASSERT_FALSE(with_tools);
  EXPECT_EQ(with_tools.error().kind, Error::Kind::kUnsupported);
  options.tools = Json::array();  // none at all
  EXPECT_TRUE(load("gemma").render(Json::array({user("q")}), options));
  EXPECT_FALSE(load("olmoe").render(Json::array({user("q"), call("{}")})));
  EXPECT_FALSE(load("olmoe").render(Json::array({user("q"), message("tool", "r")})));
}

TEST(ChatTemplate, MessagesAreChecked) {
  const auto chat = load("chatml");
  for (const auto* text :
       {"null", "{}", "[]", "[1]", "[{}]", R"([{"role":1}])", R"([{"role":"user","content":5}])",
        R"([{"role":"user","content":["x"]}])", R"([{"role":"user","content":[{"type":"text"}]}])"}) {
    const auto prompt = chat.render(Json::parse(text));
    ASSERT_FALSE(prompt) << text;
    EXPECT_EQ(prompt.error().kind, Error::Kind::kInvalid) << text;
    EXPECT_NE(prompt.error().message.find("messages"), std::string::npos) << prompt.error().message;
  }
  // No content at all is an empty one.
  EXPECT_EQ(chat.render(Json::parse(R"([{"role":"user"}])"))->text,
            "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, ExtraVariablesCannotReplaceTheConversation) {
  RenderOptions options;
  options.extra = Json{{"messages", Json::array()}, {"bos_token", "<B>"}};
  const auto prompt = load("gemma").render(Json::array({user("Hi")}), options);
  ASSERT_TRUE(prompt);
  EXPECT_TRUE(prompt->text.starts_with("<B><start_of_turn>user\nHi"));
}

TEST(ChatTemplate, DeveloperIsSystemWhereUnknown) {
  EXPECT_NE(load("qwen3")
                .render(Json::array({message("developer", "d"), user("u")}))
                ->text.find("system\nd<|im_end|>"),
            std::string::npos);
}

}  // namespace
}  // namespace text
}  // namespace spillway
