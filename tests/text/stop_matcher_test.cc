#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

#include "base/limits.h"

namespace spillway {
namespace text {
namespace {

using Pieces = std::vector<std::string>;

StopMatcher matcher_for(Pieces stops) {
  auto matcher = StopMatcher::create(std::move(stops));
  EXPECT_TRUE(matcher.has_value()) << matcher.error().message;
  return std::move(*matcher);
}

// What is given out piece by piece, the last being what finish() gives.
Pieces run(Pieces stops, const Pieces& pieces) {
  StopMatcher matcher = matcher_for(std::move(stops));
  Pieces out;
  for (const std::string& piece : pieces) out.push_back(matcher.push(piece).text);
  out.push_back(matcher.finish());
  return out;
}

// Case D5.
TEST(StopMatcher, NothingOfAStopStringOverSeveralTokensGetsOut) {
  EXPECT_EQ(run({"own fox"}, {"The", " br", "own", " fo", "x jumps"}),
            (Pieces{"The", " br", "", "", "", ""}));
  EXPECT_EQ(run({"DEFGHIJ"}, {"ABCD", "EF", "GH", "IJKL"}), (Pieces{"ABC", "", "", "", ""}));
}

// Case D7.
TEST(StopMatcher, WhatWasHeldForNothingIsGivenOutAtTheEnd) {
  EXPECT_EQ(run({"\n"}, {"why", "?"}), (Pieces{"why", "?", ""}));
  EXPECT_EQ(run({"DEFGHIJ"}, {"ABC", "DEF"}), (Pieces{"ABC", "", "DEF"}));
  EXPECT_EQ(run({"aab"}, {"aaa"}), (Pieces{"a", "aa"}));
}

TEST(StopMatcher, HoldsOnlyATailThatCouldStillMatch) {
  EXPECT_EQ(run({"abac"}, {"xaba", "b", "ac!"}), (Pieces{"x", "ab", "", ""}));
  EXPECT_EQ(run({"aab"}, {"aaaaaab", "c"}), (Pieces{"aaaa", "", ""}));
}

TEST(StopMatcher, TheFirstCompleteOneWinsAndOfThoseTheLongest) {
  StopMatcher matcher = matcher_for({"bcd", "c", "bc"});
  const auto output = matcher.push("abcd");
  EXPECT_EQ(output.text, "a");
  EXPECT_EQ(output.stop, 2u);  // at "c" both "c" and "bc" are complete, "bcd" isn't yet
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.push("more").text, "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, RefusesWhatCannotBeAStopString) {
  EXPECT_FALSE(StopMatcher::create({""}).has_value());
  EXPECT_FALSE(StopMatcher::create({"\xC3"}).has_value());
  EXPECT_FALSE(StopMatcher::create(Pieces(limits::kMaxStopStrings + 1, "x")).has_value());
  EXPECT_TRUE(StopMatcher::create({}).has_value());
}

// Against the definition, on all kinds of cuts: the text up to the stop that is complete first.
TEST(StopMatcher, CutsOfTheStreamMakeNoDifference) {
  std::mt19937 random(11);
  for (int round = 0; round < 4000; ++round) {
    const auto word = [&](size_t longest) {
      std::string text(1 + random() % longest, ' ');
      for (char& c : text) c = "ab"[random() % 2];
      return text;
    };
    Pieces stops;
    for (size_t i = 0; i < 1 + random() % 3; ++i) stops.push_back(word(4));
    const std::string text = word(14);

    std::string expected = text;
    for (size_t end = 1; end <= text.size(); ++end) {
      size_t longest = 0;
      for (const std::string& stop : stops)
        if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
      if (longest == 0) continue;
      expected = text.substr(0, end - longest);
      break;
    }

    StopMatcher matcher = matcher_for(stops);
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t length = std::min(1 + random() % 4, text.size() - at);
      out += matcher.push(text.substr(at, length)).text;
      at += length;
      ASSERT_TRUE(expected.starts_with(out));
    }
    out += matcher.finish();
    ASSERT_EQ(out, expected);
  }
}

}  // namespace
}  // namespace text
}  // namespace spillway
