// Finds stop strings in text that arrives in pieces, wherever the cuts fall: nothing of a stop string is ever
// given out, only a tail that could still become one is held back, and finish() gives out what was held for
// nothing.
//
// The result does not depend on the cuts: text is looked at byte by byte, the stop string that is complete
// first wins, and of several complete at the same byte the longest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spillway {
namespace text {

// Not thread safe: one a stream.
class StopMatcher {
 public:
  // Errors: kInvalid for an empty or invalid UTF-8 stop string, or more than limits::kMaxStopStrings of them.
  static Result<StopMatcher> create(std::vector<std::string> stops);

  struct Output {
    std::string text;            // may be sent
    std::optional<size_t> stop;  // index of the stop string that was found: the text ends here
  };

  // Pieces are whole characters (text/stream_decoder.h), and so is what comes out. After a stop: nothing
  // more.
  Output push(std::string_view piece);

  // The end of the stream: what was held.
  std::string finish();

  bool stopped() const { return stopped_; }

 private:
  struct Stop {
    std::string text;
    std::vector<uint32_t> fallback;  // of the Knuth-Morris-Pratt automaton: (text size)
    uint32_t matched = 0;
  };
  std::vector<Stop> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace text
}  // namespace spillway
