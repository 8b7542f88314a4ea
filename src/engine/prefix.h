// Reusing what a sequence holds already.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace spillway::engine {

// Cuts the sequence back to the beginning that it shares with `prompt`, of which at least one token is left
// to be computed, for its logits. `history` is what the sequence was given so far (it may hold less: all is
// gone where the device was lost), and is cut alike. Returns the tokens that are kept. Requires: a prompt
// that is not empty.
uint32_t keep_common_prefix(Engine& engine, SequenceId sequence, std::vector<int32_t>& history,
                            std::span<const int32_t> prompt);

}  // namespace spillway::engine
