#include "text/byte_bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <random>

#include "text/tiny_vocabulary.h"

namespace spillway {
namespace text {
namespace {

std::string round_trip(const Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text);
  EXPECT_TRUE(ids.has_value());
  const auto back = tokenizer.decode(*ids, {.skip_special = false});
  EXPECT_TRUE(back.has_value());
  return *back;
}

TEST(ByteBpe, JoinsByRankNotFromTheLeft) {
  // By hand: in "abc" the pair (b, c) has the better rank, so "ab" never forms.
  const auto tokenizer = make_tokenizer(byte_level("qwen2", {"b c", "a b", "a bc"}));
  EXPECT_EQ(pieces_of(*tokenizer, "abc"), "abc");
  EXPECT_EQ(pieces_of(*tokenizer, "abab"), "ab|ab");
  EXPECT_EQ(pieces_of(*tokenizer, "bab"), "b|ab");
}

TEST(ByteBpe, PairsOfEqualRankJoinFromTheLeft) {
  const auto tokenizer = make_tokenizer(byte_level("qwen2", {"a a"}));
  EXPECT_EQ(pieces_of(*tokenizer, "aaaaa"), "aa|aa|a");
}

TEST(ByteBpe, MergesStayInsidePieces) {
  const auto tokenizer = make_tokenizer(byte_level("qwen2", {"Ġ a", "a Ġ", "1 1"}));
  EXPECT_EQ(pieces_of(*tokenizer, "a a"), "a| a");   // "a " would join across the cut
  EXPECT_EQ(pieces_of(*tokenizer, "111"), "1|1|1");  // digits one by one in this family
}

TEST(ByteBpe, MergesOfATokenThatTheyDoNotReachAreNotSkipped) {
  // "ab" is a token, but (a, b) is no merge: only families that ignore merges for whole tokens may give it.
  VocabularyData data = byte_level("qwen2", {"x y"});
  add_token(data, "ab", TokenType::kNormal);
  const auto by_merges = make_tokenizer(data);
  EXPECT_EQ(pieces_of(*by_merges, "ab"), "a|b");
  EXPECT_EQ(pieces_of(*by_merges, "ab"), "a|b");
  data.pre = "llama-bpe";
  EXPECT_EQ(pieces_of(*make_tokenizer(data), "ab"), "ab");
}

TEST(ByteBpe, MergeWithAPartThatIsNoTokenIsWarnedAboutAndLosesNothing) {
  VocabularyData data = byte_level("qwen2", {"a b"});
  data.merges = {"b c", "a bc"};
  add_token(data, "abc", TokenType::kNormal);
  const auto tokenizer = make_tokenizer(data);
  EXPECT_EQ(pieces_of(*tokenizer, "abc"), "abc");  // through "bc", which is no token
  EXPECT_EQ(pieces_of(*tokenizer, "xbc"), "x|b|c");
  EXPECT_EQ(tokenizer->warnings().size(), 1u);
}

TEST(ByteBpe, AByteWithoutATokenIsAnErrorOrUnknownNeverDropped) {
  VocabularyData data = byte_level("qwen2", {"a b"});
  data.tokens['z'] = "[gone]";
  const auto strict = make_tokenizer(data);
  const auto ids = strict->encode("az");
  ASSERT_FALSE(ids.has_value());
  EXPECT_NE(ids.error().message.find("0x7A"), std::string::npos);
  data.ids.unk = add_token(data, "<unk>", TokenType::kUnknown);
  EXPECT_EQ(pieces_of(*make_tokenizer(data), "az"), "a|<unk>");
}

// Random bytes, and random valid characters of all planes, come back as they went in.
// Found by fuzzing: the space was taken off at decoding though encoding adds none.
TEST(ByteBpe, ASpaceAtTheStartIsKeptWhateverTheFileSaysOfAPrefix) {
  VocabularyData data = byte_level("gpt-2", {"a b"});
  add_token(data, "<user>", TokenType::kUserDefined);
  data.add_space_prefix = true;
  const auto tokenizer = make_tokenizer(data);
  EXPECT_EQ(pieces_of(*tokenizer, " ab<user> ab"), " |ab|<user>| |ab");
  EXPECT_EQ(*tokenizer->decode(*tokenizer->encode(" ab<user> ab")), " ab<user> ab");
}

TEST(ByteBpe, MergesNeverMakeASpecialToken) {
  VocabularyData data = byte_level("gpt-2", {"a b", "\u0120 c", "\u00F5 d"});
  const auto retype = [&](std::string_view text, TokenType type) {
    *std::ranges::find(data.tokens, text) += '!';  // make way for the special token of that text
    add_token(data, std::string(text), type);
  };
  retype("ab", TokenType::kControl);
  retype("\u0120c", TokenType::kUserDefined);
  const auto tokenizer = make_tokenizer(data);
  const std::string text = "ab c \u0120c";
  EXPECT_EQ(pieces_of(*tokenizer, text), "a|b| |c| |\u0120c");
  EXPECT_EQ(*tokenizer->decode(*tokenizer->encode(text)), text);
  EXPECT_EQ(pieces_of(*tokenizer, "ab", {.parse_special = true}), "ab");

  retype("\u00F5", TokenType::kUserDefined);  // the byte 0xF5 has no token now
  const auto without_byte = make_tokenizer(data);
  EXPECT_EQ(pieces_of(*without_byte, "\u00F5"), "\u00F5");
  EXPECT_NE(pieces_of(*without_byte, "\xF5").find("the byte 0xF5"), std::string::npos);
}

TEST(ByteBpe, DecodeGivesBackAnyBytes) {
  for (const PreTokenizerRules& rules : pre_tokenizer_rules()) {
    const std::string_view pre = rules.names[0];
    const auto tokenizer =
        make_tokenizer(byte_level(std::string(pre), {"Ġ a", "e r", "Ġa b", "Ã ©", "Ċ Ċ", "0 0"}));
    ASSERT_NE(tokenizer, nullptr);
    std::mt19937 random(7);
    for (int round = 0; round < 60; ++round) {
      std::string text;
      const size_t length = random() % 80;
      for (size_t i = 0; i < length; ++i) {
        switch (random() % 6) {
          case 0:
            text.push_back(static_cast<char>(random()));
            break;
          case 1:
            append_utf8(random() % 0xD800, text);
            break;
          case 2:
            append_utf8(0x10000 + random() % 0x100000, text);
            break;
          case 3:
            text.push_back(" \t\n\r'"[random() % 5]);
            break;
          default:
            text.push_back("aber0 AZ.,<|>"[random() % 13]);
            break;
        }
      }
      ASSERT_EQ(round_trip(*tokenizer, text), text) << pre;
    }
  }
}

// Case B5, and its kind: long runs of anything take about n log n, in every family.
TEST(ByteBpe, LongRunsAreNeitherSlowNorDeep) {
  const std::string patterns[] = {"\n",
                                  " ",
                                  "a",
                                  "A",
                                  "aB",
                                  "1",
                                  "!",
                                  "\xE4\xB8\xAD",
                                  "e\xCC\x81",
                                  "\xF0\x9F\xA6\x99",
                                  "\r\n",
                                  "'s",
                                  "a ",
                                  " \n",
                                  "\t",
                                  "\xFF",
                                  "\xE2\x80\xA8",
                                  "1a",
                                  "\xCC\x81"};
  for (const PreTokenizerRules& rules : pre_tokenizer_rules()) {
    const std::string_view pre = rules.names[0];
    const auto tokenizer =
        make_tokenizer(byte_level(std::string(pre), {"Ċ Ċ", "ĊĊ ĊĊ", "a a", "Ġ Ġ", "aa aa"}));
    for (const std::string& pattern : patterns) {
      std::string text = "Hello";
      while (text.size() < 50'000) text += pattern;
      text += "world";
      const std::clock_t start = std::clock();  // processor time: other programs don't matter
      ASSERT_EQ(round_trip(*tokenizer, text), text) << pre;
      const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      EXPECT_LT(seconds, 5.0) << pre << " on a run of '" << pattern << "'";
    }
  }
}

TEST(ByteBpe, AMissingPreTokenizerIsSaid) {
  VocabularyData data = byte_level("", {"a b"});
  data.pre.reset();
  const auto guessed = make_tokenizer(data);
  ASSERT_EQ(guessed->warnings().size(), 1u);
  EXPECT_NE(guessed->warnings()[0].find("tokenizer.ggml.pre is missing"), std::string::npos);
  EXPECT_TRUE(make_tokenizer(data, {.pre = "qwen2"})->warnings().empty());
}

TEST(ByteBpe, EveryKnownNameCompilesAndStandsForOneSetOfRules) {
  const auto names = known_pre_tokenizers();
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  for (const std::string_view name : names) EXPECT_TRUE(PreTokenizer::create(name).has_value()) << name;
}

TEST(ByteBpe, AnUnknownPreTokenizerIsRefusedAndTheKnownOnesAreListed) {
  VocabularyData data = byte_level("from-the-future", {"a b"});
  auto vocabulary = Vocabulary::create(data);
  ASSERT_TRUE(vocabulary.has_value());
  const auto refused = Tokenizer::create(std::move(*vocabulary));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind, Error::Kind::kUnsupported);
  EXPECT_NE(refused.error().message.find("from-the-future"), std::string::npos);
  EXPECT_NE(refused.error().message.find("qwen2"), std::string::npos);
  EXPECT_NE(make_tokenizer(data, {.pre = "qwen2"}), nullptr);
}

}  // namespace
}  // namespace text
}  // namespace spillway
