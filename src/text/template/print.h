// Values as text, exactly as Python writes them: str() for output, repr() inside containers.
#pragma once

#include <string>

#include "text/template/value.h"

namespace spillway {
namespace jinja {

std::string int_text(Int value);
// The shortest digits that read back as the same number: 0.1, 1e+16, 1e-05, inf, nan.
std::string float_text(double value);
std::string string_repr(std::string_view text);

// str(value), appended. Faults on values nested too deeply, and if `out` outgrows kMaxTemplateOutputBytes.
void append_text(std::string& out, const Value& value);
void append_repr(std::string& out, const Value& value, int depth = 0);
std::string to_text(const Value& value);
std::string to_repr(const Value& value);

void check_output(const std::string& out);

// & < > ' " as HTML entities.
std::string html_escaped(std::string_view text);

}  // namespace jinja
}  // namespace spillway
