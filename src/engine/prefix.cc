#include "engine/prefix.h"

#include <algorithm>

namespace spillway::engine {

uint32_t keep_common_prefix(Engine& engine, SequenceId sequence, std::vector<int32_t>& history,
                            std::span<const int32_t> prompt) {
  const size_t common = std::ranges::mismatch(history, prompt).in1 - history.begin();
  const uint32_t keep =
      std::min(static_cast<uint32_t>(std::min(common, prompt.size() - 1)), engine.length(sequence));
  engine.truncate(sequence, keep);
  history.resize(keep);
  return keep;
}

}  // namespace spillway::engine
