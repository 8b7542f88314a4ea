// How a fault inside a template travels: an exception inside this folder, an Error at its door (program.h).
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/result.h"

namespace spillway {
namespace jinja {

struct Fault {
  Error::Kind kind;
  std::string message;
};

template <class... Args>
[[noreturn]] void fault(fmt::format_string<Args...> format, Args&&... args) {
  throw Fault{Error::Kind::kInvalid, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace jinja
}  // namespace spillway
