// Methods and attributes of Python's types.
#pragma once

#include "text/template/arguments.h"

namespace spillway {
namespace jinja {

class Interpreter;

// Does the type of `value` have a method of this name? The sandbox's refusals are answered by is_refused.
bool has_method(const Value& value, std::string_view name);
// Methods that would change a list or a dictionary: the sandbox hides them.
bool is_refused(const Value& value, std::string_view name);

Value call_string_method(Heap& heap, const Value& self, std::string_view name, const Arguments& arguments);
Value call_container_method(Heap& heap, const Value& self, std::string_view name, const Arguments& arguments);

// Parts shared with the filters of the same names.
std::string strip(std::string_view text, const std::string* characters, bool left, bool right);
std::string replace_all(Heap& heap, std::string_view text, std::string_view from, std::string_view to,
                        Int count);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

}  // namespace jinja
}  // namespace spillway
