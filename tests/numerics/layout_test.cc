#include "numerics/layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "all_types.h"

namespace spillway::numerics {
namespace {

std::vector<std::byte> random_bytes(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

TEST(Layout, FieldsCoverTheBlock) {
  for (const TensorType type : kAllTypes) {
    uint32_t at = 0;
    for (const Field& field : block_fields(type)) {
      EXPECT_EQ(field.offset, at) << info(type).name;
      EXPECT_TRUE(field.size % 4 == 0 || field.size <= 2) << info(type).name;
      at += field.size;
    }
    EXPECT_EQ(at, info(type).block_bytes) << info(type).name;
  }
}

TEST(Layout, RoundTrip) {
  for (const TensorType type : kAllTypes) {
    for (const uint64_t rows : {1u, 15u, 16u, 17u, 40u}) {
      const uint64_t cols = 3 * info(type).block_length;
      const std::vector<std::byte> file =
          random_bytes(rows * row_bytes(type, cols), static_cast<uint32_t>(rows));
      std::vector<std::byte> groups(interleaved_bytes(type, rows, cols), std::byte{0xee});
      EXPECT_EQ(groups.size(), (rows + 15) / 16 * 16 * row_bytes(type, cols));
      interleave(type, rows, cols, file.data(), groups.data());
      std::vector<std::byte> back(file.size(), std::byte{0xee});
      deinterleave(type, rows, cols, groups.data(), back.data());
      ASSERT_EQ(back, file) << info(type).name << " " << rows;
      // The padding is zero: as many bytes differ from zero as in the file.
      const auto nonzero = [](std::byte b) { return b != std::byte{0}; };
      ASSERT_EQ(std::count_if(groups.begin(), groups.end(), nonzero),
                std::count_if(file.begin(), file.end(), nonzero));
    }
  }
}

// Q4_K by hand: row 5 of the second group, second block column. d is an item of 2 bytes at the record's
// start, scales are words from 16 * 4, qs from 16 * 16.
TEST(Layout, HandExampleQ4K) {
  const uint64_t rows = 32, cols = 512;
  std::vector<std::byte> file(rows * 288);
  const size_t block = 21 * 288 + 144;       // row 21, block 1
  file[block + 1] = std::byte{0x11};         // d, second byte
  file[block + 2] = std::byte{0x22};         // dmin, first byte
  file[block + 4 + 7] = std::byte{0x33};     // scales: word 1, byte 3
  file[block + 16 + 127] = std::byte{0x44};  // qs: word 31, byte 3
  std::vector<std::byte> groups(interleaved_bytes(TensorType::kQ4_K, rows, cols));
  interleave(TensorType::kQ4_K, rows, cols, file.data(), groups.data());
  const std::byte* record = groups.data() + 16 * 288 + 16 * 144;
  EXPECT_EQ(record[5 * 2 + 1], std::byte{0x11});
  EXPECT_EQ(record[32 + 5 * 2], std::byte{0x22});
  EXPECT_EQ(record[64 + 64 + 5 * 4 + 3], std::byte{0x33});
  EXPECT_EQ(record[256 + 31 * 64 + 5 * 4 + 3], std::byte{0x44});
  EXPECT_EQ(record + layout::item_at(layout::q4_k::kDmin, 2, 5), record + 42);
  EXPECT_EQ(record + layout::word_at(layout::q4_k::kQs, 31, 5), record + 256 + 31 * 64 + 20);
}

TEST(Layout, HandExampleF16) {
  std::vector<std::byte> file(2 * 3 * 2);
  file[(1 * 3 + 2) * 2] = std::byte{7};  // row 1, column 2
  std::vector<std::byte> groups(interleaved_bytes(TensorType::kF16, 2, 3));
  interleave(TensorType::kF16, 2, 3, file.data(), groups.data());
  EXPECT_EQ(groups[(2 * 16 + 1) * 2], std::byte{7});
}

}  // namespace
}  // namespace spillway::numerics
