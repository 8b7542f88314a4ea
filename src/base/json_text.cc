#include "base/json_text.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/limits.h"

namespace spillway {

Result<void> check_json_size(std::string_view text) {
  std::array<uint32_t, limits::kMaxJsonDepth + 1> commas{};  // of the objects that are open; of lists 0
  std::array<bool, limits::kMaxJsonDepth + 1> is_object{};
  uint32_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string) {
      i += c == '\\' ? 1 : 0;
    } else if (c == '[' || c == '{') {
      if (++depth > limits::kMaxJsonDepth)
        return invalid("lists and objects are nested deeper than {}", limits::kMaxJsonDepth);
      commas[depth] = 0;
      is_object[depth] = c == '{';
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    } else if (c == ',' && is_object[depth] && ++commas[depth] >= limits::kMaxJsonMembers) {
      return invalid("an object has more than {} keys", limits::kMaxJsonMembers);
    }
  }
  return {};
}

}  // namespace spillway
