// From template source to tokens, with Jinja's rules for the whitespace around tags as trim_blocks and
// lstrip_blocks set them: a block or comment takes the newline behind it and the blanks before it on its
// line; `-` takes all whitespace on its side, `+` none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/value.h"

namespace spillway {
namespace jinja {

enum class Tok : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  Tok type = Tok::kEnd;
  uint32_t line = 0;    // from 1
  uint32_t column = 0;  // from 1, in bytes
  std::string text;     // data, name, string with its escapes resolved, operator as written
  Int integer = 0;
  double real = 0;

  bool is(Tok t) const { return type == t; }
  bool op(std::string_view s) const { return type == Tok::kOperator && text == s; }
  bool name(std::string_view s) const { return type == Tok::kName && text == s; }
};

// "line 3, column 7: ", the head of every message about a place in a template.
std::string place(uint32_t line, uint32_t column);
[[noreturn]] void fault_at(uint32_t line, uint32_t column, std::string_view message);

// The tokens of `source`, the last of type kEnd. Faults on what is no Jinja; also on text that is not UTF-8.
std::vector<Token> tokenize(std::string_view source);

}  // namespace jinja
}  // namespace spillway
