#include "cli/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace spillway::cli {
namespace {

// A folder, a device, a pipe: it is replaced by no file of ours.
Result<void> refuse_special_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error) || std::filesystem::is_regular_file(path, error)) return {};
  return fail(Error::Kind::kIo, "'{}' cannot be written: it is no regular file, and this would replace it",
              path);
}

}  // namespace

Result<void> write_output_file(const std::string& path, std::string_view text) {
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);  // finish_output() tells whether it was taken
    return {};
  }
  SW_TRY(refuse_special_file(path));
  const std::string partial = path + ".partial";
  std::ofstream out(partial, std::ios::binary);
  if (!out) return fail(Error::Kind::kIo, "'{}' cannot be written: {}", path, std::strerror(errno));
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(partial, path, error);
  if (out && !error) return {};
  const std::string reason = out ? error.message() : "the disk may be full";
  std::filesystem::remove(partial, error);
  return fail(Error::Kind::kIo, "'{}' cannot be written: {}", path, reason);
}

bool same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty() || a == "-" || b == "-") return false;
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  return std::filesystem::weakly_canonical(std::filesystem::absolute(a, error), error) ==
         std::filesystem::weakly_canonical(std::filesystem::absolute(b, error), error);
}

Result<void> check_output_file(const std::string& path, const std::vector<std::string>& inputs) {
  if (path.empty() || path == "-") return {};
  for (const std::string& input : inputs)
    if (same_file(path, input))
      return invalid("'{}' is read here, and would be replaced: name another file to write", path);
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, error))
    return fail(Error::Kind::kNotFound, "'{}' cannot be written: there is no folder '{}'", path,
                folder.string());
  return refuse_special_file(path);
}

}  // namespace spillway::cli
