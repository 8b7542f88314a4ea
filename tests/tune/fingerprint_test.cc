#include "tune/fingerprint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/run_engine.h"

namespace spillway::tune {
namespace {

using test_support::ModelFile;
using test_support::ModelSpec;

report::Model facts_of(const std::string& path) {
  auto facts = model_facts(path);
  EXPECT_TRUE(facts) << facts.error().message;
  return facts.value_or(report::Model{});
}

// A copy of the file with one byte changed, `at` bytes from its start.
class Changed {
 public:
  Changed(const std::string& path, uint64_t at) : path_(path + ".changed") {
    std::filesystem::copy_file(path, path_, std::filesystem::copy_options::overwrite_existing);
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 1));
  }
  ~Changed() { std::filesystem::remove(path_); }
  Changed(const Changed&) = delete;
  Changed& operator=(const Changed&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Fingerprint, AModelIsItsContentAndNotItsName) {
  const ModelFile file(ModelSpec{}), same(ModelSpec{}), other(ModelSpec{.seed = 2});
  const report::Model facts = facts_of(file.path());
  EXPECT_EQ(facts.content.size(), 32);
  EXPECT_EQ(facts.bytes, std::filesystem::file_size(file.path()));
  EXPECT_EQ(facts.file, std::filesystem::path(file.path()).filename());
  EXPECT_TRUE(changes(facts, facts_of(same.path())).empty());
  const auto found = changes(facts, facts_of(other.path()));
  ASSERT_EQ(found.size(), 1);
  EXPECT_NE(found[0].find(facts.content), std::string::npos);
  EXPECT_FALSE(model_facts("/nowhere/at-all.gguf"));
}

TEST(Fingerprint, HeaderAndSamplesOfEachTensorAreCovered) {
  const ModelFile file(ModelSpec{});
  const std::string content = facts_of(file.path()).content;
  const auto files = engine::open_model_files(file.path());
  ASSERT_TRUE(files);
  // Inside the value of a number in the header, and at both ends and in the middle of every tensor.
  for (const gguf::TensorInfo& tensor : files->model.tensors())
    for (const uint64_t at :
         {tensor.offset, tensor.offset + tensor.bytes / 2, tensor.offset + tensor.bytes - 1}) {
      const Changed changed(file.path(), at);
      EXPECT_NE(facts_of(changed.path()).content, content) << tensor.name << " " << at - tensor.offset;
    }
  std::ofstream(file.path(), std::ios::binary | std::ios::app) << "more";
  EXPECT_NE(facts_of(file.path()).content, content);
}

TEST(Fingerprint, TheHeaderIsCovered) {
  test_support::MadeModel model = test_support::make_model(ModelSpec{});
  const ModelFile before(model);
  model.metadata.set("general.name", gguf::Value(std::string("renamed")));
  const ModelFile after(model);
  EXPECT_NE(facts_of(before.path()).content, facts_of(after.path()).content);
  EXPECT_EQ(facts_of(after.path()).name, "renamed");
}

TEST(Fingerprint, ChangesNameWhatChanged) {
  const report::Machine was{.cpu = "a",
                            .cores = 8,
                            .memory_bytes = 16u << 20,
                            .device = "gpu",
                            .driver = "1",
                            .device_bytes = 8u << 20,
                            .system = "s"};
  EXPECT_TRUE(changes(was, was).empty());
  report::Machine is = was;
  is.driver = "2";
  EXPECT_EQ(changes(was, is), std::vector<std::string>{"its driver was '1', now it is '2'"});
  is = {.device = "none"};
  EXPECT_EQ(changes(was, is).size(), 7);
  const report::Build one{"1", "gcc", "Release"}, two{"1", "gcc", "Debug"};
  EXPECT_EQ(changes(one, two),
            std::vector<std::string>{"its kind of build was 'Release', now it is 'Debug'"});
}

TEST(Fingerprint, ThisProgramAndMachineHaveNames) {
  const report::Build build = build_facts();
  EXPECT_NE(build.version.find("build "), std::string::npos);
  EXPECT_FALSE(build.compiler.empty());
  EXPECT_FALSE(build.type.empty());
  EXPECT_TRUE(changes(build, build_facts()).empty());
  const auto machine = machine_facts(nullptr);
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_GE(machine->cores, 1);
  EXPECT_GT(machine->memory_bytes, 0);
  EXPECT_EQ(machine->device, "none");
  const backend::DeviceInfo info{.name = "Some GPU", .driver = "drv 5", .memory_bytes = 7};
  const auto with = machine_facts(&info);
  ASSERT_TRUE(with);
  EXPECT_EQ(changes(*machine, *with).size(), 2);  // 7 bytes are 0 MiB
}

}  // namespace
}  // namespace spillway::tune
