// The probe on machines of known rates, through the seam that the real machine uses.
#include "tune/probe.h"

#include <gtest/gtest.h>

#include "tune/probe_simulated.h"

namespace spillway::tune {
namespace {

ProfileFile probe_machine(const SimulatedMachine& machine, double seconds = 10) {
  SimulatedTarget target(machine);
  auto file = probe(target, {.seconds = seconds, .types = common_types()}, {});
  EXPECT_TRUE(file) << file.error().message;
  return file ? *std::move(file) : ProfileFile{};
}

// Within 10 %, and times within a microsecond too: they are what is left of times of a hundred.
void expect_near(const experts::Quantity& got, double want, const char* what, double us = 0) {
  EXPECT_EQ(got.label, Label::kMeasured) << what;
  EXPECT_NEAR(got.value, want, std::max(0.1 * want, us)) << what;
}

void expect_recovered(const SimulatedMachine& m) {
  const ProfileFile file = probe_machine(m);
  const experts::HardwareProfile& p = file.profile;
  expect_near(p.dram_gb_s, m.dram_gb_s, "dram");
  expect_near(p.cpu_gb_s, m.cpu_gb_s, "cpu");
  expect_near(p.link_gb_s, m.link_gb_s, "link");
  expect_near(p.device_gb_s, m.device_gb_s, "device");
  expect_near(p.cpu_contended_gb_s, m.cpu_contended_gb_s, "cpu contended");
  expect_near(p.link_contended_gb_s, m.link_contended_gb_s, "link contended");
  expect_near(p.cpu_tokens, m.cpu_tokens, "cpu tokens");
  expect_near(p.device_tokens, m.device_tokens, "device tokens");
  expect_near(p.copy_us, m.copy_us, "copy", 1.0);
  expect_near(p.device_expert_us, m.device_expert_us, "device expert", 0.3);
  expect_near(p.layer_us, m.layer_us, "layer", 1.0);
  expect_near(p.cpu_start_us, m.wake_us + m.region_us + m.hand_over_us, "cpu start", 1.0);
  EXPECT_EQ(p.step_us.label, Label::kDefault);
  EXPECT_TRUE(file.reasons.contains("step_us"));
  EXPECT_NEAR(file.link[1].gb_s, m.pageable_gb_s, 0.1 * m.pageable_gb_s);
  EXPECT_NEAR(file.link[2].gb_s, m.down_gb_s, 0.1 * m.down_gb_s);
  EXPECT_LT(file.seconds, 15.0);
}

const SimulatedMachine kFastLink{.dram_gb_s = 150,
                                 .cpu_gb_s = 110,
                                 .link_gb_s = 52,
                                 .pageable_gb_s = 20,
                                 .down_gb_s = 48,
                                 .copy_us = 3,
                                 .cpu_contended_gb_s = 98,
                                 .link_contended_gb_s = 50,
                                 .device_gb_s = 2600,
                                 .device_tokens = 40,
                                 .device_expert_us = 0.5,
                                 .operation_us = 4};
const SimulatedMachine kSlowLink{.threads = 4,
                                 .dram_gb_s = 20,
                                 .cpu_gb_s = 17,
                                 .cpu_tokens = 2,
                                 .link_gb_s = 2.6,
                                 .pageable_gb_s = 1.9,
                                 .down_gb_s = 2.4,
                                 .cpu_contended_gb_s = 15,
                                 .link_contended_gb_s = 2.5};
// 43.4 + 21.6 of 80.6 GB/s, a pair that was measured in public (facts/policy.md).
const SimulatedMachine kContended{.dram_gb_s = 80.6,
                                  .cpu_gb_s = 72,
                                  .link_gb_s = 25,
                                  .cpu_contended_gb_s = 43.4,
                                  .link_contended_gb_s = 21.6};
const SimulatedMachine kFixedCosts{.region_us = 60,
                                   .wake_us = 90,
                                   .copy_us = 45,
                                   .device_expert_us = 25,
                                   .operation_us = 80,
                                   .wait_us = 150,
                                   .hand_over_us = 30,
                                   .layer_us = 220};

TEST(Probe, RecoversTheRatesOfAFastLink) { expect_recovered(kFastLink); }
TEST(Probe, RecoversTheRatesOfASlowLink) { expect_recovered(kSlowLink); }
TEST(Probe, RecoversContendedRates) { expect_recovered(kContended); }
TEST(Probe, RecoversLargeFixedCosts) { expect_recovered(kFixedCosts); }

TEST(Probe, RecoversThemWithEverySeed) {
  for (uint64_t seed = 2; seed <= 12; ++seed)
    for (SimulatedMachine machine : {kFastLink, kSlowLink, kContended, kFixedCosts}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", link " << machine.link_gb_s);
      machine.seed = seed;
      expect_recovered(machine);
    }
}

// Rounding put the contended rate above the lone one, and the profile was refused.
TEST(Probe, KeepsContendedRatesBelowLoneOnes) {
  SimulatedMachine machine = kFixedCosts;
  machine.cpu_contended_gb_s = machine.cpu_gb_s;
  for (machine.seed = 120; machine.seed < 160; ++machine.seed) {
    const experts::HardwareProfile p = probe_machine(machine).profile;
    EXPECT_LE(p.link_contended_gb_s.value, p.link_gb_s.value);
    EXPECT_LE(p.cpu_contended_gb_s.value, p.cpu_gb_s.value);
  }
}

TEST(Probe, KeepsToItsTime) {
  const double quick = probe_machine(kFastLink, 2).seconds, slow = probe_machine(kFastLink, 20).seconds;
  EXPECT_LT(quick, 4.0);
  EXPECT_GT(slow, 2 * quick);
  EXPECT_LT(slow, 24.0);
}

TEST(Probe, WithoutADeviceSaysWhatIsNotKnown) {
  SimulatedMachine machine = kContended;
  machine.device = false;
  const ProfileFile file = probe_machine(machine);
  expect_near(file.profile.cpu_gb_s, 72, "cpu");
  expect_near(file.profile.dram_gb_s, 80.6, "dram");
  for (const char* name : {"link_gb_s", "device_gb_s", "copy_us", "layer_us", "cpu_contended_gb_s"})
    EXPECT_EQ(file.reasons.at(name), "no device was measured") << name;
  for (const auto& [name, quantity] : file.profile.quantities())
    EXPECT_EQ(quantity->label == Label::kMeasured, !file.reasons.contains(std::string(name))) << name;
}

TEST(Probe, SaysThatTheMachineWasBusy) {
  SimulatedMachine machine = kContended;
  EXPECT_TRUE(probe_machine(machine).notes.empty());
  machine.other_cores = 1.5;
  const ProfileFile file = probe_machine(machine);
  ASSERT_FALSE(file.notes.empty());
  EXPECT_NE(file.notes[0].find("1.5 cores"), std::string::npos);
  machine.other_cores = 0;
  machine.noise = 0.3;
  const ProfileFile noisy = probe_machine(machine);
  ASSERT_FALSE(noisy.notes.empty());
  EXPECT_NE(noisy.notes[0].find("varied"), std::string::npos);
}

TEST(Probe, StopsWhenAsked) {
  SimulatedTarget target(kContended);
  double last = 0;
  const auto file = probe(target, {.types = common_types()}, [&](double share) {
    EXPECT_GE(share, last);
    last = share;
    return share < 0.5;
  });
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, Error::Kind::kCancelled);
}

TEST(ProbeFit, Lines) {
  const std::vector<double> x = {1, 2, 8};
  const Line exact = fit_line(x, std::vector<double>{7, 9, 21});
  EXPECT_NEAR(exact.fixed, 5, 1e-9);
  EXPECT_NEAR(exact.per_unit, 2, 1e-9);
  // Relative errors of one line through 0: 1.1/1, 1.9/2 and 8/8 with weights 1/y^2.
  const Line from_zero = fit_line(std::vector<double>{1, 2}, std::vector<double>{1, 3});
  EXPECT_EQ(from_zero.fixed, 0);
  EXPECT_NEAR(from_zero.per_unit, (1 + 2.0 / 3) / (1 + 4.0 / 9), 1e-9);
  const Line flat = fit_line(std::vector<double>{1, 2}, std::vector<double>{4, 2});
  EXPECT_EQ(flat.per_unit, 0);
  EXPECT_NEAR(flat.fixed, (1.0 / 4 + 1.0 / 2) / (1.0 / 16 + 1.0 / 4), 1e-9);
}

TEST(ProbeFit, SamplesAndTokens) {
  const Sample sample = sample_of({5, 1, 3, 2, 4});
  EXPECT_EQ(sample.median, 3);
  EXPECT_EQ(sample.low, 2);
  EXPECT_EQ(sample.high, 4);
  EXPECT_EQ(sample.repeats, 5u);
  EXPECT_EQ(sample.inverse(12).low, 3);
  EXPECT_EQ(sample.inverse(12).high, 6);
  EXPECT_NEAR(fit_tokens(std::vector<double>{1, 4, 16}, std::vector<double>{1, 1, 2}), 8, 0.1);
  EXPECT_NEAR(fit_tokens(std::vector<double>{1, 4, 16}, std::vector<double>{1, 1, 1}), 16, 0.1);
  EXPECT_NEAR(fit_tokens(std::vector<double>{1, 4, 16}, std::vector<double>{1, 4, 16}), 1, 0.02);
}

TEST(ProbeFit, Slowdowns) {
  // 10 ms each alone. The CPU at half its rate ends at 20; the link has then done 20/4 of 10 and needs 5
  // more.
  const Slowdown both = slowdown_of(10, 10, 20, 25);
  EXPECT_NEAR(both.cpu, 2, 1e-9);
  EXPECT_NEAR(both.link, 4, 1e-9);
  const Slowdown mirrored = slowdown_of(10, 10, 25, 20);
  EXPECT_NEAR(mirrored.cpu, 4, 1e-9);
  EXPECT_NEAR(mirrored.link, 2, 1e-9);
  EXPECT_EQ(slowdown_of(10, 12, 9, 12).cpu, 1);
}

}  // namespace
}  // namespace spillway::tune
