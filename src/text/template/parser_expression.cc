#include <algorithm>

#include "base/limits.h"
#include "text/template/parser_core.h"

namespace spillway {
namespace jinja {

// ---- tokens

std::string ExpressionParser::describe(const Token& token) {
  switch (token.type) {
    case Tok::kEnd:
      return "the end of the template";
    case Tok::kData:
      return "text";
    case Tok::kVariableBegin:
      return "'{{'";
    case Tok::kVariableEnd:
      return "'}}'";
    case Tok::kBlockBegin:
      return "'{%'";
    case Tok::kBlockEnd:
      return "'%}'";
    case Tok::kString:
      return "a string";
    case Tok::kInteger:
    case Tok::kFloat:
      return "a number";
    case Tok::kName:
    case Tok::kOperator:
      return fmt::format("'{}'", token.text);
  }
  return "?";
}

bool ExpressionParser::skip_op(std::string_view op) {
  if (!current().op(op)) return false;
  advance();
  return true;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!current().name(name)) return false;
  advance();
  return true;
}

void ExpressionParser::expect_op(std::string_view op) {
  if (!skip_op(op)) fail(fmt::format("expected '{}', found {}", op, describe(current())));
}

void ExpressionParser::expect_name(std::string_view name) {
  if (!skip_name(name)) fail(fmt::format("expected '{}', found {}", name, describe(current())));
}

std::string ExpressionParser::expect_identifier() {
  if (!current().is(Tok::kName)) fail(fmt::format("expected a name, found {}", describe(current())));
  std::string name = current().text;
  advance();
  return name;
}

ExpressionParser::Level::Level(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.level_ > limits::kMaxTemplateDepth) {
    --parser_.level_;
    parser_.fail(fmt::format("nested deeper than {}", limits::kMaxTemplateDepth));
  }
}

void ExpressionParser::check_height(uint32_t height) const {
  if (height > limits::kMaxTemplateDepth)
    fail(fmt::format("nested deeper than {}", limits::kMaxTemplateDepth));
}

ExprPtr ExpressionParser::make(ExprKind kind, const Token& at) const {
  auto node = std::make_unique<Expr>();
  node->kind = kind;
  node->line = at.line;
  node->column = at.column;
  return node;
}

ExprPtr ExpressionParser::finish(ExprPtr node) const {
  uint32_t below = 0;
  const auto look_at = [&](const ExprPtr& child) {
    if (child) below = std::max(below, child->height);
  };
  for (const auto& child : node->operands) look_at(child);
  for (const auto& child : node->arguments) look_at(child);
  for (const auto& keyword : node->keywords) look_at(keyword.value);
  look_at(node->star);
  look_at(node->star_star);
  node->height = below + 1;
  check_height(node->height);
  return node;
}

// ---- precedence, loosest first

ExprPtr ExpressionParser::expression(Conditional conditional) {
  const Level level(*this);
  const Token& start = current();
  ExprPtr value = either();
  if (conditional == Conditional::kNotAllowed) return value;
  while (skip_name("if")) {
    ExprPtr node = make(ExprKind::kCondition, start);
    node->operands.push_back(std::move(value));
    node->operands.push_back(either());
    node->operands.push_back(skip_name("else") ? expression() : nullptr);
    value = finish(std::move(node));
  }
  return value;
}

ExprPtr ExpressionParser::either() {
  const Token& start = current();
  ExprPtr first = both();
  if (!current().name("or")) return first;
  ExprPtr node = make(ExprKind::kOr, start);
  node->operands.push_back(std::move(first));
  while (skip_name("or")) node->operands.push_back(both());
  return finish(std::move(node));
}

ExprPtr ExpressionParser::both() {
  const Token& start = current();
  ExprPtr first = negation();
  if (!current().name("and")) return first;
  ExprPtr node = make(ExprKind::kAnd, start);
  node->operands.push_back(std::move(first));
  while (skip_name("and")) node->operands.push_back(negation());
  return finish(std::move(node));
}

ExprPtr ExpressionParser::negation() {
  if (!current().name("not")) return comparison();
  const Level level(*this);
  ExprPtr node = make(ExprKind::kNot, current());
  advance();
  node->operands.push_back(negation());
  return finish(std::move(node));
}

ExprPtr ExpressionParser::comparison() {
  static constexpr std::pair<std::string_view, Op> kOps[] = {{"==", Op::kEqual},  {"!=", Op::kNotEqual},
                                                             {"<", Op::kLess},    {"<=", Op::kLessEqual},
                                                             {">", Op::kGreater}, {">=", Op::kGreaterEqual}};
  const Token& start = current();
  ExprPtr first = sum();
  ExprPtr node;
  for (;;) {
    std::optional<Op> op;
    if (current().is(Tok::kOperator)) {
      for (const auto& [text, which] : kOps)
        if (current().text == text) op = which;
      if (op) advance();
    } else if (skip_name("in")) {
      op = Op::kIn;
    } else if (current().name("not") && look().name("in")) {
      advance(), advance();
      op = Op::kNotIn;
    }
    if (!op) break;
    if (!node) {
      node = make(ExprKind::kCompare, start);
      node->operands.push_back(std::move(first));
    }
    node->ops.push_back(*op);
    node->operands.push_back(sum());
  }
  return node ? finish(std::move(node)) : std::move(first);
}

ExprPtr ExpressionParser::sum() {
  const Token& start = current();
  ExprPtr first = concatenation();
  if (!current().op("+") && !current().op("-")) return first;
  ExprPtr node = make(ExprKind::kArithmetic, start);
  node->operands.push_back(std::move(first));
  while (current().op("+") || current().op("-")) {
    node->ops.push_back(current().op("+") ? Op::kAdd : Op::kSubtract);
    advance();
    node->operands.push_back(concatenation());
  }
  return finish(std::move(node));
}

ExprPtr ExpressionParser::concatenation() {
  const Token& start = current();
  ExprPtr first = product();
  if (!current().op("~")) return first;
  ExprPtr node = make(ExprKind::kConcat, start);
  node->operands.push_back(std::move(first));
  while (skip_op("~")) node->operands.push_back(product());
  return finish(std::move(node));
}

ExprPtr ExpressionParser::product() {
  const auto op_here = [&]() -> std::optional<Op> {
    if (current().op("*")) return Op::kMultiply;
    if (current().op("/")) return Op::kDivide;
    if (current().op("//")) return Op::kFloorDivide;
    if (current().op("%")) return Op::kModulo;
    return std::nullopt;
  };
  const Token& start = current();
  ExprPtr first = power();
  if (!op_here()) return first;
  ExprPtr node = make(ExprKind::kArithmetic, start);
  node->operands.push_back(std::move(first));
  while (const auto op = op_here()) {
    advance();
    node->ops.push_back(*op);
    node->operands.push_back(power());
  }
  return finish(std::move(node));
}

ExprPtr ExpressionParser::power() {
  const Token& start = current();
  ExprPtr first = unary(true);
  if (!current().op("**")) return first;
  ExprPtr node = make(ExprKind::kArithmetic, start);
  node->operands.push_back(std::move(first));
  while (skip_op("**")) {
    node->ops.push_back(Op::kPower);
    node->operands.push_back(unary(true));
  }
  return finish(std::move(node));
}

ExprPtr ExpressionParser::unary(bool with_filters) {
  const Level level(*this);
  ExprPtr node;
  if (current().op("-") || current().op("+")) {
    node = make(current().op("-") ? ExprKind::kNegate : ExprKind::kPlus, current());
    advance();
    node->operands.push_back(unary(false));
    node = finish(std::move(node));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filters ? filters_and_tests(std::move(node)) : std::move(node);
}

ExprPtr ExpressionParser::postfix(ExprPtr node) {
  for (;;) {
    if (current().op(".") || current().op("[")) {
      node = subscript(std::move(node));
    } else if (current().op("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::filters_and_tests(ExprPtr node) {
  for (;;) {
    if (current().op("|")) {
      node = filters(std::move(node), false);
    } else if (current().name("is")) {
      node = test(std::move(node));
    } else if (current().op("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

// ---- parts

ExprPtr ExpressionParser::primary() {
  const Token& token = current();
  ExprPtr node;
  switch (token.type) {
    case Tok::kName:
      if (token.text == "true" || token.text == "True" || token.text == "false" || token.text == "False") {
        node = make(ExprKind::kConst, token);
        node->value = Value::of(token.text == "true" || token.text == "True");
      } else if (token.text == "none" || token.text == "None") {
        node = make(ExprKind::kConst, token);
        node->value = Value::none();
      } else {
        node = make(ExprKind::kName, token);
        node->name = token.text;
        node->name_text = std::make_shared<Str>(token.text, nullptr);
        node->symbol = symbols_.number(token.text);
      }
      advance();
      return node;
    case Tok::kString: {
      node = make(ExprKind::kConst, token);
      std::string text;
      while (current().is(Tok::kString)) {
        text += current().text;
        advance();
      }
      node->value = Value::of(std::make_shared<Str>(std::move(text), nullptr));
      return node;
    }
    case Tok::kInteger:
    case Tok::kFloat:
      node = make(ExprKind::kConst, token);
      node->value = token.is(Tok::kInteger) ? Value::of(token.integer) : Value::of(token.real);
      advance();
      return node;
    case Tok::kOperator:
      if (skip_op("(")) {
        node = tuple(Conditional::kAllowed, TupleEnd::kTag, Parentheses::kOpen);
        expect_op(")");
        return node;
      }
      if (token.op("[")) return list();
      if (token.op("{")) return dictionary();
      break;
    default:
      break;
  }
  fail(fmt::format("expected an expression, found {}", describe(token)));
}

bool ExpressionParser::at_tuple_end(TupleEnd end) const {
  const Token& token = current();
  if (token.is(Tok::kVariableEnd) || token.is(Tok::kBlockEnd) || token.op(")")) return true;
  return (end == TupleEnd::kIn && token.name("in")) ||
         (end == TupleEnd::kRecursive && token.name("recursive"));
}

ExprPtr ExpressionParser::tuple(Conditional conditional, TupleEnd end, Parentheses parentheses) {
  const Token& start = current();
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  for (;;) {
    if (!items.empty()) expect_op(",");
    if (at_tuple_end(end)) break;
    items.push_back(expression(conditional));
    if (!current().op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items[0]);
  if (!is_tuple && parentheses == Parentheses::kNone)
    fail(fmt::format("expected an expression, found {}", describe(current())));
  ExprPtr node = make(ExprKind::kTuple, start);
  node->operands = std::move(items);
  return finish(std::move(node));
}

ExprPtr ExpressionParser::list() {
  ExprPtr node = make(ExprKind::kList, current());
  expect_op("[");
  while (!current().op("]")) {
    if (!node->operands.empty()) expect_op(",");
    if (current().op("]")) break;
    node->operands.push_back(expression());
  }
  expect_op("]");
  return finish(std::move(node));
}

ExprPtr ExpressionParser::dictionary() {
  ExprPtr node = make(ExprKind::kDict, current());
  expect_op("{");
  while (!current().op("}")) {
    if (!node->operands.empty()) expect_op(",");
    if (current().op("}")) break;
    node->operands.push_back(expression());
    expect_op(":");
    node->operands.push_back(expression());
  }
  expect_op("}");
  return finish(std::move(node));
}

ExprPtr ExpressionParser::subscript(ExprPtr node) {
  const Token& start = current();
  if (skip_op(".")) {
    const Token& token = current();
    if (token.is(Tok::kName)) {
      ExprPtr attribute = make(ExprKind::kAttribute, start);
      attribute->name = token.text;
      attribute->name_text = std::make_shared<Str>(token.text, nullptr);
      attribute->operands.push_back(std::move(node));
      advance();
      return finish(std::move(attribute));
    }
    if (!token.is(Tok::kInteger))
      fail(fmt::format("expected a name or a number after '.', found {}", describe(token)));
    ExprPtr index = make(ExprKind::kConst, token);
    index->value = Value::of(token.integer);
    advance();
    ExprPtr item = make(ExprKind::kItem, start);
    item->operands.push_back(std::move(node));
    item->operands.push_back(std::move(index));
    return finish(std::move(item));
  }
  expect_op("[");
  std::vector<ExprPtr> indices;
  while (!current().op("]")) {
    if (!indices.empty()) expect_op(",");
    indices.push_back(subscript_item());
  }
  expect_op("]");
  ExprPtr item = make(ExprKind::kItem, start);
  item->operands.push_back(std::move(node));
  if (indices.size() == 1) {
    item->operands.push_back(std::move(indices[0]));
  } else {
    ExprPtr key = make(ExprKind::kTuple, start);
    for (auto& index : indices)
      if (index->kind == ExprKind::kSlice) fail_at(start, "a slice among several indices is not supported");
    key->operands = std::move(indices);
    item->operands.push_back(finish(std::move(key)));
  }
  return finish(std::move(item));
}

ExprPtr ExpressionParser::subscript_item() {
  const Token& start = current();
  ExprPtr first = current().op(":") ? nullptr : expression();
  if (!current().op(":")) return first;
  ExprPtr slice = make(ExprKind::kSlice, start);
  slice->operands.push_back(std::move(first));
  for (int part = 0; part < 2; ++part) {
    const bool here = skip_op(":");
    const bool given = here && !current().op(":") && !current().op("]") && !current().op(",");
    slice->operands.push_back(given ? expression() : nullptr);
  }
  return finish(std::move(slice));
}

void ExpressionParser::arguments(Expr& node) {
  const Token& start = current();
  const auto need = [&](bool fine) {
    if (!fine)
      fail_at(start, "the arguments of a call are positional first, then name=value, then *a and **b");
  };
  expect_op("(");
  bool first = true;
  while (!current().op(")")) {
    if (!first) {
      expect_op(",");
      if (current().op(")")) break;
    }
    first = false;
    if (skip_op("*")) {
      need(!node.star && !node.star_star);
      node.star = expression();
    } else if (skip_op("**")) {
      need(!node.star_star);
      node.star_star = expression();
    } else if (current().is(Tok::kName) && look().op("=")) {
      need(!node.star_star);
      Keyword keyword;
      keyword.name = current().text;
      advance(), advance();
      keyword.value = expression();
      for (const auto& other : node.keywords)
        if (other.name == keyword.name)
          fail_at(start, fmt::format("the argument '{}' is given twice", keyword.name));
      node.keywords.push_back(std::move(keyword));
    } else {
      need(!node.star && !node.star_star && node.keywords.empty());
      node.arguments.push_back(expression());
    }
  }
  expect_op(")");
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
  ExprPtr node = make(ExprKind::kCall, current());
  node->operands.push_back(std::move(callee));
  arguments(*node);
  return finish(std::move(node));
}

ExprPtr ExpressionParser::filters(ExprPtr operand, bool inline_start) {
  while (current().op("|") || inline_start) {
    if (!inline_start) advance();
    inline_start = false;
    ExprPtr node = make(ExprKind::kFilter, current());
    node->name = expect_identifier();
    while (skip_op(".")) node->name += "." + expect_identifier();
    node->operands.push_back(std::move(operand));
    if (current().op("(")) arguments(*node);
    operand = finish(std::move(node));
  }
  return operand;
}

ExprPtr ExpressionParser::test(ExprPtr operand) {
  const Token& start = current();
  expect_name("is");
  const bool negated = skip_name("not");
  ExprPtr node = make(ExprKind::kTest, start);
  node->name = expect_identifier();
  while (skip_op(".")) node->name += "." + expect_identifier();
  node->operands.push_back(std::move(operand));
  const Token& token = current();
  const bool starts_operand = token.is(Tok::kName) || token.is(Tok::kString) || token.is(Tok::kInteger) ||
                              token.is(Tok::kFloat) || token.op("[") || token.op("{");
  if (token.op("(")) {
    arguments(*node);
  } else if (starts_operand && !token.name("else") && !token.name("or") && !token.name("and")) {
    if (token.name("is")) fail("tests with 'is' can't be chained");
    node->arguments.push_back(postfix(primary()));
  }
  node = finish(std::move(node));
  if (!negated) return node;
  ExprPtr wrapped = make(ExprKind::kNot, start);
  wrapped->operands.push_back(std::move(node));
  return finish(std::move(wrapped));
}

}  // namespace jinja
}  // namespace spillway
