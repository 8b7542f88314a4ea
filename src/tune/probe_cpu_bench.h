// The CPU's part of a real probe: the engine's own expert kernels and thread pools, on experts that lie in
// memory larger than the caches.
#pragma once

#include <map>
#include <memory>

#include "backend/cpu/expert_compute.h"
#include "sys/memory.h"
#include "sys/thread_pool.h"
#include "tune/probe_target.h"

namespace spillway::tune {

class CpuBench {
 public:
  // Allocates and fills `arena_bytes`. Errors: no memory, threads that can't be started.
  static Result<std::unique_ptr<CpuBench>> create(uint32_t threads, uint64_t arena_bytes);

  // Experts of the size of Qwen3-30B-A3B's: 2.7 MB in Q4_K.
  static constexpr uint32_t kHidden = 2048, kWidth = 768, kExperts = 8, kTokens = 32;
  uint64_t expert_bytes(TensorType type) const;

  uint64_t read_bytes() const;
  Result<double> read_us(uint32_t threads);
  Result<double> experts_us(const CpuLoad& load);
  double wake_us();

  // Bytes of `size` at a new place, for whoever reads next.
  std::span<const std::byte> next_bytes(uint64_t size);
  std::span<const std::byte> arena() const { return arena_.bytes(); }
  uint32_t threads() const { return threads_; }

 private:
  struct Crew {
    std::unique_ptr<sys::ThreadPool> pool;
    std::unique_ptr<cpu::ExpertCompute> compute;
  };
  explicit CpuBench(uint32_t threads) : threads_(threads) {}
  Result<Crew*> crew(uint32_t threads);
  void fill();

  const uint32_t threads_;
  sys::Allocation arena_;
  uint64_t next_ = 0;
  uint64_t sum_ = 0;
  std::map<uint32_t, Crew> crews_;  // by thread count
  std::vector<float> x_;            // (kTokens, kHidden)
  std::vector<uint32_t> ids_;
  std::vector<cpu::ExpertPart> parts_;
};

}  // namespace spillway::tune
