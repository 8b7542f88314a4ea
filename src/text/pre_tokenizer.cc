#include "text/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "text/tokenizer.h"

namespace spillway {
namespace text {
namespace {

// PCRE2's own machine stack of 32 KiB serves every expression whose repeats are of single characters. A
// repeated group needs about 50 bytes a repeat: this much is enough for a run of a million characters.
constexpr size_t kJitStackBytes = 64u << 20;

// A match may take this many steps a byte before it is given up. The most that a rule here needs is about 10.
constexpr uint64_t kStepsPerByte = 64;
constexpr uint64_t kStepsAtLeast = 10'000'000;  // PCRE2's default

// \s and \S as Unicode's White_Space, inside and outside of brackets.
std::string with_unicode_spaces(std::string_view pattern) {
  static constexpr std::string_view kSpaces =
      R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
  std::string out;
  bool in_brackets = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next == 's' && in_brackets) {
        out += kSpaces;
      } else if (next == 's' || next == 'S') {
        out += next == 's' ? "[" : "[^";
        out += kSpaces;
        out += ']';
      } else {
        out += c;
        out += next;
      }
      continue;
    }
    if (c == '[') in_brackets = true;
    if (c == ']') in_brackets = false;
    out += c;
  }
  return out;
}

std::string error_text(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeJitStack {
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

}  // namespace

struct PreTokenizer::Expression {
  pcre2_code* code = nullptr;

  explicit Expression(pcre2_code* compiled) : code(compiled) {}
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;
  ~Expression() { pcre2_code_free(code); }

  // What a run of matches needs besides the code; not to be shared by threads.
  struct Run {
    std::unique_ptr<pcre2_match_data, FreeMatchData> data;
    std::unique_ptr<pcre2_match_context, FreeMatchContext> context;
    std::unique_ptr<pcre2_jit_stack, FreeJitStack> stack;
  };
  Run start(uint64_t text_bytes) const {
    Run run{
        std::unique_ptr<pcre2_match_data, FreeMatchData>(pcre2_match_data_create_from_pattern(code, nullptr)),
        std::unique_ptr<pcre2_match_context, FreeMatchContext>(pcre2_match_context_create(nullptr)), nullptr};
    const uint64_t steps = std::max(kStepsAtLeast, text_bytes * kStepsPerByte);
    if (run.context)
      pcre2_set_match_limit(run.context.get(), static_cast<uint32_t>(std::min(steps, uint64_t{~0u})));
    return run;
  }

  // The code of pcre2_match; grows the stack and tries again where it was too small.
  int match(Run& run, std::string_view text, size_t from) const {
    if (!run.data || !run.context) return PCRE2_ERROR_NOMEMORY;
    const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const auto once = [&] {
      return pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
                         run.data.get(), run.context.get());
    };
    int result = once();
    if (result == PCRE2_ERROR_JIT_STACKLIMIT && !run.stack) {
      run.stack.reset(pcre2_jit_stack_create(32 << 10, kJitStackBytes, nullptr));
      if (!run.stack) return PCRE2_ERROR_NOMEMORY;
      pcre2_jit_stack_assign(run.context.get(), nullptr, run.stack.get());
      result = once();
    }
    return result;
  }
};

Result<PreTokenizer> PreTokenizer::create(std::string_view name) {
  const auto rules = std::ranges::find_if(pre_tokenizer_rules(), [&](const PreTokenizerRules& candidate) {
    return std::ranges::find(candidate.names, name) != candidate.names.end();
  });
  if (rules == pre_tokenizer_rules().end())
    return unsupported(
        "tokenizer.ggml.pre is '{}', which this program doesn't know; text would be cut in other places "
        "than the model was trained on. Known: {}. To use one of these all the same, name it",
        name, fmt::join(known_pre_tokenizers(), ", "));
  PreTokenizer result;
  result.name_ = name;
  result.ignore_merges_ = rules->ignore_merges;
  for (const std::string_view pattern : rules->patterns) {
    const std::string full = with_unicode_spaces(pattern);
    int code = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(full.data()), full.size(),
                                         PCRE2_UTF | PCRE2_UCP, &code, &offset, nullptr);
    if (compiled == nullptr)
      return unsupported("pre-tokenizer '{}': the installed PCRE2 refuses its expression at {}: {}", name,
                         offset, error_text(code));
    // Where there is no just-in-time compiler, the interpreter gives the same matches.
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
    result.expressions_.push_back(std::make_shared<const Expression>(compiled));
  }
  return result;
}

Result<void> PreTokenizer::split(std::string_view text, std::vector<uint32_t>& ends) const {
  if (text.empty()) return {};
  std::vector<uint32_t> before, after{static_cast<uint32_t>(text.size())};
  for (const auto& expression : expressions_) {
    before.swap(after);
    after.clear();
    auto run = expression->start(text.size());
    uint32_t piece_start = 0;
    for (const uint32_t piece_end : before) {
      // A piece is a text of its own: the expression sees no other.
      const std::string_view piece = text.substr(piece_start, piece_end - piece_start);
      size_t done = 0;
      while (done < piece.size()) {
        const int code = expression->match(run, piece, done);
        if (code == PCRE2_ERROR_NOMATCH) break;
        if (code < 0)
          return invalid(
              "pre-tokenizer '{}' gave up at byte {} of {} of the text: {}; a run there is too long for it",
              name_, piece_start + done, text.size(), error_text(code));
        const PCRE2_SIZE* span = pcre2_get_ovector_pointer(run.data.get());
        if (span[0] > done) after.push_back(static_cast<uint32_t>(piece_start + span[0]));
        after.push_back(static_cast<uint32_t>(piece_start + span[1]));
        done = span[1];
      }
      if (done < piece.size()) after.push_back(piece_end);
      piece_start = piece_end;
    }
  }
  ends.insert(ends.end(), after.begin(), after.end());
  return {};
}

std::vector<std::string_view> known_pre_tokenizers() {
  std::vector<std::string_view> names;
  for (const PreTokenizerRules& rules : pre_tokenizer_rules())
    names.insert(names.end(), rules.names.begin(), rules.names.end());
  std::ranges::sort(names);
  return names;
}

}  // namespace text
}  // namespace spillway
