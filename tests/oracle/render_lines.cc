// Renders templates for the comparison with the reference (template_oracle.py): one JSON request a line on
// standard input, {"template": text, "context": object, "now": seconds}, one JSON answer a line, {"ok": text}
// or
// {"error": message, "kind": number}.
#include <iostream>
#include <string>

#include "text/template/program.h"

int main() {
  using spillway::jinja::Program;
  using Json = nlohmann::ordered_json;
  std::string line;
  while (std::getline(std::cin, line)) {
    const Json request = Json::parse(line);
    const auto answer = [&]() -> spillway::Result<std::string> {
      auto program = Program::parse(request["template"].get_ref<const std::string&>());
      if (!program) return std::unexpected(program.error());
      std::optional<std::chrono::local_seconds> now;
      if (request.contains("now"))
        now = std::chrono::local_seconds(std::chrono::seconds(request["now"].get<int64_t>()));
      return program->render(request["context"], now);
    }();
    const Json out =
        answer ? Json{{"ok", *answer}}
               : Json{{"error", answer.error().message}, {"kind", static_cast<int>(answer.error().kind)}};
    std::cout << out.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  }
}
