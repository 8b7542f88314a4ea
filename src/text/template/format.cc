#include "text/template/format.h"

#include <cmath>

#include "text/template/number.h"
#include "text/template/operators.h"
#include "text/template/print.h"
#include "text/template/utf8.h"

namespace spillway {
namespace jinja {
namespace {

// Wider than any table; keeps a format from asking for gigabytes of blanks.
constexpr size_t kMaxWidth = 10000;

struct Spec {
  std::string fill = " ";
  char align = 0;  // < > ^ =
  char sign = '-';
  bool alternate = false, comma = false, underscore = false;
  size_t width = 0;
  std::optional<int> precision;
  char type = 0;
};

bool digit(char c) { return c >= '0' && c <= '9'; }

size_t read_number(std::string_view text, size_t& i) {
  size_t value = 0;
  while (i < text.size() && digit(text[i])) {
    value = value * 10 + static_cast<size_t>(text[i++] - '0');
    if (value > kMaxWidth) fault("a width or precision in a format is above {}", kMaxWidth);
  }
  return value;
}

std::string pad(const std::string& text, const Spec& spec, char usual, size_t sign_length = 0) {
  const size_t length = utf8_length(text);
  if (length >= spec.width) return text;
  const size_t missing = spec.width - length;
  const char align = spec.align ? spec.align : usual;
  const auto fill = [&](size_t count) {
    std::string out;
    for (size_t i = 0; i < count; ++i) out += spec.fill;
    return out;
  };
  switch (align) {
    case '>':
      return fill(missing) + text;
    case '^':
      return fill(missing / 2) + text + fill(missing - missing / 2);
    case '=':
      return text.substr(0, sign_length) + fill(missing) + text.substr(sign_length);
    default:
      return text + fill(missing);
  }
}

std::string grouped(const std::string& digits, char separator, size_t every) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % every == 0) out.push_back(separator);
    out.push_back(digits[i]);
  }
  return out;
}

std::string magnitude(Int value, unsigned base, bool upper) {
  unsigned __int128 rest =
      value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  const std::string_view digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  do {
    out.insert(out.begin(), digits[static_cast<size_t>(rest % base)]);
    rest /= base;
  } while (rest > 0);
  return out;
}

// A real number's digits without sign, as C's printf writes them for f, e and g.
std::string real_digits(double value, char type, int precision, bool alternate) {
  const double positive = std::fabs(value);
  if (std::isnan(value)) return type < 'a' ? "NAN" : "nan";
  if (std::isinf(value)) return type < 'a' ? "INF" : "inf";
  switch (type) {
    case 'f':
    case 'F':
      return alternate ? fmt::format("{:#.{}f}", positive, precision)
                       : fmt::format("{:.{}f}", positive, precision);
    case 'e':
      return alternate ? fmt::format("{:#.{}e}", positive, precision)
                       : fmt::format("{:.{}e}", positive, precision);
    case 'E':
      return alternate ? fmt::format("{:#.{}E}", positive, precision)
                       : fmt::format("{:.{}E}", positive, precision);
    case 'G':
      return alternate ? fmt::format("{:#.{}G}", positive, precision)
                       : fmt::format("{:.{}G}", positive, precision);
    default:
      return alternate ? fmt::format("{:#.{}g}", positive, precision)
                       : fmt::format("{:.{}g}", positive, precision);
  }
}

std::string signed_number(bool negative, const std::string& prefix, const std::string& digits,
                          const Spec& spec) {
  std::string head = negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
  head += prefix;
  return pad(head + digits, spec, '>', head.size());
}

std::string format_int(Int value, const Spec& spec) {
  const char type = spec.type ? spec.type : 'd';
  const unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  std::string digits = magnitude(value, base, type == 'X');
  if (spec.precision && digits.size() < static_cast<size_t>(*spec.precision))
    digits.insert(0, static_cast<size_t>(*spec.precision) - digits.size(), '0');
  if (spec.comma) digits = grouped(digits, ',', 3);
  if (spec.underscore) digits = grouped(digits, '_', base == 10 ? 3 : 4);
  const std::string prefix = spec.alternate && base != 10 ? std::string("0") + type : "";
  return signed_number(value < 0, prefix, digits, spec);
}

std::string format_real(double value, const Spec& spec) {
  std::string digits;
  if (spec.type == '%') {
    digits = real_digits(value * 100, 'f', spec.precision.value_or(6), spec.alternate) + "%";
  } else if (!spec.type && !spec.precision) {
    digits = float_text(std::fabs(value));
  } else {
    const char type = spec.type ? spec.type : 'g';
    digits = real_digits(value, type, spec.precision.value_or(6), spec.alternate);
    // Without a type, a number that looks whole keeps a ".0".
    if (!spec.type && digits.find_first_of(".en") == digits.npos) digits += ".0";
  }
  if (spec.comma || spec.underscore) {
    const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
    digits = grouped(digits.substr(0, whole), spec.comma ? ',' : '_', 3) + digits.substr(whole);
  }
  return signed_number(std::signbit(value) && !std::isnan(value), "", digits, spec);
}

std::string cut(const std::string& text, const std::optional<int>& precision) {
  return precision ? text.substr(0, utf8_offset(text, static_cast<size_t>(*precision))) : text;
}

Int needed_int(const Value& value, char type) {
  if (value.is(Kind::kUndefined)) fault_undefined(value);
  if (value.is(Kind::kFloat) && (type == 'd' || type == 'i' || type == 'u')) {
    const auto whole = truncate(value.real);
    if (!whole) fault("cannot convert float {} to integer", float_text(value.real));
    return *whole;
  }
  if (!value.is(Kind::kInt) && !value.is(Kind::kBool))
    fault("%{} format: a number is required, not {}", type, type_name(value));
  return value.as_int();
}

std::string percent_one(const Value& value, const Spec& spec) {
  switch (spec.type) {
    case 's':
      return pad(cut(to_text(value), spec.precision), spec, '>');
    case 'r':
    case 'a':
      return pad(cut(to_repr(value), spec.precision), spec, '>');
    case 'c': {
      if (value.is(Kind::kString) && value.str->length == 1) return pad(value.text(), spec, '>');
      const Int code = needed_int(value, 'c');
      if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) fault("%c needs a character");
      std::string out;
      utf8_append(out, static_cast<char32_t>(code));
      return pad(out, spec, '>');
    }
    case 'd':
    case 'i':
    case 'u': {
      Spec plain = spec;
      plain.type = 'd';
      return format_int(needed_int(value, spec.type), plain);
    }
    case 'x':
    case 'X':
    case 'o':
      return format_int(needed_int(value, spec.type), spec);
    default: {
      if (value.is(Kind::kUndefined)) fault_undefined(value);
      if (!value.is_number()) fault("must be real number, not {}", type_name(value));
      return format_real(value.as_double(), spec);
    }
  }
}

Spec parse_spec(std::string_view text) {
  Spec spec;
  size_t i = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!text.empty()) {
    size_t after_first = 0;
    utf8_next(text, after_first);
    if (after_first < text.size() && is_align(text[after_first])) {
      spec.fill = std::string(text.substr(0, after_first));
      spec.align = text[after_first];
      i = after_first + 1;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      i = 1;
    }
  }
  if (i < text.size() && (text[i] == '+' || text[i] == '-' || text[i] == ' ')) spec.sign = text[i++];
  if (i < text.size() && text[i] == '#') spec.alternate = true, ++i;
  if (i < text.size() && text[i] == '0') {
    ++i;
    if (!spec.align) spec.align = '=', spec.fill = "0";
  }
  spec.width = read_number(text, i);
  if (i < text.size() && text[i] == ',') spec.comma = true, ++i;
  if (i < text.size() && text[i] == '_') spec.underscore = true, ++i;
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (i >= text.size() || !digit(text[i])) fault("a format specification lacks its precision");
    spec.precision = static_cast<int>(read_number(text, i));
  }
  if (i < text.size()) spec.type = text[i++];
  if (i != text.size()) fault("invalid format specification '{}'", text);
  return spec;
}

std::string format_spec(const Value& value, std::string_view text) {
  if (text.empty()) return to_text(value);
  const Spec spec = parse_spec(text);
  const std::string_view types = value.is(Kind::kString) ? "s" : "bcdeEfFgGnoxX%";
  if (spec.type && types.find(spec.type) == types.npos)
    fault("unknown format code '{}' for object of type '{}'", spec.type, type_name(value));
  if (value.is(Kind::kString)) return pad(cut(value.text(), spec.precision), spec, '<');
  if (value.is(Kind::kInt) || (value.is(Kind::kBool) && spec.type)) {
    if (spec.type && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos)
      return format_real(value.as_double(), spec);
    if (spec.precision) fault("precision not allowed in integer format specifier");
    return format_int(value.as_int(), spec);
  }
  if (value.is(Kind::kFloat)) return format_real(value.real, spec);
  if (value.is(Kind::kBool)) return pad(to_text(value), spec, '<');
  fault("unsupported format string passed to {}.__format__", type_name(value));
}

}  // namespace

Value format_percent(Heap& heap, const Value& format, const Value& values) {
  const std::string& text = format.text();
  std::string out;
  size_t used = 0;
  const Values* tuple = values.is(Kind::kTuple) ? &values.list().items : nullptr;
  const size_t available = tuple ? tuple->size() : 1;
  const auto next = [&]() -> const Value& {
    if (used >= available) fault("not enough arguments for format string");
    return tuple ? (*tuple)[used++] : (++used, values);
  };
  bool by_name = false;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '%') {
      out.push_back(text[i++]);
      continue;
    }
    heap.step();
    ++i;
    Spec spec;
    const Value* named = nullptr;
    Value held;
    if (i < text.size() && text[i] == '(') {
      const size_t close = text.find(')', i);
      if (close == text.npos) fault("incomplete format key");
      if (!values.is(Kind::kDict)) fault("format requires a mapping");
      named = values.dict().find(std::string_view(text).substr(i + 1, close - i - 1));
      if (!named) fault("the format names '{}', which is not given", text.substr(i + 1, close - i - 1));
      by_name = true;
      i = close + 1;
    }
    bool zero = false;
    for (; i < text.size(); ++i) {
      if (text[i] == '-') {
        spec.align = '<';
      } else if (text[i] == '0') {
        zero = true;
      } else if (text[i] == '+' || (text[i] == ' ' && spec.sign != '+')) {
        spec.sign = text[i];
      } else if (text[i] == '#') {
        spec.alternate = true;
      } else if (text[i] != ' ') {
        break;
      }
    }
    const auto star = [&] {
      ++i;
      const Int width = needed_int(next(), 'd');
      if (width < -Int{kMaxWidth} || width > Int{kMaxWidth})
        fault("a width in a format is above {}", kMaxWidth);
      return width;
    };
    if (i < text.size() && text[i] == '*') {
      const Int width = star();
      if (width < 0) spec.align = '<';
      spec.width = static_cast<size_t>(width < 0 ? -width : width);
    } else {
      spec.width = read_number(text, i);
    }
    if (i < text.size() && text[i] == '.') {
      ++i;
      if (i < text.size() && text[i] == '*') {
        spec.precision = static_cast<int>(std::max<Int>(0, star()));
      } else {
        spec.precision = static_cast<int>(read_number(text, i));
      }
    }
    while (i < text.size() && (text[i] == 'l' || text[i] == 'h' || text[i] == 'L')) ++i;
    if (i >= text.size()) fault("incomplete format");
    spec.type = text[i++];
    if (spec.type == '%') {
      out.push_back('%');
      continue;
    }
    if (std::string_view("srcadiufFeEgGxXo").find(spec.type) == std::string_view::npos)
      fault("unsupported format character '{}'", spec.type);
    if (zero && !spec.align && std::string_view("srca").find(spec.type) == std::string_view::npos)
      spec.align = '=', spec.fill = "0";
    const Value& value = named ? *named : next();
    std::string piece = percent_one(value, spec);
    if (format.markup && !(value.is(Kind::kString) && value.markup)) piece = html_escaped(piece);
    out += piece;
    check_output(out);
  }
  // Python takes whatever has subscripts for a mapping, and a mapping need not be used up.
  const bool mapping = values.is(Kind::kDict) || values.is(Kind::kList) || values.is(Kind::kRange) ||
                       values.is(Kind::kUndefined);
  if (!by_name && used < available && !mapping) fault("not all arguments converted during string formatting");
  return text_like(heap, format, std::move(out));
}

Value format_braces(Heap& heap, const Value& format, const Arguments& arguments) {
  const std::string& text = format.text();
  std::string out;
  size_t next = 0;
  bool automatic = false, numbered = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '{' || c == '}') {
      if (i + 1 < text.size() && text[i + 1] == c) {
        out.push_back(c);
        i += 2;
        continue;
      }
      if (c == '}') fault("single '}}' encountered in format string");
      heap.step();
      const size_t close = text.find('}', i);
      if (close == text.npos) fault("expected '}}' before end of format string");
      std::string field = text.substr(i + 1, close - i - 1), spec;
      if (field.find('{') != field.npos) fault("nested fields in a format are not supported");
      i = close + 1;
      if (const size_t colon = field.find(':'); colon != field.npos) {
        spec = field.substr(colon + 1);
        field.resize(colon);
      }
      char conversion = 0;
      if (const size_t mark = field.find('!'); mark != field.npos) {
        if (mark + 2 != field.size()) fault("a format's '!' is followed by one letter");
        conversion = field[mark + 1];
        field.resize(mark);
      }
      if (field.find_first_of(".[") != field.npos)
        fault("attributes and items inside a format field are not supported: '{}'", field);
      const Value* value = nullptr;
      if (field.empty() || digit(field[0])) {
        (field.empty() ? automatic : numbered) = true;
        if (automatic && numbered) fault("cannot switch between automatic and manual field numbering");
        size_t at = 0;
        const size_t index = field.empty() ? next++ : read_number(field, at);
        if (index >= arguments.positional.size())
          fault("the format asks for argument {}, there are {}", index, arguments.positional.size());
        value = &arguments.positional[index];
      } else {
        for (const auto& [name, given] : arguments.keywords)
          if (name == field) value = &given;
        if (!value) fault("the format names '{}', which is not given", field);
      }
      std::string piece;
      if (conversion) {
        if (conversion != 'r' && conversion != 's') fault("unknown conversion '{}' in a format", conversion);
        piece = conversion == 'r' ? to_repr(*value) : to_text(*value);
        if (!spec.empty()) piece = pad(cut(piece, parse_spec(spec).precision), parse_spec(spec), '<');
      } else {
        piece = format_spec(*value, spec);
      }
      out += format.markup && !(value->is(Kind::kString) && value->markup) ? html_escaped(piece) : piece;
      check_output(out);
      continue;
    }
    out.push_back(c);
    ++i;
  }
  return text_like(heap, format, std::move(out));
}

}  // namespace jinja
}  // namespace spillway
