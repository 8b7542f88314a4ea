// What is the same for all kinds: special tokens in text, options, decoding.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include "text/special_matcher.h"
#include "text/tiny_vocabulary.h"

namespace spillway {
namespace text {
namespace {

VocabularyData with_special_tokens() {
  VocabularyData data = byte_level("qwen2", {"a b"});
  data.ids.eos = add_token(data, "<|im_end|>", TokenType::kControl);
  data.ids.bos = add_token(data, "<s>", TokenType::kControl);
  add_token(data, "<think>", TokenType::kUserDefined);
  add_token(data, "<thi", TokenType::kUserDefined);
  add_token(data, "<unk>", TokenType::kUnknown);
  return data;
}

// Case B9: control tokens in text stay text unless asked for; user-defined ones are always found.
TEST(Tokenizer, FindsSpecialTokensByTheirType) {
  const auto tokenizer = make_tokenizer(with_special_tokens());
  const std::string text = "ab<|im_end|><think>ab<unk>";
  EXPECT_EQ(pieces_of(*tokenizer, text), "ab|<|||i|m|_|e|n|d|||>|<think>|ab|<|u|n|k|>");
  EXPECT_EQ(pieces_of(*tokenizer, text, {.parse_special = true}), "ab|<|im_end|>|<think>|ab|<unk>");
}

TEST(Tokenizer, TheLeftmostSpecialTokenWinsThenTheLongest) {
  const auto tokenizer = make_tokenizer(with_special_tokens());
  EXPECT_EQ(pieces_of(*tokenizer, "<think><thi<thin<<thi"), "<think>|<thi|<thi|n|<|<thi");
}

// A word that is the text of a control token must not become it by the rule "a piece that is a token".
TEST(Tokenizer, ControlTokensAreNotMadeByIgnoringMerges) {
  VocabularyData data = byte_level("llama-bpe", {"a b"});
  add_token(data, "stop", TokenType::kControl);
  EXPECT_EQ(pieces_of(*make_tokenizer(data), "stop"), "s|t|o|p");
}

TEST(Tokenizer, AddsBosAndEosWhereTheVocabularyAsks) {
  VocabularyData data = with_special_tokens();
  data.add_bos = true;
  data.add_eos = true;
  const auto tokenizer = make_tokenizer(data);
  EXPECT_EQ(pieces_of(*tokenizer, "ab"), "<s>|ab|<|im_end|>");
  EXPECT_EQ(pieces_of(*tokenizer, ""), "<s>|<|im_end|>");
  EXPECT_EQ(pieces_of(*tokenizer, "ab", {.add_special = false}), "ab");
  EXPECT_EQ(pieces_of(*make_tokenizer(with_special_tokens()), "ab"), "ab");
}

TEST(Tokenizer, DecodeSkipsControlTokensButNotUserDefinedOnes) {
  const auto tokenizer = make_tokenizer(with_special_tokens());
  const auto ids = tokenizer->encode("ab<|im_end|><think>", {.parse_special = true});
  ASSERT_TRUE(ids.has_value());
  EXPECT_EQ(*tokenizer->decode(*ids), "ab<think>");
  EXPECT_EQ(*tokenizer->decode(*ids, {.skip_special = false}), "ab<|im_end|><think>");
}

TEST(Tokenizer, IdsPastTheVocabularyAreAnErrorToDecodeAndShowNothing) {
  const auto tokenizer = make_tokenizer(with_special_tokens());
  for (const int32_t id : {-1, static_cast<int32_t>(tokenizer->vocabulary().size()), 1 << 30}) {
    const auto text = tokenizer->decode(std::vector<int32_t>{65, id});
    ASSERT_FALSE(text.has_value());
    EXPECT_NE(text.error().message.find(fmt::format("id {}", id)), std::string::npos);
    EXPECT_TRUE(tokenizer->token_bytes(id).empty());
  }
}

TEST(SpecialMatcher, AgreesWithLookingAtEveryPlace) {
  const std::vector<std::pair<std::string_view, uint32_t>> texts = {
      {"ab", 1}, {"abab", 2}, {"b", 3}, {"aab", 4}, {"ab", 5}, {"", 6}, {"\xFF", 7}};
  const SpecialMatcher matcher(texts);
  for (int number = 0; number < 729; ++number) {
    std::string text;
    for (int rest = number, i = 0; i < 6; ++i, rest /= 3) text.push_back("ab\xFF"[rest % 3]);
    std::optional<SpecialMatcher::Match> expected;
    for (size_t at = 0; at < text.size() && !expected; ++at)
      for (const auto& [token, id] : texts)
        if (!token.empty() && text.substr(at).starts_with(token) &&
            (!expected || token.size() > expected->length))
          expected = {at, token.size(), id};
    const auto match = matcher.find(text, 0);
    ASSERT_EQ(match.has_value(), expected.has_value());
    if (!match) continue;
    EXPECT_EQ(match->position, expected->position);
    EXPECT_EQ(match->length, expected->length);
    EXPECT_EQ(match->id, expected->id);
  }
}

}  // namespace
}  // namespace text
}  // namespace spillway
