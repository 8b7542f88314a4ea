#include "backend/cpu/tables.h"
#include "base/assert.h"

namespace spillway::cpu {
namespace {

// The highest set whose table this build contains; raise it, and add the case below, when a table arrives.
constexpr InstructionSet kBuilt = InstructionSet::kScalar;

// The compiler's run-time test reads cpuid and, for the wide registers, whether the operating system saves
// them.
InstructionSet processor_set() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  if (!avx2) return InstructionSet::kScalar;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vnni");
  return avx512 ? InstructionSet::kAvx512 : InstructionSet::kAvx2;
#else
  return InstructionSet::kScalar;
#endif
}

}  // namespace

InstructionSet best_instruction_set() {
  static const InstructionSet best = processor_set();
  return best < kBuilt ? best : kBuilt;
}

const Kernels& kernels(InstructionSet set) {
  SW_ASSERT(set <= best_instruction_set());
  return scalar_kernels();
}

}  // namespace spillway::cpu
