#include "tune/profile_file.h"

#include <gtest/gtest.h>

#include "experts/machines.h"

namespace spillway::tune {
namespace {

TEST(ProfileFile, IsReadAsWritten) {
  for (const experts::HardwareProfile& profile : experts::known_machines()) {
    const auto read = parse_profile(to_json(profile));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->name, profile.name);
    EXPECT_EQ(read->source, profile.source);
    const auto want = profile.quantities(), have = std::as_const(*read).quantities();
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(have[i].second->value, want[i].second->value) << want[i].first;
      EXPECT_EQ(have[i].second->label, want[i].second->label) << want[i].first;
    }
  }
}

TEST(ProfileFile, KeepsTheDetails) {
  ProfileFile file;
  file.profile = experts::default_profile();
  file.profile.name = "here";
  file.profile.link_gb_s = {24.5, Label::kMeasured};
  file.machine = {.cpu = "a processor",
                  .cores = 8,
                  .memory_bytes = 5,
                  .device = "a card",
                  .driver = "1.2",
                  .device_bytes = 7,
                  .system = "Linux"};
  file.created = "2026-11-30T12:00:00Z";
  file.seconds = 9.5;
  file.other_cores = 0.25;
  const Sample sample{24.5, 24, 25, 17};
  file.spreads["link_gb_s"] = sample;
  file.reasons["step_us"] = "it depends on the model";
  file.memory = {{8, sample}};
  file.cpu_kernels = {{"Q4_K", 8, 1, sample}, {"Q8_0", 4, 32, sample}};
  file.link = {{"up", "pinned", 24.5, 5.0, ""}, {"up", "mapped", 0, 0, "never used"}};
  file.device = {{3'500'000, 8, 64, sample}};
  file.waits_us["pool_wake"] = sample;
  file.limits = {.group_memory_bytes = 1000, .locked_bytes = 64};
  file.notes = {"It was busy."};
  const std::string json = to_json(file);
  const auto read = parse_profile_file(json);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read), json);
  EXPECT_EQ(read->machine, file.machine);
  EXPECT_EQ(read->spreads.at("link_gb_s").repeats, 17u);
  EXPECT_EQ(read->reasons.at("step_us"), "it depends on the model");
  EXPECT_EQ(read->cpu_kernels.at(1).type, "Q8_0");
  EXPECT_EQ(read->cpu_kernels.at(1).gb_s.low, 24);
  EXPECT_EQ(read->link.at(1).why_not, "never used");
  EXPECT_EQ(read->limits.group_memory_bytes, 1000u);
  EXPECT_FALSE(read->limits.group_cpus);
  EXPECT_EQ(read->notes, file.notes);
}

// Another version may write more, and other things.
TEST(ProfileFile, PassesOverDetailsThatItDoesNotKnow) {
  const auto read = parse_profile_file(
      R"({"schema": 1, "kind": "hardware profile", "wings": 2, "seconds": "ten", "machine": {"cpu": 3, "cores": 4},
          "quantities": {"link_gb_s": {"value": 20, "label": "measured", "colour": "red"}},
          "cpu_kernels": [7, {"type": "Q9_X", "sides": 3}], "link": {}, "limits": [], "waits_us": {"x": 1},
          "notes": [1, "two"]})");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->profile.link_gb_s.value, 20);
  EXPECT_EQ(read->machine.cores, 4u);
  ASSERT_EQ(read->cpu_kernels.size(), 1u);
  EXPECT_EQ(read->cpu_kernels[0].type, "Q9_X");
  EXPECT_EQ(read->notes, std::vector<std::string>{"two"});
}

TEST(ProfileFile, RefusesWhatIsNoProfile) {
  const std::string head = R"({"schema": 1, "kind": "hardware profile", "quantities": )";
  const auto message = [](const std::string& text) {
    const auto read = parse_profile(text);
    return read ? "read" : read.error().message;
  };
  EXPECT_EQ(message(head + "{}}"), "read");
  EXPECT_EQ(message(head + R"({"wings": {"value": 1, "label": "measured"}}})"),
            "quantities: 'wings' is not known");
  EXPECT_NE(message(head + R"({"link_gb_s": {"value": -1, "label": "measured"}}})").find("link_gb_s"),
            std::string::npos);
  EXPECT_NE(message(head + R"({"link_gb_s": {"value": 1, "label": "sure"}}})").find("'sure'"),
            std::string::npos);
  EXPECT_NE(message(head + R"({"link_gb_s": 3}})").find("link_gb_s"), std::string::npos);
  for (const char* text : {"", "[]", "{}", "\xff", R"({"schema": 2, "kind": "hardware profile"})"})
    EXPECT_FALSE(parse_profile(text)) << text;
}

}  // namespace
}  // namespace spillway::tune
