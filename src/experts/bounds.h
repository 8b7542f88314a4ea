// Closed forms for the decode time of one sequence: what no planner can beat, and what each simple choice
// costs. Letters: A routed-expert bytes per token, D dense bytes per token, h byte hit rate, M = (1-h)A, Bv
// device memory rate, Br host memory rate, Bc the CPU kernel's rate alone, Bl link rate; times in
// microseconds, bytes in bytes, rates in GB/s.
#pragma once

#include <algorithm>

namespace spillway {
namespace experts {

struct DecodeLimits {
  double dense_bytes = 0;   // D
  double expert_bytes = 0;  // A
  double device_gb_s = 0;   // Bv
  double dram_gb_s = 0;     // Br
  double cpu_gb_s = 0;      // Bc
  double link_gb_s = 0;     // Bl

  static double us(double bytes, double gb_s) { return bytes / (gb_s * 1000.0); }
  double dense_us() const { return us(dense_bytes, device_gb_s); }
  // The rate at which misses are worked off at best: link and CPU together, but not faster than their memory.
  double miss_gb_s() const { return std::min(link_gb_s + cpu_gb_s, dram_gb_s); }

  // T = (D + A) / Bv
  double all_resident_us() const { return us(dense_bytes + expert_bytes, device_gb_s); }
  // T = D/Bv + A/min(Bc, Br)
  double cpu_only_us() const { return dense_us() + us(expert_bytes, std::min(cpu_gb_s, dram_gb_s)); }
  // T = D/Bv + max(hA/Bv, M/Bl) + M/Bv
  double upload_only_us(double hit_rate) const {
    const double missed = (1.0 - hit_rate) * expert_bytes;
    return dense_us() + std::max(us(hit_rate * expert_bytes, device_gb_s), us(missed, link_gb_s)) +
           us(missed, device_gb_s);
  }
  // T = D/Bv + max((hA+xM)/Bv, xM/Bl, (1-x)M/Bc, M/Br), x the share of the misses that is uploaded
  double hybrid_us(double hit_rate, double upload_share) const {
    const double missed = (1.0 - hit_rate) * expert_bytes;
    const double uploaded = upload_share * missed;
    return dense_us() +
           std::max({us(hit_rate * expert_bytes + uploaded, device_gb_s), us(uploaded, link_gb_s),
                     us(missed - uploaded, cpu_gb_s), us(missed, dram_gb_s)});
  }
  // The CPU's share of the misses at the optimum where the device is not the bottleneck: F* = 1 -
  // Bl/min(Bl+Bc, Br)
  double best_cpu_share() const { return 1.0 - link_gb_s / miss_gb_s(); }
  // The hybrid at its best x. The CPU's time falls with x, the device's and the link's grow: the optimum is
  // where the CPU's first meets one of theirs.
  double best_hybrid_us(double hit_rate) const {
    const double missed = (1.0 - hit_rate) * expert_bytes;
    const double cpu = us(missed, cpu_gb_s);
    const double meets_link = cpu / (us(missed, link_gb_s) + cpu);
    const double meets_device =
        (cpu - us(hit_rate * expert_bytes, device_gb_s)) / (us(missed, device_gb_s) + cpu);
    return hybrid_us(hit_rate, missed > 0 ? std::clamp(std::min(meets_link, meets_device), 0.0, 1.0) : 0.0);
  }
  // No placement is faster: T = D/Bv + A/(Bv + min(Bl+Bc, Br))
  double best_possible_us() const { return dense_us() + us(expert_bytes, device_gb_s + miss_gb_s()); }
};

}  // namespace experts
}  // namespace spillway
