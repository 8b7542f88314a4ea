#include "cli/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace spillway::cli {

Result<void> write_output_file(const std::string& path, std::string_view text) {
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);  // finish_output() tells whether it was taken
    return {};
  }
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    return fail(Error::Kind::kIo, "'{}' cannot be written: it is no regular file, and this would replace it",
                path);
  const std::string partial = path + ".partial";
  std::ofstream out(partial, std::ios::binary);
  if (!out) return fail(Error::Kind::kIo, "'{}' cannot be written: {}", path, std::strerror(errno));
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (out) std::filesystem::rename(partial, path, error);
  if (out && !error) return {};
  const std::string reason = out ? error.message() : "the disk may be full";
  std::filesystem::remove(partial, error);
  return fail(Error::Kind::kIo, "'{}' cannot be written: {}", path, reason);
}

Result<void> check_output_file(const std::string& path, const std::string& model) {
  if (path.empty() || path == "-") return {};
  std::error_code error;
  if (!model.empty() && std::filesystem::equivalent(path, model, error))
    return invalid("'{}' is the model itself, and would be replaced: name another file to write", path);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, error))
    return fail(Error::Kind::kNotFound, "'{}' cannot be written: there is no folder '{}'", path,
                folder.string());
  return {};
}

}  // namespace spillway::cli
