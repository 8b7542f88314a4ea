#include "cli/version.h"

#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "tune/fingerprint.h"

namespace spillway::cli {

std::string version_text() {
  const report::Build build = tune::build_facts();
  return fmt::format("spillway {}\nbuilt with {} ({})\nkernels on this processor: {}", build.version,
                     build.compiler, build.type, cpu::kernels(cpu::best_instruction_set()).name);
}

}  // namespace spillway::cli
