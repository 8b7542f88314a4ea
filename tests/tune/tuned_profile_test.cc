#include "tune/tuned_profile.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace spillway::tune {
namespace {

TunedProfile profile() {
  TunedProfile p;
  p.made_for = {
      .build = {"0.1.0 (build 12ab)", "gcc 12", "Release"},
      .model = {"A model", "model.gguf", "00ff", 20'000'000'000},
      .machine = {"A CPU", 8, uint64_t{64} << 30, "A GPU", "550.1", uint64_t{12} << 30, "Linux 6.1"},
      .load_mode = "none",
      .placement = {{"-cmoe", ""}}};
  p.model_path = "/models/model.gguf";
  p.created = "2026-11-30T12:00:00Z";
  p.context = 4096;
  p.settings = {.cache_bytes = uint64_t{4096} << 20, .cpu_share = experts::Choice::number(0.5)};
  p.gain = 1.18;
  p.conclusion = "Use it.";
  return p;
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / fmt::format("spillway-tuned-{}", ::getpid())) {}
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(TunedProfile, IsReadAsWritten) {
  const TunedProfile written = profile();
  const auto read = parse_tuned_profile(to_json(written));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->settings, written.settings);
  EXPECT_EQ(read->model_path, written.model_path);
  EXPECT_EQ(read->created, written.created);
  EXPECT_EQ(read->context, written.context);
  EXPECT_EQ(read->gain, written.gain);
  EXPECT_EQ(read->conclusion, written.conclusion);
  EXPECT_TRUE(stale_because(written.made_for, read->made_for).empty());
}

TEST(TunedProfile, RefusesWhatIsNone) {
  std::string json = to_json(profile());
  for (const char* text : {"", "[]", "{}", "\xff", R"({"kind": "tuned settings", "schema": 2})",
                           R"({"kind": "tuned settings", "schema": 1})"})
    EXPECT_FALSE(parse_tuned_profile(text)) << text;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = json;
    changed.replace(changed.find(from), from.size(), to);
    const auto read = parse_tuned_profile(changed);
    return read ? "read" : read.error().message;
  };
  EXPECT_NE(with("\"0.5\"", "\"lots\"").find("--moe-cache-cpu-share lots"), std::string::npos);
  EXPECT_NE(with("\"--moe-cache-mib\"", "\"--temp\"").find("--temp"), std::string::npos);
  EXPECT_NE(with("4096,", "-1,").find("context"), std::string::npos);
}

// Each of the seven, in words that name it.
TEST(TunedProfile, IsStaleInSevenWays) {
  const Conditions was = profile().made_for;
  const auto why = [&](auto change) {
    Conditions now = was;
    change(now);
    const std::vector<std::string> all = stale_because(was, now);
    return all.size() == 1 ? all[0] : fmt::format("{} reasons", all.size());
  };
  EXPECT_NE(why([](Conditions& c) { c.model.content = "11ff"; }).find("the model was"), std::string::npos);
  EXPECT_NE(why([](Conditions& c) { c.build.version = "0.1.0 (build 34cd)"; }).find("the program was"),
            std::string::npos);
  EXPECT_NE(why([](Conditions& c) { c.machine.cpu = "Another"; }).find("the CPU was"), std::string::npos);
  EXPECT_NE(why([](Conditions& c) { c.machine.device = "Another"; }).find("the device was"),
            std::string::npos);
  EXPECT_NE(
      why([](Conditions& c) { c.machine.driver = "555"; }).find("its driver was '550.1', now it is '555'"),
      std::string::npos);
  EXPECT_NE(why([](Conditions& c) { c.machine.memory_bytes /= 2; }).find("the memory was 65536 MiB"),
            std::string::npos);
  EXPECT_NE(why([](Conditions& c) { c.load_mode = "mmap"; }).find("the loading mode was 'none'"),
            std::string::npos);
  // And what lies where.
  EXPECT_NE(why([](Conditions& c) { c.placement = {{"-ngl", "10"}}; }).find("-cmoe"), std::string::npos);
  EXPECT_NE(why([](Conditions& c) { c.placement["-ctk"] = "f32"; }).find("-ctk"), std::string::npos);
  // Neither the kernel's version nor the file's name is among them.
  EXPECT_EQ(why([](Conditions& c) { c.machine.system = "Linux 6.9"; }), "0 reasons");
  EXPECT_EQ(why([](Conditions& c) { c.model.file = "renamed.gguf"; }), "0 reasons");
}

TEST(TunedProfile, AGainIsSaidOnlyWhereThereWasOne) {
  EXPECT_EQ(gain_text(1.118), "1.12 times as good as the default then, measured");
  EXPECT_NE(gain_text(1).find("no better than the default"), std::string::npos);
}

TEST(TunedProfile, IsFoundByPathOrContent) {
  const Folder folder;
  const TunedProfile kept = profile();
  EXPECT_FALSE(has_tuned_profiles(folder.path()));
  EXPECT_FALSE(find_tuned_profile(folder.path(), kept.model_path, kept.made_for).found);
  const std::string file = save_tuned_profile(kept, folder.path()).value();
  EXPECT_TRUE(has_tuned_profiles(folder.path()));

  auto search = find_tuned_profile(folder.path(), kept.model_path, kept.made_for);
  ASSERT_TRUE(search.found);
  EXPECT_EQ(search.found->file, file);
  EXPECT_TRUE(search.found->stale.empty());
  // Moved: the content finds it.
  EXPECT_TRUE(find_tuned_profile(folder.path(), "/elsewhere/x.gguf", kept.made_for).found->stale.empty());
  // Another content in the same place: found, and stale.
  Conditions now = kept.made_for;
  now.model.content = "11ff";
  EXPECT_EQ(find_tuned_profile(folder.path(), kept.model_path, now).found->stale.size(), 1u);
  EXPECT_FALSE(find_tuned_profile(folder.path(), "/elsewhere/x.gguf", now).found);

  // Tuned again: it replaces the one before. For another device: beside it, and each is found on its own.
  EXPECT_EQ(save_tuned_profile(kept, folder.path()).value(), file);
  TunedProfile other = kept;
  other.made_for.machine.device = "Another GPU";
  const std::string other_file = save_tuned_profile(other, folder.path()).value();
  EXPECT_NE(other_file, file);
  EXPECT_EQ(find_tuned_profile(folder.path(), kept.model_path, other.made_for).found->file, other_file);
  EXPECT_EQ(find_tuned_profile(folder.path(), kept.model_path, kept.made_for).found->file, file);

  std::ofstream(folder.path() + "/broken.json") << "{";
  search = find_tuned_profile(folder.path(), kept.model_path, kept.made_for);
  EXPECT_TRUE(search.found);
  ASSERT_EQ(search.unreadable.size(), 1u);
  EXPECT_NE(search.unreadable[0].find("broken.json"), std::string::npos);
}

}  // namespace
}  // namespace spillway::tune
