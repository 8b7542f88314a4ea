#include <algorithm>
#include <array>

#include "base/limits.h"
#include "text/template/format.h"
#include "text/template/methods.h"
#include "text/template/operators.h"
#include "text/template/print.h"
#include "text/template/utf8.h"

namespace spillway {
namespace jinja {

std::string strip(std::string_view text, const std::string* characters, bool left, bool right) {
  const auto drops = [&](char32_t c) {
    if (!characters) return is_space(c);
    for (size_t i = 0; i < characters->size();)
      if (utf8_next(*characters, i) == c) return true;
    return false;
  };
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    size_t next = begin;
    if (!drops(utf8_next(text, next))) break;
    begin = next;
  }
  while (right && end > begin) {
    const size_t before = utf8_before(text, end);
    size_t next = before;
    if (!drops(utf8_next(text, next))) break;
    end = before;
  }
  return std::string(text.substr(begin, end - begin));
}

std::string replace_all(Heap& heap, std::string_view text, std::string_view from, std::string_view to,
                        Int count) {
  heap.step(1 + text.size() / 256);
  std::string out;
  Int left = count < 0 ? Int{1} << 100 : count;
  if (from.empty()) {  // between all characters, and at both ends
    for (size_t i = 0; i < text.size();) {
      if (left > 0) out += to, --left;
      const size_t start = i;
      utf8_next(text, i);
      out.append(text.substr(start, i - start));
      check_output(out);
    }
    if (left > 0) out += to;
    return out;
  }
  size_t at = 0;
  while (left > 0) {
    const size_t hit = text.find(from, at);
    if (hit == text.npos) break;
    out.append(text.substr(at, hit - at));
    out += to;
    at = hit + from.size();
    --left;
    check_output(out);
  }
  out.append(text.substr(at));
  return out;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t here = i;
    const char32_t c = utf8_next(text, i);
    const bool breaks =
        (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!breaks) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(start, (keep_ends ? i : here) - start));
    start = i;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

namespace {

using Texts = std::vector<std::string_view>;

Texts split_space(std::string_view text, Int limit, bool from_right) {
  Texts parts;
  if (!from_right) {
    size_t i = 0;
    for (;;) {
      while (i < text.size()) {
        size_t next = i;
        if (!is_space(utf8_next(text, next))) break;
        i = next;
      }
      if (i >= text.size()) return parts;
      if (limit >= 0 && static_cast<Int>(parts.size()) >= limit) {
        parts.push_back(text.substr(i));
        return parts;
      }
      const size_t start = i;
      while (i < text.size()) {
        size_t next = i;
        if (is_space(utf8_next(text, next))) break;
        i = next;
      }
      parts.push_back(text.substr(start, i - start));
    }
  }
  size_t end = text.size();
  const auto space_before = [&](size_t at) {
    size_t start = utf8_before(text, at);
    return is_space(utf8_next(text, start));
  };
  for (;;) {
    while (end > 0 && space_before(end)) end = utf8_before(text, end);
    if (end == 0) break;
    if (limit >= 0 && static_cast<Int>(parts.size()) >= limit) {
      parts.push_back(text.substr(0, end));
      break;
    }
    const size_t stop = end;
    while (end > 0 && !space_before(end)) end = utf8_before(text, end);
    parts.push_back(text.substr(end, stop - end));
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Texts split_by(std::string_view text, std::string_view separator, Int limit, bool from_right) {
  if (separator.empty()) fault("empty separator");
  Texts parts;
  if (from_right) {
    size_t end = text.size();
    while (limit < 0 || static_cast<Int>(parts.size()) < limit) {
      const size_t hit = text.substr(0, end).rfind(separator);
      if (hit == text.npos) break;
      parts.push_back(text.substr(hit + separator.size(), end - hit - separator.size()));
      end = hit;
    }
    parts.push_back(text.substr(0, end));
    std::reverse(parts.begin(), parts.end());
    return parts;
  }
  size_t at = 0;
  while (limit < 0 || static_cast<Int>(parts.size()) < limit) {
    const size_t hit = text.find(separator, at);
    if (hit == text.npos) break;
    parts.push_back(text.substr(at, hit - at));
    at = hit + separator.size();
  }
  parts.push_back(text.substr(at));
  return parts;
}

Value text_list(Heap& heap, const Value& like, const Texts& parts) {
  Values items;
  for (const auto part : parts) heap.push(items, text_like(heap, like, std::string(part)));
  return heap.list(std::move(items));
}

// [start, end) of str.find and its kin, in code points, as byte offsets. Nothing if start lies past the end.
std::optional<std::pair<size_t, size_t>> window(const Value& self, const Bound& b, size_t start_at) {
  const auto length = static_cast<Int>(self.str->length);
  const auto clamp = [&](size_t which, Int otherwise) {
    if (!b.given(which) || b[which]->is(Kind::kNone)) return otherwise;
    const Int v = b.integer(which, otherwise);
    return v < 0 ? std::max<Int>(0, v + length) : v;
  };
  const Int start = clamp(start_at, 0), end = std::min(clamp(start_at + 1, length), length);
  if (start > length || start > end) return std::nullopt;
  return std::pair(utf8_offset(self.text(), static_cast<size_t>(start)),
                   utf8_offset(self.text(), static_cast<size_t>(end)));
}

bool starts_or_ends(Heap& heap, const Value& self, const Bound& b, bool starts) {
  const auto range = window(self, b, 1);
  const auto matches = [&](const Value& what) {
    if (!what.is(Kind::kString)) {
      if (what.is(Kind::kUndefined)) fault_undefined(what);
      fault("{} first arg must be str or a tuple of str, not {}", starts ? "startswith" : "endswith",
            type_name(what));
    }
    if (!range) return false;
    const auto text = std::string_view(self.text()).substr(range->first, range->second - range->first);
    return starts ? text.starts_with(what.text()) : text.ends_with(what.text());
  };
  heap.step();
  if (!b[0]->is(Kind::kTuple)) return matches(*b[0]);
  for (const Value& what : b[0]->list().items)
    if (matches(what)) return true;
  return false;
}

Int find_in(const Value& self, const Bound& b, bool from_right) {
  const std::string& what = b.text(0);
  const auto range = window(self, b, 1);
  if (!range) return -1;
  const auto text = std::string_view(self.text()).substr(0, range->second);
  size_t hit = from_right ? text.rfind(what) : text.find(what, range->first);
  if (hit == text.npos || hit < range->first) return -1;
  return static_cast<Int>(utf8_length(text.substr(0, hit)));
}

Int count_in(const Value& self, const Bound& b) {
  const std::string& what = b.text(0);
  const auto range = window(self, b, 1);
  if (!range) return 0;
  const auto text = std::string_view(self.text()).substr(range->first, range->second - range->first);
  if (what.empty()) return static_cast<Int>(utf8_length(text)) + 1;
  Int count = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

template <class Test>
bool all_characters(std::string_view text, Test test) {
  if (text.empty()) return false;
  for (size_t i = 0; i < text.size();)
    if (!test(utf8_next(text, i))) return false;
  return true;
}

std::string justify(const Value& self, const Bound& b, char where) {
  const Int width = b.integer(0, 0);
  const std::string fill = b.text(1, " ");
  if (utf8_length(fill) != 1) fault("The fill character must be exactly one character long");
  const auto length = static_cast<Int>(self.str->length);
  if (width <= length) return self.text();
  if (width > static_cast<Int>(limits::kMaxTemplateOutputBytes / 4))
    fault("a width of {} is too large", int_text(width));
  const auto missing = static_cast<size_t>(width - length);
  // str.center puts the odd blank left when the width is odd.
  const size_t left = where == '<'   ? 0
                      : where == '>' ? missing
                                     : missing / 2 + (missing & static_cast<size_t>(width) & 1);
  std::string out;
  for (size_t i = 0; i < left; ++i) out += fill;
  out += self.text();
  for (size_t i = left; i < missing; ++i) out += fill;
  return out;
}

std::string zero_filled(const Value& self, Int width) {
  const auto length = static_cast<Int>(self.str->length);
  if (width <= length) return self.text();
  if (width > static_cast<Int>(limits::kMaxTemplateOutputBytes))
    fault("a width of {} is too large", int_text(width));
  const size_t sign = !self.text().empty() && (self.text()[0] == '-' || self.text()[0] == '+');
  std::string out = self.text();
  out.insert(sign, static_cast<size_t>(width - length), '0');
  return out;
}

std::string expand_tabs(Heap& heap, std::string_view text, Int size) {
  std::string out;
  Int column = 0;
  if (size > 1000) fault("expandtabs of {} is too large", int_text(size));
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = utf8_next(text, i);
    if (c == '\t') {
      const Int blanks = size > 0 ? size - column % size : 0;
      out.append(static_cast<size_t>(blanks), ' ');
      heap.step(1 + static_cast<uint64_t>(blanks) / 256);
      column += blanks;
    } else {
      out.append(text.substr(start, i - start));
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
    check_output(out);
  }
  return out;
}

bool is_titlecased(std::string_view text) {
  bool any = false, inside = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = utf8_next(text, i);
    if (is_upper(c) || is_title(c)) {
      if (inside) return false;
      any = inside = true;
    } else if (is_lower(c)) {
      if (!inside) return false;
      any = true;
    } else {
      inside = false;
    }
  }
  return any;
}

Value partition(Heap& heap, const Value& self, const Bound& b, bool from_right) {
  const std::string &text = self.text(), &separator = b.text(0);
  if (separator.empty()) fault("empty separator");
  const size_t hit = from_right ? text.rfind(separator) : text.find(separator);
  const bool found = hit != text.npos;
  std::string parts[3] = {text, "", ""};
  if (found) {
    parts[0] = text.substr(0, hit), parts[1] = separator, parts[2] = text.substr(hit + separator.size());
  } else if (from_right) {
    std::swap(parts[0], parts[2]);
  }
  Values items;
  for (auto& part : parts) heap.push(items, text_like(heap, self, std::move(part)));
  return heap.tuple(std::move(items));
}

Value join_texts(Heap& heap, const Value& self, const Value& parts) {
  std::string out;
  bool first = true;
  size_t index = 0;
  iterate(heap, parts, [&](const Value& part) {
    if (!part.is(Kind::kString))
      fault("sequence item {}: expected str instance, {} found", index, type_name(part));
    if (!first) out += self.text();
    first = false;
    out += self.markup && !part.markup ? html_escaped(part.text()) : part.text();
    check_output(out);
    ++index;
    return true;
  });
  return text_like(heap, self, std::move(out));
}

const std::string* optional_text(const Bound& b, size_t i) {
  return !b.given(i) || b[i]->is(Kind::kNone) ? nullptr : &b.text(i);
}

}  // namespace

Value call_string_method(Heap& heap, const Value& self, std::string_view name, const Arguments& arguments) {
  const std::string& text = self.text();
  heap.step(1 + text.size() / 256);
  const auto like = [&](std::string out) { return text_like(heap, self, std::move(out)); };
  const auto bind = [&](std::initializer_list<std::string_view> names, size_t required) {
    return Bound(arguments, name, names, required);
  };
  // Only these convert or test the whole string and take nothing.
  if (name == "upper") return bind({}, 0), like(to_upper(text));
  if (name == "lower") return bind({}, 0), like(to_lower(text));
  if (name == "casefold") return bind({}, 0), like(to_lower(text));
  if (name == "title") return bind({}, 0), like(to_title(text));
  if (name == "capitalize") return bind({}, 0), like(to_capitalized(text));
  if (name == "swapcase") return bind({}, 0), like(to_swapcase(text));
  if (name == "isspace") return Value::of(all_characters(text, is_space));
  if (name == "isalpha") return Value::of(all_characters(text, is_alpha));
  if (name == "isdigit")
    return Value::of(all_characters(text, [](char32_t c) { return is_digit(c) || is_decimal(c); }));
  if (name == "isdecimal") return Value::of(all_characters(text, is_decimal));
  if (name == "isnumeric") return Value::of(all_characters(text, is_numeric));
  if (name == "isalnum") return Value::of(all_characters(text, is_alnum));
  if (name == "isascii") return Value::of(self.str->ascii());
  if (name == "isprintable") return Value::of(text.empty() || all_characters(text, is_printable));
  if (name == "istitle") return Value::of(is_titlecased(text));
  if (name == "isupper" || name == "islower") {
    const bool upper = name == "isupper";
    bool any = false;
    for (size_t i = 0; i < text.size();) {
      const char32_t c = utf8_next(text, i);
      if ((upper ? is_lower(c) : is_upper(c)) || is_title(c)) return Value::of(false);
      any |= upper ? is_upper(c) : is_lower(c);
    }
    return Value::of(any);
  }
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const Bound b = bind({"chars"}, 0);
    return like(strip(text, optional_text(b, 0), name != "rstrip", name != "lstrip"));
  }
  if (name == "split" || name == "rsplit") {
    const Bound b = bind({"sep", "maxsplit"}, 0);
    const std::string* separator = optional_text(b, 0);
    const Int limit = b.integer(1, -1);
    const bool right = name == "rsplit";
    return text_list(heap, self,
                     separator ? split_by(text, *separator, limit, right) : split_space(text, limit, right));
  }
  if (name == "splitlines") {
    const Bound b = bind({"keepends"}, 0);
    return text_list(heap, self, split_lines(text, b.flag(0, false)));
  }
  if (name == "startswith" || name == "endswith")
    return Value::of(starts_or_ends(heap, self, bind({"prefix", "start", "end"}, 1), name == "startswith"));
  if (name == "replace") {
    const Bound b = bind({"old", "new", "count"}, 2);
    std::string to = b.text(1);
    if (self.markup && !b[1]->markup) to = html_escaped(to);
    return like(replace_all(heap, text, b.text(0), to, b.integer(2, -1)));
  }
  if (name == "join") return join_texts(heap, self, *bind({"iterable"}, 1)[0]);
  if (name == "find") return Value::of(find_in(self, bind({"sub", "start", "end"}, 1), false));
  if (name == "rfind") return Value::of(find_in(self, bind({"sub", "start", "end"}, 1), true));
  if (name == "index" || name == "rindex") {
    const Int at = find_in(self, bind({"sub", "start", "end"}, 1), name == "rindex");
    if (at < 0) fault("substring not found");
    return Value::of(at);
  }
  if (name == "count") return Value::of(count_in(self, bind({"sub", "start", "end"}, 1)));
  if (name == "removeprefix") {
    const Bound b = bind({"prefix"}, 1);
    return like(text.starts_with(b.text(0)) ? text.substr(b.text(0).size()) : text);
  }
  if (name == "removesuffix") {
    const Bound b = bind({"suffix"}, 1);
    const std::string& suffix = b.text(0);
    return like(!suffix.empty() && text.ends_with(suffix) ? text.substr(0, text.size() - suffix.size())
                                                          : text);
  }
  if (name == "partition") return partition(heap, self, bind({"sep"}, 1), false);
  if (name == "rpartition") return partition(heap, self, bind({"sep"}, 1), true);
  if (name == "center") return like(justify(self, bind({"width", "fillchar"}, 1), '^'));
  if (name == "ljust") return like(justify(self, bind({"width", "fillchar"}, 1), '<'));
  if (name == "rjust") return like(justify(self, bind({"width", "fillchar"}, 1), '>'));
  if (name == "zfill") return like(zero_filled(self, bind({"width"}, 1).integer(0, 0)));
  if (name == "expandtabs") return like(expand_tabs(heap, text, bind({"tabsize"}, 0).integer(0, 8)));
  if (name == "format") return format_braces(heap, self, arguments);
  fault("the string method '{}' is not supported", name);
}

}  // namespace jinja
}  // namespace spillway
