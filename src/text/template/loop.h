// The variable `loop` of a for loop, and where the loop stands.
#pragma once

#include "text/template/ast.h"
#include "text/template/scope.h"

namespace spillway {
namespace jinja {

struct LoopObject : Object {
  const Stmt* stmt = nullptr;
  Scope* outer = nullptr;  // around the loop: where its if is evaluated
  Values source;
  size_t next = 0;             // of source
  bool rest_passed = false;    // what is left of source has passed the loop's if
  std::optional<Value> after;  // pulled ahead of its turn, by loop.last or loop.nextitem
  Value current, before;
  int64_t index0 = -1;
  int64_t depth0 = 0;
  std::optional<int64_t> length;  // known from the start unless the loop has an if
  std::optional<Value> changed;   // what loop.changed() was last called with

  int64_t known_length() const { return length ? *length : static_cast<int64_t>(source.size()); }
};

}  // namespace jinja
}  // namespace spillway
