#include "text/template/interpreter.h"

#include <algorithm>

#include "base/assert.h"
#include "base/limits.h"
#include "text/template/filters.h"
#include "text/template/levels.h"
#include "text/template/lexer.h"
#include "text/template/operators.h"
#include "text/template/print.h"

namespace spillway {
namespace jinja {

Interpreter::Interpreter(const Tree& tree, Heap& heap, std::optional<std::chrono::local_seconds> now)
    : tree_(tree), heap_(heap), now_(now), top_(tree.symbols.size()) {
  static constexpr std::pair<std::string_view, Global> kGlobals[] = {
      {"range", Global::kRange},
      {"dict", Global::kDict},
      {"namespace", Global::kNamespace},
      {"cycler", Global::kCycler},
      {"joiner", Global::kJoiner},
      {"raise_exception", Global::kRaiseException},
      {"strftime_now", Global::kStrftimeNow}};
  for (const auto& [name, which] : kGlobals) {
    if (which == Global::kStrftimeNow && !now_) continue;
    auto* function = heap_.make<FunctionObject>();
    function->which = which;
    define(name, Value::of(Kind::kFunction, function));
  }
}

void Interpreter::define(std::string_view name, Value value) {
  if (const auto symbol = tree_.symbols.find(name)) top_[*symbol] = std::move(value);
}

std::string Interpreter::run() {
  std::string out;
  try {
    run_body(tree_.body, out);
  } catch (Fault& f) {
    if (f.kind != Error::Kind::kRefused) f.message = place(line_, column_) + f.message;
    throw;
  }
  return out;
}

Scope* Interpreter::new_scope(Scope* parent) {
  auto* scope = heap_.make<Scope>();
  scope->parent = parent;
  return scope;
}

// ---- statements

Interpreter::Flow Interpreter::run_body(const Body& body, std::string& out) {
  for (const auto& stmt : body) {
    const Flow flow = run_stmt(*stmt, out);
    if (flow != Flow::kOn) return flow;
  }
  return Flow::kOn;
}

Interpreter::Flow Interpreter::run_stmt(const Stmt& stmt, std::string& out) {
  const Level level(*this);
  heap_.step();
  line_ = stmt.line, column_ = stmt.column;
  switch (stmt.kind) {
    case StmtKind::kText:
      heap_.step(stmt.text.size() / 256);
      out += stmt.text;
      check_output(out);
      return Flow::kOn;
    case StmtKind::kOutput:
      run_output(stmt, out);
      return Flow::kOn;
    case StmtKind::kFor:
      run_for(stmt, out);
      return Flow::kOn;
    case StmtKind::kIf:
      return run_if(stmt, out);
    case StmtKind::kSet:
      run_set(stmt);
      return Flow::kOn;
    case StmtKind::kSetBlock:
      return run_set_block(stmt);
    case StmtKind::kMacro:
      run_macro(stmt);
      return Flow::kOn;
    case StmtKind::kCallBlock:
      run_call_block(stmt, out);
      return Flow::kOn;
    case StmtKind::kFilterBlock:
      return run_filter_block(stmt, out);
    case StmtKind::kWith:
      return run_with(stmt, out);
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
    case StmtKind::kScope:
      return run_body(stmt.body, out);
  }
  return Flow::kOn;
}

void Interpreter::run_output(const Stmt& stmt, std::string& out) {
  for (const auto& value : stmt.values) {
    const Value result = evaluate(*value);
    if (result.is(Kind::kString)) heap_.step(result.text().size() / 256);
    append_text(out, result);
  }
}

Interpreter::Flow Interpreter::run_if(const Stmt& stmt, std::string& out) {
  for (const Branch& branch : stmt.branches)
    if (!branch.test || truthy(evaluate(*branch.test))) return run_body(branch.body, out);
  return Flow::kOn;
}

void Interpreter::assign(const Target& target, const Value& value) {
  switch (target.kind) {
    case Target::Kind::kName:
      if (scope_) {
        heap_.hold(sizeof(Value));
        scope_->set(target.symbol, value);
      } else {
        top_[target.symbol] = value;
      }
      return;
    case Target::Kind::kTuple: {
      if (!iterable(value)) {
        line_ = target.line, column_ = target.column;
        fault("cannot unpack non-iterable {} object", type_name(value));
      }
      const Values parts = to_values(heap_, value);
      if (parts.size() != target.items.size()) {
        line_ = target.line, column_ = target.column;
        fault("{} values to unpack, {} expected", parts.size(), target.items.size());
      }
      for (size_t i = 0; i < parts.size(); ++i) assign(target.items[i], parts[i]);
      return;
    }
    case Target::Kind::kAttribute: {
      const Value* found = nullptr;
      for (Scope* scope = scope_; scope && !found; scope = scope->parent) found = scope->find(target.symbol);
      if (!found && top_[target.symbol]) found = &*top_[target.symbol];
      line_ = target.line, column_ = target.column;
      if (!found || !found->is(Kind::kNamespace))
        fault("cannot assign attribute on non-namespace object '{}'", target.name);
      heap_.hold(sizeof(Value));
      found->ns().attributes.set(heap_.string(target.attribute), value);
      return;
    }
  }
}

void Interpreter::run_set(const Stmt& stmt) { assign(stmt.target, evaluate(*stmt.expression)); }

Interpreter::Flow Interpreter::run_set_block(const Stmt& stmt) {
  Scope* const outer = scope_;
  scope_ = new_scope(outer);
  std::string text;
  const Flow flow = run_body(stmt.body, text);
  scope_ = outer;
  if (flow != Flow::kOn) return flow;
  Value value = heap_.string(std::move(text));
  if (stmt.expression) value = evaluate_filter(*stmt.expression, &value);
  assign(stmt.target, value);
  return Flow::kOn;
}

Interpreter::Flow Interpreter::run_filter_block(const Stmt& stmt, std::string& out) {
  Scope* const outer = scope_;
  scope_ = new_scope(outer);
  std::string text;
  const Flow flow = run_body(stmt.body, text);
  if (flow == Flow::kOn) {
    const Value value = heap_.string(std::move(text));
    append_text(out, evaluate_filter(*stmt.expression, &value));
  }
  scope_ = outer;
  return flow;
}

Interpreter::Flow Interpreter::run_with(const Stmt& stmt, std::string& out) {
  Scope* const outer = scope_;
  Scope* const inner = new_scope(outer);
  for (size_t i = 0; i < stmt.values.size(); ++i) {
    const Value value = evaluate(*stmt.values[i]);  // in the outer scope: they don't see each other
    scope_ = inner;
    assign(stmt.targets[i], value);
    scope_ = outer;
  }
  scope_ = inner;
  const Flow flow = run_body(stmt.body, out);
  scope_ = outer;
  return flow;
}

// ---- loops

// The next element that passes the loop's if; false at the end. The if is evaluated when the element is asked
// for, so it sees what earlier rounds have changed in a namespace.
bool Interpreter::pull(LoopObject& loop, Value& item) {
  while (loop.next < loop.source.size()) {
    heap_.step();
    item = loop.source[loop.next++];
    if (!loop.stmt->test || loop.rest_passed) return true;
    Scope* const before = scope_;
    scope_ = new_scope(loop.outer);
    assign(loop.stmt->target, item);
    const bool passes = truthy(evaluate(*loop.stmt->test));
    scope_ = before;
    if (passes) return true;
  }
  return false;
}

const Value* Interpreter::peek(LoopObject& loop) {
  if (!loop.after) {
    Value item;
    if (pull(loop, item)) loop.after = std::move(item);
  }
  return loop.after ? &*loop.after : nullptr;
}

void Interpreter::run_for(const Stmt& stmt, std::string& out) {
  const Value iterated = evaluate(*stmt.expression);
  run_loop(stmt, iterated, scope_, 0, out);
}

void Interpreter::run_loop(const Stmt& stmt, const Value& iterated, Scope* outer, int64_t depth0,
                           std::string& out) {
  static constexpr uint32_t kLoopSymbol = 0;  // parse_template numbers "loop" first
  Scope* const before = scope_;
  auto* loop = heap_.make<LoopObject>();
  loop->stmt = &stmt;
  loop->outer = outer;
  loop->depth0 = depth0;
  loop->source = to_values(heap_, iterated);
  if (!stmt.test) loop->length = static_cast<int64_t>(loop->source.size());
  const Value loop_value = Value::of(Kind::kLoop, loop);
  // One scope for all rounds, emptied between them: a macro made in the body sees its variables change, as a
  // Python closure would.
  Scope* const inner = new_scope(outer);
  bool completed = false;
  for (;;) {
    Value item;
    if (loop->after) {
      item = std::move(*loop->after);
      loop->after.reset();
    } else if (!pull(*loop, item)) {
      break;
    }
    ++loop->index0;
    loop->before = std::move(loop->current);
    loop->current = item;
    inner->values.clear();
    scope_ = inner;
    scope_->set(kLoopSymbol, loop_value);
    assign(stmt.target, item);
    const Flow flow = run_body(stmt.body, out);
    scope_ = before;
    if (flow == Flow::kBreak) break;
    completed |= flow == Flow::kOn;
  }
  // As the reference does it: the else runs unless a round came to its end, so also after break or continue
  // in all.
  if (!completed && !stmt.else_body.empty()) {
    scope_ = new_scope(outer);
    run_body(stmt.else_body, out);
    scope_ = before;
  }
}

Value Interpreter::loop_attribute(LoopObject& loop, std::string_view name) {
  const auto number = [](int64_t v) { return Value::of(static_cast<Int>(v)); };
  const auto length = [&] {
    if (!loop.length) {  // pull everything, and put it back
      int64_t count = loop.index0 + 1 + loop.after.has_value();
      Values rest;
      Value item;
      while (pull(loop, item)) heap_.push(rest, item), ++count;
      loop.source = std::move(rest);
      loop.next = 0;
      loop.rest_passed = true;
      loop.length = count;
    }
    return *loop.length;
  };
  if (name == "index0") return number(loop.index0);
  if (name == "index") return number(loop.index0 + 1);
  if (name == "first") return Value::of(loop.index0 == 0);
  if (name == "last") return Value::of(peek(loop) == nullptr);
  if (name == "length") return number(length());
  if (name == "revindex") return number(length() - loop.index0);
  if (name == "revindex0") return number(length() - loop.index0 - 1);
  if (name == "depth0") return number(loop.depth0);
  if (name == "depth") return number(loop.depth0 + 1);
  if (name == "previtem")
    return loop.index0 == 0 ? heap_.undefined_message("there is no previous item") : loop.before;
  if (name == "nextitem") {
    const Value* next = peek(loop);
    return next ? *next : heap_.undefined_message("there is no next item");
  }
  return heap_.undefined(name, "jinja2.runtime.LoopContext");
}

// ---- macros

void Interpreter::run_macro(const Stmt& stmt) {
  auto* macro = heap_.make<MacroObject>();
  macro->stmt = &stmt;
  macro->scope = scope_;
  macro->name = stmt.text;
  const Value value = Value::of(Kind::kMacro, macro);
  if (scope_) {
    scope_->set(stmt.symbol, value);
  } else {
    top_[stmt.symbol] = value;
  }
}

void Interpreter::run_call_block(const Stmt& stmt, std::string& out) {
  auto* macro = heap_.make<MacroObject>();
  macro->stmt = &stmt;
  macro->scope = scope_;
  macro->name = "caller";
  const Value caller = Value::of(Kind::kMacro, macro);
  append_text(out, evaluate_call(*stmt.expression, &caller));
}

Value Interpreter::call_macro(const MacroObject& macro, const Arguments& arguments) {
  static constexpr uint32_t kCaller = 1, kVarargs = 2, kKwargs = 3;  // as parse_template numbers them
  const Stmt& stmt = *macro.stmt;
  const auto& parameters = stmt.parameters;
  std::vector<const Value*> given(parameters.size(), nullptr);
  const size_t positional = std::min(parameters.size(), arguments.positional.size());
  for (size_t i = 0; i < positional; ++i) given[i] = &arguments.positional[i];
  const Value* caller = nullptr;
  DictObject* kwargs = stmt.uses_kwargs ? heap_.make<DictObject>() : nullptr;
  for (const auto& [name, value] : arguments.keywords) {
    size_t at = 0;
    while (at < parameters.size() && parameters[at].name != name) ++at;
    if (at < parameters.size() && !given[at]) {
      given[at] = &value;
    } else if (name == "caller" && stmt.uses_caller) {
      caller = &value;
    } else if (kwargs) {
      kwargs->set(heap_.string(name), value);
    } else {
      fault("macro '{}' takes no keyword argument '{}'", macro.name, name);
    }
  }
  if (arguments.positional.size() > parameters.size() && !stmt.uses_varargs)
    fault("macro '{}' takes not more than {} argument(s)", macro.name, parameters.size());

  Scope* const before = scope_;
  Scope* const inner = new_scope(macro.scope);
  scope_ = inner;
  // All parameters first, so that a default sees those before it and not a variable of the same name outside.
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (given[i]) {
      inner->set(parameters[i].symbol, *given[i]);
    } else if (parameters[i].default_value) {
      inner->set(parameters[i].symbol, evaluate(*parameters[i].default_value));
    } else {
      inner->set(parameters[i].symbol,
                 heap_.undefined_message(fmt::format("parameter '{}' was not provided", parameters[i].name)));
    }
  }
  if (stmt.uses_caller) inner->set(kCaller, caller ? *caller : heap_.undefined_message("No caller defined"));
  if (kwargs) inner->set(kKwargs, Value::of(Kind::kDict, kwargs));
  if (stmt.uses_varargs) {
    Values rest;
    for (size_t i = parameters.size(); i < arguments.positional.size(); ++i)
      heap_.push(rest, arguments.positional[i]);
    inner->set(kVarargs, heap_.tuple(std::move(rest)));
  }
  std::string out;
  run_body(stmt.body, out);
  scope_ = before;
  return heap_.string(std::move(out));
}

}  // namespace jinja
}  // namespace spillway
