#include "gguf/writer.h"

#include <gtest/gtest.h>

#include <random>

#include "gguf/reader.h"
#include "raw_file.h"

namespace spillway::gguf {
namespace {

std::vector<std::byte> some_bytes(size_t n, uint8_t first) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

Metadata every_type() {
  Metadata map;
  map.set("u8", uint8_t{1});
  map.set("i8", int8_t{-1});
  map.set("u16", uint16_t{2});
  map.set("i16", int16_t{-2});
  map.set("u32", uint32_t{3});
  map.set("i32", int32_t{-3});
  map.set("u64", ~uint64_t{0});
  map.set("i64", int64_t{-4});
  map.set("f32", 1.5f);
  map.set("f64", 2.5);
  map.set("bool", true);
  map.set("string", std::string("with \0 zero", 11));
  map.set("empty", "");
  map.set("a.u8", Array::of(std::vector<uint8_t>{1, 2, 3}));
  map.set("a.f32", Array::of(std::vector<float>{1, 2}));
  map.set("a.i64", Array::of(std::vector<int64_t>{-1, 2}));
  map.set("a.bool", Array::of(std::vector<bool>{true, false}));
  map.set("a.string", Array::of(std::vector<std::string>{"", "x", "\xff\xfe"}));
  map.set("a.none", Array::of(std::vector<std::string>{}));
  map.set("a.a", Array::of(std::vector<Array>{Array::of(std::vector<uint8_t>{1}),
                                              Array::of(std::vector<std::string>{"deep"})}));
  return map;
}

TEST(Writer, RoundTrip) {
  for (const uint32_t version : {2u, 3u}) {
    for (const uint32_t alignment : {0u, 8u, 24u, 64u}) {
      FileSource source{.metadata = every_type(), .tensors = {}, .version = version};
      if (alignment != 0) source.metadata.set("general.alignment", alignment);
      const auto a = some_bytes(68, 1), b = some_bytes(12, 100), c = some_bytes(4, 200);
      source.tensors = {{"a", 8, {32, 2}, a}, {"b", 0, {3, 1, 1, 1}, b}, {"c", 0, {}, c}};
      const auto bytes = write_file(source);
      ASSERT_TRUE(bytes) << message(bytes);
      const auto header = parse_header(*bytes, bytes->size());
      ASSERT_TRUE(header) << message(header);
      EXPECT_EQ(header->version, version);
      EXPECT_EQ(header->metadata, source.metadata);
      ASSERT_EQ(header->tensors.size(), 3u);
      EXPECT_EQ(header->tensors[1].n_dims, 4u);
      EXPECT_EQ(bytes->size() % header->alignment, 0u);
      for (size_t i = 0; i < 3; ++i) {
        const TensorInfo& tensor = header->tensors[i];
        EXPECT_EQ(tensor.name, source.tensors[i].name);
        EXPECT_EQ(tensor.offset % header->alignment, 0u);
        ASSERT_EQ(tensor.bytes, source.tensors[i].bytes.size());
        EXPECT_EQ(std::memcmp(bytes->data() + tensor.offset, source.tensors[i].bytes.data(), tensor.bytes),
                  0);
      }
    }
  }
}

TEST(Writer, RefusesWhatTheReaderRefuses) {
  const auto bytes = some_bytes(68, 1);
  const auto write = [&](TensorSource tensor) {
    return write_file({.metadata = {}, .tensors = {std::move(tensor)}});
  };
  EXPECT_TRUE(write({"a", 8, {32, 2}, bytes}));
  EXPECT_ERROR(write({"a", 8, {32, 3}, bytes}), "tensor 'a': 68 bytes were given");
  EXPECT_ERROR(write({"a", 8, {16, 4}, bytes}), "rows have 16 values");
  EXPECT_ERROR(write({"a", 0, {1, 1, 1, 1, 17}, bytes}), "5 dimensions");
  EXPECT_ERROR(write({"", 8, {32, 2}, bytes}), "empty");
  EXPECT_ERROR(write({"a", 4711, {32, 2}, bytes}), "type 4711 is not known");
  FileSource twice;
  twice.tensors = {{"a", 8, {32, 2}, bytes}, {"a", 8, {32, 2}, bytes}};
  EXPECT_ERROR(write_file(twice), "twice");
  FileSource odd;
  odd.metadata.set("general.alignment", uint32_t{12});
  EXPECT_ERROR(write_file(odd), "multiple of 8");
  EXPECT_ERROR(write_file({.metadata = {}, .tensors = {}, .version = 1}), "version 1");
}

TEST(Writer, HandsOnTheSinksError) {
  int calls = 0;
  const auto result = write_file({}, [&](std::span<const std::byte>) -> Result<void> {
    ++calls;
    return fail(Error::Kind::kIo, "no space left");
  });
  EXPECT_ERROR(result, "no space left");
  EXPECT_EQ(calls, 1);
}

// A damaged file gives a header or an error, and a header's tensors lie within the file. 20,000 seeded
// mutations.
TEST(Writer, MutatedFilesParseOrFail) {
  FileSource source{.metadata = every_type(), .tensors = {}};
  const auto a = some_bytes(68, 1), b = some_bytes(12, 100);
  source.tensors = {{"blk.0.a", 8, {32, 2}, a}, {"blk.0.b", 0, {3}, b}};
  const auto good = write_file(source);
  ASSERT_TRUE(good);
  std::mt19937 random(20260101);
  size_t parsed = 0, failed = 0;
  for (int round = 0; round < 20000; ++round) {
    auto bytes = *good;
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < changes; ++i) {
      const size_t at = random() % bytes.size();
      switch (random() % 5) {
        case 0:
          bytes[at] ^= static_cast<std::byte>(1u << (random() % 8));
          break;
        case 1:
          bytes[at] = static_cast<std::byte>(random());
          break;
        case 2:
          bytes.resize(at + 1);
          break;
        case 3:
          bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at), static_cast<std::byte>(random()));
          break;
        case 4: {
          const uint64_t number = uint64_t{1} << (random() % 64);
          std::memcpy(bytes.data() + at, &number, std::min<size_t>(8, bytes.size() - at));
          break;
        }
      }
    }
    const auto header = parse_header(bytes, bytes.size());
    header ? ++parsed : ++failed;
    if (!header) {
      EXPECT_FALSE(header.error().message.empty());
      continue;
    }
    for (const TensorInfo& tensor : header->tensors) {
      EXPECT_LE(tensor.offset, bytes.size());
      EXPECT_LE(tensor.bytes, bytes.size() - tensor.offset);
    }
    // What was read can be written and read again.
    FileSource again{.metadata = header->metadata, .tensors = {}};
    const auto rewritten = write_file(again);
    ASSERT_TRUE(rewritten) << message(rewritten);
    const auto reread = parse_header(*rewritten, rewritten->size());
    ASSERT_TRUE(reread) << message(reread);
    EXPECT_EQ(reread->metadata, header->metadata);
  }
  EXPECT_GT(parsed, 1000u);
  EXPECT_GT(failed, 1000u);
}

}  // namespace
}  // namespace spillway::gguf
