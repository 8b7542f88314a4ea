// The parser's two halves: expressions (parser_expression.cc) and statements (parser.cc).
#pragma once

#include <initializer_list>

#include "text/template/ast.h"
#include "text/template/lexer.h"

namespace spillway {
namespace jinja {

// When a comma-separated list without brackets ends, besides at the tag's end.
enum class TupleEnd : uint8_t { kTag, kIn, kRecursive };
enum class Conditional : uint8_t { kAllowed, kNotAllowed };  // x if y else z
enum class Parentheses : uint8_t { kNone, kOpen };

class ExpressionParser {
 public:
  ExpressionParser(const std::vector<Token>& tokens, Symbols& symbols) : tokens_(tokens), symbols_(symbols) {}

  ExprPtr expression(Conditional conditional = Conditional::kAllowed);
  ExprPtr tuple(Conditional conditional, TupleEnd end = TupleEnd::kTag,
                Parentheses parentheses = Parentheses::kNone);
  ExprPtr primary();
  // |a|b(c) after `operand`, which may be null (filter blocks); `inline_start`: the first filter has no bar.
  ExprPtr filters(ExprPtr operand, bool inline_start);

  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  void advance() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_op(std::string_view op);
  void expect_name(std::string_view name);
  std::string expect_identifier();
  bool at_tuple_end(TupleEnd end) const;
  [[noreturn]] void fail(std::string_view message) const { fail_at(current(), message); }
  [[noreturn]] void fail_at(const Token& token, std::string_view message) const {
    fault_at(token.line, token.column, message);
  }
  static std::string describe(const Token& token);

  // Counts the parser's own nesting while it lives.
  class Level {
   public:
    explicit Level(ExpressionParser& parser);
    ~Level() { --parser_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ExpressionParser& parser_;
  };
  void check_height(uint32_t height) const;

 protected:
  ExprPtr make(ExprKind kind, const Token& at) const;
  ExprPtr finish(ExprPtr node) const;  // sets the height
  ExprPtr either();
  ExprPtr both();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filters);
  ExprPtr postfix(ExprPtr node);
  ExprPtr filters_and_tests(ExprPtr node);
  ExprPtr subscript(ExprPtr node);
  ExprPtr subscript_item();
  ExprPtr call(ExprPtr node);
  ExprPtr test(ExprPtr node);
  ExprPtr list();
  ExprPtr dictionary();
  void arguments(Expr& node);

  const std::vector<Token>& tokens_;
  Symbols& symbols_;
  size_t at_ = 0;
  uint32_t level_ = 0;
};

}  // namespace jinja
}  // namespace spillway
