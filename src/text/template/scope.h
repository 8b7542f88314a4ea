// Variables of one block: a for loop's body, a macro's body, a {% with %}. Looked up from the inside out;
// assigned in the innermost. Macros keep the scope in which they were made.
#pragma once

#include "text/template/value.h"

namespace spillway {
namespace jinja {

struct Scope : Object {
  Scope* parent = nullptr;  // null: the template's top level
  std::vector<std::pair<uint32_t, Value>> values;

  const Value* find(uint32_t symbol) const {
    for (const auto& [key, value] : values)
      if (key == symbol) return &value;
    return nullptr;
  }
  void set(uint32_t symbol, Value value) {
    for (auto& [key, old] : values)
      if (key == symbol) {
        old = std::move(value);
        return;
      }
    values.emplace_back(symbol, std::move(value));
  }
};

}  // namespace jinja
}  // namespace spillway
