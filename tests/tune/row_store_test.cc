#include "tune/row_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

namespace spillway::tune {
namespace {

TEST(RowStore, GivesBackRowsInAnyOrder) {
  auto store = RowStore::create(testing::TempDir(), 3);
  ASSERT_TRUE(store) << store.error().message;
  for (int i = 0; i < 100; ++i) {
    const auto x = static_cast<float>(i);
    ASSERT_TRUE(store->append(std::vector{x, x + 0.5f, -x}));
  }
  EXPECT_EQ(store->rows(), 100u);
  std::vector<float> row(3);
  for (const uint64_t index : {0u, 1u, 2u, 99u, 50u, 51u, 0u}) {
    ASSERT_TRUE(store->read(index, row));
    const auto x = static_cast<float>(index);
    EXPECT_EQ(row, (std::vector{x, x + 0.5f, -x})) << index;
  }
}

TEST(RowStore, LeavesNoFileBehind) {
  const std::string folder = testing::TempDir() + "/row_store";
  std::filesystem::create_directories(folder);
  const auto store = RowStore::create(folder, 3);
  ASSERT_TRUE(store);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(RowStore, SaysWhereItCannotWrite) {
  const auto store = RowStore::create("/nowhere", 3);
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message.find("/nowhere"), std::string::npos);
}

}  // namespace
}  // namespace spillway::tune
