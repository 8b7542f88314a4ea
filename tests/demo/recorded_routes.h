// What the demo model's own router says over the held-out texts.
#pragma once

#include <string>

#include "engine/engine.h"
#include "experts/routes.h"

namespace spillway {

inline const std::string kModels = SPILLWAY_SOURCE_DIR "/models/";

class RouteRecorder {
 public:
  RouteRecorder();

  // Of `n_tokens` of a topic ("prose", "code", "german") from `first` on, in a sequence of their own: the
  // first `piece` tokens in one step, then each in its own.
  experts::Routes record(const std::string& topic, size_t first, size_t n_tokens, size_t piece);

 private:
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace spillway
