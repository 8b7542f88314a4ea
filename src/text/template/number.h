// Python's conversions between text and numbers.
#pragma once

#include <optional>
#include <string_view>

#include "text/template/value.h"

namespace spillway {
namespace jinja {

// int(text, base) and float(text); nothing where Python raises ValueError. Faults on more than 128 bits.
std::optional<Int> parse_int(std::string_view text, int base = 10);
std::optional<double> parse_float(std::string_view text);
// int(real); nothing for inf and nan. Faults on more than 128 bits.
std::optional<Int> truncate(double real);
// round(real, digits): half to even on the exact binary value.
double round_to(double real, int digits);
Int round_to(Int value, int digits);

}  // namespace jinja
}  // namespace spillway
