#include "sys/file.h"

#include <gtest/gtest.h>

#include <thread>

#include "fake_tree.h"

namespace spillway::sys {
namespace {

TEST(File, ReadsAnyPlaceFromManyThreads) {
  FakeTree tree;
  std::string text;
  for (int i = 0; i < 100000; ++i) text += static_cast<char>(i % 251);
  tree.file("data", text);
  const auto file = open_file(tree.path("data"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ((*file)->size(), text.size());
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (size_t start = 0; start < 4; ++start)
    threads.emplace_back([&, start] {
      for (size_t at = start * 1000; at + 777 < text.size(); at += 4000) {
        std::vector<std::byte> to(777);
        if (!(*file)->read_at(at, to) || std::memcmp(to.data(), text.data() + at, to.size()) != 0) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(File, Errors) {
  FakeTree tree;
  tree.file("data", "0123456789");
  const auto missing = open_file(tree.path("none"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Error::Kind::kNotFound);
  EXPECT_NE(missing.error().message.find("none can't be opened"), std::string::npos);
  const auto folder = open_file(tree.root());
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().kind, Error::Kind::kInvalid);
  EXPECT_FALSE(open_file("/dev/null"));

  const auto file = open_file(tree.path("data"));
  ASSERT_TRUE(file);
  std::vector<std::byte> to(4);
  EXPECT_TRUE((*file)->read_at(6, to));
  EXPECT_TRUE((*file)->read_at(10, std::span(to).first(0)));
  const auto past = (*file)->read_at(7, to);
  ASSERT_FALSE(past);
  EXPECT_NE(past.error().message.find("4 bytes at 7"), std::string::npos);
  EXPECT_FALSE((*file)->read_at(~uint64_t{0}, to));

  // Cut short after it was opened: an error, no short read.
  std::filesystem::resize_file(tree.path("data"), 8);
  const auto cut = (*file)->read_at(6, to);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().kind, Error::Kind::kIo);
  EXPECT_NE(cut.error().message.find("changed while in use"), std::string::npos);
}

TEST(File, TextOfSmallFiles) {
  FakeTree tree;
  tree.file("text", "a\nb\n").file("large", std::string(10000, 'x'));
  EXPECT_EQ(*read_text(tree.path("text")), "a\nb\n");
  EXPECT_EQ(read_text(tree.path("large"))->size(), 10000u);
  EXPECT_EQ(read_text(tree.path("none")).error().kind, Error::Kind::kNotFound);
  EXPECT_TRUE(read_text("/proc/self/status"));  // says that its size is 0
}

TEST(File, MemoryFile) {
  MemoryFile file(std::vector<std::byte>(100, std::byte{7}));
  std::vector<std::byte> to(50);
  EXPECT_TRUE(file.read_at(50, to));
  EXPECT_EQ(to[49], std::byte{7});
  EXPECT_FALSE(file.read_at(51, to));
  file.fail_from(60);
  EXPECT_TRUE(file.read_at(10, to));
  EXPECT_FALSE(file.read_at(11, to));
}

}  // namespace
}  // namespace spillway::sys
