// The fuzz corpus and its canary (tests/fuzz/corpus/gguf, tests/fuzz/canary/gguf) are made here. The test
// checks that the files are what the writer makes today; with SPILLWAY_WRITE_CORPUS=1 in the environment it
// writes them anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "gguf/writer.h"
#include "raw_file.h"

namespace spillway::gguf {
namespace {

using Files = std::map<std::string, std::vector<std::byte>>;

Files make_files() {
  static const std::vector<std::byte> data(256, std::byte{0x3c});
  const std::span<const std::byte> all = data;
  Files files;
  FileSource model;
  model.metadata.set("general.architecture", "qwen3moe");
  model.metadata.set("qwen3moe.block_count", uint32_t{1});
  model.metadata.set("qwen3moe.rope.freq_base", 1e6f);
  model.metadata.set("tokenizer.ggml.tokens", Array::of(std::vector<std::string>{"a", "b", "<s>"}));
  model.metadata.set("tokenizer.ggml.scores", Array::of(std::vector<float>{0, -1, -2}));
  model.metadata.set("tokenizer.ggml.token_type", Array::of(std::vector<int32_t>{1, 1, 3}));
  model.metadata.set("tokenizer.ggml.add_bos_token", true);
  model.tensors = {{"token_embd.weight", 8, {32, 3}, all.first(102)},
                   {"blk.0.ffn_up_exps.weight", 39, {32, 2, 2}, all.first(68)},
                   {"output_norm.weight", 0, {32}, all.first(128)}};
  files["corpus/gguf/model-v3"] = *write_file(model);
  model.version = 2;
  model.metadata.set("general.alignment", uint32_t{24});
  files["corpus/gguf/model-v2-align24"] = *write_file(model);
  const std::vector<uint32_t> shard_of = {0, 1, 1};
  model.version = 3;
  const auto shards = *write_shards(model, shard_of, 2);
  files["corpus/gguf/shard-1"] = shards[0];
  files["corpus/gguf/shard-2"] = shards[1];

  FileSource types;
  types.metadata.set("u8", uint8_t{1});
  types.metadata.set("i16", int16_t{-2});
  types.metadata.set("f64", 0.5);
  types.metadata.set("i64", int64_t{-1});
  types.metadata.set("nested", Array::of(std::vector<Array>{Array::of(std::vector<uint16_t>{1, 2}),
                                                            Array::of(std::vector<bool>{true})}));
  files["corpus/gguf/types"] = *write_file(types);

  RawFile big_endian;
  big_endian.raw("GGUF").number(__builtin_bswap32(3)).number(uint64_t{0}).number(uint64_t{0});
  files["corpus/gguf/big-endian"] = big_endian.bytes();

  // The last tensor's last byte is missing.
  RawFile cut;
  cut.start(1, 0).tensor("w", {8}, 0, 0).pad().data(31);
  files["canary/gguf"] = cut.bytes();
  return files;
}

TEST(Corpus, IsWhatTheWriterMakes) {
  const std::filesystem::path folder = std::filesystem::path(SPILLWAY_SOURCE_DIR) / "tests/fuzz";
  const bool write = std::getenv("SPILLWAY_WRITE_CORPUS") != nullptr;
  for (const auto& [name, bytes] : make_files()) {
    const std::filesystem::path path = folder / name;
    if (write) {
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> found((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    EXPECT_TRUE(found.size() == bytes.size() && std::memcmp(found.data(), bytes.data(), found.size()) == 0)
        << path << " differs; SPILLWAY_WRITE_CORPUS=1 writes it anew";
  }
}

}  // namespace
}  // namespace spillway::gguf
