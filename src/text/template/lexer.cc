#include "text/template/lexer.h"

#include <charconv>
#include <cmath>

#include "text/template/utf8.h"

namespace spillway {
namespace jinja {

std::string place(uint32_t line, uint32_t column) {
  return fmt::format("line {}, column {}: ", line, column);
}

void fault_at(uint32_t line, uint32_t column, std::string_view message) {
  throw Fault{Error::Kind::kInvalid, place(line, column) + std::string(message)};
}

namespace {

bool ascii_digit(char c) { return c >= '0' && c <= '9'; }
bool ascii_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

int hex_value(char c) {
  if (ascii_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string normalize_newlines(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      out.push_back('\n');
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) root();
    add(Tok::kEnd, at_);
    return std::move(tokens_);
  }

 private:
  // ---- places

  // Offsets are asked for in ascending order, so lines are counted once.
  std::pair<uint32_t, uint32_t> place_of(size_t offset) {
    while (counted_ < offset && counted_ < source_.size()) {
      if (source_[counted_++] == '\n') ++line_, line_start_ = counted_;
    }
    return {line_, static_cast<uint32_t>(offset >= line_start_ ? offset - line_start_ + 1 : 1)};
  }

  [[noreturn]] void fail(size_t offset, std::string_view message) {
    line_ = 1, counted_ = 0, line_start_ = 0;  // the place may lie before what was counted
    const auto [line, column] = place_of(offset);
    fault_at(line, column, message);
  }

  Token& add(Tok type, size_t offset) {
    Token token;
    token.type = type;
    std::tie(token.line, token.column) = place_of(offset);
    tokens_.push_back(std::move(token));
    return tokens_.back();
  }

  // ---- text outside of tags

  bool starts(size_t offset, std::string_view what) const {
    return source_.compare(offset, what.size(), what) == 0;
  }

  size_t skip_space(size_t offset) const {
    while (offset < source_.size()) {
      size_t next = offset;
      if (!is_space(utf8_next(source_, next))) break;
      offset = next;
    }
    return offset;
  }

  void add_data(size_t begin, size_t end) {
    if (begin < end) add(Tok::kData, begin).text = source_.substr(begin, end - begin);
  }

  // The end of the text [begin, end) before a tag, by the sign in the tag and, for blocks, lstrip_blocks.
  size_t stripped_end(size_t begin, size_t end, char sign, bool block) const {
    if (sign == '-') {
      while (end > begin) {
        const size_t before = utf8_before(source_, end);
        size_t next = before;
        if (!is_space(utf8_next(source_, next))) break;
        end = before;
      }
    } else if (sign != '+' && block) {
      size_t line = end;
      while (line > begin && source_[line - 1] != '\n') --line;
      if ((line > begin || line_starting_) && line < end && skip_space(line) >= end) return line;
    }
    return end;
  }

  // At the end of a tag: the closing characters with their sign, and the whitespace they take.
  // Returns false if the tag doesn't end here.
  bool close_tag(std::string_view end, bool block) {
    if (starts(at_, end)) {
      at_ += end.size();
      if (block && at_ < source_.size() && source_[at_] == '\n') ++at_;
    } else if (at_ < source_.size() && source_[at_] == '-' && starts(at_ + 1, end)) {
      at_ = skip_space(at_ + 1 + end.size());
    } else if (block && at_ < source_.size() && source_[at_] == '+' && starts(at_ + 1, end)) {
      at_ += 1 + end.size();
    } else {
      return false;
    }
    line_starting_ = source_[at_ - 1] == '\n';
    return true;
  }

  void root() {
    size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos || tag + 1 >= source_.size()) {
        add_data(at_, source_.size());
        at_ = source_.size();
        return;
      }
      const char c = source_[tag + 1];
      if (c == '{' || c == '%' || c == '#') break;
    }
    const char type = source_[tag + 1];
    size_t inside = tag + 2;
    char sign = 0;
    if (inside < source_.size() && (source_[inside] == '-' || source_[inside] == '+'))
      sign = source_[inside++];
    add_data(at_, stripped_end(at_, tag, sign, type != '{'));
    at_ = inside;
    line_starting_ = false;
    if (type == '#') return comment(tag);
    if (type == '%' && raw(tag)) return;
    this->tag(tag, type == '%');
  }

  void comment(size_t tag) {
    for (size_t i = at_;; ++i) {
      i = source_.find("#}", i);
      if (i == std::string::npos && at_ == source_.size()) return;  // Jinja misses it at the very end
      if (i == std::string::npos) fail(tag, "the comment {# has no end #}");
      const bool sign = i > at_ && (source_[i - 1] == '-' || source_[i - 1] == '+');
      at_ = sign ? i - 1 : i;
      close_tag("#}", true);
      return;
    }
  }

  // {% raw %}: everything up to {% endraw %} is text.
  bool raw(size_t tag) {
    size_t i = skip_space(at_);
    if (!starts(i, "raw")) return false;
    i = skip_space(i + 3);
    if (starts(i, "-%}")) {
      i = skip_space(i + 3);
    } else if (starts(i, "%}")) {
      i += 2;
    } else {
      return false;
    }
    line_starting_ = source_[i - 1] == '\n';
    const size_t begin = i;
    for (size_t end = begin;; ++end) {
      end = source_.find("{%", end);
      if (end == std::string::npos) fail(tag, "{% raw %} has no {% endraw %}");
      size_t k = end + 2;
      char sign = 0;
      if (k < source_.size() && (source_[k] == '-' || source_[k] == '+')) sign = source_[k++];
      k = skip_space(k);
      if (!starts(k, "endraw")) continue;
      k = skip_space(k + 6);
      const size_t before = at_;
      at_ = k;
      const size_t data_end = stripped_end(begin, end, sign, true);
      if (!close_tag("%}", true)) {
        at_ = before;
        continue;
      }
      add_data(begin, data_end);
      return true;
    }
  }

  // ---- inside {{ }} and {% %}

  void tag(size_t begin, bool block) {
    add(block ? Tok::kBlockBegin : Tok::kVariableBegin, begin);
    const std::string_view end = block ? "%}" : "}}";
    std::string open;  // brackets waiting for their partner: inside them "}}" is two braces
    for (;;) {
      if (at_ >= source_.size())
        fail(begin, block ? "the tag {% has no end %}" : "the expression {{ has no end }}");
      const size_t start = at_;
      if (open.empty() && close_tag(end, block)) {
        add(block ? Tok::kBlockEnd : Tok::kVariableEnd, start);
        return;
      }
      const char c = source_[at_];
      size_t next = at_;
      const char32_t wide = utf8_next(source_, next);
      if (is_space(wide)) {
        at_ = next;
      } else if (ascii_digit(c)) {
        number();
      } else if (ascii_alpha(c) || c == '_' || (wide >= 0x80 && is_alpha(wide))) {
        name();
      } else if (c == '\'' || c == '"') {
        string(c);
      } else {
        operation(open);
      }
    }
  }

  void name() {
    const size_t start = at_;
    while (at_ < source_.size()) {
      size_t next = at_;
      const char32_t c = utf8_next(source_, next);
      if (!(c < 0x80 ? ascii_alpha(static_cast<char>(c)) || ascii_digit(static_cast<char>(c)) || c == '_'
                     : is_alnum(c)))
        break;
      at_ = next;
    }
    add(Tok::kName, start).text = source_.substr(start, at_ - start);
  }

  // Digits with single underscores between them; the end of the run that starts at `i`, or `i`.
  size_t digits(size_t i) const {
    if (i >= source_.size() || !ascii_digit(source_[i])) return i;
    while (i < source_.size()) {
      if (ascii_digit(source_[i])) {
        ++i;
      } else if (source_[i] == '_' && i + 1 < source_.size() && ascii_digit(source_[i + 1])) {
        ++i;
      } else {
        break;
      }
    }
    return i;
  }

  static std::string without_underscores(std::string_view text) {
    std::string out;
    for (const char c : text)
      if (c != '_') out.push_back(c);
    return out;
  }

  void number() {
    const size_t start = at_;
    size_t end = digits(at_);
    bool is_float = false;
    // "x.0.1" is two subscripts: no float directly after a dot
    const bool after_dot = start > 0 && source_[start - 1] == '.';
    if (!after_dot) {
      size_t i = end;
      if (i + 1 < source_.size() && source_[i] == '.' && ascii_digit(source_[i + 1])) {
        i = digits(i + 1);
        is_float = true;
      }
      if (i < source_.size() && (source_[i] == 'e' || source_[i] == 'E')) {
        size_t k = i + 1;
        if (k < source_.size() && (source_[k] == '+' || source_[k] == '-')) ++k;
        if (digits(k) > k) {
          i = digits(k);
          is_float = true;
        }
      }
      if (is_float) end = i;
    }
    if (is_float) {
      at_ = end;
      const std::string text = without_underscores(std::string_view(source_).substr(start, end - start));
      double value = 0;
      const auto [unused, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error == std::errc::result_out_of_range) value = text.find("e-") != text.npos ? 0.0 : HUGE_VAL;
      add(Tok::kFloat, start).real = value;
      return;
    }
    integer(start, end);
  }

  void integer(size_t start, size_t end) {
    int base = 10;
    size_t i = start;
    if (source_[start] == '0' && start + 1 < source_.size()) {
      const char mark = source_[start + 1] | 0x20;
      const int other = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
      size_t first = start + 2;
      if (other && first < source_.size() && source_[first] == '_') ++first;
      if (other && first < source_.size() && hex_value(source_[first]) >= 0 &&
          hex_value(source_[first]) < other) {
        base = other;
        i = first;
        end = i;
        while (end < source_.size()) {
          const int v = hex_value(source_[end]);
          const bool joint = source_[end] == '_' && end + 1 < source_.size() &&
                             hex_value(source_[end + 1]) >= 0 && hex_value(source_[end + 1]) < other;
          if (!joint && (v < 0 || v >= other)) break;
          ++end;
        }
      } else {
        // "007" is three zeros and a seven to Jinja, which no parse accepts
        size_t zeros = start;
        while (zeros < end && (source_[zeros] == '0' || source_[zeros] == '_')) ++zeros;
        if (zeros < end) fail(start, "a decimal number may not start with 0");
      }
    }
    Int value = 0;
    for (; i < end; ++i) {
      if (source_[i] == '_') continue;
      if (__builtin_mul_overflow(value, Int{base}, &value) ||
          __builtin_add_overflow(value, Int{hex_value(source_[i])}, &value))
        fail(start, "the integer has more than 128 bits");
    }
    at_ = end;
    add(Tok::kInteger, start).integer = value;
  }

  void string(char quote) {
    const size_t start = at_++;
    size_t end = at_;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail(start, "the string has no end");
    std::string text = unescape(start, std::string_view(source_).substr(at_, end - at_));
    at_ = end + 1;
    add(Tok::kString, start).text = std::move(text);
  }

  std::string unescape(size_t start, std::string_view raw) {
    std::string out;
    out.reserve(raw.size());
    for (size_t i = 0; i < raw.size();) {
      if (raw[i] != '\\') {
        out.push_back(raw[i++]);
        continue;
      }
      const char c = raw[i + 1];  // the scan for the end never stops behind a lone backslash
      i += 2;
      switch (c) {
        case '\n':
          break;
        case '\\':
          out.push_back('\\');
          break;
        case '\'':
          out.push_back('\'');
          break;
        case '"':
          out.push_back('"');
          break;
        case 'a':
          out.push_back('\a');
          break;
        case 'b':
          out.push_back('\b');
          break;
        case 'f':
          out.push_back('\f');
          break;
        case 'n':
          out.push_back('\n');
          break;
        case 'r':
          out.push_back('\r');
          break;
        case 't':
          out.push_back('\t');
          break;
        case 'v':
          out.push_back('\v');
          break;
        case 'x':
          utf8_append(out, hex_escape(start, raw, i, 2));
          break;
        case 'u':
          utf8_append(out, hex_escape(start, raw, i, 4));
          break;
        case 'U':
          utf8_append(out, hex_escape(start, raw, i, 8));
          break;
        case 'N':
          fail(start, "character names (\\N{...}) are not supported: write \\u and the number");
        default:
          if (c >= '0' && c <= '7') {
            char32_t value = static_cast<char32_t>(c - '0');
            for (int k = 0; k < 2 && i < raw.size() && raw[i] >= '0' && raw[i] <= '7'; ++k)
              value = value * 8 + static_cast<char32_t>(raw[i++] - '0');
            utf8_append(out, value);
          } else {
            out.push_back('\\');
            out.push_back(c);  // possibly the lead byte of a character, whose rest follows as it is
          }
      }
    }
    return out;
  }

  char32_t hex_escape(size_t start, std::string_view raw, size_t& i, int count) {
    char32_t value = 0;
    for (int k = 0; k < count; ++k, ++i) {
      const int v = i < raw.size() ? hex_value(raw[i]) : -1;
      if (v < 0) fail(start, fmt::format("the escape needs {} hexadecimal digits", count));
      value = value * 16 + static_cast<char32_t>(v);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
      fail(start, "the escape names no character (half of a surrogate pair, or past U+10FFFF)");
    return value;
  }

  void operation(std::string& open) {
    static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view kOne = "+-/*%~[](){}><=.:|,;";
    const size_t start = at_;
    std::string text;
    for (const auto two : kTwo)
      if (starts(at_, two)) text = two;
    if (text.empty()) {
      if (kOne.find(source_[at_]) == kOne.npos) {
        size_t next = at_;
        utf8_next(source_, next);
        fail(start, fmt::format("unexpected character '{}'", source_.substr(start, next - start)));
      }
      text = source_[at_];
    }
    const char c = text[0];
    if (c == '(' || c == '[' || c == '{') {
      open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) fail(start, fmt::format("unexpected '{}'", c));
      if (open.back() != c) fail(start, fmt::format("unexpected '{}', expected '{}'", c, open.back()));
      open.pop_back();
    }
    at_ += text.size();
    add(Tok::kOperator, start).text = std::move(text);
  }

  const std::string source_;
  size_t at_ = 0;
  bool line_starting_ = true;  // nothing but whitespace can be between the last newline and at_
  std::vector<Token> tokens_;
  size_t counted_ = 0, line_start_ = 0;
  uint32_t line_ = 1;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  if (!utf8_valid(source)) fault("the template is not valid UTF-8");
  std::string text = normalize_newlines(source);
  if (!text.empty() && text.back() == '\n') text.pop_back();  // Jinja drops one newline at the very end
  return Lexer(std::move(text)).run();
}

}  // namespace jinja
}  // namespace spillway
