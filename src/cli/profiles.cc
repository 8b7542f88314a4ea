#include "cli/profiles.h"

#include <cstdlib>
#include <filesystem>

#include "base/limits.h"
#include "cli/model_text.h"
#include "cli/output_file.h"
#include "experts/machines.h"
#include "tune/fingerprint.h"

namespace spillway::cli {
namespace {

std::string profiles_folder() {
  if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && *data != '\0')
    return std::string(data) + "/spillway/profiles";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::string(home) + "/.local/share/spillway/profiles";
  return {};
}

Result<tune::ProfileFile> read_profile(const std::string& path) {
  SW_ASSIGN(const std::string text, read_text_file(path, limits::kMaxProfileBytes));
  auto file = tune::parse_profile_file(text);
  if (!file) return std::unexpected(file.error().in(path));
  return file;
}

// What the system keeps for itself varies by some percent from kernel to kernel.
bool about_equal(uint64_t a, uint64_t b) { return std::max(a, b) - std::min(a, b) <= std::max(a, b) / 16; }

// Only what rates depend on: not the device, and not the system's version.
std::vector<std::string> host_changes(const report::Machine& was) {
  auto now = tune::machine_facts(nullptr);
  if (!now) return {now.error().message};
  if (about_equal(now->memory_bytes, was.memory_bytes)) now->memory_bytes = was.memory_bytes;
  now->system = was.system;
  now->device = was.device;
  now->driver = was.driver;
  now->device_bytes = was.device_bytes;
  return tune::changes(was, *now);
}

}  // namespace

std::string saved_profile_path(const std::string& device_id) {
  std::string name = device_id;
  std::ranges::replace(name, ':', '-');
  const std::string folder = profiles_folder();
  return folder.empty() ? folder : fmt::format("{}/{}.json", folder, name);
}

std::vector<SavedProfile> saved_profiles() {
  std::vector<SavedProfile> all;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(profiles_folder(), ignored)) {
    if (entry.path().extension() != ".json" || !entry.is_regular_file(ignored)) continue;
    if (auto file = read_profile(entry.path().string())) {
      std::vector<std::string> changes = host_changes(file->machine);
      all.push_back({entry.path().string(), *std::move(file), std::move(changes)});
    }
  }
  std::ranges::sort(all, {}, &SavedProfile::path);
  return all;
}

Result<void> write_profile(const std::string& path, const tune::ProfileFile& file) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  return write_output_file(path, tune::to_json(file));
}

Result<experts::HardwareProfile> find_profile(const std::string& flag, const std::string& name_or_path) {
  auto machine = experts::find_machine(name_or_path);
  if (machine) return machine;
  const std::string place = fmt::format("{} {}", flag, name_or_path);
  if (!std::filesystem::exists(name_or_path))
    return fail(Error::Kind::kNotFound, "{}: {}; and there is no such file", place, machine.error().message);
  auto file = read_profile(name_or_path);
  if (!file) return std::unexpected(file.error().in(flag));
  return file->profile;
}

}  // namespace spillway::cli
