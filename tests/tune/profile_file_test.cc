#include "tune/profile_file.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "experts/machines.h"
#include "report/markdown.h"
#include "tune/profile_result.h"

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

// ---- as a result

ProfileFile a_profile() {
  ProfileFile file;
  file.profile = experts::default_profile();
  file.profile.name = "a processor; a card";
  file.profile.source = "measured here";
  file.profile.link_gb_s = {24.5, Label::kMeasured};
  file.machine = {.cpu = "a processor", .cores = 8, .device = "a card"};
  file.seconds = 9.5;
  const Sample sample{24.5, 24, 25, 17}, half{13, 12.5, 13.5, 17};
  file.spreads["link_gb_s"] = sample;
  file.reasons["step_us"] = "it depends on the model";
  file.memory = {{8, sample}, {4, half}};
  file.cpu_kernels = {
      {"Q4_K", 4, 1, half}, {"Q4_K", 8, 1, sample}, {"Q8_0", 8, 1, sample}, {"Q4_K", 8, 32, half}};
  file.link = {{"up", "pinned", 24.5, 5.0, ""}, {"up", "mapped", 0, 0, "never used"}};
  file.device = {{3'500'000, 8, 1, sample}, {3'500'000, 8, 64, sample}};
  file.waits_us["pool_wake"] = sample;
  file.limits = {.group_memory_bytes = 8ull << 30, .locked_bytes = {}};
  file.notes = {"It was busy."};
  return file;
}

const report::Term& term(const report::ResultFile& result, std::string_view name) {
  return *std::ranges::find(result.terms, name, &report::Term::name);
}

TEST(ProfileResult, KeepsEveryQuantityWithLabelSpreadAndReason) {
  const ProfileFile file = a_profile();
  const report::ResultFile result = result_of(file);
  EXPECT_EQ(result.kind, "probe");
  EXPECT_EQ(result.machine, file.machine);
  for (const auto& [name, quantity] : file.profile.quantities()) {
    const report::Term& of = term(result, name);
    EXPECT_EQ(of.name, name);
    EXPECT_EQ(of.value, quantity->value) << name;
    EXPECT_EQ(of.label, quantity->label) << name;
    EXPECT_FALSE(of.note.empty()) << name;
  }
  EXPECT_EQ(term(result, "link_gb_s").unit, "GB/s");
  EXPECT_EQ(term(result, "link_gb_s").low, 24);
  EXPECT_FALSE(term(result, "dram_gb_s").low);
  EXPECT_TRUE(term(result, "step_us").note.ends_with("not measured: it depends on the model"));
  EXPECT_EQ(term(result, "memory of the control group").value, 8);
}

TEST(ProfileResult, WhatHasNoValueIsANote) {
  const report::ResultFile result = result_of(a_profile());
  EXPECT_EQ(result.notes, (std::vector<std::string>{
                              "It was busy.", "To the device, mapped memory: not measured, never used.",
                              "Without a limit: CPUs of the control group, locked memory."}));
}

TEST(ProfileResult, RatesAreCurvesOverThreadsAndTokens) {
  const report::ResultFile result = result_of(a_profile());
  std::vector<std::string> titles;
  for (const report::CurveSet& set : result.curves) titles.push_back(set.title);
  EXPECT_EQ(titles, (std::vector<std::string>{"Reading memory", "Experts on the CPU at one token",
                                              "Experts on the CPU with 8 threads",
                                              "An operation of experts on the device"}));
  EXPECT_EQ(result.curves[0].curves[0].points[0].x, 4);
  const report::CurveSet& threads = result.curves[1];
  ASSERT_EQ(threads.curves.size(), 2u);
  EXPECT_EQ(threads.curves[0].points.size(), 2u);
  EXPECT_EQ(threads.curves[1].name, "Q8_0");
  EXPECT_EQ(result.curves[2].curves[0].points[1].x, 32);
}

TEST(ProfileResult, APageShowsAllOfIt) {
  const report::NamedResult named{"box.json", result_of(a_profile())};
  const std::string markdown = report::to_markdown(report::make_page(std::span(&named, 1)));
  for (const char* words :
       {"## What the machine does", "| link\\_gb\\_s | 24.5 | GB/s | 24.0 to 25.0 | measured |",
        "Middle half of the repetitions", "**The link**", "**Fixed costs**", "**Limits of the process**",
        "| Which | 4 threads | 8 threads |", "| Q8\\_0 |  | 24.5 (24.0 to 25.0) |", "It was busy",
        "a processor; a card: measured here"})
    EXPECT_NE(markdown.find(words), std::string::npos) << words << "\n" << markdown;
}

// A profile that came with the program has neither lists nor spreads.
TEST(ProfileResult, APageOfQuantitiesAlone) {
  ProfileFile file;
  file.profile = experts::default_profile();
  const report::NamedResult named{"box.json", result_of(file)};
  const report::Page page = report::make_page(std::span(&named, 1));
  EXPECT_TRUE(std::ranges::any_of(page.sections, [](const report::Section& section) {
    return section.title == "What the machine does" && section.blocks.size() == 1;
  }));
}

}  // namespace
}  // namespace spillway::tune
