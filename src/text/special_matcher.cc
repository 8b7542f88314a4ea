#include "text/special_matcher.h"

#include <algorithm>

namespace spillway {
namespace text {

SpecialMatcher::SpecialMatcher(std::vector<std::pair<std::string_view, uint32_t>> texts)
    : texts_(std::move(texts)) {
  std::erase_if(texts_, [](const auto& entry) { return entry.first.empty(); });
  std::ranges::sort(texts_);
  const auto same_text = [](const auto& a, const auto& b) { return a.first == b.first; };
  texts_.erase(std::unique(texts_.begin(), texts_.end(), same_text), texts_.end());
  for (const auto& [text, id] : texts_) starts_[static_cast<uint8_t>(text[0])] = true;
}

std::optional<SpecialMatcher::Match> SpecialMatcher::find(std::string_view text, size_t from) const {
  if (texts_.empty()) return std::nullopt;
  for (size_t position = from; position < text.size(); ++position) {
    if (!starts_[static_cast<uint8_t>(text[position])]) continue;
    if (const auto match = match_at(text, position)) return match;
  }
  return std::nullopt;
}

// Narrows the sorted texts byte by byte to those that agree with the text so far: at each depth, those that
// end there come first in the range.
std::optional<SpecialMatcher::Match> SpecialMatcher::match_at(std::string_view text, size_t position) const {
  std::optional<Match> longest;
  auto first = texts_.begin(), last = texts_.end();
  for (size_t depth = 0; position + depth < text.size(); ++depth) {
    const auto byte_at_depth = [depth](const auto& entry) {
      return static_cast<uint8_t>(entry.first[depth]);
    };
    const auto range = std::ranges::equal_range(first, last, static_cast<uint8_t>(text[position + depth]), {},
                                                byte_at_depth);
    if (range.empty()) break;
    first = range.begin();
    last = range.end();
    if (first->first.size() == depth + 1) {
      longest = Match{position, depth + 1, first->second};
      if (++first == last) break;
    }
  }
  return longest;
}

}  // namespace text
}  // namespace spillway
