#include "text/stop_matcher.h"

#include <algorithm>

#include "base/limits.h"
#include "text/utf8.h"

namespace spillway {
namespace text {
namespace {

// For each length of a matched start: the length of the longest shorter start that the same text also ends
// with.
std::vector<uint32_t> fallbacks(std::string_view text) {
  std::vector<uint32_t> fallback(text.size(), 0);
  uint32_t matched = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    while (matched > 0 && text[i] != text[matched]) matched = fallback[matched - 1];
    if (text[i] == text[matched]) ++matched;
    fallback[i] = matched;
  }
  return fallback;
}

}  // namespace

Result<StopMatcher> StopMatcher::create(std::vector<std::string> stops) {
  if (stops.size() > limits::kMaxStopStrings)
    return invalid("{} stop strings were given; at most {} are supported", stops.size(),
                   limits::kMaxStopStrings);
  StopMatcher matcher;
  for (size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty())
      return invalid("stop string {} is empty; it would stop everything before it starts", i);
    if (stops[i].size() > limits::kMaxTemplateBytes)
      return invalid("stop string {} has {} bytes; at most {} are supported", i, stops[i].size(),
                     limits::kMaxTemplateBytes);
    if (utf8_valid_length(stops[i]) != stops[i].size())
      return invalid("stop string {} is not valid UTF-8 (at byte {}); no text can contain it", i,
                     utf8_valid_length(stops[i]));
    std::vector<uint32_t> fallback = fallbacks(stops[i]);
    matcher.stops_.push_back({std::move(stops[i]), std::move(fallback)});
  }
  return matcher;
}

StopMatcher::Output StopMatcher::push(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  const size_t looked_at = held_.size() - piece.size();
  for (size_t i = looked_at; i < held_.size(); ++i) {
    std::optional<size_t> found;
    for (size_t s = 0; s < stops_.size(); ++s) {
      Stop& stop = stops_[s];
      while (stop.matched > 0 && stop.text[stop.matched] != held_[i])
        stop.matched = stop.fallback[stop.matched - 1];
      if (stop.text[stop.matched] == held_[i]) ++stop.matched;
      if (stop.matched < stop.text.size()) continue;
      if (!found || stop.text.size() > stops_[*found].text.size()) found = s;
    }
    if (found) {
      stopped_ = true;
      Output output{held_.substr(0, i + 1 - stops_[*found].text.size()), found};
      held_.clear();
      return output;
    }
  }
  size_t keep = 0;
  for (const Stop& stop : stops_) keep = std::max<size_t>(keep, stop.matched);
  Output output{held_.substr(0, held_.size() - keep), std::nullopt};
  held_.erase(0, held_.size() - keep);
  return output;
}

std::string StopMatcher::finish() {
  std::string text = std::move(held_);
  held_.clear();
  for (Stop& stop : stops_) stop.matched = 0;
  return text;
}

}  // namespace text
}  // namespace spillway
