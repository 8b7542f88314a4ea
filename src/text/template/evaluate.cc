#include "text/template/filters.h"
#include "text/template/interpreter.h"
#include "text/template/levels.h"
#include "text/template/lexer.h"
#include "text/template/methods.h"
#include "text/template/operators.h"
#include "text/template/print.h"

namespace spillway {
namespace jinja {

Value Interpreter::evaluate(const Expr& expr) {
  const Level level(*this);
  heap_.step();
  switch (expr.kind) {
    case ExprKind::kConst:
      return expr.value;
    case ExprKind::kName:
      return lookup(expr);
    case ExprKind::kList:
    case ExprKind::kTuple:
      return evaluate_sequence(expr);
    case ExprKind::kDict:
      return evaluate_dict(expr);
    case ExprKind::kNot:
      return Value::of(!truthy(evaluate(*expr.operands[0])));
    case ExprKind::kNegate:
    case ExprKind::kPlus: {
      const Value value = evaluate(*expr.operands[0]);
      line_ = expr.line, column_ = expr.column;
      return expr.kind == ExprKind::kNegate ? negative(value) : positive(value);
    }
    case ExprKind::kArithmetic:
      return evaluate_arithmetic(expr);
    case ExprKind::kConcat:
      return evaluate_concat(expr);
    case ExprKind::kCompare:
      return evaluate_compare(expr);
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return evaluate_logic(expr);
    case ExprKind::kCondition:
      return evaluate_condition(expr);
    case ExprKind::kAttribute: {
      const Value value = evaluate(*expr.operands[0]);
      line_ = expr.line, column_ = expr.column;
      return attribute(value, expr.name);
    }
    case ExprKind::kItem:
      return evaluate_item(expr);
    case ExprKind::kSlice:
      break;  // only inside kItem
    case ExprKind::kCall:
      return evaluate_call(expr, nullptr);
    case ExprKind::kFilter:
      return evaluate_filter(expr, nullptr);
    case ExprKind::kTest: {
      const Value value = evaluate(*expr.operands[0]);
      const Arguments arguments = evaluate_arguments(expr);
      line_ = expr.line, column_ = expr.column;
      return Value::of(test(expr.name, value, arguments));
    }
  }
  return Value();
}

Value Interpreter::lookup(const Expr& expr) {
  for (const Scope* scope = scope_; scope; scope = scope->parent)
    if (const Value* found = scope->find(expr.symbol)) return *found;
  if (const auto& found = top_[expr.symbol]) return *found;
  Value undefined;
  undefined.str = expr.name_text;
  return undefined;
}

Value Interpreter::evaluate_sequence(const Expr& expr) {
  Values items;
  items.reserve(expr.operands.size());
  for (const auto& item : expr.operands) heap_.push(items, evaluate(*item));
  return expr.kind == ExprKind::kList ? heap_.list(std::move(items)) : heap_.tuple(std::move(items));
}

Value Interpreter::evaluate_dict(const Expr& expr) {
  auto* dict = heap_.make<DictObject>();
  for (size_t i = 0; i < expr.operands.size(); i += 2) {
    const Value key = evaluate(*expr.operands[i]);
    Value value = evaluate(*expr.operands[i + 1]);
    heap_.hold(2 * sizeof(Value));
    dict->set(key, std::move(value));
  }
  return Value::of(Kind::kDict, dict);
}

Value Interpreter::evaluate_arithmetic(const Expr& expr) {
  Value left = evaluate(*expr.operands[0]);
  for (size_t i = 0; i < expr.ops.size(); ++i) {
    const Value right = evaluate(*expr.operands[i + 1]);
    line_ = expr.operands[i + 1]->line, column_ = expr.operands[i + 1]->column;
    left = arithmetic(heap_, expr.ops[i], left, right);
  }
  return left;
}

Value Interpreter::evaluate_concat(const Expr& expr) {
  std::string out;
  for (const auto& operand : expr.operands) append_text(out, evaluate(*operand));
  return heap_.string(std::move(out));
}

Value Interpreter::evaluate_compare(const Expr& expr) {
  Value left = evaluate(*expr.operands[0]);
  for (size_t i = 0; i < expr.ops.size(); ++i) {
    Value right = evaluate(*expr.operands[i + 1]);
    line_ = expr.line, column_ = expr.column;
    if (!compare(heap_, expr.ops[i], left, right)) return Value::of(false);
    left = std::move(right);
  }
  return Value::of(true);
}

Value Interpreter::evaluate_logic(const Expr& expr) {
  const bool stops_at = expr.kind == ExprKind::kOr;
  Value value;
  for (const auto& operand : expr.operands) {
    value = evaluate(*operand);
    if (truthy(value) == stops_at) break;
  }
  return value;
}

Value Interpreter::evaluate_condition(const Expr& expr) {
  if (truthy(evaluate(*expr.operands[1]))) return evaluate(*expr.operands[0]);
  if (expr.operands[2]) return evaluate(*expr.operands[2]);
  return heap_.undefined_message(
      "the inline if-expression evaluated to false and no else section was defined.");
}

Value Interpreter::evaluate_item(const Expr& expr) {
  const Value value = evaluate(*expr.operands[0]);
  const Expr& key = *expr.operands[1];
  if (key.kind != ExprKind::kSlice) {
    const Value at = evaluate(key);
    line_ = expr.line, column_ = expr.column;
    return item(value, at);
  }
  std::optional<Value> parts[3];
  for (size_t i = 0; i < 3; ++i)
    if (key.operands[i]) parts[i] = evaluate(*key.operands[i]);
  line_ = expr.line, column_ = expr.column;
  const auto part = [&](size_t i) { return parts[i] ? &*parts[i] : nullptr; };
  return slice(heap_, value, part(0), part(1), part(2));
}

// ---- attributes

Value Interpreter::attribute(const Value& value, std::string_view name) {
  if (value.is(Kind::kUndefined)) fault_undefined(value);
  if (value.is(Kind::kLoop) && !has_method(value, name)) return loop_attribute(value.loop(), name);
  if (value.is(Kind::kNamespace)) {
    const Value* found = value.ns().attributes.find(name);
    return found && !name.starts_with('_') ? *found : heap_.undefined(name, "jinja2.utils.Namespace");
  }
  if (has_method(value, name) && !is_refused(value, name)) return heap_.method(value, name);
  if (is_refused(value, name))
    return heap_.undefined_message(
        fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(value)));
  if (value.is(Kind::kDict)) {
    if (const Value* found = value.dict().find(name)) return *found;
  } else if (value.is(Kind::kTuple) && value.list().grouped) {
    if (name == "grouper") return value.list().items[0];
    if (name == "list") return value.list().items[1];
  } else if (value.is(Kind::kMacro)) {
    if (name == "name") return heap_.string(value.macro().name);
    if (name == "caller") return Value::of(value.macro().stmt->uses_caller);
    if (name == "catch_kwargs") return Value::of(value.macro().stmt->uses_kwargs);
    if (name == "catch_varargs") return Value::of(value.macro().stmt->uses_varargs);
    if (name == "arguments") {
      Values names;
      for (const auto& parameter : value.macro().stmt->parameters)
        heap_.push(names, heap_.string(parameter.name));
      return heap_.tuple(std::move(names));
    }
  } else if (value.is(Kind::kCycler) && name == "current") {
    return value.cycler().items[value.cycler().position];
  } else if (value.is(Kind::kRange)) {
    if (name == "start") return Value::of(value.range().start);
    if (name == "stop") return Value::of(value.range().stop);
    if (name == "step") return Value::of(value.range().step);
  }
  return heap_.undefined(name, type_name(value));
}

Value Interpreter::item(const Value& value, const Value& key) {
  if (auto found = element(heap_, value, key)) return std::move(*found);
  if (key.is(Kind::kString)) {
    if (!value.is(Kind::kDict)) return attribute(value, key.text());
    if (has_method(value, key.text())) return attribute(value, key.text());
    return heap_.undefined(key.text(), type_name(value));
  }
  return heap_.undefined_message(fmt::format("{} object has no element {}", type_name(value), to_repr(key)));
}

// ---- calls

Arguments Interpreter::evaluate_arguments(const Expr& expr) {
  Arguments arguments;
  for (const auto& argument : expr.arguments) heap_.push(arguments.positional, evaluate(*argument));
  for (const auto& keyword : expr.keywords)
    arguments.keywords.emplace_back(keyword.name, evaluate(*keyword.value));
  if (expr.star) {
    const Value more = evaluate(*expr.star);
    iterate(heap_, more, [&](const Value& value) {
      heap_.push(arguments.positional, value);
      return true;
    });
  }
  if (expr.star_star) {
    const Value more = evaluate(*expr.star_star);
    if (!more.is(Kind::kDict)) fault("the argument after ** must be a mapping, not {}", type_name(more));
    for (const auto& [key, value] : more.dict().items) {
      if (!key.is(Kind::kString)) fault("keywords must be strings");
      heap_.hold(sizeof(Value));
      for (const auto& [name, other] : arguments.keywords)
        if (name == key.text()) fault("got multiple values for keyword argument '{}'", name);
      arguments.keywords.emplace_back(key.text(), value);
    }
  }
  return arguments;
}

Value Interpreter::evaluate_call(const Expr& expr, const Value* caller) {
  const Value callee = evaluate(*expr.operands[0]);
  Arguments arguments = evaluate_arguments(expr);
  if (caller) arguments.keywords.emplace_back("caller", *caller);
  line_ = expr.line, column_ = expr.column;
  return call(callee, arguments);
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  switch (callee.kind) {
    case Kind::kUndefined:
      fault_undefined(callee);
    case Kind::kMacro:
      return call_macro(callee.macro(), arguments);
    case Kind::kMethod:
      return call_method(callee.method().self, callee.method().name, arguments);
    case Kind::kFunction:
      return call_function(callee.function().which, arguments);
    case Kind::kJoiner: {
      auto& joiner = callee.joiner();
      if (std::exchange(joiner.used, true)) return joiner.separator;
      return heap_.string("");
    }
    case Kind::kLoop: {
      const LoopObject& loop = callee.loop();
      if (!loop.stmt->recursive) fault("The loop must have the 'recursive' marker to be called recursively.");
      const Bound b(arguments, "loop", {"iterable"}, 1);
      std::string out;
      run_loop(*loop.stmt, *b[0], loop.outer, loop.depth0 + 1, out);
      return heap_.string(std::move(out));
    }
    default:
      fault("'{}' object is not callable", type_name(callee));
  }
}

Value Interpreter::call_method(const Value& self, std::string_view name, const Arguments& arguments) {
  return self.is(Kind::kString) ? call_string_method(heap_, self, name, arguments)
                                : call_container_method(heap_, self, name, arguments);
}

Value Interpreter::evaluate_filter(const Expr& expr, const Value* input) {
  // A chain of filters in a filter block ends in a null operand, which stands for the block's text.
  const Value value = expr.operands[0] ? (input && expr.operands[0]->kind == ExprKind::kFilter
                                              ? evaluate_filter(*expr.operands[0], input)
                                              : evaluate(*expr.operands[0]))
                                       : *input;
  const Arguments arguments = evaluate_arguments(expr);
  line_ = expr.line, column_ = expr.column;
  return filter(expr.name, value, arguments);
}

Value Interpreter::filter(std::string_view name, const Value& value, const Arguments& arguments) {
  const Level level(*this);
  heap_.step();
  if (auto result = text_filter(*this, name, value, arguments)) return std::move(*result);
  if (auto result = sequence_filter(*this, name, value, arguments)) return std::move(*result);
  if (auto result = number_filter(*this, name, value, arguments)) return std::move(*result);
  fault("there is no filter named '{}'", name);
}

bool Interpreter::test(std::string_view name, const Value& value, const Arguments& arguments) {
  heap_.step();
  if (const auto result = builtin_test(*this, name, value, arguments)) return *result;
  fault("there is no test named '{}'", name);
}

}  // namespace jinja
}  // namespace spillway
