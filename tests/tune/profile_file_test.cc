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
