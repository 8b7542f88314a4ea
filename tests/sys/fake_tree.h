// A folder with a made-up /proc and /sys, deleted at the end.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace spillway::sys {

class FakeTree {
 public:
  FakeTree() {
    std::string name = (std::filesystem::temp_directory_path() / "spillway-test-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~FakeTree() { std::filesystem::remove_all(root_); }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  const std::string& root() const { return root_; }
  std::string path(std::string_view name) const { return root_ + "/" + std::string(name); }
  FakeTree& file(std::string_view name, std::string_view text) {
    const std::filesystem::path where = path(name);
    std::filesystem::create_directories(where.parent_path());
    std::ofstream(where, std::ios::binary) << text;
    return *this;
  }

 private:
  std::string root_;
};

// A version-2 hierarchy of control groups in which this process is in `group`.
inline void add_cgroup2(FakeTree& tree, std::string_view group) {
  tree.file("proc/self/cgroup", "0::" + std::string(group) + "\n");
  tree.file(
      "proc/self/mountinfo",
      "25 30 0:23 / /proc rw - proc proc rw\n30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n");
}

}  // namespace spillway::sys
