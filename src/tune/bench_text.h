// Text for benchmarks: prose and code, so that a prompt routes like real work and not like one token over and
// over.
#pragma once

#include <string_view>

namespace spillway::tune {

// A few thousand words in English, written for this program, with some code among them.
std::string_view bench_text();

}  // namespace spillway::tune
