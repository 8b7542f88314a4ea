// Any bytes as a chat template: reading and running it ends with text or an error, within the limits. The
// variables are a small conversation, so that paths behind `messages` are reached.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "text/template/program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using Json = nlohmann::ordered_json;
  static const Json variables = Json::parse(R"({
    "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "é"}]},
                 {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1.5}}}]}],
    "tools": [{"function": {"name": "f"}}], "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true,
    "n": 7, "x": "Hello World", "l": [3, 1, 2]})");
  const auto program =
      spillway::jinja::Program::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!program) return 0;
  const auto text = program->render(variables, std::chrono::local_seconds(std::chrono::seconds(1753967045)));
  if (!text) return 0;
  // Reading and running have no state: once more gives the same.
  auto again = program->render(variables, std::chrono::local_seconds(std::chrono::seconds(1753967045)));
#ifdef SPILLWAY_FUZZ_CANARY
  if (again) again->resize(again->size() / 2);  // planted
#endif
  if (!again || *again != *text) {
    std::fprintf(stderr, "fuzz: caught a rendering that differs from the first\n");
    std::abort();
  }
  return 0;
}
