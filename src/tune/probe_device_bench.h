// The device's part of a real probe, through the interface that the engine uses (backend/device.h): copies of
// experts into slots, experts computed from slots, the ids of a routing read back.
#pragma once

#include <functional>
#include <memory>

#include "backend/device.h"
#include "sys/clock.h"
#include "tune/probe_cpu_bench.h"

namespace spillway::tune {

class DeviceBench {
 public:
  // Copies come from the arena of `cpu`, which is pinned for the device as far as the system allows, and from
  // memory of its own that is not. Both must outlive it. `clock` is the device's: the real one, or the one
  // that a pretended device sets forward. Errors: what does not fit, a device that is lost.
  static Result<std::unique_ptr<DeviceBench>> create(std::unique_ptr<backend::Device> device, CpuBench& cpu,
                                                     const sys::Clock& clock);

  // Every expert of the layer is used by every token, so what is asked for decides what is computed.
  static constexpr uint32_t kHidden = 1024, kExperts = 8;
  const backend::DeviceInfo& info() const { return device_->info(); }
  std::string why_no_copies(HostMemory memory) const;
  std::vector<uint64_t> copy_sizes(Direction direction) const;
  std::vector<uint64_t> expert_sizes() const;
  uint32_t tokens() const;

  Result<double> copy_us(const CopyLoad& load);
  Result<double> experts_us(const DeviceLoad& load);
  Result<double> wait_us(Wait what);  // but kPool
  // Starts copies, runs `meanwhile`, and waits.
  Result<double> copy_beside_us(const CopyLoad& load, const std::function<Result<void>()>& meanwhile);

 private:
  DeviceBench(std::unique_ptr<backend::Device> device, CpuBench& cpu, const sys::Clock& clock);
  double now_us() const { return static_cast<double>(clock_.now_ns()) / 1000; }
  Result<void> prepare();
  Result<void> fill_slots();
  void begin(uint32_t rows);
  backend::MoeSpec layer(uint32_t number) const;
  backend::Point copy_one(const CopyLoad& load);
  std::span<const std::byte> source(HostMemory memory, uint64_t bytes);
  Result<double> read_back_us(const CopyLoad& load);
  Result<double> routing_us(bool for_host);

  CpuBench& cpu_;
  const sys::Clock& clock_;
  sys::Allocation pageable_;
  uint64_t next_pageable_ = 0;
  std::string why_not_pinned_;
  std::vector<backend::PoolSpec> pools_;
  std::vector<uint32_t> next_slot_;  // by pool
  std::vector<int32_t> tokens_;
  std::vector<uint32_t> positions_, pages_;
  backend::Piece piece_;
  std::vector<float> x_, wide_;
  std::vector<backend::ExpertSlot> experts_;
  std::unique_ptr<backend::Device> device_;  // last: it ends before what its copies read
};

}  // namespace spillway::tune
