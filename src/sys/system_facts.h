// What this program and this machine are called, for records.
#pragma once

#include <string>

namespace spillway::sys {

// `root` is "" for this machine, or a folder with a made-up proc/ and etc/.

// "Intel(R) Xeon(R) Processor"; of processors that have no name in /proc/cpuinfo (ARM), the numbers there:
// "implementer 0x41 part 0xd0c". Empty where nothing is said.
std::string cpu_name(const std::string& root = "");

// Distribution and kernel: "Debian GNU/Linux 12 (bookworm), Linux 6.18.44".
std::string system_name(const std::string& root = "");

// The build id that the linker put into this program, hexadecimal: another program, another id. Empty where
// it put none.
std::string build_id();

}  // namespace spillway::sys
