// How long a layer's experts take when they are split over device, link and CPU.
//
// Three resources work side by side: the device computes hits at once and uploaded experts as they arrive,
// the link copies, the CPU computes. Link and CPU read the same host memory: while both run, each runs at its
// contended rate; when one is done the other goes on at its lone rate. (Rules made from lone rates chose
// wrongly by 14 % on one public machine and by 8 times on another; overlapped pairs were 54.0 + 23.9 of 84.5
// GB/s and 43.4 + 21.6 of 80.6.) Where the contended rates add up to the memory's, the finish time of the
// best split is the bytes missed / min(Bl + Bc, Br), as in facts/limits; experts/bounds.h has those closed
// forms.
//
// Rates start from a profile and follow what is observed: each by an exponential average of the ratio
// observed / predicted, the ratio clamped to [1/2, 2] per observation (one outlier moves little) and the
// average to [1/32, 32] of the profile (a broken clock can't take it away). CPU and device times are learnt
// per power of two of an expert's tokens; those not seen yet follow the average of all. Deterministic:
// doubles as in experts/arithmetic.h. Every function is O(1), but learn() which is O(experts of the plan).
#pragma once

#include <array>
#include <span>

#include "experts/profile.h"
#include "experts/types.h"

namespace spillway {
namespace experts {

// The lone time of each resource for one layer's split, in microseconds.
struct Work {
  double device_us = 0.0;  // all experts computed on the device
  double last_upload_us =
      0.0;               // of it, what can only start when the plan's copies are there; 0: nothing waits
  double link_us = 0.0;  // the plan's copies
  double cpu_us = 0.0;
  bool waits = false;      // the layer waits for the host's plan: it has misses
  double ahead_us = 0.0;   // background copies on the link before the plan's
  double behind_us = 0.0;  // and after them
};

// When each resource is done, from the start of the layer's expert part, in microseconds; 0 where unused.
struct Times {
  double device_us = 0.0;
  double link_us = 0.0;  // the plan's copies and those ahead of them
  double cpu_us = 0.0;
  double total_us = 0.0;  // with the layer's fixed cost
};

// What was observed from the start of the layer's expert part. 0 where unused or not measured.
struct Observation {
  uint64_t device_ns = 0;      // until the device was done
  uint64_t link_ns = 0;        // that the plan's copies took
  uint64_t background_ns = 0;  // that background copies took until the end
  uint64_t cpu_ns = 0;         // until the CPU was done
  uint64_t total_ns = 0;
  bool operator==(const Observation&) const = default;
};

// What every correction moves a value by, of the way to what was seen: an average of about the last 32
// observations. A token of a 48-layer model gives up to 48 of them.
inline constexpr double kLearningRate = 1.0 / 32;

class CostModel {
 public:
  // Requires: profile.check().
  explicit CostModel(const HardwareProfile& profile);

  // One expert of `bytes` used by `tokens` tokens, the resource alone.
  double cpu_us(uint64_t bytes, uint32_t tokens) const;
  double device_us(uint64_t bytes, uint32_t tokens) const;
  double link_us(uint64_t bytes) const;

  Times finish(const Work& work) const;
  // What an exact clock would observe of it, and the lone link time of background copies that is left at the
  // end: for the simulated clock.
  struct Outcome {
    Observation seen;
    double left_us;
  };
  Outcome observe(const Work& work) const;

  // The CPU keeps its rate while the link runs: copies beside the CPU part cost nothing.
  bool link_is_free_beside_cpu() const { return cpu_slowdown_ <= 1.02; }

  // What a plan of this work took. `tokens` of the experts computed on the CPU and on the device.
  void learn(const Work& work, std::span<const uint32_t> cpu_tokens, std::span<const uint32_t> device_tokens,
             const Observation& seen);

  // For reports: present rates in GB/s at one token, and the number of observations behind each.
  struct Rates {
    double device_gb_s, cpu_gb_s, link_gb_s, cpu_contended_gb_s, link_contended_gb_s;
    double layer_us;
    uint64_t n_device, n_cpu, n_link, n_contended;
  };
  Rates rates() const;

 private:
  static constexpr uint32_t kBuckets = 17;  // floor(log2(tokens)), 2^16 = limits::kMaxUbatch the last
  struct Average {
    double factor = 1.0;  // observed / profile
    uint64_t n = 0;
    void follow(double ratio);
  };
  struct ByTokens {
    Average all;
    std::array<Average, kBuckets> bucket;
    double factor(uint32_t tokens) const;
    void follow(std::span<const uint32_t> tokens, double ratio);
  };
  struct Overlap {
    double cpu_us, link_us;
  };
  // When each is done that starts now with this much to do alone.
  Overlap overlap(double cpu_us, double link_us) const;

  double device_bytes_per_us_;
  double cpu_bytes_per_us_;
  double link_bytes_per_us_;
  double cpu_tokens_;
  double device_tokens_;
  double cpu_start_us_;
  double copy_us_;
  double device_expert_us_;
  double layer_us_;
  double cpu_slowdown_;  // lone rate / contended rate, at least 1
  double link_slowdown_;
  uint64_t n_contended_ = 0;
  ByTokens cpu_;
  ByTokens device_;
  Average link_;
};

}  // namespace experts
}  // namespace spillway
