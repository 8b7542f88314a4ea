#include "cli/token_list.h"

#include <charconv>

namespace spillway::cli {

Result<std::vector<int32_t>> parse_token_list(std::string_view text) {
  constexpr std::string_view kSeparators = ", \t\r\n[]";
  std::vector<int32_t> ids;
  for (size_t at = text.find_first_not_of(kSeparators); at != std::string_view::npos;
       at = text.find_first_not_of(kSeparators, at)) {
    const size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || stop != word.data() + word.size())
      return invalid("'{}' in the list of tokens is not a token id", word.substr(0, 40));
    ids.push_back(id);
    at = end;
  }
  return ids;
}

}  // namespace spillway::cli
