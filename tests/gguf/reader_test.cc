// Faults of GGUF files, one test per kind. The bytes are built by hand from the format's description.
#include "gguf/reader.h"

#include <gtest/gtest.h>

#include "gguf/writer.h"
#include "raw_file.h"

namespace spillway::gguf {
namespace {

constexpr uint32_t kF32 = 0, kQ8_0 = 8, kQ4_K = 12, kQ6_K = 14, kMXFP4 = 39;

RawFile one_tensor(std::vector<uint64_t> dims, uint32_t type, size_t bytes, uint64_t offset = 0) {
  RawFile file;
  file.start(1, 0).tensor("blk.0.w", std::move(dims), type, offset).pad().data(bytes);
  return file;
}

TEST(Reader, ReadsEveryField) {
  RawFile file;
  file.start(2, 2).key("general.architecture", ValueType::kString).text("qwen3moe");
  file.key("qwen3moe.block_count", ValueType::kUint32).number(uint32_t{2});
  file.tensor("a", {32, 2}, kQ8_0, 0).tensor("b", {3}, kF32, 96).pad().data(96 + 12);
  const auto header = file.parse();
  ASSERT_TRUE(header) << message(header);
  EXPECT_EQ(header->version, 3u);
  EXPECT_EQ(header->alignment, 32u);
  EXPECT_EQ(*header->metadata.require_string("general.architecture"), "qwen3moe");
  EXPECT_EQ(header->data_offset % 32, 0u);
  ASSERT_EQ(header->tensors.size(), 2u);
  const TensorInfo& a = header->tensors[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.n_dims, 2u);
  EXPECT_EQ(a.dims, (std::array<uint64_t, 4>{32, 2, 1, 1}));
  EXPECT_EQ(a.bytes, 2u * 34);
  EXPECT_EQ(a.offset, header->data_offset);
  EXPECT_EQ(header->tensors[1].offset, header->data_offset + 96);
  EXPECT_EQ(describe(a), "'a' (Q8_0, 32x2)");
}

TEST(Reader, Starts) {
  const auto parse = [](RawFile file) { return file.parse(); };
  EXPECT_ERROR(parse(RawFile()), "empty");
  EXPECT_ERROR(parse(RawFile().raw("GGU")), "the file ends at byte 3");
  EXPECT_ERROR(parse(RawFile().raw("GGUF")), "the version");
  EXPECT_ERROR(parse(RawFile().raw("abcdefgh")), "begins with 'abcd'");
  EXPECT_ERROR(parse(RawFile().raw("version https://git-lfs.github.com/spec/v1\n")), "git lfs pull");
  EXPECT_ERROR(parse(RawFile().start(0, 0, 0)), "version 0");
  EXPECT_ERROR(parse(RawFile().raw("GGUF").number(uint32_t{1}).number(uint32_t{0}).number(uint32_t{0})),
               "version 1");
  EXPECT_ERROR(parse(RawFile().start(0, 0, 4)), "version 4");
  EXPECT_TRUE(parse(RawFile().start(0, 0, 2)));
  EXPECT_TRUE(parse(RawFile().start(0, 0, 3)));
}

TEST(Reader, BigEndianIsNamed) {
  RawFile file;
  file.raw("GGUF").number(__builtin_bswap32(3)).number(__builtin_bswap64(1)).number(__builtin_bswap64(0));
  EXPECT_ERROR(file.parse(), "big-endian");
  EXPECT_ERROR(RawFile().raw("FUGG").number(uint32_t{3}).parse(), "big-endian");
}

TEST(Reader, DimensionProductThatWraps) {
  // (2^42 + 1) rows of 2^22 floats: the bytes wrap to 2^24.
  EXPECT_ERROR(one_tensor({uint64_t{1} << 22, (uint64_t{1} << 42) + 1}, kF32, 64).parse(),
               "tensor 'blk.0.w'");
  EXPECT_ERROR(one_tensor({uint64_t{1} << 62, 4, 4, 4}, kF32, 64).parse(), "more values than any file");
  // The values fit 63 bits, their bytes don't fit 64.
  EXPECT_ERROR(one_tensor({uint64_t{1} << 62}, kF32, 64).parse(), "more bytes than any file");
}

TEST(Reader, ZeroDimension) {
  EXPECT_ERROR(one_tensor({8, 0}, kF32, 64).parse(), "dimension 1 is 0");
  EXPECT_ERROR(one_tensor({0}, kF32, 64).parse(), "dimension 0 is 0");
}

TEST(Reader, ScalarTensorIsOneValue) {
  const auto header = one_tensor({}, kF32, 4).parse();
  ASSERT_TRUE(header) << message(header);
  EXPECT_EQ(header->tensors[0].bytes, 4u);
  EXPECT_EQ(header->tensors[0].values(), 1u);
}

TEST(Reader, TooManyDimensions) {
  for (const uint32_t n : {5u, 9u, 0xffffffffu}) {
    RawFile file;
    file.start(1, 0).text("w").number(n).data(256);
    EXPECT_ERROR(file.parse(), fmt::format("{} dimensions", n));
  }
}

TEST(Reader, TensorPastTheEnd) {
  EXPECT_TRUE(one_tensor({8, 2}, kF32, 64).parse());
  EXPECT_ERROR(one_tensor({8, 2}, kF32, 63).parse(), "past the end of the file");
  EXPECT_ERROR(one_tensor({8, 2}, kF32, 64, uint64_t{1} << 30).parse(), "past the end of the file");
  // Offset + size wraps.
  EXPECT_ERROR(one_tensor({8, 2}, kF32, 64, ~uint64_t{0} - 31).parse(), "past the end of the file");
}

TEST(Reader, RowsThatAreNoWholeBlocks) {
  EXPECT_ERROR(one_tensor({8, 64}, kQ6_K, 4096).parse(), "rows have 8 values");
  EXPECT_ERROR(one_tensor({896, 4}, kQ4_K, 4096).parse(), "multiple of the 256");
  EXPECT_TRUE(one_tensor({256, 1}, kQ6_K, 210).parse());
}

TEST(Reader, Mxfp4HasSeventeenBytesPerBlock) {
  const auto header = one_tensor({32, 4}, kMXFP4, 68).parse();
  ASSERT_TRUE(header) << message(header);
  EXPECT_EQ(header->tensors[0].bytes, 68u);
}

TEST(Reader, TypesThatAreNotComputedWith) {
  const auto known = one_tensor({256, 2}, 16, 132).parse();  // IQ2_XXS: 66 bytes per 256
  ASSERT_TRUE(known) << message(known);
  EXPECT_EQ(known->tensors[0].bytes, 132u);
  EXPECT_TRUE(known->tensors[0].size_known);
  const auto unknown = one_tensor({256, 2}, 4711, 0).parse();
  ASSERT_TRUE(unknown) << message(unknown);
  EXPECT_EQ(unknown->tensors[0].bytes, 0u);
  EXPECT_FALSE(unknown->tensors[0].size_known);
  EXPECT_EQ(describe(unknown->tensors[0]), "'blk.0.w' (type 4711, 256x2)");
}

TEST(Reader, CountsLargerThanTheFile) {
  EXPECT_ERROR(RawFile().start(uint64_t{1} << 60, 0).parse(), "number of tensors");
  EXPECT_ERROR(RawFile().start(0, uint64_t{1} << 60).parse(), "number of metadata keys");
  EXPECT_ERROR(RawFile().start(~uint64_t{0}, ~uint64_t{0}).parse(), "number of tensors");
}

TEST(Reader, ArrayBytesThatWrap) {
  const auto array = [](ValueType element, uint64_t count) {
    RawFile file;
    file.start(0, 1)
        .key("k", ValueType::kArray)
        .number(static_cast<uint32_t>(element))
        .number(count)
        .data(64);
    return file.parse();
  };
  EXPECT_ERROR(array(ValueType::kUint64, (uint64_t{1} << 61) + 1), "key 'k'");
  EXPECT_ERROR(array(ValueType::kString, (uint64_t{1} << 61) + 1), "claims");
  EXPECT_ERROR(array(ValueType::kUint8, 65), "claims 65 elements");
  EXPECT_TRUE(array(ValueType::kUint8, 64));
}

TEST(Reader, StringsLongerThanTheFile) {
  EXPECT_ERROR(RawFile().start(0, 1).number(~uint64_t{0}).data(64).parse(), "a metadata key");
  EXPECT_ERROR(RawFile().start(0, 1).key("k", ValueType::kString).number(uint64_t{65}).data(64).parse(),
               "key 'k'");
}

TEST(Reader, ArraysNestedTooDeep) {
  const auto nested = [](int depth) {
    RawFile file;
    file.start(0, 1).key("k", ValueType::kArray);
    for (int i = 1; i < depth; ++i) file.number(static_cast<uint32_t>(ValueType::kArray)).number(uint64_t{1});
    file.number(static_cast<uint32_t>(ValueType::kUint8)).number(uint64_t{1}).data(1);
    return file.parse();
  };
  EXPECT_TRUE(nested(8));
  EXPECT_ERROR(nested(9), "nested deeper than 8");
  EXPECT_ERROR(nested(20000), "nested deeper than 8");
}

TEST(Reader, ValueTypesAndBools) {
  EXPECT_ERROR(RawFile().start(0, 1).text("k").number(uint32_t{13}).data(8).parse(), "value type 13");
  EXPECT_ERROR(RawFile().start(0, 1).key("k", ValueType::kBool).number(uint8_t{2}).parse(), "bool is 2");
  EXPECT_TRUE(RawFile().start(0, 1).key("k", ValueType::kBool).number(uint8_t{1}).parse());
}

TEST(Reader, Alignment) {
  const auto aligned = [](uint32_t alignment) {
    RawFile file;
    file.start(2, 1).key("general.alignment", ValueType::kUint32).number(alignment);
    file.tensor("a", {3}, kF32, 0).tensor("b", {3}, kF32, alignment >= 12 ? alignment : 2 * alignment);
    return alignment == 0 ? file.data(64).parse() : file.pad(alignment).data(2 * alignment + 12).parse();
  };
  for (const uint32_t good : {8u, 24u, 32u, 64u, 4096u}) {
    const auto header = aligned(good);
    ASSERT_TRUE(header) << message(header);
    EXPECT_EQ(header->alignment, good);
    EXPECT_EQ(header->data_offset % good, 0u);
  }
  for (const uint32_t bad : {0u, 4u, 12u, 36u, 1u << 21})
    EXPECT_ERROR(aligned(bad), "multiple of 8 from 8 to 1048576");
  RawFile text;
  text.start(0, 1).key("general.alignment", ValueType::kString).text("32");
  EXPECT_ERROR(text.parse(), "key 'general.alignment' has type string");
}

TEST(Reader, UnalignedOffset) {
  EXPECT_ERROR(one_tensor({4}, kF32, 64, 16).parse(), "offset 16 is no multiple of the alignment 32");
}

TEST(Reader, OverlapAndOrderAndGaps) {
  const auto two = [](uint64_t a, uint64_t b) {
    RawFile file;
    file.start(2, 0).tensor("a", {16}, kF32, a).tensor("b", {16}, kF32, b).pad().data(256);
    return file.parse();
  };
  EXPECT_TRUE(two(0, 64));
  EXPECT_TRUE(two(64, 0));
  EXPECT_TRUE(two(0, 192));
  EXPECT_ERROR(two(0, 32), "'a' and 'b' overlap");
  EXPECT_ERROR(two(64, 64), "overlap");
}

TEST(Reader, TrailingBytes) {
  for (size_t extra = 0; extra < 40; ++extra) {
    RawFile file = one_tensor({3}, kF32, 12);
    for (size_t i = 0; i < extra; ++i) file.number(uint8_t{0});
    EXPECT_TRUE(file.parse()) << extra;
  }
}

TEST(Reader, Names) {
  const auto named = [](std::string_view name) {
    RawFile file;
    file.start(1, 0).tensor(name, {4}, kF32, 0).pad().data(16);
    return file.parse();
  };
  EXPECT_TRUE(named("größe.weight"));
  EXPECT_ERROR(named(""), "empty");
  EXPECT_ERROR(named(std::string_view("a\0b", 3)), "control character at byte 1");
  EXPECT_ERROR(named("a\x1b[31m"), "\\x1b[31m");
  EXPECT_ERROR(named("a\x7f"), "control character");
  EXPECT_ERROR(named("a\xc2\x85"), "control character");
  for (const std::string_view bad :
       {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"})
    EXPECT_ERROR(named(bad), "UTF-8");
  EXPECT_TRUE(named(std::string(65536, 'n')));
  EXPECT_ERROR(named(std::string(65537, 'n')), "at most 65536");
  EXPECT_ERROR(RawFile().start(0, 1).key("", ValueType::kUint8).data(1).parse(), "metadata key 0 is empty");
}

TEST(Reader, Duplicates) {
  RawFile keys;
  keys.start(0, 2).key("k", ValueType::kUint8).data(1).key("k", ValueType::kUint8).data(1);
  EXPECT_ERROR(keys.parse(), "key 'k' is there twice");
  RawFile tensors;
  tensors.start(2, 0).tensor("a", {4}, kF32, 0).tensor("a", {4}, kF32, 32).pad().data(64);
  EXPECT_ERROR(tensors.parse(), "tensor 'a' is there twice");
}

// Every prefix that ends inside the header asks for more, within the file, and more than it had; a file cut
// at any place is refused.
TEST(Reader, EveryPrefix) {
  RawFile file;
  file.start(2, 3).key("s", ValueType::kString).text("some text");
  file.key("a", ValueType::kArray).number(uint32_t{8}).number(uint64_t{2}).text("x").text("yy");
  file.key("n", ValueType::kArray).number(uint32_t{4}).number(uint64_t{2}).data(8);
  file.tensor("a", {4, 2}, kF32, 0).tensor("b", {4}, kF32, 32).pad().data(64);
  const auto& all = file.bytes();
  const auto whole = file.parse();
  ASSERT_TRUE(whole) << message(whole);
  size_t complete = 0;
  for (size_t n = 0; n <= all.size(); ++n) {
    const auto result = parse_prefix(std::span(all).first(n), all.size());
    ASSERT_TRUE(result) << n << ": " << message(result);
    if (result->header) {
      ++complete;
    } else {
      EXPECT_GT(result->need_bytes, n);
      EXPECT_LE(result->need_bytes, all.size());
    }
  }
  EXPECT_GT(complete, 64u);
  for (size_t n = 0; n + 48 < all.size(); ++n) EXPECT_FALSE(parse_header(std::span(all).first(n), n)) << n;
  EXPECT_ERROR(parse_header(std::span(all).first(30), all.size()), "goes on past the first 30 bytes");
}

TEST(Reader, ReadsThroughACallback) {
  // A header larger than the first read of 4 MiB.
  Metadata metadata;
  StringArray tokens;
  for (int i = 0; i < 300000; ++i) tokens.push_back(fmt::format("token number {}", i));
  Array array{ValueType::kString, tokens};
  metadata.set("tokenizer.ggml.tokens", array);
  metadata.set("after", uint32_t{7});
  const auto file = write_file({.metadata = metadata, .tensors = {}});
  ASSERT_TRUE(file) << message(file);
  ASSERT_GT(file->size(), size_t{6} << 20);
  uint64_t read_bytes = 0;
  const auto header =
      read_header(file->size(), [&](uint64_t offset, std::span<std::byte> to) -> Result<void> {
        read_bytes += to.size();
        std::memcpy(to.data(), file->data() + offset, to.size());
        return {};
      });
  ASSERT_TRUE(header) << message(header);
  EXPECT_EQ(*header->metadata.require_uint("after", 100), 7u);
  EXPECT_EQ(header->metadata, metadata);
  EXPECT_EQ(read_bytes, file->size());
  const auto refused = read_header(file->size(), [](uint64_t, std::span<std::byte>) -> Result<void> {
    return fail(Error::Kind::kIo, "disk on fire");
  });
  EXPECT_ERROR(refused, "disk on fire");
}

}  // namespace
}  // namespace spillway::gguf
