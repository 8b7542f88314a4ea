// A time as text by C's strftime conversions, in English whatever the process's locale.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace spillway {
namespace jinja {

// Unknown conversions stay as they are. %Z and %z are empty: the time is local, without a zone.
std::string format_time(std::chrono::local_seconds time, std::string_view format);

}  // namespace jinja
}  // namespace spillway
