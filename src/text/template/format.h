// The two ways in which Python puts values into text: "%s" % x and "{}".format(x). What templates use of
// them: the conversions d i u f F e E g G s r c x X o and %, flags, width and precision; fields by position
// and name, !s and !r, and format specifications without locale.
#pragma once

#include "text/template/arguments.h"

namespace spillway {
namespace jinja {

Value format_percent(Heap& heap, const Value& format, const Value& values);
Value format_braces(Heap& heap, const Value& format, const Arguments& arguments);

}  // namespace jinja
}  // namespace spillway
