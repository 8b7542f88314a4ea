#include "backend/cpu/lanes_avx2.h"
#define SW_MATH kAvx2Math
#include "vector_math_probe.inc"
