#include "text/vocabulary.h"

#include <gtest/gtest.h>

#include "text/special_tokens.h"
#include "text/tiny_vocabulary.h"

namespace spillway {
namespace text {
namespace {

std::string error_of(VocabularyData data) {
  const auto vocabulary = Vocabulary::create(std::move(data));
  return vocabulary ? "accepted" : vocabulary.error().message;
}

Vocabulary make(VocabularyData data) {
  auto vocabulary = Vocabulary::create(std::move(data));
  EXPECT_TRUE(vocabulary.has_value()) << vocabulary.error().message;
  return std::move(*vocabulary);
}

#define EXPECT_ERROR_NAMES(data, text) \
  EXPECT_NE(error_of(data).find(text), std::string::npos) << error_of(data)

// Case A17: one fault each, each named by its key.
TEST(Vocabulary, NamesTheKeyOfEachFault) {
  const VocabularyData good = byte_level("qwen2", {"a b"});
  EXPECT_EQ(error_of(good), "accepted");
  {
    VocabularyData data = good;
    data.ids.bos = static_cast<uint32_t>(data.tokens.size());
    EXPECT_ERROR_NAMES(data, "tokenizer.ggml.bos_token_id is 257");
    data.ids.bos.reset();
    data.ids.fim_middle = 0xFFFFFFFF;
    EXPECT_ERROR_NAMES(data, "tokenizer.ggml.fim_mid_token_id is 4294967295");
    data.ids.fim_middle.reset();
    data.end_of_generation = {1, 257};
    EXPECT_ERROR_NAMES(data, "eos_token_ids[1] is 257");
  }
  for (const char* merge : {"ab", "", "a", " ", "a ", " b"}) {
    VocabularyData data = good;
    data.merges.push_back(merge);
    EXPECT_ERROR_NAMES(data, "tokenizer.ggml.merges[1]");
  }
  {
    VocabularyData data = good;
    data.scores.assign(data.tokens.size() - 1, 0.0f);
    EXPECT_ERROR_NAMES(data, "tokenizer.ggml.scores has 256 entries");
    data.scores.clear();
    data.types.pop_back();
    EXPECT_ERROR_NAMES(data, "tokenizer.ggml.token_type has 256 entries");
    data.types.clear();
    data.merges.clear();
    EXPECT_ERROR_NAMES(data, "tokenizer.ggml.merges is empty or missing");
    data.tokens.clear();
    EXPECT_ERROR_NAMES(data, "tokenizer.ggml.tokens is empty or missing");
  }
  {
    VocabularyData data = sentence_piece({"a"});
    data.scores.clear();
    EXPECT_ERROR_NAMES(data, "tokenizer.ggml.scores has 0 entries");
  }
  {
    VocabularyData data = sentence_piece({"a"});
    data.tokens[5] = "<0xG1>";
    EXPECT_ERROR_NAMES(data, "tokenizer.ggml.token_type[5] is 6 (byte)");
  }
  {
    VocabularyData data = good;
    data.add_bos = true;
    EXPECT_ERROR_NAMES(data, "add_bos_token is true, but there is no tokenizer.ggml.bos_token_id");
  }
}

TEST(Vocabulary, RefusesKindsByName) {
  for (const char* kind : {"t5", "bert", "rwkv", "plamo2", "none", ""}) {
    VocabularyData data = byte_level("qwen2", {"a b"});
    data.kind = kind;
    const auto vocabulary = Vocabulary::create(data);
    ASSERT_FALSE(vocabulary.has_value());
    EXPECT_EQ(vocabulary.error().kind, Error::Kind::kUnsupported);
    EXPECT_NE(vocabulary.error().message.find(fmt::format("'{}'", kind)), std::string::npos);
  }
}

TEST(Vocabulary, EndsOfGenerationAreTheNamedOnesAndTheWellKnown) {
  VocabularyData data = byte_level("qwen2", {"a b"});
  const uint32_t eos = add_token(data, "<stop>", TokenType::kControl);
  const uint32_t im_end = add_token(data, "<|im_end|>", TokenType::kControl);
  const uint32_t start = add_token(data, "<|im_start|>", TokenType::kControl);
  const uint32_t listed = add_token(data, "<over>", TokenType::kControl);
  const uint32_t file_sep = add_token(data, "<|file_sep|>", TokenType::kControl);
  data.ids.eos = eos;
  data.end_of_generation = {listed, eos};
  const Vocabulary vocabulary = make(data);
  EXPECT_EQ(vocabulary.end_of_generation(), (std::vector<uint32_t>{eos, im_end, listed, file_sep}));
  EXPECT_TRUE(vocabulary.is_end_of_generation(im_end));
  EXPECT_FALSE(vocabulary.is_end_of_generation(start));
  EXPECT_FALSE(vocabulary.is_end_of_generation(-1));
  EXPECT_FALSE(
      vocabulary.is_end_of_generation(int64_t{1} << 32 | im_end));  // a padding row, not a wrapped id
  EXPECT_EQ(vocabulary.ids().eot, im_end);                          // recognised by its text
}

// gpt-oss: <|end|> ends a message, <|return|> and <|call|> end the generation; the marks of the answer's
// parts are shown, but a text can't forge them.
TEST(Vocabulary, GptOssMessagesGoOnAfterEnd) {
  VocabularyData data = byte_level("gpt-4o", {"a b"});
  const uint32_t back = add_token(data, "<|return|>", TokenType::kControl);
  const uint32_t end = add_token(data, "<|end|>", TokenType::kControl);
  const uint32_t call = add_token(data, "<|call|>", TokenType::kControl);
  const uint32_t channel = add_token(data, "<|channel|>", TokenType::kControl);
  const Vocabulary vocabulary = make(data);
  EXPECT_EQ(vocabulary.end_of_generation(), (std::vector<uint32_t>{back, call}));
  EXPECT_TRUE(vocabulary.is_control(channel) && !vocabulary.is_hidden(channel));
  EXPECT_TRUE(vocabulary.is_control(end) && !vocabulary.is_hidden(end));
  EXPECT_TRUE(vocabulary.is_hidden(back));
}

TEST(Vocabulary, AWellKnownEndOfAnotherTypeBecomesControlAndThatIsSaid) {
  VocabularyData data = byte_level("qwen2", {"a b"});
  const uint32_t im_end = add_token(data, "<|im_end|>", TokenType::kNormal);
  const Vocabulary vocabulary = make(data);
  EXPECT_TRUE(vocabulary.is_control(im_end));
  ASSERT_EQ(vocabulary.warnings().size(), 1u);
  EXPECT_NE(vocabulary.warnings()[0].find("<|im_end|>"), std::string::npos);
}

TEST(Vocabulary, AWordThatMergesMakeStaysAWord) {
  const Vocabulary vocabulary = make(byte_level("qwen2", {"< /", "s >", "</ s>"}));
  const uint32_t word = *vocabulary.find("</s>");
  EXPECT_FALSE(vocabulary.is_control(word));
  EXPECT_TRUE(vocabulary.is_end_of_generation(word));
  EXPECT_TRUE(vocabulary.warnings().empty());
}

TEST(Vocabulary, FlagsHaveTheDefaultsOfTheirKind) {
  VocabularyData llama3 = byte_level("llama-bpe", {"a b"});
  EXPECT_FALSE(make(llama3).add_bos());  // no id
  llama3.ids.bos = 0;
  EXPECT_TRUE(make(llama3).add_bos());
  llama3.add_bos = false;
  EXPECT_FALSE(make(llama3).add_bos());
  VocabularyData qwen = byte_level("qwen2", {"a b"});
  qwen.ids.bos = 0;
  EXPECT_FALSE(make(qwen).add_bos());
  EXPECT_FALSE(make(qwen).add_space_prefix());
  VocabularyData llama = sentence_piece({"a"});
  llama.add_bos.reset();
  EXPECT_TRUE(make(llama).add_bos());
  EXPECT_TRUE(make(llama).add_space_prefix());
  qwen.add_space_prefix = true;  // as a few converters write; no byte-level encoder adds one
  const Vocabulary with_prefix = make(qwen);
  EXPECT_FALSE(with_prefix.add_space_prefix());
  ASSERT_EQ(with_prefix.warnings().size(), 1u);
  EXPECT_NE(with_prefix.warnings()[0].find("add_space_prefix is true"), std::string::npos);
}

TEST(Vocabulary, OldSentencePieceFilesNameNoIds) {
  VocabularyData data = sentence_piece({"a"});
  data.ids = {};
  data.add_bos.reset();
  const Vocabulary vocabulary = make(data);
  EXPECT_EQ(vocabulary.ids().unk, 0u);
  EXPECT_EQ(vocabulary.ids().bos, 1u);
  EXPECT_EQ(vocabulary.ids().eos, 2u);
  EXPECT_TRUE(vocabulary.add_bos());
}

TEST(Vocabulary, RepeatedAndEmptyTextsAreSaidAndTheLowerIdIsUsed) {
  VocabularyData data = byte_level("qwen2", {"a b"});
  add_token(data, "a", TokenType::kNormal);
  add_token(data, "", TokenType::kNormal);
  const Vocabulary vocabulary = make(data);
  EXPECT_EQ(vocabulary.find("a"), uint32_t{'a'});
  EXPECT_EQ(vocabulary.warnings().size(), 2u);
}

TEST(Vocabulary, WithoutTypesTheTokensWithARoleAreControl) {
  VocabularyData data = byte_level("qwen2", {"a b"});
  data.ids.eos = add_token(data, "<done>", TokenType::kNormal);
  data.types.clear();
  const Vocabulary vocabulary = make(data);
  EXPECT_TRUE(vocabulary.is_control(*data.ids.eos));
}

TEST(Vocabulary, StaysWholeWhenMoved) {
  Vocabulary first = make(byte_level("qwen2", {"a b"}));
  const Vocabulary second = std::move(first);
  EXPECT_EQ(second.find("ab"), 256u);
  EXPECT_EQ(second.merges()[0].right, "b");
}

TEST(Vocabulary, ByteTokens) {
  EXPECT_EQ(byte_of_token("<0x0A>"), 10);
  EXPECT_EQ(byte_of_token("<0xff>"), 255);
  EXPECT_EQ(byte_of_token("<0x0>"), std::nullopt);
  EXPECT_EQ(byte_of_token("<0x0A"), std::nullopt);
  EXPECT_EQ(byte_of_token("<0x-1>"), std::nullopt);
}

}  // namespace
}  // namespace text
}  // namespace spillway
