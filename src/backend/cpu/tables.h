// The instruction sets' tables, each defined in its own file; only dispatch.cc and tests look at this.
#pragma once

#include "backend/cpu/kernels.h"

namespace spillway::cpu {

const Kernels& scalar_kernels();  // the definitions of numerics/, called one by one

// Each defined by the files that are compiled for that set; call only where the processor has it.
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();

}  // namespace spillway::cpu
