#include "backend/device.h"

#include "base/checked.h"
#include "numerics/layout.h"

namespace spillway::backend {
namespace {

uint64_t aligned_bytes(const WeightShape& w) {
  return ceil_div(numerics::interleaved_bytes(w.type, w.rows, w.cols), ExpertLayout::kAlignment) *
         ExpertLayout::kAlignment;
}

}  // namespace

uint64_t ExpertLayout::up_offset() const { return aligned_bytes(gate); }
uint64_t ExpertLayout::down_offset() const { return up_offset() + aligned_bytes(up); }
uint64_t ExpertLayout::slot_bytes() const { return down_offset() + aligned_bytes(down); }

ExpertMatrices ExpertLayout::matrices(const std::byte* slot) const {
  const auto matrix = [&](const WeightShape& w, uint64_t offset) {
    return Matrix{.type = w.type,
                  .layout = Layout::kInterleaved,
                  .rows = w.rows,
                  .cols = w.cols,
                  .data = slot + offset};
  };
  return {matrix(gate, 0), matrix(up, up_offset()), matrix(down, down_offset())};
}

}  // namespace spillway::backend
