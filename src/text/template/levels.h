// Counts nested evaluation. One level of the syntax tree costs three or four frames of the machine's stack,
// under a kilobyte together in a release build and about four with sanitizers: 8 x 128 levels stay below 4
// MiB.
#pragma once

#include "base/limits.h"
#include "text/template/interpreter.h"

namespace spillway {
namespace jinja {

// A macro call in a realistic template is 8 levels: if, for, if, output, concatenation, call, body, if.
inline constexpr uint32_t kMaxLevels = 8 * limits::kMaxTemplateDepth;

class Interpreter::Level {
 public:
  explicit Level(Interpreter& in) : in_(in) {
    if (++in_.depth_ > kMaxLevels) {
      --in_.depth_;
      fault("the template's macros or expressions are nested too deeply (endless recursion?)");
    }
  }
  ~Level() { --in_.depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Interpreter& in_;
};

}  // namespace jinja
}  // namespace spillway
