// The split that finishes soonest: which of a layer's experts are copied to the device and which are computed
// on the CPU, by the cost model's max(device, link, CPU) under contention.
//
// A copy costs the same whatever the tokens, so the misses with the most tokens are copied and those with the
// fewest go to the CPU: of m misses only m + 1 splits are worth looking at. Hits are the device's: it has
// started on them before anybody on the host knows what was chosen. Copies under way are waited for, or their
// experts are computed on the CPU.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "experts/cost_model.h"

namespace spillway {
namespace experts {

// What a split makes use of beside the hits on the device.
enum class SplitKind : uint8_t { kHitsOnly, kCopies, kCpu, kBoth };
inline constexpr uint32_t kSplitKinds = 4;
std::string_view split_kind_name(SplitKind kind);
inline SplitKind split_kind(const Work& work) {
  return static_cast<SplitKind>((work.last_upload_us > 0.0 ? 1 : 0) + (work.cpu_us > 0.0 ? 2 : 0));
}

// Observed time / predicted time of each kind, by which predictions are multiplied before they are compared.
using Corrections = std::array<double, kSplitKinds>;

struct SplitTask {
  uint64_t expert_bytes = 0;
  std::span<const uint32_t> hits;    // tokens of each
  std::span<const uint32_t> joins;   // tokens of each
  std::span<const uint32_t> misses;  // tokens of each, most first
  uint32_t most_copies = 0;          // how many misses may be copied
  double ahead_us = 0.0;             // link time of copies under way
};

struct Split {
  bool join = true;     // the joins on the device, else on the CPU
  uint32_t copies = 0;  // the first of the misses
  SplitKind kind = SplitKind::kHitsOnly;
  double us = 0.0;  // corrected
};

class Splitter {
 public:
  explicit Splitter(uint32_t max_experts);

  // O(hits + joins + misses). Nothing allocates.
  Split best(const SplitTask& task, const CostModel& cost, const Corrections& corrections);
  // The best of one kind, or nothing if the task has none of it. After best() of the same task.
  const std::optional<Split>& best_of(SplitKind kind) const { return of_kind_[static_cast<size_t>(kind)]; }

 private:
  struct Sums {
    std::vector<double> cpu, device;  // of the first i; (max_experts + 1)
    double cpu_after(uint32_t i, size_t n) const { return cpu[n] - cpu[i]; }
  };
  void sum(Sums& sums, std::span<const uint32_t> tokens, uint64_t bytes, const CostModel& cost);
  void improve(const SplitTask& task, const CostModel& cost, const Corrections& corrections, Split split,
               Split& best);

  Sums hits_, joins_, misses_;
  std::array<std::optional<Split>, kSplitKinds> of_kind_;
};

}  // namespace experts
}  // namespace spillway
