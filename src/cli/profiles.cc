#include "cli/profiles.h"

#include <cstdlib>
#include <filesystem>

#include "base/limits.h"
#include "cli/common.h"
#include "cli/model_text.h"
#include "cli/output_file.h"
#include "experts/machines.h"
#include "tune/fingerprint.h"

namespace spillway::cli {
namespace {

std::string profiles_folder() {
  if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && *data == '/')
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

std::vector<std::string> profile_paths() {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(profiles_folder(), ignored))
    if (entry.path().extension() == ".json" && entry.is_regular_file(ignored))
      paths.push_back(entry.path().string());
  return paths;
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
  for (const std::string& path : profile_paths())
    if (auto file = read_profile(path)) {
      std::vector<std::string> changes = host_changes(file->machine);
      all.push_back({path, *std::move(file), std::move(changes)});
    }
  std::ranges::sort(all, {}, &SavedProfile::path);
  return all;
}

std::vector<std::string> unreadable_profiles() {
  std::vector<std::string> sentences;
  for (const std::string& path : profile_paths())
    if (const auto file = read_profile(path); !file)
      sentences.push_back(fmt::format(
          "the hardware profile is passed over ({}); 'spillway probe' writes it anew", file.error().message));
  return sentences;
}

Result<void> write_profile(const std::string& path, const tune::ProfileFile& file) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  return write_output_file(path, tune::to_json(file));
}

namespace {

Result<tune::ProfileFile> profile_of_this_machine(const std::string& flag) {
  const SavedProfile* best = nullptr;
  const std::vector<SavedProfile> all = saved_profiles();
  for (const SavedProfile& saved : all)
    if (best == nullptr || (best->file.machine.device_bytes == 0 && saved.file.machine.device_bytes > 0))
      best = &saved;
  if (best == nullptr)
    return fail(Error::Kind::kNotFound,
                "{} this: nothing is known of this machine yet; 'spillway probe' measures it", flag);
  if (!best->changes.empty())
    note(fmt::format(
        "{}: the machine has changed since it was measured ({}); 'spillway probe' measures it again",
        best->path, fmt::join(best->changes, "; ")));
  return best->file;
}

}  // namespace

Result<tune::ProfileFile> find_measured(const std::string& flag, const std::string& this_or_path) {
  if (this_or_path == "this") return profile_of_this_machine(flag);
  if (!std::filesystem::exists(this_or_path)) {
    std::string names;
    for (const experts::HardwareProfile& known : experts::known_machines()) names += known.name + ", ";
    return fail(
        Error::Kind::kNotFound,
        "{} {}: there is no such file; known machines are {}and 'this', which 'spillway probe' measures",
        flag, this_or_path, names);
  }
  auto file = read_profile(this_or_path);
  if (!file) return std::unexpected(file.error().in(flag));
  if (file->profile.name.empty()) file->profile.name = std::filesystem::path(this_or_path).stem().string();
  return file;
}

Result<experts::HardwareProfile> find_profile(const std::string& flag, const std::string& name) {
  if (auto known = experts::find_machine(name)) return known;
  SW_ASSIGN(tune::ProfileFile file, find_measured(flag, name));
  return std::move(file.profile);
}

}  // namespace spillway::cli
