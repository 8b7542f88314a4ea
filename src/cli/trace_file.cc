#include "cli/trace_file.h"

#include <filesystem>

#include "base/limits.h"
#include "cli/common.h"
#include "cli/model_text.h"

namespace spillway::cli {

Result<experts::Trace> read_trace(const std::string& path) {
  if (!std::filesystem::is_regular_file(path) && std::filesystem::exists(path))
    return fail(Error::Kind::kIo, "'{}' cannot be read: it is no regular file", path);
  SW_ASSIGN(const std::string bytes, read_text_file(path, limits::kMaxTraceBytes));
  auto trace = experts::parse_trace(std::as_bytes(std::span(bytes)));
  if (!trace) return std::unexpected(trace.error().in(path));
  if (!trace->whole) note(fmt::format("'{}' breaks off; what is there is used", path));
  return trace;
}

}  // namespace spillway::cli
