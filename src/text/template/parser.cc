#include "text/template/parser.h"

#include <algorithm>

#include "base/limits.h"
#include "text/template/parser_core.h"

namespace spillway {
namespace jinja {

uint32_t Symbols::number(std::string_view name) {
  const auto [it, added] = numbers_.try_emplace(std::string(name), static_cast<uint32_t>(names_.size()));
  if (added) names_.emplace_back(name);
  return it->second;
}

std::optional<uint32_t> Symbols::find(std::string_view name) const {
  const auto it = numbers_.find(std::string(name));
  return it == numbers_.end() ? std::nullopt : std::optional(it->second);
}

namespace {

using StmtPtr = std::unique_ptr<Stmt>;

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body run() {
    Body body = statements({});
    return body;
  }

 private:
  // Statements up to (not including) a tag named in `ends`, whose name is then the current token. With no
  // ends: up to the end of the template.
  Body statements(std::initializer_list<std::string_view> ends) {
    const Level level(*this);
    Body body;
    for (;;) {
      const Token& token = current();
      if (token.is(Tok::kEnd)) {
        if (ends.size() == 0) return body;
        fail(fmt::format("the template ends, but {} is still open", innermost()));
      }
      if (token.is(Tok::kData)) {
        StmtPtr stmt = make_stmt(StmtKind::kText, token);
        stmt->text = token.text;
        advance();
        body.push_back(std::move(stmt));
      } else if (token.is(Tok::kVariableBegin)) {
        StmtPtr stmt = make_stmt(StmtKind::kOutput, token);
        advance();
        stmt->values.push_back(tuple(Conditional::kAllowed));
        if (!current().is(Tok::kVariableEnd))
          fail(fmt::format("expected '}}}}', found {}", describe(current())));
        advance();
        body.push_back(finish_stmt(std::move(stmt)));
      } else if (token.is(Tok::kBlockBegin)) {
        advance();
        for (const auto end : ends)
          if (current().name(end)) return body;
        if (StmtPtr stmt = statement()) body.push_back(finish_stmt(std::move(stmt)));
        expect_block_end();
      } else {
        fail(fmt::format("unexpected {}", describe(token)));
      }
    }
  }

  // After a tag's own words: its body, and the name of the tag that ends it, which is consumed.
  Body body_of(std::initializer_list<std::string_view> ends) {
    skip_op(":");
    expect_block_end();
    return statements(ends);
  }

  void expect_block_end() {
    if (!current().is(Tok::kBlockEnd)) fail(fmt::format("expected '%}}', found {}", describe(current())));
    advance();
  }

  std::string innermost() const {
    return open_.empty() ? "a block" : fmt::format("'{}' of line {}", open_.back().text, open_.back().line);
  }

  StmtPtr make_stmt(StmtKind kind, const Token& at) const {
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->line = at.line;
    stmt->column = at.column;
    return stmt;
  }

  StmtPtr finish_stmt(StmtPtr stmt) const {
    uint32_t below = 0;
    const auto look_at = [&](const auto& child) {
      if (child) below = std::max(below, child->height);
    };
    const auto look_into = [&](const Body& body) {
      for (const auto& child : body) look_at(child);
    };
    for (const auto& value : stmt->values) look_at(value);
    look_at(stmt->expression);
    look_at(stmt->test);
    look_into(stmt->body);
    look_into(stmt->else_body);
    for (const auto& branch : stmt->branches) look_at(branch.test), look_into(branch.body);
    for (const auto& parameter : stmt->parameters) look_at(parameter.default_value);
    stmt->height = below + 1;
    check_height(stmt->height);
    return stmt;
  }

  StmtPtr statement() {
    const Token token = current();
    if (!token.is(Tok::kName))
      fail(fmt::format("expected a tag's name after '{{%', found {}", describe(token)));
    open_.push_back(token);
    StmtPtr stmt = statement_named(token);
    open_.pop_back();
    return stmt;
  }

  StmtPtr statement_named(const Token& token) {
    const std::string& name = token.text;
    if (name == "for") return for_loop();
    if (name == "if") return if_chain();
    if (name == "set") return assignment();
    if (name == "macro") return macro();
    if (name == "call") return call_block();
    if (name == "filter") return filter_block();
    if (name == "with") return with_block();
    if (name == "print") return print();
    if (name == "break" || name == "continue") {
      if (loops_ == 0) fail(fmt::format("'{}' outside of a for loop", name));
      advance();
      return make_stmt(name == "break" ? StmtKind::kBreak : StmtKind::kContinue, token);
    }
    if (name == "generation") {
      StmtPtr stmt = make_stmt(StmtKind::kScope, token);
      advance();
      stmt->body = body_of({"endgeneration"});
      advance();
      return stmt;
    }
    if (name == "include" || name == "import" || name == "from" || name == "extends" || name == "block" ||
        name == "autoescape") {
      throw Fault{Error::Kind::kUnsupported,
                  place(token.line, token.column) +
                      fmt::format("the tag '{}' is not supported: a chat template stands alone", name)};
    }
    open_.pop_back();
    fail(fmt::format("unknown tag '{}'{}", name,
                     open_.empty() ? std::string() : fmt::format(" (inside {})", innermost())));
  }

  // ---- targets

  Target target_from(const Expr& expr) {
    Target target;
    target.line = expr.line;
    target.column = expr.column;
    if (expr.kind == ExprKind::kName) {
      target.name = expr.name;
      target.symbol = expr.symbol;
    } else if (expr.kind == ExprKind::kTuple) {
      target.kind = Target::Kind::kTuple;
      for (const auto& item : expr.operands) target.items.push_back(target_from(*item));
    } else {
      fault_at(expr.line, expr.column, "can't assign to this: expected a name, or names in a tuple");
    }
    return target;
  }

  // Names and tuples of names: not whole expressions, so that "in" is left alone.
  Target target(TupleEnd end) {
    const Token& start = current();
    std::vector<ExprPtr> items;
    bool is_tuple = false;
    for (;;) {
      if (!items.empty()) expect_op(",");
      if (at_tuple_end(end)) break;
      const Level level(*this);
      items.push_back(primary());
      if (!current().op(",")) break;
      is_tuple = true;
    }
    if (items.empty()) fail(fmt::format("expected a name to assign to, found {}", describe(current())));
    if (!is_tuple) return target_from(*items[0]);
    ExprPtr tuple_node = make(ExprKind::kTuple, start);
    tuple_node->operands = std::move(items);
    return target_from(*finish(std::move(tuple_node)));
  }

  // ---- tags

  StmtPtr for_loop() {
    StmtPtr stmt = make_stmt(StmtKind::kFor, current());
    advance();
    stmt->target = target(TupleEnd::kIn);
    expect_name("in");
    stmt->expression = tuple(Conditional::kNotAllowed, TupleEnd::kRecursive);
    if (skip_name("if")) stmt->test = expression();
    stmt->recursive = skip_name("recursive");
    ++loops_;
    stmt->body = body_of({"endfor", "else"});
    --loops_;
    const bool has_else = current().name("else");
    advance();
    if (has_else) {
      stmt->else_body = body_of({"endfor"});
      advance();
    }
    return stmt;
  }

  StmtPtr if_chain() {
    StmtPtr stmt = make_stmt(StmtKind::kIf, current());
    advance();
    for (;;) {
      Branch branch;
      branch.test = tuple(Conditional::kNotAllowed);
      branch.body = body_of({"elif", "else", "endif"});
      stmt->branches.push_back(std::move(branch));
      const Token ended_by = current();
      advance();
      if (ended_by.text == "elif") continue;
      if (ended_by.text == "else") {
        Branch last;
        last.body = body_of({"endif"});
        advance();
        stmt->branches.push_back(std::move(last));
      }
      return stmt;
    }
  }

  StmtPtr assignment() {
    StmtPtr stmt = make_stmt(StmtKind::kSet, current());
    advance();
    if (look().op(".")) {
      const Token& name = current();
      stmt->target.kind = Target::Kind::kAttribute;
      stmt->target.line = name.line;
      stmt->target.column = name.column;
      stmt->target.name = expect_identifier();
      stmt->target.symbol = symbols_.number(stmt->target.name);
      advance();
      stmt->target.attribute = expect_identifier();
    } else {
      stmt->target = target(TupleEnd::kTag);
    }
    if (skip_op("=")) {
      stmt->expression = tuple(Conditional::kAllowed);
      return stmt;
    }
    stmt->kind = StmtKind::kSetBlock;
    stmt->expression = filters(nullptr, false);
    stmt->body = body_of({"endset"});
    advance();
    return stmt;
  }

  void signature(Stmt& stmt) {
    expect_op("(");
    while (!current().op(")")) {
      if (!stmt.parameters.empty()) expect_op(",");
      Parameter parameter;
      parameter.name = expect_identifier();
      parameter.symbol = symbols_.number(parameter.name);
      if (skip_op("=")) {
        parameter.default_value = expression();
      } else if (!stmt.parameters.empty() && stmt.parameters.back().default_value) {
        fail("a parameter without a default follows one with a default");
      }
      stmt.parameters.push_back(std::move(parameter));
    }
    expect_op(")");
  }

  // A macro takes surplus arguments only if its body names varargs, kwargs or caller. Names are found in the
  // tokens.
  void macro_body(Stmt& stmt, std::string_view end) {
    const size_t begin = at_;
    const int outer_loops = std::exchange(loops_, 0);
    stmt.body = body_of({end});
    loops_ = outer_loops;
    for (size_t i = begin; i < at_; ++i) {
      if (!tokens_[i].is(Tok::kName)) continue;
      if (i > 0 && tokens_[i - 1].op(".")) continue;
      stmt.uses_varargs |= tokens_[i].text == "varargs";
      stmt.uses_kwargs |= tokens_[i].text == "kwargs";
      stmt.uses_caller |= tokens_[i].text == "caller";
    }
    advance();
  }

  StmtPtr macro() {
    StmtPtr stmt = make_stmt(StmtKind::kMacro, current());
    advance();
    stmt->text = expect_identifier();
    stmt->symbol = symbols_.number(stmt->text);
    signature(*stmt);
    macro_body(*stmt, "endmacro");
    return stmt;
  }

  StmtPtr call_block() {
    StmtPtr stmt = make_stmt(StmtKind::kCallBlock, current());
    advance();
    if (current().op("(")) signature(*stmt);
    stmt->expression = expression();
    if (stmt->expression->kind != ExprKind::kCall)
      fault_at(stmt->expression->line, stmt->expression->column, "expected a call after 'call'");
    macro_body(*stmt, "endcall");
    return stmt;
  }

  StmtPtr filter_block() {
    StmtPtr stmt = make_stmt(StmtKind::kFilterBlock, current());
    advance();
    stmt->expression = filters(nullptr, true);
    stmt->body = body_of({"endfilter"});
    advance();
    return stmt;
  }

  StmtPtr with_block() {
    StmtPtr stmt = make_stmt(StmtKind::kWith, current());
    advance();
    while (!current().is(Tok::kBlockEnd)) {
      if (!stmt->targets.empty()) expect_op(",");
      ExprPtr name = primary();
      stmt->targets.push_back(target_from(*name));
      expect_op("=");
      stmt->values.push_back(expression());
    }
    stmt->body = body_of({"endwith"});
    advance();
    return stmt;
  }

  StmtPtr print() {
    StmtPtr stmt = make_stmt(StmtKind::kOutput, current());
    advance();
    while (!current().is(Tok::kBlockEnd)) {
      if (!stmt->values.empty()) expect_op(",");
      stmt->values.push_back(expression());
    }
    return stmt;
  }

  std::vector<Token> open_;  // tags around the current place, for messages
  int loops_ = 0;            // for loops around the current place, inside the innermost macro
};

}  // namespace

Tree parse_template(std::string_view source) {
  if (source.size() > limits::kMaxTemplateBytes)
    fault("the template has {} bytes, the limit is {}", source.size(), limits::kMaxTemplateBytes);
  const std::vector<Token> tokens = tokenize(source);
  Tree tree;
  // Always numbered, so that the caller's variables and these are found.
  for (const auto name : {"loop", "caller", "varargs", "kwargs"}) tree.symbols.number(name);
  tree.body = Parser(tokens, tree.symbols).run();
  return tree;
}

}  // namespace jinja
}  // namespace spillway
