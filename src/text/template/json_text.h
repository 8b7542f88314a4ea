// JSON in and out: the caller's data as template values, and the tojson filter (Python's json.dumps).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "text/template/value.h"

namespace spillway {
namespace jinja {

Value from_json(Heap& heap, const nlohmann::ordered_json& json, int depth = 0);

struct JsonStyle {
  bool ascii = false;  // everything beyond ASCII as \uXXXX
  std::optional<std::string> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

// Faults on what JSON has no form for (undefined, generators), as Python does.
std::string to_json(Heap& heap, const Value& value, const JsonStyle& style);

}  // namespace jinja
}  // namespace spillway
