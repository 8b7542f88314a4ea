#include "sys/direct_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "fake_tree.h"
#include "sys/load.h"
#include "sys/memory.h"

namespace spillway::sys {
namespace {

std::vector<std::byte> counting_blocks(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 4096);
  return bytes;
}

// A disk that takes whole aligned blocks only, as O_DIRECT does, and stops early now and then.
class FakeDisk final : public BlockReader {
 public:
  explicit FakeDisk(std::vector<std::byte> bytes, uint64_t refuse_from = UINT64_MAX,
                    uint64_t most = UINT64_MAX)
      : bytes_(std::move(bytes)), refuse_from_(refuse_from), most_(most) {}
  Result<size_t> read_blocks(uint64_t offset, std::span<std::byte> to) const override {
    EXPECT_EQ(offset % kDirectBlockBytes, 0u);
    EXPECT_EQ(to.size() % kDirectBlockBytes, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(to.data()) % kDirectBlockBytes, 0u);
    if (offset + to.size() > refuse_from_) return fail(Error::Kind::kIo, "disk: Invalid argument");
    if (offset >= bytes_.size()) return size_t{0};
    const size_t n = std::min({to.size(), bytes_.size() - offset, most_});
    std::ranges::copy(std::span(bytes_).subspan(offset, n), to.begin());
    return n;
  }

 private:
  std::vector<std::byte> bytes_;
  uint64_t refuse_from_, most_;
};

// Ranges off every block, over one and many, up to the last byte of a file that ends inside a block.
void reads_any_range(const ReadableFile& file, const std::vector<std::byte>& data) {
  ASSERT_EQ(file.size(), data.size());
  const auto buffer = Allocation::create(data.size() + kWindowSlackBytes, Pages::kSmall);
  ASSERT_TRUE(buffer);
  const uint64_t end = data.size();
  for (const auto& [offset, n] : std::vector<std::pair<uint64_t, uint64_t>>{{0, 0},
                                                                            {0, 1},
                                                                            {0, 4096},
                                                                            {1, 4095},
                                                                            {1, 4096},
                                                                            {4095, 2},
                                                                            {4096, 8192},
                                                                            {32, 100001},
                                                                            {12321, 5},
                                                                            {end - 1, 1},
                                                                            {end - 5000, 5000},
                                                                            {end, 0},
                                                                            {0, end}}) {
    std::vector<std::byte> to(n);
    const auto read = file.read_at(offset, to);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_TRUE(std::ranges::equal(to, std::span(data).subspan(offset, n))) << n << " at " << offset;
    const auto window = file.read_window(offset, n, buffer->bytes());
    ASSERT_TRUE(window) << window.error().message;
    EXPECT_TRUE(std::ranges::equal(*window, std::span(data).subspan(offset, n))) << n << " at " << offset;
  }
  std::vector<std::byte> to(2);
  const auto past = file.read_at(end - 1, to);
  ASSERT_FALSE(past);
  EXPECT_NE(past.error().message.find("2 bytes at"), std::string::npos);
  EXPECT_FALSE(file.read_window(~uint64_t{0}, 2, buffer->bytes()));
}

TEST(DirectFile, AnyRangeOfAFakeDisk) {
  for (const size_t size : {1'300'003, 4096 * 30}) {
    const auto data = counting_blocks(size);
    const auto file = make_direct_file(std::make_unique<FakeDisk>(data), "disk", data.size());
    ASSERT_TRUE(file) << file.error().message;
    reads_any_range(**file, data);
    // One that never gives more than two blocks at a time.
    const auto slow =
        make_direct_file(std::make_unique<FakeDisk>(data, UINT64_MAX, 8192), "disk", data.size());
    ASSERT_TRUE(slow);
    reads_any_range(**slow, data);
  }
  EXPECT_TRUE(make_direct_file(std::make_unique<FakeDisk>(counting_blocks(0)), "empty", 0));
}

TEST(DirectFile, ARefusalIsSaidWhenItIsOpened) {
  const auto data = counting_blocks(100'000);
  for (const uint64_t from : {0, 50'000}) {  // all of it; the end only
    const auto file = make_direct_file(std::make_unique<FakeDisk>(data, from), "disk", data.size());
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().kind, Error::Kind::kUnsupported);
    EXPECT_NE(file.error().message.find("Invalid argument"), std::string::npos);
  }
}

TEST(DirectFile, AFileThatShrank) {
  const auto file = make_direct_file(std::make_unique<FakeDisk>(counting_blocks(60'000)), "disk", 60'000);
  ASSERT_TRUE(file);
  const auto cut = make_direct_file(std::make_unique<FakeDisk>(counting_blocks(50'000)), "disk", 60'000);
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("changed while in use"), std::string::npos);
}

TEST(DirectFile, OnThisDisk) {
  FakeTree tree;
  const auto data = counting_blocks(1'300'003);
  tree.file("data", {reinterpret_cast<const char*>(data.data()), data.size()});
  EXPECT_EQ(open_direct_file(tree.path("none")).error().kind, Error::Kind::kNotFound);
  EXPECT_EQ(open_direct_file(tree.root()).error().kind, Error::Kind::kInvalid);
  const auto file = open_direct_file(tree.path("data"));
  if (!file) {
    EXPECT_EQ(file.error().kind, Error::Kind::kUnsupported);
    GTEST_SKIP() << "no direct reads here: " << file.error().message;
  }
  reads_any_range(**file, data);

  std::filesystem::resize_file(tree.path("data"), 700'001);
  std::vector<std::byte> to(10);
  const auto cut = (*file)->read_at(700'000, to);
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("changed while in use"), std::string::npos);
}

// Several threads with pieces of odd sizes, straight from the blocks.
TEST(DirectFile, Loads) {
  const auto data = counting_blocks(1'300'003);
  const auto file = make_direct_file(std::make_unique<FakeDisk>(data), "disk", data.size());
  ASSERT_TRUE(file);
  std::vector<std::byte> plain(700'000), pieces(600'000);
  std::vector<LoadItem> items(2);
  items[0] = {.file = file->get(), .offset = 3, .bytes = plain.size(), .to = plain.data()};
  items[1] = {.file = file->get(),
              .offset = 700'003,
              .bytes = pieces.size(),
              .transform = [&](std::span<const std::byte> piece, uint64_t at) -> Result<void> {
                std::ranges::copy(piece, pieces.begin() + static_cast<ptrdiff_t>(at));
                return {};
              },
              .unit_bytes = 72};
  const auto loaded = load(items, {.threads = 3, .piece_bytes = 10'000, .chunk_bytes = 50'000});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_TRUE(std::ranges::equal(plain, std::span(data).subspan(3, plain.size())));
  EXPECT_TRUE(std::ranges::equal(pieces, std::span(data).subspan(700'003, pieces.size())));
}

}  // namespace
}  // namespace spillway::sys
