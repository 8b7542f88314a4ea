#include "report/words.h"

#include <gtest/gtest.h>

#include <cmath>

namespace spillway::report {
namespace {

TEST(Words, NumbersHaveThreeDigitsAndNoExponentWhereThatCanBeRead) {
  for (const auto& [value, text] : {std::pair(0.0, "0"),
                                    {12.345, "12.3"},
                                    {9.996, "10.0"},
                                    {1.0, "1.00"},
                                    {123.4, "123"},
                                    {999.6, "1,000"},
                                    {1234567.0, "1,234,567"},
                                    {-1234.0, "-1,234"},
                                    {0.01234, "0.0123"},
                                    {0.00123, "0.00123"},
                                    {0.000123, "0.000123"},
                                    {0.1234, "0.123"},
                                    {1e12, "1.00e+12"},
                                    {1e308, "1.00e+308"}})
    EXPECT_EQ(number_text(value), text) << value;
  EXPECT_EQ(number_text(NAN), "\u2013");
  EXPECT_EQ(number_text(-INFINITY), "\u2013");
  EXPECT_EQ(number_text(std::optional<double>()), "\u2013");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(100), "100");
  EXPECT_EQ(short_number(2), "2");
}

TEST(Words, SizesSharesAndIntervals) {
  EXPECT_EQ(bytes_text(0), "0");
  EXPECT_EQ(bytes_text(144), "144 B");
  EXPECT_EQ(bytes_text(1.5 * (1 << 30)), "1.5 GiB");
  EXPECT_EQ(bytes_text(INFINITY), "\u2013");
  EXPECT_EQ(percent_text(0.6134), "61.3 %");
  EXPECT_EQ(count_text(1, "thread"), "1 thread");
  EXPECT_EQ(count_text(0, "request"), "0 requests");
  EXPECT_EQ(count_text(1234, "token"), "1,234 tokens");
  EXPECT_EQ(interval_text(2, {}, {}), "2.00");
  EXPECT_EQ(interval_text(2, 1.0, 3.0), "2.00 (1.00 to 3.00)");
}

TEST(Words, CleanTextIsValidAndObeysNobody) {
  EXPECT_EQ(clean_text("a\nb\tc"), "a b c");
  EXPECT_EQ(clean_text("\x1b[31m\x7f"), "\\x1b[31m\\x7f");
  EXPECT_EQ(clean_text("a\u202eb\u2066"), "a\\u202eb\\u2066");
  EXPECT_EQ(clean_text("\u0085\uffff"), "\\x85\ufffd");
  EXPECT_EQ(clean_text("caf\u00e9 \u4e2d \U0001f600"), "caf\u00e9 \u4e2d \U0001f600");
  // Broken: a lone follower, a cut character, an overlong one, a surrogate, beyond the last.
  for (const char* broken :
       {"\x80", "\xc3", "\xe2\x82", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"})
    EXPECT_TRUE(clean_text(broken).starts_with("\ufffd")) << broken;
}

TEST(Words, ShortenedCountsCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcd", 3), "ab\u2026");
  EXPECT_EQ(shortened("\u4e2d\u4e2d\u4e2d", 2), "\u4e2d\u2026");
  EXPECT_EQ(shortened("", 1), "");
}

TEST(Words, NamesKeepWhatTellsThemApart) {
  EXPECT_EQ(shortened_middle("0123456789", 5), "01\u202689");
  EXPECT_EQ(shortened_middle("\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc", 4), "\u00e4\u00f6\u2026\u00fc");
  EXPECT_EQ(shortened_middle("0123", 4), "0123");
  EXPECT_EQ(shortened_middle("0123", 1), "\u2026");
  using Names = std::vector<std::string>;
  const Names names{"--moe-cache-cpu-share auto --moe-cache-mib 25% -t 2",
                    "--moe-cache-cpu-share auto --moe-cache-mib 100% -t 2"};
  EXPECT_EQ(told_apart(names, 60), names);
  EXPECT_EQ(told_apart(names, 40),
            (Names{"\u2026 --moe-cache-mib 25% \u2026", "\u2026 --moe-cache-mib 100% \u2026"}));
  EXPECT_EQ(told_apart(names, 12), (Names{"\u2026 25% \u2026", "\u2026 100% \u2026"}));
  EXPECT_EQ(told_apart({"--share auto --cache 25% --policy crf", "--share 1 --cache 50% --policy lru"}, 30),
            (Names{"\u2026 auto \u2026 25% \u2026 crf", "\u2026 1 \u2026 50% \u2026 lru"}));
  EXPECT_EQ(told_apart({"a long way to go", "a long way", "a long path to go"}, 9),
            (Names{"\u2026 wa\u2026o go", "\u2026 way", "\u2026 pa\u2026o go"}));
  EXPECT_EQ(told_apart({"a very long name indeed"}, 9), (Names{"a ve\u2026deed"}));
  EXPECT_EQ(told_apart({"same thing", "same thing"}, 5).size(), 2u);
  EXPECT_EQ(told_apart({"", "something long"}, 5), (Names{"", "so\u2026ng"}));
  EXPECT_TRUE(told_apart({}, 5).empty());
}

}  // namespace
}  // namespace spillway::report
