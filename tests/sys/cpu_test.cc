// Processors and quotas from made-up trees. The layouts follow the kernel's documentation: sysfs cputopology,
// proc(5), cgroup-v1 and cgroup-v2.
#include "sys/cpu.h"

#include <gtest/gtest.h>

#include "fake_tree.h"
#include "sys/cgroup.h"

namespace spillway::sys {
namespace {

// Processor `id`, a thread of the core that `siblings` lists.
void add_cpu(FakeTree& tree, uint32_t id, const std::string& siblings) {
  tree.file(fmt::format("sys/devices/system/cpu/cpu{}/topology/core_cpus_list", id), siblings + "\n");
}

void add_plain_cpus(FakeTree& tree, uint32_t count) {
  for (uint32_t id = 0; id < count; ++id) add_cpu(tree, id, fmt::format("{}", id));
  tree.file("sys/devices/system/cpu/online", fmt::format("0-{}\n", count - 1));
}

ThreadChoice choose(const FakeTree& tree) {
  const auto topology = read_cpu_topology(tree.root());
  EXPECT_TRUE(topology) << topology.error().message;
  return choose_threads(*topology);
}

TEST(Cpu, Lists) {
  EXPECT_EQ(*parse_cpu_list("0-3,8,10-11"), (std::vector<uint32_t>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(*parse_cpu_list("5"), std::vector<uint32_t>{5});
  EXPECT_TRUE(parse_cpu_list("")->empty());
  for (const auto* bad : {"a", "3-1", "1-", "-", "0-99999999", "1;2"})
    EXPECT_FALSE(parse_cpu_list(bad)) << bad;
}

TEST(Cpu, Maxima) {
  EXPECT_EQ(parse_cpu_max("200000 100000\n"), 2.0);
  EXPECT_EQ(parse_cpu_max("765000 100000"), 7.65);
  EXPECT_EQ(parse_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_EQ(parse_cpu_max(""), std::nullopt);
  EXPECT_EQ(parse_cpu_max("100000 0"), std::nullopt);
}

TEST(Cpu, HybridWithoutSmt) {
  FakeTree tree;  // 8 performance and 12 efficiency cores
  add_plain_cpus(tree, 20);
  tree.file("sys/devices/cpu_core/cpus", "0-7\n").file("sys/devices/cpu_atom/cpus", "8-19\n");
  const auto choice = choose(tree);
  EXPECT_EQ(choice.threads, 8u);
  EXPECT_EQ(choice.explanation,
            "8 threads: 8 performance cores, one thread each (left out: 12 efficiency cores)");
}

TEST(Cpu, HybridWithSmt) {
  FakeTree tree;  // processors 0-15 are 8 performance cores of two threads
  for (uint32_t id = 0; id < 16; ++id) add_cpu(tree, id, fmt::format("{}-{}", id / 2 * 2, id / 2 * 2 + 1));
  for (uint32_t id = 16; id < 28; ++id) add_cpu(tree, id, fmt::format("{}", id));
  tree.file("sys/devices/system/cpu/online", "0-27\n");
  tree.file("sys/devices/cpu_core/cpus", "0-15\n").file("sys/devices/cpu_atom/cpus", "16-27\n");
  const auto choice = choose(tree);
  EXPECT_EQ(choice.threads, 8u);
  EXPECT_EQ(choice.explanation,
            "8 threads: 8 performance cores, one thread each (left out: 12 efficiency cores and 8 second "
            "threads of a core)");
  // Held on the efficiency cores by its affinity, a process uses those.
  const auto slow = read_cpu_topology(tree.root(), std::vector<uint32_t>{16, 17, 18});
  EXPECT_EQ(choose_threads(*slow).threads, 3u);
}

TEST(Cpu, CapacityAndFrequencyTellKindsApart) {
  FakeTree arm;
  add_plain_cpus(arm, 8);
  for (int id = 0; id < 8; ++id)
    arm.file(fmt::format("sys/devices/system/cpu/cpu{}/cpu_capacity", id), id == 7   ? "1024\n"
                                                                           : id >= 4 ? "900\n"
                                                                                     : "300\n");
  EXPECT_EQ(choose(arm).threads, 4u);

  FakeTree amd;  // favoured cores clock 5 % higher: all alike
  add_plain_cpus(amd, 4);
  for (int id = 0; id < 4; ++id)
    amd.file(fmt::format("sys/devices/system/cpu/cpu{}/cpufreq/cpuinfo_max_freq", id),
             id == 0 ? "5700000\n" : "5400000\n");
  EXPECT_EQ(choose(amd).threads, 4u);
  EXPECT_EQ(choose(amd).explanation, "4 threads: 4 cores, one thread each");

  FakeTree dense;  // and a part with compact cores at 3.3 GHz
  add_plain_cpus(dense, 4);
  for (int id = 0; id < 4; ++id)
    dense.file(fmt::format("sys/devices/system/cpu/cpu{}/cpufreq/cpuinfo_max_freq", id),
               id < 2 ? "5100000\n" : "3300000\n");
  EXPECT_EQ(choose(dense).threads, 2u);
}

TEST(Cpu, SmtWithoutHybrid) {
  FakeTree tree;  // as servers number them: 0-3 are the first threads, 4-7 the second
  for (uint32_t id = 0; id < 8; ++id)
    tree.file(fmt::format("sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", id),
              fmt::format("{},{}\n", id % 4, id % 4 + 4));
  tree.file("sys/devices/system/cpu/online", "0-7\n");
  EXPECT_EQ(choose(tree).threads, 4u);
  // A cpuset of second threads only: still one thread for each core.
  EXPECT_EQ(choose_threads(*read_cpu_topology(tree.root(), std::vector<uint32_t>{5, 6, 7})).threads, 3u);
  EXPECT_EQ(choose_threads(*read_cpu_topology(tree.root(), std::vector<uint32_t>{1, 5})).threads, 1u);
}

TEST(Cpu, QuotaOfVersion2) {
  const auto threads = [](std::string_view cpu_max) {
    FakeTree tree;
    add_plain_cpus(tree, 16);
    add_cgroup2(tree, "/");
    tree.file("sys/fs/cgroup/cpu.max", cpu_max);
    return choose(tree).threads;
  };
  EXPECT_EQ(threads("200000 100000\n"), 2u);
  EXPECT_EQ(threads("765000 100000\n"), 7u);
  EXPECT_EQ(threads("50000 100000\n"), 1u);
  EXPECT_EQ(threads("max 100000\n"), 16u);
  EXPECT_EQ(threads("6400000 100000\n"), 16u);
}

TEST(Cpu, QuotaOfNestedGroupsIsTheLeast) {
  FakeTree tree;
  add_plain_cpus(tree, 16);
  add_cgroup2(tree, "/user.slice/app.scope");
  tree.file("sys/fs/cgroup/cgroup.procs", "");
  tree.file("sys/fs/cgroup/user.slice/cpu.max", "300000 100000\n");
  tree.file("sys/fs/cgroup/user.slice/app.scope/cpu.max", "800000 100000\n");
  const auto choice = choose(tree);
  EXPECT_EQ(choice.threads, 3u);
  EXPECT_EQ(choice.explanation,
            fmt::format("3 threads: 16 cores, one thread each, but a CPU quota of 3.00 ({})",
                        tree.path("sys/fs/cgroup/user.slice/cpu.max")));
  tree.file("sys/fs/cgroup/user.slice/app.scope/cpu.max", "100000 100000\n");
  EXPECT_EQ(choose(tree).threads, 1u);
}

TEST(Cpu, QuotaOfVersion1) {
  FakeTree tree;
  add_plain_cpus(tree, 16);
  tree.file("proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/docker/abc/job\n0::/\n");
  tree.file("proc/self/mountinfo",
            "31 30 0:28 /docker/abc /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
            "32 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  tree.file("sys/fs/cgroup/unified/cgroup.procs", "");
  tree.file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
      .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(choose(tree).threads, 16u);
  tree.file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "400000\n")
      .file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(choose(tree).threads, 4u);
  tree.file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(choose(tree).threads, 2u);
}

TEST(Cpu, GroupFolders) {
  FakeTree tree;  // the host's path, of which the container sees nothing: the mount itself is the container's
                  // group
  add_cgroup2(tree, "/../../system.slice/other");
  tree.file("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_folders(tree.root(), "cpu"), (std::vector<CgroupFolder>{{tree.path("sys/fs/cgroup"), 2}}));
  FakeTree spaces;
  spaces.file("proc/self/cgroup", "0::/a\n")
      .file("proc/self/mountinfo", "30 25 0:26 / /c\\040g rw - cgroup2 cgroup2 rw\n");
  spaces.file("c g/a/cpu.max", "max\n");
  EXPECT_EQ(cgroup_folders(spaces.root(), "cpu"),
            (std::vector<CgroupFolder>{{spaces.path("c g/a"), 2}, {spaces.path("c g"), 2}}));
  EXPECT_TRUE(cgroup_folders(FakeTree().root(), "cpu").empty());
}

TEST(Cpu, NothingKnown) {
  FakeTree tree;
  const auto topology = read_cpu_topology(tree.root());
  ASSERT_FALSE(topology);
  EXPECT_NE(topology.error().message.find("-t"), std::string::npos);
}

TEST(Cpu, ThisMachine) {
  const auto topology = read_cpu_topology();
  ASSERT_TRUE(topology) << topology.error().message;
  const auto choice = choose_threads(*topology);
  EXPECT_GE(choice.threads, 1u);
  EXPECT_LE(choice.threads, topology->usable.size());
}

}  // namespace
}  // namespace spillway::sys
