// The tokenizer's side of tests/oracle/tokenizers.mjs: reads a vocabulary and texts, prints ids.
//
//   encode_lines VOCABULARY.json TEXTS.json [parse_special|speed FILE]
//
// VOCABULARY.json has the fields of VocabularyData; TEXTS.json is a list of texts, each a list of bytes. One
// line of output a text: its ids, then "|" and whether decoding gives the text back.
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "text/tokenizer.h"

namespace {

using spillway::text::EncodeOptions;
using spillway::text::Tokenizer;
using spillway::text::Vocabulary;
using spillway::text::VocabularyData;

nlohmann::json read_json(const char* path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

VocabularyData vocabulary_data(const nlohmann::json& json) {
  VocabularyData data;
  data.kind = json.at("kind");
  if (json.contains("pre")) data.pre = json.at("pre").get<std::string>();
  data.tokens = json.at("tokens").get<std::vector<std::string>>();
  data.types = json.at("types").get<std::vector<int32_t>>();
  if (json.contains("scores")) data.scores = json.at("scores").get<std::vector<float>>();
  if (json.contains("merges")) data.merges = json.at("merges").get<std::vector<std::string>>();
  if (json.contains("unk")) data.ids.unk = json.at("unk").get<uint32_t>();
  if (json.contains("add_space_prefix")) data.add_space_prefix = json.at("add_space_prefix").get<bool>();
  data.add_bos = false;
  return data;
}

int speed(const Tokenizer& tokenizer, const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (int round = 0; round < 3; ++round) {
    const std::clock_t start = std::clock();
    const auto ids = tokenizer.encode(text);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (!ids) return 1;
    std::printf("%zu bytes, %zu tokens: %.1f MB/s of processor time\n", text.size(), ids->size(),
                static_cast<double>(text.size()) / 1e6 / seconds);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::clock_t start = std::clock();
  auto vocabulary = Vocabulary::create(vocabulary_data(read_json(argv[1])));
  const std::clock_t read = std::clock();
  if (!vocabulary) return std::fprintf(stderr, "%s\n", vocabulary.error().message.c_str()), 1;
  auto tokenizer = Tokenizer::create(std::move(*vocabulary));
  if (!tokenizer) return std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str()), 1;
  const std::clock_t indexed = std::clock();
  const std::string mode = argc > 3 ? argv[3] : "";
  if (mode == "speed") {
    std::printf("reading %.2f s, indexing %.2f s\n", static_cast<double>(read - start) / CLOCKS_PER_SEC,
                static_cast<double>(indexed - read) / CLOCKS_PER_SEC);
    return speed(**tokenizer, argv[4]);
  }
  for (const std::string& warning : (*tokenizer)->warnings())
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  EncodeOptions options;
  options.parse_special = mode == "parse_special";
  for (const auto& bytes : read_json(argv[2])) {
    std::string text;
    for (const int byte : bytes) text.push_back(static_cast<char>(byte));
    const auto ids = (*tokenizer)->encode(text, options);
    if (!ids) {
      std::printf("error: %s\n", ids.error().message.c_str());
      continue;
    }
    for (const int32_t id : *ids) std::printf("%d ", id);
    const auto back = (*tokenizer)->decode(*ids, {.skip_special = false});
    std::printf("| %s\n", back && *back == text ? "same" : "differs");
  }
  return 0;
}
