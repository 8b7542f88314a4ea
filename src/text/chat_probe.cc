#include "text/chat_probe.h"

namespace spillway {
namespace text {
namespace {

// Pairs of tags in which published models reason. Longer names before their own parts.
constexpr std::pair<std::string_view, std::string_view> kThinkTags[] = {
    {"<think>", "</think>"},
    {"<thinking>", "</thinking>"},
    {"<thought>", "</thought>"},
    {"<reasoning>", "</reasoning>"},
    {"<seed:think>", "</seed:think>"},
    {"[THINK]", "[/THINK]"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<|channel|>analysis<|message|>", "<|end|>"},
};

bool has(const std::optional<std::string>& text, std::string_view what) {
  return text && text->find(what) != text->npos;
}

Json message(std::string_view role, const Json& content) {
  return Json{{"role", role}, {"content", content}};
}

Json tool_message(const Json& call) {
  return Json{{"role", "tool"},
              {"tool_call_id", call["id"]},
              {"name", call["function"]["name"]},
              {"content", "qzresult"}};
}

// Mistral wants ids of nine letters and digits.
Json call(std::string_view id, std::string_view name, const Json& arguments) {
  return Json{{"id", id}, {"type", "function"}, {"function", Json{{"name", name}, {"arguments", arguments}}}};
}

class Prober {
 public:
  Prober(const jinja::Program& program, std::string_view source, const TemplateTokens& tokens)
      : program_(program), source_(source), tokens_(tokens) {}

  Result<Probed> run() {
    SW_TRY(contents());
    roles();
    tools();
    calls();
    thinking();
    return out_;
  }

 private:
  std::optional<std::string> render(const Json& messages, const RenderOptions& options = {}) {
    // Some templates write the date without asking whether there is a clock: any day will do.
    const auto some_day = std::chrono::local_days(std::chrono::year(2025) / 1 / 1);
    auto text = program_.render(template_variables(messages, options, tokens_), some_day);
    if (!text) {
      last_error_ = text.error();
      return std::nullopt;
    }
    return std::move(*text);
  }

  Json user(const Json& content = "qzuser") { return message("user", fitted(content)); }
  Json fitted(const Json& content) {
    return out_.form.wrap_strings ? Json::array({Json{{"type", "text"}, {"text", content}}}) : content;
  }

  Result<void> contents() {
    const Json parts = Json::array({Json{{"type", "text"}, {"text", "qzuser"}}});
    const auto as_string = render(Json::array({message("user", "qzuser")}));
    const auto as_parts = render(Json::array({message("user", parts)}));
    Capabilities& can = out_.capabilities;
    can.string_content = has(as_string, "qzuser");
    // A template that knows no parts prints the list itself.
    can.typed_content = has(as_parts, "qzuser") && !has(as_parts, "'type'") && !has(as_parts, "\"type\"");
    out_.form.wrap_strings = can.typed_content && !can.string_content;
    out_.form.join_parts = !can.typed_content;
    out_.form.developer_role = source_.find("developer") != source_.npos;
    if (as_string || as_parts) return {};
    const Json longer = Json::array({message("system", "qzsystem"), message("user", "qzuser")});
    if (render(longer)) return {};
    if (last_error_.kind == Error::Kind::kRefused) return {};
    return std::unexpected(last_error_.in("the chat template can't write even one user message"));
  }

  void roles() {
    Capabilities& can = out_.capabilities;
    can.system_role = has(render(Json::array({message("system", fitted("qzsystem")), user()})), "qzsystem");
    const auto alternating = render(Json::array({user(), message("assistant", fitted("qzanswer")), user()}));
    can.needs_alternation = alternating && !render(Json::array({user(), user()}));
    RenderOptions without;
    without.add_generation_prompt = false;
    can.generation_prompt = render(Json::array({user()})) != render(Json::array({user()}), without);
  }

  void tools() {
    RenderOptions options;
    options.tools = Json::array(
        {Json{{"type", "function"},
              {"function",
               Json{{"name", "qztool"},
                    {"description", "qzdescription"},
                    {"parameters",
                     Json{{"type", "object"},
                          {"properties", Json{{"qzkey", Json{{"type", "string"}, {"description", "a"}}}}},
                          {"required", Json::array({"qzkey"})}}}}}}});
    out_.capabilities.tools = has(render(Json::array({user()}), options), "qztool");
  }

  // Renders a turn with tool calls and their results, with both forms of an empty content, preferring null.
  std::optional<std::string> render_calls(const Json& calls, bool null_content) {
    Json assistant = message("assistant", null_content ? Json() : Json(""));
    assistant["tool_calls"] = calls;
    Json messages = Json::array({user(), assistant});
    for (const Json& made : calls) messages.push_back(tool_message(made));
    auto text = render(messages);
    if (text) return text;
    // The template may know calls but no results.
    return render(Json::array({user(), assistant}));
  }

  void calls() {
    Capabilities& can = out_.capabilities;
    const Json object{{"qzkey", "qzvalue"}};
    const std::string json = R"({"qzkey": "qzvalue"})";
    bool found = false, object_fits = false, string_fits = false;
    for (const bool null_content : {true, false}) {
      const auto with_object = render_calls(Json::array({call("qzcall001", "qztool", object)}), null_content);
      const auto with_string = render_calls(Json::array({call("qzcall001", "qztool", json)}), null_content);
      object_fits = has(with_object, "qztool") && has(with_object, "qzvalue") && !has(with_object, "'qzkey'");
      string_fits = has(with_string, "qztool") && has(with_string, json);
      found = object_fits || string_fits;
      out_.form.null_content_of_calls = null_content;
      if (found) break;
    }
    if (!found) out_.form.null_content_of_calls = false;
    can.tool_calls = found;
    can.object_arguments = object_fits || !string_fits;
    out_.form.object_arguments = can.object_arguments;
    const Json arguments = can.object_arguments ? object : Json(json);
    const auto two = render_calls(
        Json::array({call("qzcall001", "qztool", arguments), call("qzcall002", "qzsecond", arguments)}),
        out_.form.null_content_of_calls);
    can.parallel_tool_calls = found && has(two, "qztool") && has(two, "qzsecond");
    const auto one =
        render_calls(Json::array({call("qzcall001", "qztool", arguments)}), out_.form.null_content_of_calls);
    can.tool_results = has(one, "qzresult");
  }

  void thinking() {
    Capabilities& can = out_.capabilities;
    const auto with = [&](const Json& extra, bool history) {
      RenderOptions options;
      options.extra = extra;
      Json messages = Json::array({user()});
      if (history) messages = Json::array({user(), message("assistant", fitted("qzanswer")), user()});
      return render(messages, options);
    };
    for (const bool history : {false, true})
      can.enable_thinking |=
          with(Json{{"enable_thinking", true}}, history) != with(Json{{"enable_thinking", false}}, history);
    for (const auto& [open, close] : kThinkTags) {
      if (source_.find(close) == source_.npos || source_.find(open) == source_.npos) continue;
      can.think_tags = ThinkTags{std::string(open), std::string(close)};
      break;
    }
    RenderOptions without;
    without.add_generation_prompt = false;
    const auto text = render(Json::array({user()})), shorter = render(Json::array({user()}), without);
    if (text && shorter) {
      const auto tags = open_thinking(added_suffix(*shorter, *text).value_or(*text));
      can.opens_thinking = tags.has_value();
      if (tags) can.think_tags = tags;
    }
    if (can.think_tags) return;
    // Templates that only cut reasoning out of the history name just the closing tag.
    for (const auto& [open, close] : kThinkTags)
      if (!can.think_tags && close != "<|end|>" && source_.find(close) != source_.npos)
        can.think_tags = ThinkTags{std::string(open), std::string(close)};
  }

  const jinja::Program& program_;
  const std::string_view source_;
  const TemplateTokens& tokens_;
  Probed out_;
  Error last_error_;
};

}  // namespace

Json template_variables(const Json& messages, const RenderOptions& options, const TemplateTokens& tokens) {
  Json variables{{"bos_token", tokens.bos},
                 {"eos_token", tokens.eos},
                 {"pad_token", tokens.pad},
                 {"unk_token", tokens.unk}};
  if (options.extra.is_object())
    for (const auto& [name, value] : options.extra.items()) variables[name] = value;
  variables["messages"] = messages;
  // An empty list of tools is no tools: templates ask `if tools`, but some `tools is not none`.
  variables["tools"] = options.tools.is_array() && options.tools.empty() ? Json() : options.tools;
  variables["documents"] = options.documents;
  variables["add_generation_prompt"] = options.add_generation_prompt;
  return variables;
}

Result<Probed> probe(const jinja::Program& program, std::string_view source, const TemplateTokens& tokens) {
  return Prober(program, source, tokens).run();
}

std::optional<ThinkTags> open_thinking(std::string_view text) {
  for (const auto& [open, close] : kThinkTags) {
    const size_t opened = text.rfind(open);
    if (opened == text.npos) continue;
    if (text.find(close, opened + open.size()) == text.npos)
      return ThinkTags{std::string(open), std::string(close)};
  }
  return std::nullopt;
}

std::optional<std::string> added_suffix(std::string_view without, std::string_view with) {
  if (!with.starts_with(without)) return std::nullopt;
  return std::string(with.substr(without.size()));
}

}  // namespace text
}  // namespace spillway
