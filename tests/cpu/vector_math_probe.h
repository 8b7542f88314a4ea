// The elementary functions of vector_math.h as plain functions, one set per instruction set, for
// vector_math_test.
#pragma once

#include <cstddef>

namespace spillway::cpu {

// y[i] = f(x[i]) for n values, n a multiple of 16.
struct VectorMath {
  void (*flush)(const float* x, float* y, size_t n);
  void (*reciprocal)(const float* x, float* y, size_t n);
  void (*rsqrt)(const float* x, float* y, size_t n);
  void (*exp)(const float* x, float* y, size_t n);
  void (*sigmoid)(const float* x, float* y, size_t n);
  void (*silu)(const float* x, float* y, size_t n);
};

extern const VectorMath kAvx2Math;
extern const VectorMath kAvx512Math;

}  // namespace spillway::cpu
