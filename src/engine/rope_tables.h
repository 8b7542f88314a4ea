// Tables of cos and sin for the positions of the context.
#pragma once

#include "backend/shapes.h"
#include "base/aligned_array.h"
#include "base/result.h"
#include "model/description.h"

namespace spillway::engine {

class RopeTables {
 public:
  // `factors`: the values of rope.frequency_factors, or empty.
  static Result<RopeTables> make(const model::Rope& rope, std::span<const float> factors, uint32_t positions);

  backend::RopeTable view() const;
  uint64_t bytes() const { return (cos_.size() + sin_.size()) * sizeof(float); }

 private:
  bool neox_ = true;
  uint32_t length_ = 0;
  uint32_t positions_ = 0;
  AlignedArray<float> cos_, sin_;  // (positions, length/2)
};

}  // namespace spillway::engine
