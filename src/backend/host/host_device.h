// A device that is made of threads and memory of the host: for tests, for trying the expert cache without a
// GPU, and for measuring what the engine would do with hardware of given speeds.
//
// Real: the arena (weights, KV, slots lie in memory of their own, and nothing is read from the engine's but
// by upload and copies), the two queues (a thread each, so that ordering faults are data races that the
// thread sanitizer sees), every operation (cpu::CpuCompute on its own pool), every limit of memory.
// Simulated, and only when asked for by HostRates: when things happen. Pinned memory is a matter of
// book-keeping.
//
// It also watches the slots: a slot that is read before its copy was waited for, or overwritten while an
// operation may still read it, or put into a table without ever having been filled, loses the device with an
// error that begins with "race:". The check follows the order of the calls and not of the threads, so it
// finds the same faults in every run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "backend/cpu/kernels.h"
#include "backend/device.h"
#include "base/result.h"
#include "sys/clock.h"

namespace spillway::backend {

// What fails, for fault tests. Counted from 1; 0 = nothing.
struct HostFaults {
  uint32_t fail_allocation = 0;  // of prepare()'s, all calls together: weights, KV, scratch, then a pool each
  uint32_t fail_upload = 0;      // which upload() returns an error
  uint64_t fail_copy = 0;        // which copy_expert() loses the device when its turn comes
  std::optional<uint64_t> lose_after_operations;  // of the stream, marks included
  bool refuse_pinning = false;
  uint64_t pin_limit_bytes = UINT64_MAX;
};

// A simulated device. Its times are those of a device that reads weights and KV at device_gb_per_s or
// multiplies at device_gmac_per_s, whichever takes longer, and does everything else (activations, small
// operations) in operation_us; and of a link. One operation runs at a time, and one copy. A rate of 0 is
// infinitely fast. Device and link don't slow each other down.
struct HostRates {
  double device_gb_per_s = 0;    // 10^9 bytes
  double device_gmac_per_s = 0;  // 10^9 multiply-adds of a weight and an activation
  double operation_us = 0;
  double link_gb_per_s = 0;           // from pinned memory
  double link_pageable_gb_per_s = 0;  // from other memory; 0 = the same
  double copy_us = 0;
};

struct HostDeviceOptions {
  uint64_t memory_bytes = 0;                           // of the device; 0 = all that this process may use
  uint32_t threads = 1;                                // that run an operation
  std::optional<cpu::InstructionSet> instruction_set;  // unset = the best
  HostFaults faults;

  // Unset: interval() gives measured times. Set: it gives simulated ones, which are the same in every run. An
  // operation starts no earlier than the submit() that handed it over, a copy than its call, by `clock`;
  // wait() and finish() set the clock forward to the time at which the device would have been done, and
  // reached() tells whether that time has come (so a loop around it must advance the clock itself). Without a
  // clock the host takes no time. The clock belongs to the engine's thread and outlives the device.
  std::optional<HostRates> rates;
  sys::FakeClock* clock = nullptr;
};

// Tells what open_host() would give. Errors: the memory limits of this process can't be read.
Result<DeviceInfo> host_info(const HostDeviceOptions& options);

// Errors: an instruction set that this processor lacks, threads that can't be started. prepare() may be
// called again after it failed.
Result<std::unique_ptr<Device>> open_host(const HostDeviceOptions& options);

}  // namespace spillway::backend
