#include "sys/affinity.h"

#include <sched.h>

#include <cerrno>
#include <cstddef>

namespace spillway::sys {

std::vector<uint32_t> allowed_processors() {
  // The kernel refuses a set that is smaller than its own; CPU_SETSIZE (1,024) isn't enough everywhere.
  for (size_t count = 1024; count <= size_t{1} << 16; count *= 4) {
    cpu_set_t* set = CPU_ALLOC(count);
    if (!set) return {};
    const size_t bytes = CPU_ALLOC_SIZE(count);
    const int result = sched_getaffinity(0, bytes, set);
    std::vector<uint32_t> ids;
    for (size_t id = 0; result == 0 && id < count; ++id)
      if (CPU_ISSET_S(id, bytes, set)) ids.push_back(static_cast<uint32_t>(id));
    CPU_FREE(set);
    if (result == 0) return ids;
    if (errno != EINVAL) return {};
  }
  return {};
}

}  // namespace spillway::sys
