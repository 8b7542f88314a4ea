#include "sys/usage.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "fake_tree.h"
#include "sys/memory.h"
#include "sys/system_facts.h"

namespace spillway::sys {
namespace {

TEST(Usage, CountsBusyTicksOfEachProcessorAndThrottling) {
  FakeTree tree;
  // user nice system idle iowait irq softirq steal guest guest_nice
  tree.file("proc/stat",
            "cpu  999 999 999 999 999 999 999 999 0 0\ncpu0 100 10 20 5000 77 1 2 30 50 0\n"
            "cpu1 200 0 0 5000 0 0 0 0 0 0\nintr 5\n");
  tree.file("proc/self/cgroup", "0::/a/b\n");
  tree.file("proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  tree.file("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 5\nthrottled_usec 1500000\n");
  tree.file("sys/fs/cgroup/a/cpu.stat", "nr_throttled 3\nthrottled_usec 250000\n");
  const Usage usage = read_usage(tree.root());
  EXPECT_DOUBLE_EQ(usage.machine_cpu_s, 363.0 / static_cast<double>(sysconf(_SC_CLK_TCK)));
  EXPECT_DOUBLE_EQ(usage.throttled_s, 1.75);
}

TEST(Usage, OfVersion1IsInNanoseconds) {
  FakeTree tree;
  tree.file("proc/self/cgroup", "4:cpu,cpuacct:/a\n");
  tree.file("proc/self/mountinfo", "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  tree.file("sys/fs/cgroup/cpu/a/cpu.stat", "nr_periods 3\nthrottled_time 2000000000\n");
  EXPECT_DOUBLE_EQ(read_usage(tree.root()).throttled_s, 2);
}

TEST(Usage, NothingToReadIsNothing) {
  FakeTree tree;
  const Usage usage = read_usage(tree.root());
  EXPECT_EQ(usage.machine_cpu_s, 0);
  EXPECT_EQ(usage.throttled_s, 0);
  EXPECT_EQ(peak_memory_bytes(tree.root()), 0);
  tree.file("proc/stat", "cpu0\ncpu1 x y z\ncpu\n").file("proc/self/status", "VmHWM:\nVmHWM: 4 kB\n");
  EXPECT_EQ(read_usage(tree.root()).machine_cpu_s, 0);
}

TEST(Usage, WorkIsSeenOnThisMachine) {
  const Usage before = read_usage();
  volatile uint64_t sum = 0;
  while (read_usage().process_cpu_s < before.process_cpu_s + 0.1)
    for (int i = 0; i < 1'000'000; ++i) sum = sum + static_cast<uint64_t>(i);
  const Usage after = read_usage();
  EXPECT_GE(after.machine_cpu_s - before.machine_cpu_s, 0.05);
  EXPECT_GE(after.throttled_s, before.throttled_s);
}

TEST(Usage, PeakMemoryStartsAnewWhereTheSystemAllows) {
  constexpr size_t kBytes = size_t{64} << 20;
  {
    // Given back at once, which a heap need not do.
    Allocation memory = Allocation::create(kBytes, Pages::kSmall).value();
    std::ranges::fill(memory.bytes(), std::byte{1});
    EXPECT_GE(peak_memory_bytes(), kBytes);
  }
  const uint64_t with = peak_memory_bytes();
  if (!reset_peak_memory()) GTEST_SKIP() << "this system does not reset the peak";
  EXPECT_LE(peak_memory_bytes(), with - kBytes / 2);
}

TEST(SystemFacts, NamesComeFromTheSystem) {
  FakeTree tree;
  tree.file("proc/cpuinfo",
            "processor : 0\nmodel name\t: Some CPU @ 3 GHz\nprocessor : 1\nmodel name : Other\n");
  tree.file("etc/os-release", "NAME=x\nPRETTY_NAME=\"Some Linux 1\"\n");
  EXPECT_EQ(cpu_name(tree.root()), "Some CPU @ 3 GHz");
  EXPECT_TRUE(system_name(tree.root()).starts_with("Some Linux 1, "));
  tree.file("proc/cpuinfo", "CPU implementer : 0x41\nCPU part : 0xd0c\n");
  EXPECT_EQ(cpu_name(tree.root()), "implementer 0x41 part 0xd0c");
  tree.file("proc/cpuinfo", "");
  EXPECT_EQ(cpu_name(tree.root()), "");
}

TEST(SystemFacts, TheProgramHasABuildId) {
  const std::string id = build_id();
  EXPECT_GE(id.size(), 16);
  EXPECT_EQ(id, build_id());
}

}  // namespace
}  // namespace spillway::sys
