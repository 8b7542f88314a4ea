#include "sys/memory.h"

#include <gtest/gtest.h>

#include "fake_tree.h"

namespace spillway::sys {
namespace {

TEST(Memory, MapsAFile) {
  FakeTree tree;
  tree.file("data", "0123456789").file("empty", "");
  auto mapped = MappedFile::open(tree.path("data"));
  ASSERT_TRUE(mapped) << mapped.error().message;
  const MappedFile moved = *std::move(mapped);
  ASSERT_EQ(moved.bytes().size(), 10u);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "0123456789", 10), 0);
  for (const auto advice : {MappedFile::Advice::kSequential, MappedFile::Advice::kRandom,
                            MappedFile::Advice::kWillNeed, MappedFile::Advice::kDontNeed}) {
    moved.advise(advice);
    moved.advise(advice, 5, 100);
    moved.advise(advice, 100, 1);
  }
  EXPECT_EQ(moved.bytes()[9], std::byte{'9'});
  EXPECT_EQ(MappedFile::open(tree.path("empty"))->bytes().size(), 0u);
  EXPECT_EQ(MappedFile::open(tree.path("none")).error().kind, Error::Kind::kNotFound);
  EXPECT_FALSE(MappedFile::open(tree.root()));
}

TEST(Memory, Allocates) {
  for (const Pages pages : {Pages::kSmall, Pages::kPreferHuge}) {
    for (const uint64_t bytes : {uint64_t{1}, uint64_t{5000}, kHugePageBytes, 3 * kHugePageBytes + 1}) {
      auto made = Allocation::create(bytes, pages);
      ASSERT_TRUE(made) << made.error().message;
      const Allocation memory = *std::move(made);
      EXPECT_GE(memory.size(), bytes);
      const bool huge = pages == Pages::kPreferHuge && bytes >= kHugePageBytes;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % (huge ? kHugePageBytes : 64), 0u);
      for (const std::byte byte : memory.bytes()) ASSERT_EQ(byte, std::byte{0});
      memory.bytes().front() = memory.bytes().back() = std::byte{1};
      EXPECT_TRUE(huge || !memory.huge_pages_advised());
      EXPECT_FALSE(memory.pages_text().empty());
    }
  }
}

TEST(Memory, RefusalsSayHowMuch) {
  const auto too_much = Allocation::create(uint64_t{1} << 62, Pages::kPreferHuge);
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().kind, Error::Kind::kNoMemory);
  EXPECT_NE(too_much.error().message.find("4611686018427387904 bytes"), std::string::npos);
  EXPECT_FALSE(Allocation::create(~uint64_t{0}, Pages::kSmall));
}

TEST(Memory, CountsHugePages) {
  // Two mappings, as proc_pid_smaps(5) shows them.
  const char* const smaps =
      "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \n"
      "Size:               4096 kB\n"
      "AnonHugePages:      2048 kB\n"
      "VmFlags: rd wr mr mw me ac hg\n"
      "7f0000600000-7f0000800000 rw-p 00000000 00:00 0                          [anon]\n"
      "AnonHugePages:      1024 kB\n";
  EXPECT_EQ(huge_bytes_in(smaps, 0x7f0000000000, 0x7f0000400000), 2048u << 10);
  EXPECT_EQ(huge_bytes_in(smaps, 0x7f0000000000, 0x7f0000700000), 3072u << 10);
  EXPECT_EQ(huge_bytes_in(smaps, 0x7f0000400000, 0x7f0000600000), 0u);
  EXPECT_EQ(huge_bytes_in("", 0, ~uint64_t{0}), 0u);
}

TEST(Memory, Locks) {
  auto memory = Allocation::create(4096, Pages::kSmall);
  ASSERT_TRUE(memory);
  const auto locked = lock_memory(memory->bytes());
  if (!locked) GTEST_SKIP() << "this machine locks no memory: " << locked.error().message;
  unlock_memory(memory->bytes());
}

TEST(Memory, LockRefusalsNameTheLimit) {
  const std::string limited = lock_refusal(uint64_t{10} << 20, 8 << 20, "Cannot allocate memory");
  EXPECT_NE(limited.find("10 MiB"), std::string::npos) << limited;
  EXPECT_NE(limited.find("limit for locked memory is 8192 KiB"), std::string::npos) << limited;
  EXPECT_NE(limited.find("ulimit -l"), std::string::npos) << limited;
  const std::string other = lock_refusal(uint64_t{10} << 20, UINT64_MAX, "Cannot allocate memory");
  EXPECT_NE(other.find("Cannot allocate memory"), std::string::npos) << other;
  EXPECT_EQ(other.find("ulimit"), std::string::npos) << other;
}

}  // namespace
}  // namespace spillway::sys
