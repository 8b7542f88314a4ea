#include <cmath>

#include "text/template/filters.h"
#include "text/template/interpreter.h"
#include "text/template/number.h"
#include "text/template/operators.h"
#include "text/template/print.h"

namespace spillway {
namespace jinja {
namespace {

std::optional<double> as_float(const Value& value) {
  if (value.is(Kind::kUndefined)) fault_undefined(value);
  if (value.is_number()) return value.as_double();
  if (value.is(Kind::kString)) return parse_float(value.text());
  return std::nullopt;
}

Value to_int(const Value& value, const Arguments& a) {
  const Bound b(a, "int", {"default", "base"}, 0);
  Value otherwise = b.given(0) ? *b[0] : Value::of(Int{0});
  if (value.is(Kind::kString)) {
    const Int base = b.integer(1, 10);
    if (base < 0 || base > 36 || base == 1) return otherwise;
    if (const auto whole = parse_int(value.text(), static_cast<int>(base))) return Value::of(*whole);
  }
  if (value.is(Kind::kInt) || value.is(Kind::kBool)) return Value::of(value.as_int());
  const auto real = as_float(value);
  if (!real || std::isnan(*real)) return otherwise;
  if (std::isinf(*real)) fault("cannot convert float infinity to integer");
  return Value::of(*truncate(*real));
}

Value rounded(const Value& value, const Arguments& a) {
  const Bound b(a, "round", {"precision", "method"}, 0);
  if (value.is(Kind::kUndefined)) fault_undefined(value);
  const std::string method = b.text(1, "common");
  const Int digits = b.integer(0, 0);
  if (digits > 1000 || digits < -1000) fault("round: a precision of {} is too large", int_text(digits));
  const int precision = static_cast<int>(digits);
  if (!value.is_number()) fault("type {} can't be rounded", type_name(value));
  if (method == "common") {
    if (value.is(Kind::kFloat)) return Value::of(round_to(value.real, precision));
    return Value::of(round_to(value.as_int(), precision));
  }
  if (method != "ceil" && method != "floor")
    fault("round: the method is common, ceil or floor, not '{}'", method);
  const double scale = std::pow(10.0, precision), scaled = value.as_double() * scale;
  return Value::of((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

}  // namespace

std::optional<Value> number_filter(Interpreter& in, std::string_view name, const Value& value,
                                   const Arguments& a) {
  if (name == "int") return to_int(value, a);
  if (name == "float") {
    const Bound b(a, name, {"default"}, 0);
    if (const auto real = as_float(value)) return Value::of(*real);
    return b.given(0) ? *b[0] : Value::of(0.0);
  }
  if (name == "round") return rounded(value, a);
  if (name == "abs") {
    const Bound b(a, name, {}, 0);
    if (value.is(Kind::kUndefined)) fault_undefined(value);
    if (value.is(Kind::kFloat)) return Value::of(std::fabs(value.real));
    if (!value.is_number()) fault("bad operand type for abs(): '{}'", type_name(value));
    return value.as_int() < 0 ? negative(value) : Value::of(value.as_int());
  }
  static_cast<void>(in);
  return std::nullopt;
}

}  // namespace jinja
}  // namespace spillway
