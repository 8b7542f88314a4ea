#include "cli/token_list.h"

#include <algorithm>
#include <charconv>

namespace spillway::cli {

Result<std::vector<int32_t>> parse_token_list(std::string_view text) {
  constexpr std::string_view kSeparators = ", \t\r\n[]";
  std::vector<int32_t> ids;
  size_t previous = 0;  // where the one before ends
  // A place without an id is more likely a mistake than meant.
  const auto is_empty_place = [&](size_t end) {
    const auto commas = std::ranges::count(text.substr(previous, end - previous), ',');
    return commas > (ids.empty() ? 0 : 1);
  };
  for (size_t at = text.find_first_not_of(kSeparators); at != std::string_view::npos;
       at = text.find_first_not_of(kSeparators, at)) {
    const size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (is_empty_place(at))
      return invalid("the list of tokens has an empty place before '{}'", word.substr(0, 40));
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || stop != word.data() + word.size())
      return invalid("'{}' in the list of tokens is not a token id", word.substr(0, 40));
    ids.push_back(id);
    at = previous = end;
  }
  if (is_empty_place(text.size())) return invalid("the list of tokens has an empty place at its end");
  return ids;
}

}  // namespace spillway::cli
