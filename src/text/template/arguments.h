// The arguments of a call, and their binding to named parameters as Python does it.
#pragma once

#include <initializer_list>

#include "text/template/value.h"

namespace spillway {
namespace jinja {

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

class Bound {
 public:
  // Faults on too many arguments, an unknown name, one given twice, and fewer than the first `required`.
  Bound(const Arguments& arguments, std::string_view function, std::initializer_list<std::string_view> names,
        size_t required);

  // Null where not given.
  const Value* operator[](size_t i) const { return values_[i]; }
  bool given(size_t i) const { return values_[i] != nullptr; }
  bool flag(size_t i, bool otherwise) const { return values_[i] ? truthy(*values_[i]) : otherwise; }
  // Faults unless an integer.
  Int integer(size_t i, Int otherwise) const;
  // Faults unless a string.
  const std::string& text(size_t i) const;
  std::string text(size_t i, std::string_view otherwise) const;

 private:
  std::string_view function_;
  std::vector<const Value*> values_;
};

}  // namespace jinja
}  // namespace spillway
