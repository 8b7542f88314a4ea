// The syntax tree of a template. Chains of left-associative operators are one node with many operands, so
// that a long `a + b + c + ...` is flat; everything else that nests is limited in height by the parser, which
// makes walks and the destructor safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/template/value.h"

namespace spillway {
namespace jinja {

enum class ExprKind : uint8_t {
  kConst,
  kName,
  kList,
  kTuple,
  kDict,  // operands: key, value, key, value...
  kNot,
  kNegate,
  kPlus,
  kArithmetic,  // operands joined by ops (+ - * / // % **), left to right
  kConcat,      // ~
  kCompare,     // operands joined by ops, chained as in Python: a < b < c
  kAnd,
  kOr,
  kCondition,  // operands: value, test, other value or null
  kAttribute,  // operands[0].name
  kItem,       // operands[0][operands[1]]
  kSlice,      // operands: start, stop, step, each may be null. Only below kItem
  kCall,       // operands[0](args)
  kFilter,     // operands[0]|name(args); operands[0] is null in a filter block
  kTest,       // operands[0] is name(args)
};

enum class Op : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Keyword {
  std::string name;
  ExprPtr value;
};

struct Expr {
  ExprKind kind = ExprKind::kConst;
  uint32_t line = 0, column = 0;
  uint32_t height = 1;
  Value value;          // kConst
  std::string name;     // kName, kAttribute, kFilter, kTest
  StrRef name_text;     // the same, as a value (kName, kAttribute)
  uint32_t symbol = 0;  // kName: number of the name, see Symbols
  std::vector<ExprPtr> operands;
  std::vector<Op> ops;
  std::vector<ExprPtr> arguments;  // kCall, kFilter, kTest
  std::vector<Keyword> keywords;
  ExprPtr star, star_star;  // *args, **kwargs
};

// What an assignment writes to.
struct Target {
  enum class Kind : uint8_t { kName, kTuple, kAttribute } kind = Kind::kName;
  uint32_t line = 0, column = 0;
  uint32_t symbol = 0;        // kName; kAttribute: the namespace
  std::string name;           // kName; kAttribute: the namespace, for messages
  std::string attribute;      // kAttribute
  std::vector<Target> items;  // kTuple
};

enum class StmtKind : uint8_t {
  kText,
  kOutput,
  kFor,
  kIf,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kBreak,
  kContinue,
  kScope,  // {% generation %}: a body that is simply run
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct Branch {
  ExprPtr test;  // null: else
  Body body;
};

struct Parameter {
  std::string name;
  uint32_t symbol = 0;
  ExprPtr default_value;  // may be null
};

struct Stmt {
  StmtKind kind = StmtKind::kText;
  uint32_t line = 0, column = 0;
  uint32_t height = 1;
  std::string text;             // kText; kMacro: its name
  uint32_t symbol = 0;          // kMacro: its name
  std::vector<ExprPtr> values;  // kOutput; kWith
  Target target;                // kFor, kSet, kSetBlock
  std::vector<Target> targets;  // kWith
  ExprPtr expression;  // kFor: iterated; kSet: value; kSetBlock, kFilterBlock: filters; kCallBlock: the call
  ExprPtr test;        // kFor: its if
  Body body, else_body;                                                 // else_body: kFor
  std::vector<Branch> branches;                                         // kIf
  std::vector<Parameter> parameters;                                    // kMacro, kCallBlock
  bool recursive = false;                                               // kFor
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;  // kMacro, kCallBlock
};

// Names of variables, numbered, so that a scope compares numbers.
class Symbols {
 public:
  uint32_t number(std::string_view name);
  const std::string& name(uint32_t number) const { return names_[number]; }
  size_t size() const { return names_.size(); }
  // The number of a name that the template contains, or nothing.
  std::optional<uint32_t> find(std::string_view name) const;

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<std::string> names_;
};

struct Tree {
  Symbols symbols;
  Body body;
};

}  // namespace jinja
}  // namespace spillway
