#include "text/merge_table.h"

#include <gtest/gtest.h>

#include <random>

namespace spillway {
namespace text {
namespace {

TEST(MergeTable, KeepsTheFirstRankOfAPairAndGrows) {
  MergeTable table(0);
  for (uint32_t i = 0; i < 10'000; ++i) table.add(i, i * 7, {i, i + 1});
  table.add(5, 35, {0, 0});
  for (uint32_t i = 0; i < 10'000; ++i) {
    const auto* join = table.find(i, i * 7);
    ASSERT_NE(join, nullptr);
    EXPECT_EQ(join->rank, i);
    EXPECT_EQ(join->symbol, i + 1);
  }
  EXPECT_EQ(table.find(1, 8), nullptr);
}

// The definition: find the best pair, join it, start again.
std::vector<uint32_t> by_definition(const MergeTable& table, std::vector<uint32_t> symbols) {
  for (;;) {
    const MergeTable::Join* best = nullptr;
    size_t at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto* join = table.find(symbols[i], symbols[i + 1]);
      if (join && (!best || join->rank < best->rank)) best = join, at = i;
    }
    if (!best) return symbols;
    symbols[at] = best->symbol;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

TEST(MergeTable, BothLoopsGiveWhatTheDefinitionGives) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    // Few symbols and few ranks: many ties, chains and stale pairs.
    MergeTable table(8);
    const uint32_t alphabet = 2 + random() % 4;
    for (uint32_t i = 0; i < 1 + random() % 12; ++i)
      table.add(random() % (alphabet + 3), random() % (alphabet + 3),
                {static_cast<uint32_t>(random() % 6), static_cast<uint32_t>(random() % (alphabet + 3))});
    std::vector<uint32_t> symbols(random() % 40);
    for (uint32_t& symbol : symbols) symbol = random() % alphabet;
    std::vector<uint32_t> scan = symbols, heap = symbols;
    table.merge_by_scan(scan);
    table.merge_by_heap(heap);
    const auto expected = by_definition(table, symbols);
    ASSERT_EQ(scan, expected);
    ASSERT_EQ(heap, expected);
  }
}

}  // namespace
}  // namespace text
}  // namespace spillway
