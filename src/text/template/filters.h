// Jinja2's filters. A call of one that is not here faults when it runs, not when the template is read:
// templates name filters of their own environment in branches that are never taken.
#pragma once

#include "text/template/arguments.h"

namespace spillway {
namespace jinja {

class Interpreter;

// Nothing where the group has no such filter.
std::optional<Value> text_filter(Interpreter& in, std::string_view name, const Value& value,
                                 const Arguments& a);
std::optional<Value> sequence_filter(Interpreter& in, std::string_view name, const Value& value,
                                     const Arguments& a);
std::optional<Value> number_filter(Interpreter& in, std::string_view name, const Value& value,
                                   const Arguments& a);

std::optional<bool> builtin_test(Interpreter& in, std::string_view name, const Value& value,
                                 const Arguments& a);
bool is_filter_name(std::string_view name);
bool is_test_name(std::string_view name);

// What "a.b.0" leads to from `value`, step by step; each missing step becomes `otherwise` where that is
// given.
Value follow(Interpreter& in, Value value, const Value& path, const Value* otherwise = nullptr);

}  // namespace jinja
}  // namespace spillway
