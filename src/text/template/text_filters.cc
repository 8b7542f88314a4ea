#include <algorithm>

#include "base/limits.h"
#include "text/template/filters.h"
#include "text/template/format.h"
#include "text/template/interpreter.h"
#include "text/template/json_text.h"
#include "text/template/methods.h"
#include "text/template/operators.h"
#include "text/template/print.h"
#include "text/template/utf8.h"

namespace spillway {
namespace jinja {
namespace {

// The value as a string, markup kept: Jinja's soft_str.
Value soft_text(Heap& heap, const Value& value) {
  return value.is(Kind::kString) ? value : heap.string(to_text(value));
}

// |title is not str.title: words begin after blanks, hyphens and opening brackets, not after apostrophes.
std::string title_words(std::string_view text) {
  std::string out;
  bool start = true;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const char32_t c = utf8_next(text, i);
    if (c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c)) {
      out.append(text.substr(begin, i - begin));
      start = true;
      continue;
    }
    // The rest of the word is lowered as one text, for the sake of a final sigma.
    size_t end = i;
    while (end < text.size()) {
      size_t next = end;
      const char32_t d = utf8_next(text, next);
      if (d == '-' || d == '(' || d == '{' || d == '[' || d == '<' || is_space(d)) break;
      end = next;
    }
    if (start) out += to_upper(text.substr(begin, i - begin)) + to_lower(text.substr(i, end - i));
    i = end;
    start = false;
  }
  return out;
}

Value indented(Heap& heap, const Value& value, const Arguments& a) {
  const Bound b(a, "indent", {"width", "first", "blank"}, 0);
  if (value.is(Kind::kUndefined)) fault_undefined(value);
  if (!value.is(Kind::kString)) fault("indent needs a string, not '{}'", type_name(value));
  std::string indention(4, ' ');
  if (b.given(0) && b[0]->is(Kind::kString)) {
    indention = b.text(0);
  } else if (b.given(0)) {
    const Int width = b.integer(0, 4);
    if (width > 10000) fault("an indent of {} is too large", int_text(width));
    indention.assign(static_cast<size_t>(std::max<Int>(width, 0)), ' ');
  }
  const bool blank = b.flag(2, false);
  const std::string text = value.text() + "\n";
  std::string out = b.flag(1, false) ? indention : "";
  bool first = true;
  for (const auto line : split_lines(text, false)) {
    heap.step(1 + indention.size() / 256);
    if (!first) {
      out += "\n";
      if (blank || !line.empty()) out += indention;
    }
    first = false;
    out += line;
    check_output(out);
  }
  return text_like(heap, value, std::move(out));
}

Value truncated(Heap& heap, const Value& value, const Arguments& a) {
  const Bound b(a, "truncate", {"length", "killwords", "end", "leeway"}, 0);
  const auto value_length = length_of(value);
  if (!value_length) fault("object of type '{}' has no len()", type_name(value));
  const Int length = b.integer(0, 255), leeway = b.integer(3, 5);
  const std::string end = b.text(2, "...");
  const auto end_length = static_cast<Int>(utf8_length(end));
  if (length < end_length || leeway < 0)
    fault("truncate: the length {} is below that of '{}'", int_text(length), end);
  if (static_cast<Int>(*value_length) <= length + leeway) return value;
  if (!value.is(Kind::kString)) fault("truncate can't shorten a '{}'", type_name(value));
  const std::string& text = value.text();
  std::string kept = text.substr(0, utf8_offset(text, static_cast<size_t>(length - end_length)));
  if (!b.flag(1, false)) {
    const size_t blank = kept.rfind(' ');
    if (blank != kept.npos) kept.resize(blank);
  }
  return text_like(heap, value, kept + end);
}

size_t count_words(std::string_view text) {
  size_t count = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = utf8_next(text, i);
    const bool word = c == '_' || is_alnum(c);
    count += word && !inside;
    inside = word;
  }
  return count;
}

std::string url_quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-' || c == '~' || c == '/';
    if (plain) {
      out.push_back(c);
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

Value formatted(Heap& heap, const Value& value, const Arguments& a) {
  if (!a.positional.empty() && !a.keywords.empty())
    fault("format can't handle positional and keyword arguments at the same time");
  const Value text = soft_text(heap, value);
  if (a.keywords.empty()) return format_percent(heap, text, heap.tuple(a.positional));
  auto* dict = heap.make<DictObject>();
  for (const auto& [name, given] : a.keywords) dict->set(heap.string(name), given);
  return format_percent(heap, text, Value::of(Kind::kDict, dict));
}

JsonStyle json_style(const Bound& b) {
  JsonStyle style;
  style.ascii = b.flag(0, false);
  if (b.given(1) && !b[1]->is(Kind::kNone)) {
    if (b[1]->is(Kind::kString)) {
      style.indent = b.text(1);
    } else {
      const Int width = b.integer(1, 0);
      if (width > 1000) fault("tojson: an indent of {} is too large", int_text(width));
      style.indent = std::string(static_cast<size_t>(std::max<Int>(width, 0)), ' ');
    }
    style.item_separator = ",";
  }
  if (b.given(2) && !b[2]->is(Kind::kNone)) {
    const Value& pair = *b[2];
    if (!pair.is_sequence() || pair.list().items.size() != 2 || !pair.list().items[0].is(Kind::kString) ||
        !pair.list().items[1].is(Kind::kString))
      fault("tojson: separators are a pair of strings");
    style.item_separator = pair.list().items[0].text();
    style.key_separator = pair.list().items[1].text();
  }
  style.sort_keys = b.flag(3, false);
  return style;
}

}  // namespace

std::optional<Value> text_filter(Interpreter& in, std::string_view name, const Value& value,
                                 const Arguments& a) {
  Heap& heap = in.heap();
  const auto none = [&] { Bound(a, name, {}, 0); };
  if (name == "trim") {
    const Bound b(a, name, {"chars"}, 0);
    const Value text = soft_text(heap, value);
    return text_like(
        heap, text,
        strip(text.text(), b.given(0) && !b[0]->is(Kind::kNone) ? &b.text(0) : nullptr, true, true));
  }
  if (name == "tojson") {
    const Bound b(a, name, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0);
    return heap.string(to_json(heap, value, json_style(b)));
  }
  if (name == "string") return none(), soft_text(heap, value);
  if (name == "upper" || name == "lower" || name == "capitalize" || name == "title") {
    none();
    const Value text = soft_text(heap, value);
    return text_like(heap, text,
                     name == "upper"   ? to_upper(text.text())
                     : name == "lower" ? to_lower(text.text())
                     : name == "title" ? title_words(text.text())
                                       : to_capitalized(text.text()));
  }
  if (name == "replace") {
    const Bound b(a, name, {"old", "new", "count"}, 2);
    const Int count = b.given(2) && !b[2]->is(Kind::kNone) ? b.integer(2, -1) : -1;
    return heap.string(replace_all(heap, to_text(value), to_text(*b[0]), to_text(*b[1]), count));
  }
  if (name == "safe") {
    none();
    Value text = soft_text(heap, value);
    text.markup = true;
    return text;
  }
  if (name == "e" || name == "escape" || name == "forceescape") {
    none();
    if (value.is(Kind::kString) && value.markup && name != "forceescape") return value;
    Value text = heap.string(html_escaped(to_text(value)));
    text.markup = true;
    return text;
  }
  if (name == "indent") return indented(heap, value, a);
  if (name == "truncate") return truncated(heap, value, a);
  if (name == "wordcount") return none(), Value::size(count_words(to_text(value)));
  if (name == "urlencode") {
    none();
    if (!value.is(Kind::kString) && iterable(value))
      fault("urlencode of a '{}' is not supported", type_name(value));
    return heap.string(url_quoted(to_text(value)));
  }
  if (name == "format") return formatted(heap, value, a);
  if (name == "center") {
    const Bound b(a, name, {"width"}, 0);
    Arguments width;
    width.positional.push_back(Value::of(b.integer(0, 80)));
    return call_string_method(heap, soft_text(heap, value), name, width);
  }
  return std::nullopt;
}

}  // namespace jinja
}  // namespace spillway
