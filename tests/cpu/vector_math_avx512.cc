#include "backend/cpu/lanes_avx512.h"
#define SW_MATH kAvx512Math
#include "vector_math_probe.inc"
