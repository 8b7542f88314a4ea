#include "text/template/number.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "text/template/utf8.h"

namespace spillway {
namespace jinja {
namespace {

std::string_view stripped(std::string_view text) {
  size_t begin = 0, end = text.size();
  while (begin < end) {
    size_t next = begin;
    if (!is_space(utf8_next(text, next))) break;
    begin = next;
  }
  while (end > begin) {
    const size_t before = utf8_before(text, end);
    size_t next = before;
    if (!is_space(utf8_next(text, next))) break;
    end = before;
  }
  return text.substr(begin, end - begin);
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

}  // namespace

std::optional<Int> parse_int(std::string_view text, int base) {
  text = stripped(text);
  if (base != 0 && (base < 2 || base > 36)) fault("int() base must be >= 2 and <= 36, or 0");
  bool minus = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    minus = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.size() > 1 && text[0] == '0') {
    const char mark = text[1] | 0x20;
    const int by_prefix = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (by_prefix && (base == 0 || base == by_prefix)) {
      base = by_prefix;
      text.remove_prefix(2);
      if (!text.empty() && text[0] == '_') text.remove_prefix(1);
    }
  }
  if (base == 0) {
    base = 10;
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != text.npos) return std::nullopt;
  }
  if (text.empty()) return std::nullopt;
  Int value = 0;
  bool underscore_allowed = false, overflowed = false;
  for (const char c : text) {
    if (c == '_') {
      if (!underscore_allowed) return std::nullopt;
      underscore_allowed = false;
      continue;
    }
    const int digit = digit_value(c);
    if (digit >= base) return std::nullopt;
    overflowed |= __builtin_mul_overflow(value, Int{base}, &value);
    overflowed |= __builtin_add_overflow(value, Int{digit}, &value);
    underscore_allowed = true;
  }
  if (!underscore_allowed) return std::nullopt;
  if (overflowed) fault("the integer in a text has more than 128 bits");
  return minus ? -value : value;
}

std::optional<double> parse_float(std::string_view text) {
  text = stripped(text);
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') {
      const bool between =
          i > 0 && i + 1 < text.size() && digit_value(text[i - 1]) < 10 && digit_value(text[i + 1]) < 10;
      if (!between) return std::nullopt;
      continue;
    }
    plain.push_back(text[i]);
  }
  std::string_view rest = plain;
  bool minus = false;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    minus = rest[0] == '-';
    rest.remove_prefix(1);
  }
  double value = 0;
  std::string lower;
  for (const char c : rest) lower.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c);
  if (lower == "inf" || lower == "infinity") {
    value = HUGE_VAL;
  } else if (lower == "nan") {
    value = std::nan("");
  } else {
    if (rest.empty() || (digit_value(rest[0]) > 9 && rest[0] != '.')) return std::nullopt;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error == std::errc::invalid_argument || end != rest.data() + rest.size()) return std::nullopt;
    if (error == std::errc::result_out_of_range) value = std::strtod(std::string(rest).c_str(), nullptr);
  }
  return minus ? -value : value;
}

std::optional<Int> truncate(double real) {
  if (!std::isfinite(real)) return std::nullopt;
  if (std::fabs(real) >= 0x1p126) fault("a number with more than 128 bits");
  return static_cast<Int>(real);
}

double round_to(double real, int digits) {
  if (!std::isfinite(real) || digits > 308) return real;
  if (digits >= 0) {
    // glibc prints the exact binary value rounded half to even, which is what Python's round() is defined by.
    return std::strtod(fmt::format("{:.{}f}", real, digits).c_str(), nullptr);
  }
  if (digits < -308) return std::copysign(0.0, real);
  const double unit = std::pow(10.0, -digits);
  return std::nearbyint(real / unit) * unit;
}

Int round_to(Int value, int digits) {
  if (digits >= 0) return value;
  if (digits < -37) return 0;
  Int unit = 1;
  for (int i = 0; i < -digits; ++i) unit *= 10;
  Int rest = value % unit;
  if (rest < 0) rest += unit;
  const Int down = value - rest;
  const bool up = rest * 2 > unit || (rest * 2 == unit && (down / unit) % 2 != 0);
  return up ? down + unit : down;
}

}  // namespace jinja
}  // namespace spillway
