#include "sys/load.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fake_tree.h"
#include "sys/clock.h"

namespace spillway::sys {
namespace {

std::vector<std::byte> counting(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

TEST(Load, PlainAndTransformedItemsFromTwoFiles) {
  const auto a = counting(100000), b = counting(77777);
  const MemoryFile file_a(a), file_b(b);
  for (const uint32_t threads : {1u, 2u, 5u}) {
    std::vector<std::byte> plain(90000), turned(70001), none(1);
    // Reverses every unit of 30 bytes; the last one has 11.
    const auto reverse = [&](std::span<const std::byte> piece, uint64_t at) -> Result<void> {
      EXPECT_EQ(at % 30, 0u);
      EXPECT_TRUE(piece.size() % 30 == 0 || at + piece.size() == turned.size());
      for (size_t i = 0; i < piece.size(); i += 30) {
        const auto unit = piece.subspan(i, std::min<size_t>(30, piece.size() - i));
        std::ranges::reverse_copy(unit, turned.begin() + static_cast<ptrdiff_t>(at + i));
      }
      return {};
    };
    std::vector<LoadItem> items(3);
    items[0] = {.file = &file_a, .offset = 10000, .bytes = plain.size(), .to = plain.data()};
    items[1] = {
        .file = &file_b, .offset = 7000, .bytes = turned.size(), .transform = reverse, .unit_bytes = 30};
    items[2] = {.file = &file_b, .offset = 0, .bytes = 0, .to = none.data()};
    std::vector<uint64_t> progress;
    LoadOptions options{.threads = threads, .piece_bytes = 1000, .chunk_bytes = 4000};
    options.progress = [&](uint64_t done) { progress.push_back(done); };
    const auto result = load(items, options);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(std::ranges::equal(plain, std::span(a).subspan(10000, plain.size())));
    for (size_t i = 0; i < turned.size(); i += 30) {
      const size_t n = std::min<size_t>(30, turned.size() - i);
      for (size_t k = 0; k < n; ++k) ASSERT_EQ(turned[i + k], b[7000 + i + n - 1 - k]);
    }
    ASSERT_FALSE(progress.empty());
    EXPECT_TRUE(std::ranges::is_sorted(progress));
    EXPECT_EQ(progress.back(), plain.size() + turned.size());
  }
}

TEST(Load, UnitsLargerThanAPiece) {
  const auto data = counting(50000);
  const MemoryFile file(data);
  std::atomic<int> calls = 0;
  std::vector<LoadItem> items(1);
  items[0] = {.file = &file,
              .offset = 0,
              .bytes = 50000,
              .transform = [&](auto piece, uint64_t at) -> Result<void> {
                ++calls;
                EXPECT_EQ(piece.size(), at == 40000 ? 10000u : 20000u);
                return {};
              },
              .unit_bytes = 20000};
  EXPECT_TRUE(load(items, {.threads = 2, .piece_bytes = 100, .chunk_bytes = 1000}));
  EXPECT_EQ(calls, 3);
}

TEST(Load, ErrorsEndIt) {
  const auto data = counting(100000);
  MemoryFile file(data, "broken");
  file.fail_from(50000);
  std::vector<std::byte> to(100000);
  std::vector<LoadItem> items(1);
  items[0] = {.file = &file, .offset = 0, .bytes = 100000, .to = to.data()};
  const auto broken = load(items, {.threads = 3, .chunk_bytes = 1000});
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find("broken"), std::string::npos);

  items[0].to = nullptr;
  items[0].transform = [](auto, uint64_t at) -> Result<void> {
    if (at >= 10000) return invalid("block {} is NaN", at);
    return {};
  };
  const auto refused = load(items, {.threads = 2, .piece_bytes = 1000, .chunk_bytes = 1000});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("is NaN"), std::string::npos);
}

TEST(Load, CanBeCancelled) {
  const auto data = counting(1000000);
  const MemoryFile file(data);
  std::vector<std::byte> to(1000000);
  std::atomic<bool> cancel = false;
  std::vector<LoadItem> items(1);
  items[0] = {.file = &file, .offset = 0, .bytes = 1000000, .to = to.data()};
  LoadOptions options{.threads = 2, .chunk_bytes = 1000};
  options.cancel = &cancel;
  uint64_t last = 0;
  options.progress = [&](uint64_t done) {
    last = done;
    if (done >= 5000) cancel = true;
  };
  const auto result = load(items, options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Error::Kind::kCancelled);
  EXPECT_LE(last, 8000u);
}

TEST(Load, NothingToLoad) { EXPECT_TRUE(load({}, {})); }

TEST(Clock, FakeAndReal) {
  FakeClock fake;
  const uint64_t start = fake.now_ns();
  fake.advance_ns(1500);
  EXPECT_EQ(fake.now_ns(), start + 1500);
  const MonotonicClock real;
  const uint64_t first = real.now_ns();
  EXPECT_GE(real.now_ns(), first);
}

}  // namespace
}  // namespace spillway::sys
