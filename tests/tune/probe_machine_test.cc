// The real target of a probe: this CPU, and a pretended device whose link and memory have set rates and a
// clock of their own.
#include "tune/probe_machine.h"

#include <gtest/gtest.h>

#include "backend/host/host_device.h"
#include "tune/probe.h"

namespace spillway::tune {
namespace {

constexpr uint64_t kMemory = 32 << 20;

Result<ProfileFile> probe_host(const backend::HostDeviceOptions& options, double seconds = 0.3) {
  auto device = backend::open_host(options);
  EXPECT_TRUE(device);
  SW_ASSIGN(const auto target,
            MachineTarget::create({.threads = 1, .memory_bytes = kMemory, .device_clock = options.clock},
                                  *std::move(device)));
  return probe(*target, {.seconds = seconds, .types = {TensorType::kQ4_K}}, {});
}

void expect_measured(const experts::Quantity& got, double want, const char* what) {
  EXPECT_EQ(got.label, Label::kMeasured) << what;
  EXPECT_NEAR(got.value, want, 0.1 * want) << what;
}

TEST(ProbeMachine, RecoversTheRatesOfAPretendedDevice) {
  for (const auto& [device, link, pageable, copy_us, operation_us] :
       {std::tuple(300.0, 12.0, 6.0, 5.0, 4.0), std::tuple(900.0, 50.0, 20.0, 2.0, 30.0),
        std::tuple(200.0, 3.0, 2.0, 40.0, 10.0)}) {
    sys::FakeClock clock;
    const auto file = probe_host({.memory_bytes = uint64_t{1} << 30,
                                  .rates = backend::HostRates{.device_gb_per_s = device,
                                                              // An expert takes longer from 2 tokens on.
                                                              .device_gmac_per_s = device * 2 * 32 / 18,
                                                              .operation_us = operation_us,
                                                              .link_gb_per_s = link,
                                                              .link_pageable_gb_per_s = pageable,
                                                              .copy_us = copy_us},
                                  .clock = &clock},
                                 0.05);
    ASSERT_TRUE(file) << file.error().message;
    const experts::HardwareProfile& p = file->profile;
    expect_measured(p.link_gb_s, link, "link");
    expect_measured(p.copy_us, copy_us, "copy");
    expect_measured(p.device_gb_s, device, "device");
    expect_measured(p.device_tokens, 2, "device tokens");
    EXPECT_LT(p.device_expert_us.value, 0.2);
    EXPECT_NEAR(file->link[1].gb_s, pageable, 0.1 * pageable);
    EXPECT_NEAR(file->waits_us.at("device_operation").median, operation_us, 0.5);
    // This link takes nothing from the CPU, whatever that does meanwhile.
    expect_measured(p.link_contended_gb_s, link, "link, contended");
    EXPECT_LT(p.layer_us.value, 1e-6);
  }
}

// What can be said of any processor.
TEST(ProbeMachine, MeasuresThisProcessor) {
  const auto target = MachineTarget::create({.threads = 2, .memory_bytes = kMemory}, nullptr);
  ASSERT_TRUE(target);
  const auto file = probe(**target, {.seconds = 0.2, .types = {TensorType::kQ4_K, TensorType::kQ8_0}}, {});
  ASSERT_TRUE(file) << file.error().message;
  const experts::HardwareProfile& p = file->profile;
  for (const auto& [quantity, least, most] :
       {std::tuple(p.dram_gb_s, 0.1, 5000.0), std::tuple(p.cpu_gb_s, 0.001, 5000.0),
        std::tuple(p.cpu_tokens, 0.05, 32.0), std::tuple(p.cpu_start_us, 0.01, 1e6)}) {
    EXPECT_EQ(quantity.label, Label::kMeasured);
    EXPECT_GT(quantity.value, least);
    EXPECT_LT(quantity.value, most);
  }
  EXPECT_EQ(p.link_gb_s.label, Label::kDefault);
  // Q4_K: 6 token counts and one thread; Q8_0: one and two threads, and many tokens.
  EXPECT_EQ(file->cpu_kernels.size(), 6u + 1 + 3);
  EXPECT_EQ(file->memory.size(), 2u);
}

// Measured times, and no pinned memory.
TEST(ProbeMachine, SaysWhyMemoryIsNotPinned) {
  const auto file = probe_host({.memory_bytes = uint64_t{1} << 30, .faults = {.refuse_pinning = true}}, 0.1);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_NE(file->link[0].why_not.find("pinned memory is refused"), std::string::npos);
  EXPECT_GT(file->link[1].gb_s, 0);
  EXPECT_EQ(file->profile.link_gb_s.label, Label::kMeasured);
  EXPECT_DOUBLE_EQ(file->profile.link_gb_s.value, file->link[1].gb_s);
  EXPECT_LE(file->profile.cpu_contended_gb_s.value, file->profile.cpu_gb_s.value);
}

TEST(ProbeMachine, HandsOnWhatTheDeviceRefuses) {
  const auto small = probe_host({.memory_bytes = 1 << 20});
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().kind, Error::Kind::kNoMemory);
  const auto lost = probe_host({.memory_bytes = uint64_t{1} << 30, .faults = {.lose_after_operations = 50}});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().kind, Error::Kind::kDeviceLost);
}

}  // namespace
}  // namespace spillway::tune
