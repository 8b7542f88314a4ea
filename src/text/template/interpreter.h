// Runs a syntax tree against variables. Faults travel as exceptions of type Fault, with the place put before
// the message.
#pragma once

#include <chrono>

#include "text/template/arguments.h"
#include "text/template/ast.h"
#include "text/template/loop.h"
#include "text/template/macro.h"

namespace spillway {
namespace jinja {

class Interpreter {
 public:
  Interpreter(const Tree& tree, Heap& heap, std::optional<std::chrono::local_seconds> now);

  // A variable of the template's context. Names that the template does not mention are dropped.
  void define(std::string_view name, Value value);
  std::string run();

  Heap& heap() { return heap_; }
  const std::optional<std::chrono::local_seconds>& now() const { return now_; }

  Value call(const Value& callee, const Arguments& arguments);
  // value|name(arguments), value is name(arguments). Fault where there is no such filter or test.
  Value filter(std::string_view name, const Value& value, const Arguments& arguments);
  bool test(std::string_view name, const Value& value, const Arguments& arguments);

  // value.name and value[key], with the sandbox's rules; undefined where there is nothing.
  Value attribute(const Value& value, std::string_view name);
  Value item(const Value& value, const Value& key);

 private:
  enum class Flow : uint8_t { kOn, kBreak, kContinue };

  // One level of evaluation, counted while it lives: bounds the machine's stack.
  class Level;
  friend class Level;

  Flow run_body(const Body& body, std::string& out);
  Flow run_stmt(const Stmt& stmt, std::string& out);
  void run_output(const Stmt& stmt, std::string& out);
  Flow run_if(const Stmt& stmt, std::string& out);
  void run_for(const Stmt& stmt, std::string& out);
  void run_loop(const Stmt& stmt, const Value& iterated, Scope* outer, int64_t depth0, std::string& out);
  bool pull(LoopObject& loop, Value& item);
  const Value* peek(LoopObject& loop);
  void run_macro(const Stmt& stmt);
  void run_call_block(const Stmt& stmt, std::string& out);
  void run_set(const Stmt& stmt);
  Flow run_set_block(const Stmt& stmt);
  Flow run_filter_block(const Stmt& stmt, std::string& out);
  Flow run_with(const Stmt& stmt, std::string& out);
  void assign(const Target& target, const Value& value);

  Value evaluate(const Expr& expr);
  Value evaluate_const(const Expr& expr);
  Value evaluate_sequence(const Expr& expr);
  Value evaluate_dict(const Expr& expr);
  Value evaluate_arithmetic(const Expr& expr);
  Value evaluate_concat(const Expr& expr);
  Value evaluate_compare(const Expr& expr);
  Value evaluate_logic(const Expr& expr);
  Value evaluate_condition(const Expr& expr);
  Value evaluate_item(const Expr& expr);
  Value evaluate_call(const Expr& expr, const Value* caller);
  Value evaluate_filter(const Expr& expr, const Value* input);
  Arguments evaluate_arguments(const Expr& expr);
  Value lookup(const Expr& name);

  Value call_macro(const MacroObject& macro, const Arguments& arguments);
  Value call_function(Global which, const Arguments& arguments);
  Value call_method(const Value& self, std::string_view name, const Arguments& arguments);
  Value loop_attribute(LoopObject& loop, std::string_view name);

  Scope* new_scope(Scope* parent);

  const Tree& tree_;
  Heap& heap_;
  const std::optional<std::chrono::local_seconds> now_;
  std::vector<std::optional<Value>> top_;  // the top level's variables, by symbol
  Scope* scope_ = nullptr;                 // null at the top level
  uint32_t depth_ = 0;
  uint32_t line_ = 0, column_ = 0;  // of what is being evaluated
};

}  // namespace jinja
}  // namespace spillway
