#include "text/template/program.h"

#include <new>

#include "text/template/interpreter.h"
#include "text/template/json_text.h"
#include "text/template/parser.h"

namespace spillway {
namespace jinja {

Result<Program> Program::parse(std::string_view source) {
  try {
    return Program(std::make_shared<const Tree>(parse_template(source)));
  } catch (Fault& f) {
    return std::unexpected(Error{f.kind, std::move(f.message)});
  } catch (const std::bad_alloc&) {
    return fail(Error::Kind::kNoMemory, "out of memory while reading a template of {} bytes", source.size());
  }
}

Result<std::string> Program::render(const nlohmann::ordered_json& variables,
                                    std::optional<std::chrono::local_seconds> now) const {
  try {
    Heap heap;
    Interpreter interpreter(*tree_, heap, now);
    if (!variables.is_object() && !variables.is_null())
      return invalid("a template's variables are a JSON object");
    for (const auto& [name, value] : variables.items()) interpreter.define(name, from_json(heap, value));
    return interpreter.run();
  } catch (Fault& f) {
    return std::unexpected(Error{f.kind, std::move(f.message)});
  } catch (const std::bad_alloc&) {
    return fail(Error::Kind::kNoMemory, "out of memory while running a chat template");
  }
}

}  // namespace jinja
}  // namespace spillway
