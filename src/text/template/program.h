// A chat template as a program: Jinja2 source in, text out. The door of this folder; behind it faults are
// exceptions, here they are Errors.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace spillway {
namespace jinja {

struct Tree;

class Program {
 public:
  // Errors: kInvalid with line and column; kUnsupported for tags that need other templates.
  static Result<Program> parse(std::string_view source);

  // Runs with the members of `variables` (an object) defined. Errors: kRefused when the template calls
  // raise_exception, the message being the template's own, unchanged; kInvalid with line and column for
  // anything else. May be called from several threads at once.
  Result<std::string> render(const nlohmann::ordered_json& variables,
                             std::optional<std::chrono::local_seconds> now = std::nullopt) const;

 private:
  explicit Program(std::shared_ptr<const Tree> tree) : tree_(std::move(tree)) {}
  std::shared_ptr<const Tree> tree_;
};

}  // namespace jinja
}  // namespace spillway
