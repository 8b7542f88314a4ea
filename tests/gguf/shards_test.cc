#include "gguf/shards.h"

#include <gtest/gtest.h>

#include <map>

#include "gguf/writer.h"
#include "raw_file.h"

namespace spillway::gguf {
namespace {

// Files by path, in memory.
using Files = std::map<std::string, std::vector<std::byte>>;

OpenHeader opener(const Files& files) {
  return [&files](const std::string& path) -> Result<Header> {
    const auto at = files.find(path);
    if (at == files.end()) return fail(Error::Kind::kNotFound, "no such file");
    return parse_header(at->second, at->second.size());
  };
}

// One layer's experts over three files: gate in the first, down in the second, a bias in the third.
std::vector<std::vector<std::byte>> three_shards(std::string_view name = "tiny", uint32_t alignment = 32) {
  static const std::vector<std::byte> data(512);
  FileSource source;
  source.metadata.set("general.architecture", "qwen3moe");
  source.metadata.set("general.name", name);
  source.metadata.set("general.alignment", alignment);
  source.tensors = {{"blk.0.ffn_gate_exps.weight", 0, {8, 4, 4}, data},
                    {"blk.0.ffn_down_exps.weight", 0, {8, 4, 4}, data},
                    {"blk.0.ffn_down_exps.bias", 0, {4, 4}, std::span(data).first(64)}};
  const std::vector<uint32_t> shard_of = {0, 1, 2};
  auto files = write_shards(source, shard_of, 3);
  EXPECT_TRUE(files) << message(files);
  return *files;
}

Files as_files(const std::vector<std::vector<std::byte>>& shards, std::string_view prefix = "/m/big") {
  Files files;
  for (size_t i = 0; i < shards.size(); ++i)
    files[shard_path(prefix, static_cast<uint32_t>(i + 1), static_cast<uint32_t>(shards.size()))] = shards[i];
  return files;
}

TEST(Shards, Names) {
  EXPECT_EQ(parse_shard_name("/m/big-00002-of-00003.gguf"), (ShardName{"/m/big", 2, 3}));
  EXPECT_EQ(parse_shard_name("a-00001-of-00002-00003-of-00004.gguf"), (ShardName{"a-00001-of-00002", 3, 4}));
  EXPECT_EQ(shard_path("/m/big", 2, 3), "/m/big-00002-of-00003.gguf");
  for (const auto* other :
       {"big.gguf", "big-2-of-3.gguf", "big-00004-of-00003.gguf", "big-00000-of-00003.gguf",
        "-00001-of-00003.gguf", "big-00001-of-00003", "big-00001-of-00003.ggu", "big-000001-of-000003.gguf",
        "big-+0001-of-00003.gguf", "big-00001-of-99999.gguf", ""})
    EXPECT_EQ(parse_shard_name(other), std::nullopt) << other;
  EXPECT_EQ(shard_paths("x.gguf"), std::vector<std::string>{"x.gguf"});
  EXPECT_EQ(shard_paths("b-00002-of-00002.gguf"),
            (std::vector<std::string>{"b-00001-of-00002.gguf", "b-00002-of-00002.gguf"}));
}

TEST(Shards, AnyShardOpensTheModel) {
  const Files files = as_files(three_shards());
  for (const auto& [path, bytes] : files) {
    const auto model = open_model(path, opener(files));
    ASSERT_TRUE(model) << message(model);
    EXPECT_EQ(model->paths().size(), 3u);
    EXPECT_EQ(*model->metadata().require_string("general.architecture"), "qwen3moe");
    EXPECT_EQ(model->find("blk.0.ffn_gate_exps.weight")->shard, 0u);
    EXPECT_EQ(model->find("blk.0.ffn_down_exps.weight")->shard, 1u);
    EXPECT_EQ((*model->require("blk.0.ffn_down_exps.bias"))->shard, 2u);
    EXPECT_EQ(model->tensor_bytes(), 2u * 512 + 64);
    EXPECT_EQ(model->find("none"), nullptr);
    EXPECT_ERROR(model->require("none"), "tensor 'none' is missing");
  }
}

TEST(Shards, MissingOnesAreNamed) {
  Files files = as_files(three_shards());
  files.erase("/m/big-00002-of-00003.gguf");
  const auto model = open_model("/m/big-00003-of-00003.gguf", opener(files));
  EXPECT_ERROR(model, "/m/big-00002-of-00003.gguf");
  EXPECT_EQ(model.error().kind, Error::Kind::kNotFound);
  files.erase("/m/big-00001-of-00003.gguf");
  EXPECT_ERROR(open_model("/m/big-00003-of-00003.gguf", opener(files)),
               "/m/big-00001-of-00003.gguf, /m/big-00002-of-00003.gguf");
  EXPECT_ERROR(open_model("/m/none.gguf", opener(files)), "/m/none.gguf: no such file");
}

TEST(Shards, RenamedOnes) {
  const auto shards = three_shards();
  Files swapped = as_files(shards);
  std::swap(swapped["/m/big-00002-of-00003.gguf"], swapped["/m/big-00003-of-00003.gguf"]);
  EXPECT_ERROR(open_model("/m/big-00001-of-00003.gguf", opener(swapped)),
               "shard 2 by its name, but shard 3 by its metadata");

  const Files alone = {{"/m/part.gguf", shards[1]}};
  EXPECT_ERROR(open_model("/m/part.gguf", opener(alone)), "PREFIX-00002-of-00003.gguf");

  const Files pair = {{"/m/big-00001-of-00002.gguf", shards[0]}, {"/m/big-00002-of-00002.gguf", shards[1]}};
  EXPECT_ERROR(open_model("/m/big-00001-of-00002.gguf", opener(pair)), "one of 2 shards by its name");

  FileSource whole;
  const auto unsplit = write_file(whole);
  ASSERT_TRUE(unsplit);
  const Files wrong = {{"/m/big-00001-of-00002.gguf", *unsplit}, {"/m/big-00002-of-00002.gguf", *unsplit}};
  EXPECT_ERROR(open_model("/m/big-00001-of-00002.gguf", opener(wrong)), "isn't split");
  const Files one = {{"/m/big-00001-of-00001.gguf", *unsplit}};
  EXPECT_TRUE(open_model("/m/big-00001-of-00001.gguf", opener(one)));
}

TEST(Shards, ShardOfAnotherModel) {
  const std::vector<std::byte> data(64);
  const auto shards_with = [&](std::vector<TensorSource> tensors, std::vector<uint32_t> shard_of) {
    FileSource source;
    source.tensors = std::move(tensors);
    return *write_shards(source, shard_of, 2);
  };
  const auto ours = shards_with({{"a", 0, {16}, data}, {"b", 0, {16}, data}}, {0, 1});
  const auto more =
      shards_with({{"a", 0, {16}, data}, {"b", 0, {16}, data}, {"c", 0, {16}, data}}, {0, 1, 1});
  const auto turned = shards_with({{"a", 0, {16}, data}, {"b", 0, {16}, data}}, {1, 0});
  const auto fewer = shards_with({{"a", 0, {16}, data}, {"b", 0, {16}, data}}, {0, 0});
  EXPECT_ERROR(open_model("m-00001-of-00002.gguf", opener(as_files({ours[0], more[1]}, "m"))),
               "split.tensors.count");
  EXPECT_ERROR(open_model("m-00001-of-00002.gguf", opener(as_files({ours[0], turned[1]}, "m"))),
               "tensor 'a' is in");
  EXPECT_ERROR(open_model("m-00001-of-00002.gguf", opener(as_files({ours[0], fewer[1]}, "m"))), "hold 1");

  // A later shard that repeats a key must agree with the first.
  const auto renamed = [&](std::string_view name) {
    FileSource part;
    part.metadata.set("general.name", name);
    part.metadata.set(kSplitNoKey, uint16_t{1});
    part.metadata.set(kSplitCountKey, uint16_t{2});
    part.metadata.set(kSplitTensorsKey, int32_t{2});
    part.tensors = {{"b", 0, {16}, data}};
    return *write_file(part);
  };
  FileSource first;
  first.metadata.set("general.name", "ours");
  first.metadata.set(kSplitNoKey, uint16_t{0});
  first.metadata.set(kSplitCountKey, uint16_t{2});
  first.metadata.set(kSplitTensorsKey, int32_t{2});
  first.tensors = {{"a", 0, {16}, data}};
  EXPECT_TRUE(
      open_model("m-00001-of-00002.gguf", opener(as_files({*write_file(first), renamed("ours")}, "m"))));
  EXPECT_ERROR(
      open_model("m-00001-of-00002.gguf", opener(as_files({*write_file(first), renamed("theirs")}, "m"))),
      "belong to different models");
}

TEST(Shards, SplitKeysOfWrongType) {
  FileSource source;
  source.metadata.set(kSplitCountKey, "3");
  const Files files = {{"m.gguf", *write_file(source)}};
  EXPECT_ERROR(open_model("m.gguf", opener(files)), "m.gguf: key 'split.count' has type string");
}

}  // namespace
}  // namespace spillway::gguf
