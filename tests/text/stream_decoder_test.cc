#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "text/tiny_vocabulary.h"

namespace spillway {
namespace text {
namespace {

const std::string kFffd = "\xEF\xBF\xBD";

struct Fixture {
  std::unique_ptr<Tokenizer> tokenizer;
  uint32_t control, user;
  Fixture() {
    VocabularyData data = byte_level("qwen2", {"a b"});
    control = add_token(data, "<|im_end|>", TokenType::kControl);
    user = add_token(data, "<tool>", TokenType::kUserDefined);
    tokenizer = make_tokenizer(std::move(data));
  }
  std::vector<std::string> stream(std::string_view bytes) const {
    StreamDecoder decoder(*tokenizer);
    std::vector<std::string> pieces;
    for (const char byte : bytes)
      pieces.push_back(decoder.push(static_cast<uint8_t>(byte)));  // byte b is token b
    pieces.push_back(decoder.finish());
    return pieces;
  }
};

using Pieces = std::vector<std::string>;

// Case B11: the four bytes of an emoji as four tokens; characters of two and three bytes likewise.
TEST(StreamDecoder, HoldsBytesUntilTheCharacterIsWhole) {
  const Fixture f;
  EXPECT_EQ(f.stream("\xF0\x9F\xA6\x99"), (Pieces{"", "", "", "\xF0\x9F\xA6\x99", ""}));
  EXPECT_EQ(f.stream("a\xC3\xA9"), (Pieces{"a", "", "\xC3\xA9", ""}));
  EXPECT_EQ(f.stream("\xE2\x82\xAC!"), (Pieces{"", "", "\xE2\x82\xAC", "!", ""}));
}

// Table 3-11 of the Unicode Standard: one replacement for each maximal part.
TEST(StreamDecoder, ReplacesWhatCanNoLongerBecomeACharacter) {
  const Fixture f;
  EXPECT_EQ(f.stream("\xFFz"), (Pieces{kFffd, "z", ""}));                       // starts nothing
  EXPECT_EQ(f.stream("\xF0\x9Fz"), (Pieces{"", "", kFffd + "z", ""}));          // broken off
  EXPECT_EQ(f.stream("\xF0\x9F"), (Pieces{"", "", kFffd}));                     // ends inside
  EXPECT_EQ(f.stream("\xED\xA0\x80"), (Pieces{"", kFffd + kFffd, kFffd, ""}));  // a surrogate
  EXPECT_EQ(f.stream("\xC0\xAF"), (Pieces{kFffd, kFffd, ""}));                  // overlong
  EXPECT_EQ(f.stream("\xF0\x9F\xF0\x9F\xA6\x99"), (Pieces{"", "", kFffd, "", "", "\xF0\x9F\xA6\x99", ""}));
}

TEST(StreamDecoder, HidesControlTokensUnlessAsked) {
  const Fixture f;
  StreamDecoder hiding(*f.tokenizer), showing(*f.tokenizer, {.skip_special = false});
  const auto control = static_cast<int32_t>(f.control), user = static_cast<int32_t>(f.user);
  EXPECT_EQ(hiding.push(control), "");
  EXPECT_EQ(hiding.push(user), "<tool>");
  EXPECT_EQ(showing.push(control), "<|im_end|>");
  EXPECT_EQ(hiding.push(-1) + hiding.push(1 << 20), "");  // padding rows show nothing
}

TEST(StreamDecoder, ATokenHiddenInsideACharacterDoesNotBreakIt) {
  const Fixture f;
  StreamDecoder decoder(*f.tokenizer);
  EXPECT_EQ(decoder.push(0xC3), "");
  EXPECT_EQ(decoder.push(static_cast<int32_t>(f.control)), "");
  EXPECT_EQ(decoder.push(0xA9), "\xC3\xA9");
}

TEST(StreamDecoder, PiecesJoinedAreTheDecodedTextAndEachIsWhole) {
  const Fixture f;
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int32_t> ids(random() % 12);
    for (int32_t& id : ids) {
      static constexpr uint8_t kBytes[] = {0x41, 0x80, 0x9F, 0xA0, 0xBF, 0xC2,
                                           0xE0, 0xE2, 0xED, 0xF0, 0xF4, 0xFF};
      id = random() % 8 == 0 ? static_cast<int32_t>(f.control) : kBytes[random() % std::size(kBytes)];
    }
    StreamDecoder decoder(*f.tokenizer);
    std::string joined;
    for (const int32_t id : ids) {
      const std::string piece = decoder.push(id);
      ASSERT_EQ(utf8_valid_length(piece), piece.size());
      ASSERT_LE(decoder.held_bytes(), 3u);
      joined += piece;
    }
    joined += decoder.finish();
    const auto bytes = f.tokenizer->decode(ids, {.continuation = true});
    ASSERT_TRUE(bytes.has_value());
    EXPECT_EQ(joined, to_valid_utf8(*bytes));
  }
}

// A vocabulary with a space prefix: what follows a prompt keeps its first space.
TEST(StreamDecoder, KeepsTheSpaceOfAContinuation) {
  const auto tokenizer =
      make_tokenizer(sentence_piece({"\xE2\x96\x81"
                                     "a"}));
  StreamDecoder decoder(*tokenizer);
  EXPECT_EQ(decoder.push(259), " a");
  EXPECT_EQ(*tokenizer->decode(std::vector<int32_t>{259}), "a");
}

}  // namespace
}  // namespace text
}  // namespace spillway
