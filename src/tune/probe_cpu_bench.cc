#include "tune/probe_cpu_bench.h"

#include <chrono>
#include <thread>

#include "base/assert.h"
#include "base/checked.h"
#include "numerics/layout.h"
#include "sys/clock.h"
#include "tune/memory_reader.h"

namespace spillway::tune {
namespace {

// Six times as long as a waiting thread of the pool looks before it sleeps (sys/thread_pool.cc).
constexpr std::chrono::microseconds kIdle(300);
// A part of the arena at a time: a few milliseconds, so that a busy machine interrupts some passes and not
// all.
constexpr uint64_t kReadBytes = uint64_t{32} << 20;
constexpr uint64_t kAlignment = backend::ExpertLayout::kAlignment;

double now_us() { return static_cast<double>(sys::MonotonicClock().now_ns()) / 1000; }

backend::ComputeSizes sizes() {
  backend::ComputeSizes sizes;
  sizes.max_rows = CpuBench::kTokens;
  sizes.max_width = sizes.hidden = CpuBench::kHidden;
  sizes.experts = sizes.max_experts_used = CpuBench::kExperts;
  sizes.expert_width = CpuBench::kWidth;
  return sizes;
}

backend::ExpertLayout layout_of(TensorType type) {
  return {{type, CpuBench::kWidth, CpuBench::kHidden, true},
          {type, CpuBench::kWidth, CpuBench::kHidden, true},
          {type, CpuBench::kHidden, CpuBench::kWidth, true}};
}

}  // namespace

Result<std::unique_ptr<CpuBench>> CpuBench::create(uint32_t threads, uint64_t arena_bytes) {
  std::unique_ptr<CpuBench> bench(new CpuBench(threads));
  SW_ASSIGN(bench->arena_, sys::Allocation::create(arena_bytes, sys::Pages::kPreferHuge));
  SW_ASSIGN(const Crew* all, bench->crew(threads));
  (void)all;
  bench->fill();
  return bench;
}

Result<CpuBench::Crew*> CpuBench::crew(uint32_t threads) {
  Crew& crew = crews_[threads];
  if (!crew.pool) {
    SW_ASSIGN(crew.pool, sys::ThreadPool::create(threads));
    crew.compute = std::make_unique<cpu::ExpertCompute>(*crew.pool, cpu::kernels(cpu::best_instruction_set()),
                                                        sizes(), std::span<const backend::Matrix>());
  }
  return &crew;
}

// Bytes of 0x20 to 0x2f: as halves, floats and exponents of any type they are ordinary positive numbers.
// Filled by the threads that read them later.
void CpuBench::fill() {
  sys::ThreadPool& pool = *crews_[threads_].pool;
  const uint64_t part = arena_.size() / threads_ / 64 * 64;
  pool.run([&](uint32_t t) {
    auto* words = reinterpret_cast<uint64_t*>(arena_.data() + t * part);
    uint64_t state = 0x9e3779b97f4a7c15u + t;
    for (uint64_t i = 0; i < part / 8; ++i) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;  // xorshift64, Marsaglia 2003
      words[i] = (state & 0x0f0f0f0f0f0f0f0fu) | 0x2020202020202020u;
    }
  });
  x_.resize(size_t{kTokens} * kHidden);
  for (size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(i % 255) / 128.0f - 1.0f;
}

uint64_t CpuBench::expert_bytes(TensorType type) const {
  const backend::ExpertLayout layout = layout_of(type);
  return numerics::interleaved_bytes(type, layout.gate.rows, layout.gate.cols) * 2 +
         numerics::interleaved_bytes(type, layout.down.rows, layout.down.cols);
}

std::span<const std::byte> CpuBench::next_bytes(uint64_t size) {
  SW_ASSERT(size <= arena_.size());
  if (next_ + size > arena_.size()) next_ = 0;
  const auto bytes = arena_.bytes().subspan(next_, size);
  next_ += ceil_div(size, kAlignment) * kAlignment;
  return bytes;
}

uint64_t CpuBench::read_bytes() const { return std::min<uint64_t>(kReadBytes, arena_.size()); }

Result<double> CpuBench::read_us(uint32_t threads) {
  SW_ASSIGN(const Crew* crew, this->crew(threads));
  return 1e6 * read_once_s(*crew->pool, next_bytes(read_bytes()), sum_);
}

Result<double> CpuBench::experts_us(const CpuLoad& load) {
  SW_ASSERT(load.experts <= kExperts && load.tokens <= kTokens);
  SW_ASSIGN(const Crew* crew, this->crew(load.threads));
  ids_.clear();
  for (uint32_t t = 0; t < load.tokens; ++t)
    for (uint32_t e = 0; e < load.experts; ++e) ids_.push_back(e);
  const cpu::ExpertInput input{x_.data(), kHidden, load.tokens, load.experts, ids_};
  const backend::ExpertLayout layout = layout_of(load.type);
  const double begin_us = now_us();
  for (uint32_t region = 0; region < load.regions; ++region) {
    parts_.clear();
    for (uint32_t e = 0; e < load.experts; ++e)
      parts_.push_back({e, layout.matrices(next_bytes(layout.slot_bytes()).data())});
    crew->compute->run(input, parts_);
  }
  return now_us() - begin_us;
}

double CpuBench::wake_us() {
  sys::ThreadPool& pool = *crews_[threads_].pool;
  std::this_thread::sleep_for(kIdle);
  const double begin_us = now_us();
  pool.run([](uint32_t) {});
  return now_us() - begin_us;
}

}  // namespace spillway::tune
