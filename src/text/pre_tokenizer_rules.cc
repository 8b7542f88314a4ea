// The cutting rules of published families. Sources: each family's own tokenizer.json (pre_tokenizer), and for
// the names that "tokenizer.ggml.pre" has for them, and for families marked (*), llama.cpp's
// src/llama-vocab.cpp. The ones not marked are compared with the family's own encoder in tests/oracle/.
#include "text/pre_tokenizer.h"

namespace spillway {
namespace text {
namespace {

// GPT-2: a contraction, or a run of letters, of digits or of others, each with the space before it.
#define GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"

// The cl100k line of families: contractions in either case, letters with one sign before them, digits in
// groups, signs with the newlines after them, whitespace. They differ in the digits.
#define CONTRACTION R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define SIGNS_AND_SPACE R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define CL100K CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)" SIGNS_AND_SPACE
#define QWEN2 CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)" SIGNS_AND_SPACE

// The o200k line: a word ends where lower case is followed by upper case; marks belong to words.
#define UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define SIGN R"([^\r\n\p{L}\p{N}]?)"
#define SIGNS_SLASH_AND_SPACE R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define O200K                                                                    \
  SIGN UPPER "*" LOWER "+" CONTRACTION "?|" SIGN UPPER "+" LOWER "*" CONTRACTION \
             "?|"                                                                \
             R"(\p{N}{1,3}|)" SIGNS_SLASH_AND_SPACE
#define TEKKEN                                   \
  SIGN UPPER "*" LOWER "+|" SIGN UPPER "+" LOWER \
             "*|"                                \
             R"(\p{N}|)" SIGNS_SLASH_AND_SPACE

// Kimi: as o200k, but runs of Han are pieces of their own and no part of other words. The script
// property proper (sc): PCRE2's plain \p{Han} would take in the punctuation that Han shares with other
// scripts.
#define KIMI_UPPER R"((?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]))"
#define KIMI_LOWER R"((?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}]))"
#define KIMI                                                                                           \
  R"(\p{sc:Han}+|)" SIGN KIMI_UPPER "*" KIMI_LOWER "+" CONTRACTION "?|" SIGN KIMI_UPPER "+" KIMI_LOWER \
  "*" CONTRACTION                                                                                      \
  "?|"                                                                                                 \
  R"(\p{N}{1,3}|)" SIGNS_AND_SPACE

#define DEEPSEEK_V3_WORDS                                                                    \
  R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)" \
  R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"

// Letters with case, as a list of ranges that was current when the family was made.
constexpr const char* kDeepseekLlmWords =
    R"(\s?[)"
    R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D})"
    R"(\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE})"
    R"(\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})"
    R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})"
    R"(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E})"
    R"(\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"
    R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"
    R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})"
    R"(\x{1E900}-\x{1E943})"
    R"(]+)";

// U+4E00..9FA5, U+0800..4E00, U+AC00..D7FF.
constexpr const char* kDeepseekCjk = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";

const PreTokenizerRules kRules[] = {
    // What llama.cpp applies for a file that names none (*).
    {{"default"}, {R"([\p{P}$+<=>^~|]+)", GPT2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
    {{"gpt-2", "olmo", "phi-2", "mpt", "jais", "exaone4", "mellum", "a.x-4.0", "gigachat", "modern-bert",
      "trillion", "granite-docling", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en",
      "jina-v2-code", "roberta-bpe"},
     {GPT2}},
    // Digits one by one, then GPT-2 (*).
    {{"refact", "starcoder", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"},
     {R"(\p{N})", GPT2}},
    {{"falcon"}, {R"([\p{P}$+<=>^~|`]+)", GPT2, "[0-9][0-9][0-9]"}},
    {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
      "jina-v5-nano"},
     {CL100K},
     true},
    {{"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, {CL100K}},
    {{"qwen2", "deepseek-r1-qwen", "megrez", "hunyuan", "solar-open", "stablelm2", "kormo", "f2llmv2",
      "grok-2"},
     {QWEN2}},
    {{"qwen35"},  // (*) marks belong to words
     {CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)"
                  R"(\s*[\r\n]+|\s+(?!\S)|\s+)"}},
    {{"laguna"}, {R"([^\n]+|\n+)", QWEN2}},       // (*)
    {{"bailingmoe", "bailingmoe2", "llada-moe"},  // (*)
     {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|)"
      R"(\s*[\r\n]|\s+(?!\S)|\s+)"}},
    {{"seed-coder"},  // (*)
     {CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
    {{"exaone-moe"},  // (*) words joined by single spaces stay together
     {CONTRACTION R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|)"
                  R"(\s*[\r\n]|\s+(?!\S)|\s+)"}},
    {{"gpt-4o", "llama4", "kanana2"}, {O200K}, true},
    {{"minimax-m2"}, {O200K}},  // (*)
    {{"tekken"}, {TEKKEN}, true},
    {{"kimi-k2"}, {KIMI}},  // the expression of the model's tokenization_kimi.py
    {{"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
     {R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)", DEEPSEEK_V3_WORDS}},
    // (*) The fourth expression is \s+$ in the original, which looks at a run of n spaces n times.
    {{"deepseek-llm"},
     {R"([\r\n])", kDeepseekLlmWords,
      R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
      R"((?<!\s)\s++$)", kDeepseekCjk, R"(\p{N}+)"}},
    {{"deepseek-coder"}, {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepseekCjk, R"(\p{N})"}},  // (*)
};

}  // namespace

std::span<const PreTokenizerRules> pre_tokenizer_rules() { return kRules; }

}  // namespace text
}  // namespace spillway
