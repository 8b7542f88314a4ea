// Things that a template can call.
#pragma once

#include "text/template/ast.h"
#include "text/template/scope.h"

namespace spillway {
namespace jinja {

// {% macro %}, or the body of a {% call %} (then without a name).
struct MacroObject : Object {
  const Stmt* stmt = nullptr;
  Scope* scope = nullptr;  // where it was made
  std::string name;
};

enum class Global : uint8_t {
  kRange,
  kDict,
  kNamespace,
  kCycler,
  kJoiner,
  kRaiseException,
  kStrftimeNow,
};

struct FunctionObject : Object {
  Global which = Global::kRange;
};

}  // namespace jinja
}  // namespace spillway
