#include "text/chat_messages.h"

namespace spillway {
namespace text {
namespace {

std::string shown(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

Result<Json> fit_content(const Json& content, const MessageForm& form, size_t index) {
  if (content.is_string()) {
    if (!form.wrap_strings) return content;
    return Json::array({Json{{"type", "text"}, {"text", content}}});
  }
  if (!content.is_array())
    return invalid("messages[{}].content is {}: needed is a string, a list of parts or null", index,
                   shown(content));
  std::string joined;
  size_t count = 0;
  for (const Json& part : content) {
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string())
      return invalid("messages[{}].content[{}] is {}: needed is an object with a \"type\"", index, count,
                     shown(part));
    const std::string type = part["type"];
    if (type != "text")
      return unsupported("messages[{}].content[{}] has type \"{}\": only \"text\" is supported", index, count,
                         type);
    if (!part.contains("text") || !part["text"].is_string())
      return invalid("messages[{}].content[{}] has no string \"text\"", index, count);
    if (count++ > 0) joined += "\n";
    joined += part["text"].get_ref<const std::string&>();
  }
  return form.join_parts ? Json(joined) : content;
}

// The API carries a call's arguments as JSON text. A template that writes them with tojson would encode that
// text once more, so it gets the object. Text that is no JSON object is what the model once wrote, and stays
// as it is.
void fit_call(Json& call, const MessageForm& form) {
  Json& function = call.contains("function") && call["function"].is_object() ? call["function"] : call;
  if (!function.contains("arguments")) return;
  Json& arguments = function["arguments"];
  if (form.object_arguments && arguments.is_string()) {
    const std::string text = arguments;
    if (text.find_first_not_of(" \t\r\n") == text.npos) {
      arguments = Json::object();
      return;
    }
    Json parsed = Json::parse(text, nullptr, false);
    if (parsed.is_object()) arguments = std::move(parsed);
  } else if (!form.object_arguments && arguments.is_object()) {
    arguments = arguments.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

}  // namespace

std::string content_text(const Json& content) {
  if (content.is_string()) return content;
  std::string text;
  if (content.is_array()) {
    for (const Json& part : content) {
      if (!part.is_object() || !part.contains("text") || !part["text"].is_string()) continue;
      if (!text.empty()) text += "\n";
      text += part["text"].get_ref<const std::string&>();
    }
  }
  return text;
}

Result<Json> fit_messages(const Json& messages, const MessageForm& form) {
  if (!messages.is_array()) return invalid("messages is {}: needed is a list", shown(messages));
  if (messages.empty()) return invalid("messages is empty: at least one message is needed");
  Json fitted = Json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      return invalid("messages[{}] is {}: needed is an object with a string \"role\"", i, shown(message));
    Json out = message;
    if (out["role"] == "developer" && !form.developer_role) out["role"] = "system";
    const bool has_calls =
        out.contains("tool_calls") && out["tool_calls"].is_array() && !out["tool_calls"].empty();
    // An empty list is truthy for no template but `is defined` for some: leave it out.
    if (out.contains("tool_calls") && !has_calls) out.erase("tool_calls");
    const bool no_content =
        !out.contains("content") || out["content"].is_null() ||
        (has_calls && out["content"].is_string() && out["content"].get_ref<const std::string&>().empty());
    if (no_content) {
      out["content"] = has_calls && form.null_content_of_calls ? Json() : Json("");
    } else {
      SW_ASSIGN(out["content"], fit_content(out["content"], form, i));
    }
    if (has_calls) {
      for (Json& call : out["tool_calls"]) {
        if (!call.is_object())
          return invalid("messages[{}].tool_calls holds {}: needed is an object", i, shown(call));
        fit_call(call, form);
      }
    }
    fitted.push_back(std::move(out));
  }
  return fitted;
}

Json fold_system(const Json& messages) {
  std::string system;
  size_t count = 0;
  while (count < messages.size() && messages[count]["role"] == "system") {
    if (count > 0) system += "\n\n";
    system += content_text(messages[count++]["content"]);
  }
  if (count == 0) return messages;
  Json folded = Json::array();
  bool placed = false;
  for (size_t i = count; i < messages.size(); ++i) {
    Json message = messages[i];
    if (!placed && message["role"] == "user") {
      if (message["content"].is_array()) {
        message["content"].insert(message["content"].begin(), Json{{"type", "text"}, {"text", system}});
      } else {
        message["content"] = system + "\n\n" + content_text(message["content"]);
      }
      placed = true;
    }
    folded.push_back(std::move(message));
  }
  if (!placed) folded.insert(folded.begin(), Json{{"role", "user"}, {"content", system}});
  return folded;
}

}  // namespace text
}  // namespace spillway
