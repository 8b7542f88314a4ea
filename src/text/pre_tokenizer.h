// Cuts text into the pieces inside which byte pairs may join. Each published family has its own rules: a
// sequence of regular expressions, each applied to every piece that the ones before left; what an expression
// matches becomes a piece, and what lies between matches becomes one too, so no byte is lost.
//
// The expressions are those of the families' own tokenizer.json files, with two things spelled out: \s is
// Unicode's White_Space (PCRE2 would add U+180E), and expressions that would take time quadratic in a long
// run are written in an equivalent form that doesn't. docs: src/text/pre_tokenizer_rules.cc says where each
// comes from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spillway {
namespace text {

// The rules of one family.
struct PreTokenizerRules {
  std::vector<std::string_view> names;  // as "tokenizer.ggml.pre" has them
  std::vector<std::string_view> patterns;
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges say
};

std::span<const PreTokenizerRules> pre_tokenizer_rules();

// Immutable; may be used by any number of threads.
class PreTokenizer {
 public:
  // Errors: kUnsupported for an unknown name; the message lists the known ones.
  static Result<PreTokenizer> create(std::string_view name);

  bool ignore_merges() const { return ignore_merges_; }

  // Appends the end of every piece of `text` to `ends`, ascending; the last is text.size(). Requires: valid
  // UTF-8. Errors: kInvalid where an expression needs more steps or stack than the text's length justifies.
  Result<void> split(std::string_view text, std::vector<uint32_t>& ends) const;

 private:
  struct Expression;  // a compiled pattern
  std::string name_;
  std::vector<std::shared_ptr<const Expression>> expressions_;
  bool ignore_merges_ = false;
};

}  // namespace text
}  // namespace spillway
