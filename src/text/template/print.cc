#include "text/template/print.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/limits.h"
#include "text/template/loop.h"
#include "text/template/macro.h"
#include "text/template/utf8.h"

namespace spillway {
namespace jinja {

std::string int_text(Int value) {
  // The magnitude of the least Int has no Int.
  unsigned __int128 rest =
      value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
    rest /= 10;
  } while (rest > 0);
  if (value < 0) digits.insert(digits.begin(), '-');
  return digits;
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string text(buffer, end);  // d.ddde[+-]dd
  const size_t e = text.find('e');
  const int exponent = std::atoi(text.c_str() + e + 1);
  const bool negative = text[0] == '-';
  std::string digits;
  for (size_t i = negative; i < e; ++i)
    if (text[i] != '.') digits.push_back(text[i]);
  std::string out = negative ? "-" : "";
  // Python's repr: an exponent below 1e-4 and from 1e16 on.
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string string_repr(std::string_view text) {
  const bool single = text.find('\'') != text.npos, both = single && text.find('"') != text.npos;
  const char quote = single && !both ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = utf8_next(text, i);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out.append(text.substr(start, i - start));
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  out.push_back(quote);
  return out;
}

void check_output(const std::string& out) {
  if (out.size() > limits::kMaxTemplateOutputBytes)
    fault("the template writes more than {} MiB of text", limits::kMaxTemplateOutputBytes >> 20);
}

namespace {

void append_items(std::string& out, const Values& items, int depth) {
  bool first = true;
  for (const Value& item : items) {
    if (!first) out += ", ";
    first = false;
    append_repr(out, item, depth + 1);
  }
}

void append_dict(std::string& out, const DictObject& dict, int depth) {
  out.push_back('{');
  bool first = true;
  for (const auto& [key, value] : dict.items) {
    if (!first) out += ", ";
    first = false;
    append_repr(out, key, depth + 1);
    out += ": ";
    append_repr(out, value, depth + 1);
  }
  out.push_back('}');
}

void append_view(std::string& out, const ViewObject& view, int depth) {
  out += view.what == ViewOf::kKeys     ? "dict_keys(["
         : view.what == ViewOf::kValues ? "dict_values(["
                                        : "dict_items([";
  bool first = true;
  for (const auto& [key, value] : view.of->items) {
    if (!first) out += ", ";
    first = false;
    if (view.what == ViewOf::kItems) out.push_back('(');
    if (view.what != ViewOf::kValues) append_repr(out, key, depth + 1);
    if (view.what == ViewOf::kItems) out += ", ";
    if (view.what != ViewOf::kKeys) append_repr(out, value, depth + 1);
    if (view.what == ViewOf::kItems) out.push_back(')');
  }
  out += "])";
}

}  // namespace

void append_repr(std::string& out, const Value& value, int depth) {
  if (depth > kMaxValueDepth) fault("a value is nested more than {} deep", kMaxValueDepth);
  check_output(out);
  switch (value.kind) {
    case Kind::kUndefined:
      out += "Undefined";
      return;
    case Kind::kNone:
      out += "None";
      return;
    case Kind::kBool:
      out += value.boolean ? "True" : "False";
      return;
    case Kind::kInt:
      out += int_text(value.integer);
      return;
    case Kind::kFloat:
      out += float_text(value.real);
      return;
    case Kind::kString:
      if (value.markup) {
        out += "Markup(" + string_repr(value.text()) + ")";
      } else {
        out += string_repr(value.text());
      }
      return;
    case Kind::kList:
      out.push_back('[');
      append_items(out, value.list().items, depth);
      out.push_back(']');
      return;
    case Kind::kTuple:
      out.push_back('(');
      append_items(out, value.list().items, depth);
      if (value.list().items.size() == 1) out.push_back(',');
      out.push_back(')');
      return;
    case Kind::kDict:
      append_dict(out, value.dict(), depth);
      return;
    case Kind::kRange: {
      const auto& range = value.range();
      out += "range(" + int_text(range.start) + ", " + int_text(range.stop);
      if (range.step != 1) out += ", " + int_text(range.step);
      out.push_back(')');
      return;
    }
    case Kind::kView:
      append_view(out, value.view(), depth);
      return;
    case Kind::kNamespace:
      out += "<Namespace ";
      append_dict(out, value.ns().attributes, depth);
      out.push_back('>');
      return;
    case Kind::kMacro: {
      const auto& macro = value.macro();
      out += macro.name.empty() ? "<Macro anonymous>" : "<Macro " + string_repr(macro.name) + ">";
      return;
    }
    case Kind::kLoop: {
      const auto& loop = value.loop();
      out += fmt::format("<LoopContext {}/{}>", loop.index0 + 1, loop.known_length());
      return;
    }
    // Python writes an address here; no template means to print these.
    case Kind::kMethod:
      out += fmt::format("<built-in method {} of {} object>", value.method().name,
                         type_name(value.method().self));
      return;
    case Kind::kIterator:
      out += fmt::format("<{} object>", type_name(value));
      return;
    case Kind::kFunction:
    case Kind::kCycler:
    case Kind::kJoiner:
      out += fmt::format("<{}>", type_name(value));
      return;
  }
}

void append_text(std::string& out, const Value& value) {
  if (value.is(Kind::kString)) {
    out += value.text();
  } else if (!value.is(Kind::kUndefined)) {
    append_repr(out, value);
  }
  check_output(out);
}

std::string to_text(const Value& value) {
  std::string out;
  append_text(out, value);
  return out;
}

std::string to_repr(const Value& value) {
  std::string out;
  append_repr(out, value);
  return out;
}

std::string html_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

}  // namespace jinja
}  // namespace spillway
