#include "text/template/arguments.h"

namespace spillway {
namespace jinja {

Bound::Bound(const Arguments& arguments, std::string_view function,
             std::initializer_list<std::string_view> names, size_t required)
    : function_(function), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names.size())
    fault("{} takes at most {} arguments, {} given", function, names.size(), arguments.positional.size());
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.keywords) {
    size_t at = 0;
    for (const auto known : names) {
      if (known == name) break;
      ++at;
    }
    if (at == names.size()) fault("{} has no argument named '{}'", function, name);
    if (values_[at]) fault("{} got the argument '{}' twice", function, name);
    values_[at] = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (!values_[i]) fault("{} needs the argument '{}'", function, *(names.begin() + i));
}

Int Bound::integer(size_t i, Int otherwise) const {
  if (!values_[i]) return otherwise;
  const Value& value = *values_[i];
  if (value.is(Kind::kUndefined)) fault_undefined(value);
  if (!value.is(Kind::kInt) && !value.is(Kind::kBool))
    fault("{} needs an integer, not '{}'", function_, type_name(value));
  return value.as_int();
}

const std::string& Bound::text(size_t i) const {
  const Value& value = *values_[i];
  if (value.is(Kind::kUndefined)) fault_undefined(value);
  if (!value.is(Kind::kString)) fault("{} needs a string, not '{}'", function_, type_name(value));
  return value.text();
}

std::string Bound::text(size_t i, std::string_view otherwise) const {
  return values_[i] ? text(i) : std::string(otherwise);
}

}  // namespace jinja
}  // namespace spillway
