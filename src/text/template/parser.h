// From source to syntax tree. The grammar and its precedences are Jinja2's, the peculiar ones too: ~ binds
// tighter than +, ** is left-associative, a filter applies after a unary minus, an `is` test takes one bare
// argument.
#pragma once

#include <string_view>

#include "text/template/ast.h"

namespace spillway {
namespace jinja {

// Faults with line and column on a syntax error, on an unknown tag, and on nesting beyond kMaxTemplateDepth;
// kUnsupported for tags that need other templates (include, import, from, extends, block).
Tree parse_template(std::string_view source);

}  // namespace jinja
}  // namespace spillway
