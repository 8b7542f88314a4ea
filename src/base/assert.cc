#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace spillway {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "spillway: bug: assertion '%s' failed at %s:%d; please report it\n", condition, file,
               line);
  std::abort();
}

}  // namespace spillway
