#include "base/json_text.h"

#include <gtest/gtest.h>

namespace spillway {
namespace {

TEST(JsonText, DepthCountsBracketsOutsideOfStrings) {
  EXPECT_EQ(json_depth(""), 0u);
  EXPECT_EQ(json_depth("7"), 0u);
  EXPECT_EQ(json_depth("[1, {\"a\": [2]}, []]"), 3u);
  EXPECT_EQ(json_depth(R"({"[[[\"[[": "\\", "b": [1]})"), 2u);
  EXPECT_EQ(json_depth("]]][["), 2u);
  EXPECT_EQ(json_depth(std::string(1'000'000, '[')), 1'000'000u);
  EXPECT_EQ(json_depth("\"\\"), 0u);
}

}  // namespace
}  // namespace spillway
