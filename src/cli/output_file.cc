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

}  // namespace spillway::cli
