// Result<T>: a value or an Error. Library rooms report every fault of input, file, device or memory this way;
// they neither print, exit nor throw across a room. A bug is an assertion (base/assert.h).
#pragma once

#include <fmt/format.h>

#include <expected>
#include <string>
#include <utility>

namespace spillway {

// What went wrong, for a person: the place (file, key, tensor), the value found, the value needed, the
// remedy.
struct Error {
  enum class Kind {
    kInvalid,      // the input is damaged or contradicts itself
    kUnsupported,  // the input is fine, this program can't handle it
    kNotFound,     // a file, key or device isn't there
    kNoMemory,     // it does not fit
    kIo,           // the operating system refused
    kCancelled,    // the caller asked to stop
    kRefused,      // a rule that came with the model forbids the request: its chat template raised
    kDeviceLost,   // the device failed or is gone; what it held is lost
  };
  Kind kind = Kind::kInvalid;
  std::string message;

  // The same error with `where` put before the message: "model.gguf: key ...".
  Error in(std::string_view where) const { return {kind, fmt::format("{}: {}", where, message)}; }
};

template <class T>
using Result = std::expected<T, Error>;

// A ready-made failure: `return fail(Error::Kind::kInvalid, "key '{}' has type {}", key, type);`
template <class... Args>
std::unexpected<Error> fail(Error::Kind kind, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{kind, fmt::format(format, std::forward<Args>(args)...)});
}

template <class... Args>
std::unexpected<Error> invalid(fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{Error::Kind::kInvalid, fmt::format(format, std::forward<Args>(args)...)});
}

template <class... Args>
std::unexpected<Error> unsupported(fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{Error::Kind::kUnsupported, fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace spillway

// Returns the error of `expression` (a Result) from the enclosing function, else goes on.
#define SW_TRY(expression)                                        \
  do {                                                            \
    if (auto sw_result_ = (expression); !sw_result_) [[unlikely]] \
      return std::unexpected(std::move(sw_result_).error());      \
  } while (false)

#define SW_CONCAT_INNER(a, b) a##b
#define SW_CONCAT(a, b) SW_CONCAT_INNER(a, b)
#define SW_ASSIGN_IMPL(result, declaration, expression) \
  auto result = (expression);                           \
  if (!result) [[unlikely]]                             \
    return std::unexpected(std::move(result).error());  \
  declaration = std::move(*result)

// `SW_ASSIGN(auto value, function());` declares `value` from a Result, or returns its error.
#define SW_ASSIGN(declaration, expression) \
  SW_ASSIGN_IMPL(SW_CONCAT(sw_result_, __LINE__), declaration, expression)
