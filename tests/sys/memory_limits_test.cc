#include "sys/memory_limits.h"

#include <gtest/gtest.h>

#include "fake_tree.h"

namespace spillway::sys {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

void add_meminfo(FakeTree& tree) {  // 16 GiB, 12 of them available
  tree.file("proc/meminfo",
            "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:   12582912 kB\n");
}

void add_group(FakeTree& tree, std::string_view folder, std::string_view max, uint64_t current,
               uint64_t file_pages) {
  const std::string path = fmt::format("sys/fs/cgroup{}/", folder);
  tree.file(path + "memory.max", max).file(path + "memory.current", fmt::format("{}\n", current));
  tree.file(path + "memory.stat",
            fmt::format("anon 1\nfile {}\ninactive_file {}\nactive_file 0\n", file_pages, file_pages));
}

TEST(MemoryLimits, MachineOnly) {
  FakeTree tree;
  add_meminfo(tree);
  const auto limits = read_memory_limits(tree.root());
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->total_bytes, 16 * kGiB);
  EXPECT_EQ(limits->available_bytes, 12 * kGiB);
  EXPECT_EQ(limits->group_limit_bytes, std::nullopt);
  EXPECT_EQ(limits->explanation, "available: 12.0 of 16.0 GiB (MemAvailable)");
}

TEST(MemoryLimits, GroupsLessWhatTheyHold) {
  FakeTree tree;
  add_meminfo(tree);
  add_cgroup2(tree, "/job");
  add_group(tree, "", "max\n", 5 * kGiB, 0);
  add_group(tree, "/job", fmt::format("{}\n", 8 * kGiB), 6 * kGiB, 5 * kGiB);
  const auto limits = read_memory_limits(tree.root());
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->total_bytes, 8 * kGiB);
  EXPECT_EQ(limits->available_bytes, 7 * kGiB);  // 1 GiB is held, the rest of the use is file pages
  EXPECT_EQ(limits->group_limit_bytes, 8 * kGiB);
  // An outer group that is tighter.
  add_group(tree, "", fmt::format("{}\n", 4 * kGiB), 2 * kGiB, 0);
  EXPECT_EQ(read_memory_limits(tree.root())->available_bytes, 2 * kGiB);
  EXPECT_EQ(read_memory_limits(tree.root())->group_limit_bytes, 4 * kGiB);
  // More in use than allowed.
  add_group(tree, "/job", fmt::format("{}\n", 1 * kGiB), 2 * kGiB, 0);
  EXPECT_EQ(read_memory_limits(tree.root())->available_bytes, 0u);
  // memory.high slows a group down before memory.max is reached.
  tree.file("sys/fs/cgroup/job/memory.high", "536870912\n");
  EXPECT_EQ(read_memory_limits(tree.root())->group_limit_bytes, kGiB / 2);
}

TEST(MemoryLimits, Version1) {
  FakeTree tree;
  add_meminfo(tree);
  tree.file("proc/self/cgroup", "4:memory:/job\n0::/\n");
  tree.file("proc/self/mountinfo", "34 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  const std::string folder = "sys/fs/cgroup/memory/job/";
  tree.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  tree.file("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n");
  tree.file(folder + "memory.limit_in_bytes", fmt::format("{}\n", 3 * kGiB));
  tree.file(folder + "memory.usage_in_bytes", fmt::format("{}\n", 2 * kGiB));
  tree.file(folder + "memory.stat",
            fmt::format("inactive_file 1\ntotal_inactive_file {}\ntotal_active_file {}\n", kGiB, kGiB / 2));
  const auto limits = read_memory_limits(tree.root());
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->group_limit_bytes, 3 * kGiB);
  EXPECT_EQ(limits->available_bytes, kGiB * 5 / 2);
}

TEST(MemoryLimits, NothingKnown) {
  FakeTree tree;
  EXPECT_FALSE(read_memory_limits(tree.root()));
  tree.file("proc/meminfo", "MemTotal: 5 kB\n");
  EXPECT_FALSE(read_memory_limits(tree.root()));
}

TEST(MemoryLimits, ThisMachine) {
  const auto limits = read_memory_limits();
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_GT(limits->available_bytes, 0u);
  EXPECT_LE(limits->available_bytes, limits->total_bytes);
}

}  // namespace
}  // namespace spillway::sys
