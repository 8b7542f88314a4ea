// What this process and the machine have used so far: differences of two readings say what happened between.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::sys {

struct Usage {
  double process_cpu_s = 0;  // of this process, all threads, user and system
  double machine_cpu_s = 0;  // of the processors that this process may use: busy, whoever did it, stolen by
                             // other guests of the same host included; resolution 10 ms
  double throttled_s = 0;    // the process was kept from running by the CPU quota of its control groups
};

// What can't be read is 0. `root` is "" for this machine, or a folder with a made-up proc/ and sys/.
Usage read_usage(const std::string& root = "");

// The most physical memory that this process has had at once, in bytes, file pages that it has mapped
// included; since reset_peak_memory(), where that says true (a system may not offer it), else since its
// start.
uint64_t peak_memory_bytes(const std::string& root = "");
bool reset_peak_memory();

}  // namespace spillway::sys
