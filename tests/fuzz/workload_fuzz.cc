// Any bytes give a workload that can be run, or an error; the lines of a workload don't depend on one
// another.
//
// With SPILLWAY_FUZZ_CANARY every answer is taken for a token longer, as if the check of max_tokens were off
// by one: tests/fuzz/canary/workload must then be caught.

#include "base/limits.h"
#include "check.h"
#include "tune/workload.h"

namespace {

using namespace spillway;
using namespace spillway::tune;

void check_whole(const Workload& workload) {
  check(!workload.conversations.empty(), "a workload without conversations");
  for (const Conversation& conversation : workload.conversations) {
    check(!conversation.topic.empty(), "a conversation without a topic");
    check(!conversation.turns.empty() && conversation.turns.size() <= limits::kMaxTurns, "turns");
    check(!conversation.turns.back().given_answer, "a conversation that asks nothing");
    for (const Turn& turn : conversation.turns)
      check(!turn.text.empty() && turn.max_tokens > 0 && turn.max_tokens + kOff <= limits::kMaxContext,
            "a turn that can't be run");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto workload = parse_workload("fuzz", text);
  if (!workload) {
    check(!workload.error().message.empty(), "an error without a message");
    return 0;
  }
  check_whole(*workload);
  const auto twice = parse_workload("fuzz", text + "\n" + text);
  check(twice && twice->requests() == 2 * workload->requests(), "a line that depends on those before");
  const Halves halves = split(*workload);
  check_whole(halves.calibration);
  check_whole(halves.held_out);
  check(!workload->facts().content.empty(), "no hash");
  return 0;
}
