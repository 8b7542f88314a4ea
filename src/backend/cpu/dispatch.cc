#include "backend/cpu/tables.h"
#include "base/assert.h"

namespace spillway::cpu {
namespace {

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
  return best;
}

const Kernels& kernels(InstructionSet set) {
  SW_ASSERT(set <= best_instruction_set());
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return avx512_kernels();
  if (set == InstructionSet::kAvx2) return avx2_kernels();
#endif
  return scalar_kernels();
}

}  // namespace spillway::cpu
