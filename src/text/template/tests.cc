#include <algorithm>

#include "text/template/filters.h"
#include "text/template/interpreter.h"
#include "text/template/methods.h"
#include "text/template/operators.h"
#include "text/template/print.h"

namespace spillway {
namespace jinja {
namespace {

constexpr std::string_view kTests[] = {
    "odd",     "even",   "divisibleby", "defined",  "undefined", "filter", "test",    "none",
    "boolean", "false",  "true",        "integer",  "float",     "lower",  "upper",   "string",
    "mapping", "number", "sequence",    "iterable", "callable",  "sameas", "escaped", "in",
    "==",      "eq",     "equalto",     "!=",       "ne",        ">",      "gt",      "greaterthan",
    "ge",      ">=",     "<",           "lt",       "lessthan",  "<=",     "le"};
constexpr std::string_view kFilters[] = {
    "abs",      "attr",   "batch",      "capitalize", "center",     "count",       "d",        "default",
    "dictsort", "e",      "escape",     "first",      "float",      "forceescape", "format",   "groupby",
    "indent",   "int",    "items",      "join",       "last",       "length",      "list",     "lower",
    "map",      "max",    "min",        "reject",     "rejectattr", "replace",     "reverse",  "round",
    "safe",     "select", "selectattr", "slice",      "sort",       "string",      "sum",      "title",
    "tojson",   "trim",   "truncate",   "unique",     "upper",      "urlencode",   "wordcount"};

template <size_t N>
bool among(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::optional<Op> comparison(std::string_view name) {
  if (name == "==" || name == "eq" || name == "equalto") return Op::kEqual;
  if (name == "!=" || name == "ne") return Op::kNotEqual;
  if (name == ">" || name == "gt" || name == "greaterthan") return Op::kGreater;
  if (name == ">=" || name == "ge") return Op::kGreaterEqual;
  if (name == "<" || name == "lt" || name == "lessthan") return Op::kLess;
  if (name == "<=" || name == "le") return Op::kLessEqual;
  if (name == "in") return Op::kIn;
  return std::nullopt;
}

bool is_remainder(Heap& heap, const Value& value, const Value& by, Int rest) {
  return equal(arithmetic(heap, Op::kModulo, value, by), Value::of(rest));
}

}  // namespace

bool is_filter_name(std::string_view name) { return among(kFilters, name); }
bool is_test_name(std::string_view name) { return among(kTests, name); }

std::optional<bool> builtin_test(Interpreter& in, std::string_view name, const Value& value,
                                 const Arguments& a) {
  if (const auto op = comparison(name)) {
    const Bound b(a, name, {"other"}, 1);
    return compare(in.heap(), *op, value, *b[0]);
  }
  if (name == "divisibleby") {
    const Bound b(a, name, {"num"}, 1);
    return is_remainder(in.heap(), value, *b[0], 0);
  }
  if (name == "sameas") {
    const Bound b(a, name, {"other"}, 1);
    return same_object(value, *b[0]);
  }
  if (!among(kTests, name)) return std::nullopt;
  const Bound nothing(a, name, {}, 0);
  if (name == "defined") return !value.is(Kind::kUndefined);
  if (name == "undefined") return value.is(Kind::kUndefined);
  if (name == "none") return value.is(Kind::kNone);
  if (name == "boolean") return value.is(Kind::kBool);
  if (name == "true") return value.is(Kind::kBool) && value.boolean;
  if (name == "false") return value.is(Kind::kBool) && !value.boolean;
  if (name == "integer") return value.is(Kind::kInt);
  if (name == "float") return value.is(Kind::kFloat);
  if (name == "number") return value.is_number();
  if (name == "string") return value.is(Kind::kString);
  if (name == "mapping") return value.is(Kind::kDict);
  if (name == "sequence")
    return value.is(Kind::kUndefined) || value.is(Kind::kString) || value.is_sequence() ||
           value.is(Kind::kDict) || value.is(Kind::kRange);
  if (name == "iterable") return iterable(value);
  if (name == "callable")
    return value.is(Kind::kUndefined) || value.is(Kind::kMacro) || value.is(Kind::kMethod) ||
           value.is(Kind::kFunction) || value.is(Kind::kJoiner) || value.is(Kind::kLoop);
  if (name == "escaped") return value.is(Kind::kString) && value.markup;
  if (name == "odd") return is_remainder(in.heap(), value, Value::of(Int{2}), 1);
  if (name == "even") return is_remainder(in.heap(), value, Value::of(Int{2}), 0);
  if (name == "filter" || name == "test") hash(value);  // faults on what can't be looked up
  if (name == "filter") return value.is(Kind::kString) && is_filter_name(value.text());
  if (name == "test") return value.is(Kind::kString) && is_test_name(value.text());
  // lower and upper
  return call_string_method(in.heap(), in.heap().string(to_text(value)),
                            name == "lower" ? "islower" : "isupper", {})
      .boolean;
}

}  // namespace jinja
}  // namespace spillway
