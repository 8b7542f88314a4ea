#include "cli/demo_model.h"

#include <filesystem>

namespace spillway::cli {

Result<std::string> find_demo_model() {
  // The program's own folder first: an installed tree may have been moved.
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path places[] = {program.parent_path() / "../share/spillway/demo.gguf",
                                          SPILLWAY_SOURCE_DIR "/models/demo.gguf"};
  for (const auto& place : places)
    if (std::filesystem::exists(place, error))
      return std::filesystem::weakly_canonical(place, error).string();
  return fail(Error::Kind::kNotFound, "the demo model is in neither {} nor {}; give a model with -m",
              places[0].lexically_normal().string(), places[1].string());
}

}  // namespace spillway::cli
