#include "base/json_text.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace spillway {
namespace {

std::string error_of(std::string_view text) {
  const auto checked = check_json_size(text);
  return checked ? "" : checked.error().message;
}

TEST(JsonText, DepthCountsBracketsOutsideOfStrings) {
  const auto nested = [](uint32_t n) { return std::string(n, '[') + std::string(n, ']'); };
  for (const std::string& text : {std::string(), std::string("7"), std::string("[1, {\"a\": [2]}, []]"),
                                  std::string("]]][["), std::string("\"\\"), "\"" + nested(1000) + "\"",
                                  R"({"\"": ")" + nested(1000) + "\"}", nested(limits::kMaxJsonDepth)})
    EXPECT_EQ(error_of(text), "") << text.substr(0, 40);
  for (const std::string& text : {nested(limits::kMaxJsonDepth + 1), std::string(1'000'000, '[')})
    EXPECT_EQ(error_of(text), "lists and objects are nested deeper than 64");
}

TEST(JsonText, KeysAreCountedByObject) {
  const auto object = [](uint32_t n) {
    std::string text = "{";
    for (uint32_t i = 0; i < n; ++i) text += fmt::format("{}\"k{}\": [1, 2, 3]", i > 0 ? ", " : "", i);
    return text + "}";
  };
  EXPECT_EQ(error_of(object(limits::kMaxJsonMembers)), "");
  EXPECT_EQ(error_of("[" + object(4000) + ", " + object(4000) + "]"), "");
  EXPECT_EQ(error_of(object(limits::kMaxJsonMembers + 1)), "an object has more than 4096 keys");
  EXPECT_EQ(error_of("[" + object(5000)), "an object has more than 4096 keys");
  std::string list = "[0";
  for (int i = 0; i < 100'000; ++i) list += ",0";
  EXPECT_EQ(error_of(list + "]"), "");
}

}  // namespace
}  // namespace spillway
