#include "engine/rope_tables.h"

#include "numerics/rope.h"

namespace spillway::engine {

Result<RopeTables> RopeTables::make(const model::Rope& rope, std::span<const float> factors,
                                    uint32_t positions) {
  if (auto fine = numerics::check_rope(rope.params, factors); !fine)
    return std::unexpected(fine.error().in("the rope keys and tensor 'rope_freqs.weight'"));
  RopeTables tables;
  tables.neox_ = rope.style == model::RopeStyle::kNeox;
  tables.length_ = rope.params.rope_length;
  tables.positions_ = positions;
  const size_t values = size_t{positions} * (tables.length_ / 2);
  tables.cos_ = AlignedArray<float>(values);
  tables.sin_ = AlignedArray<float>(values);
  numerics::rope_tables(numerics::rope_frequencies(rope.params, factors),
                        numerics::rope_magnitude(rope.params), 0, positions, tables.cos_.data(),
                        tables.sin_.data());
  return tables;
}

backend::RopeTable RopeTables::view() const {
  return {.neox = neox_, .length = length_, .positions = positions_, .cos = cos_.data(), .sin = sin_.data()};
}

}  // namespace spillway::engine
