#include "cli/version.h"

#include <fmt/format.h>

#include "backend/cpu/kernels.h"

namespace spillway::cli {

std::string version_text() {
#if defined(__clang__)
  const char* compiler = "clang " __clang_version__;
#else
  const char* compiler = "gcc " __VERSION__;
#endif
  return fmt::format(
      "spillway {}\nbuilt with {} ({}{})\nkernels on this processor: {}", SPILLWAY_VERSION, compiler,
      SPILLWAY_BUILD_TYPE,
      std::string_view(SPILLWAY_SANITIZERS).empty() ? "" : ", sanitizers: " SPILLWAY_SANITIZERS,
      cpu::kernels(cpu::best_instruction_set()).name);
}

}  // namespace spillway::cli
