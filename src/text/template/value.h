// The values of a running template: Python's, as far as templates meet them.
//
// A Value is small and copied freely. Strings are shared and counted. Everything else that has contents
// (lists, dictionaries, macros, scopes) is an Object owned by the rendering's Heap and freed all at once at
// its end: values may then refer to each other in circles and in chains of any length without a recursive
// destructor. The price, garbage that stays until the end of the rendering, is bounded by the Heap's budget.
//
// Containers never change once they are built (the sandbox forbids it to templates), except a namespace.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/template/fault.h"

namespace spillway {
namespace jinja {

// Python's integers have no bound. 128 bits hold every 64-bit number of a tool's JSON schema, signed or not,
// and what templates count; beyond that is an error, never a wrapped number.
__extension__ typedef __int128 Int;

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kRange,
  kView,      // dict.keys(), .values(), .items()
  kIterator,  // what map, select, batch... give: can be walked once
  kNamespace,
  kMacro,
  kMethod,    // a method bound to its object: "abc".upper
  kFunction,  // a global: range, namespace, raise_exception
  kLoop,
  kCycler,
  kJoiner,
};

class Heap;

struct Str {
  std::string text;  // valid UTF-8
  size_t length;     // code points
  Heap* heap;        // whose budget it counts against; null for the template's own constants
  size_t charged;

  Str(std::string bytes, Heap* owner);
  ~Str();
  Str(const Str&) = delete;
  Str& operator=(const Str&) = delete;
  bool ascii() const { return length == text.size(); }
};
using StrRef = std::shared_ptr<const Str>;

struct Object {
  virtual ~Object() = default;
};
struct ListObject;
struct DictObject;
struct RangeObject;
struct ViewObject;
struct IteratorObject;
struct NamespaceObject;
struct MacroObject;
struct MethodObject;
struct FunctionObject;
struct LoopObject;
struct CyclerObject;
struct JoinerObject;

struct Value {
  Kind kind = Kind::kUndefined;
  bool markup = false;  // a string that went through |safe or |escape: adding to it escapes the other side
  union {
    bool boolean;
    double real;
    Object* object;
    const char* owner;  // kUndefined: the type whose attribute was missing, or null for a variable
  };
  Int integer = 0;
  StrRef str;  // kString: the text. kUndefined: the name that was missing, or the whole message

  Value() : owner(nullptr) {}
  static Value none();
  static Value of(bool v);
  static Value of(Int v);
  static Value of(double v);
  static Value of(StrRef v);
  static Value of(Kind kind, Object* object);
  static Value size(size_t v) { return of(static_cast<Int>(v)); }

  bool is(Kind k) const { return kind == k; }
  bool is_number() const { return kind == Kind::kInt || kind == Kind::kFloat || kind == Kind::kBool; }
  bool is_sequence() const { return kind == Kind::kList || kind == Kind::kTuple; }
  const std::string& text() const { return str->text; }  // Requires: kString
  // bool counts as 0 or 1, as in Python. Requires: kInt or kBool
  Int as_int() const { return kind == Kind::kBool ? Int{boolean} : integer; }
  double as_double() const { return kind == Kind::kFloat ? real : static_cast<double>(as_int()); }

  ListObject& list() const;
  DictObject& dict() const;
  RangeObject& range() const;
  ViewObject& view() const;
  IteratorObject& iterator() const;
  NamespaceObject& ns() const;
  MacroObject& macro() const;
  MethodObject& method() const;
  FunctionObject& function() const;
  LoopObject& loop() const;
  CyclerObject& cycler() const;
  JoinerObject& joiner() const;
};

using Values = std::vector<Value>;

struct ListObject : Object {
  Values items;
  bool grouped = false;  // an element of |groupby: a pair with the names grouper and list
};

// Keeps the order of insertion. Keys compare as in Python: 1, 1.0 and True are one key.
struct DictObject : Object {
  std::vector<std::pair<Value, Value>> items;

  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  // Faults on a key that can't be hashed (a list, a dictionary).
  void set(const Value& key, Value value);

 private:
  static constexpr size_t kLinear = 8;  // up to here a walk is quicker than a hash
  std::optional<size_t> index_of(const Value& key) const;
  std::unordered_multimap<uint64_t, uint32_t> index_;
};

struct RangeObject : Object {
  Int start = 0, stop = 0, step = 1;
  size_t length = 0;
};

enum class ViewOf : uint8_t { kKeys, kValues, kItems };
struct ViewObject : Object {
  DictObject* of = nullptr;
  ViewOf what = ViewOf::kKeys;
};

struct IteratorObject : Object {
  Values items;
  size_t next = 0;
  const char* type = "generator";
};

struct NamespaceObject : Object {
  DictObject attributes;
};

struct MethodObject : Object {
  Value self;
  std::string name;
};

struct CyclerObject : Object {
  Values items;
  size_t position = 0;
};

struct JoinerObject : Object {
  Value separator;
  bool used = false;
};

// Owns the objects of one rendering and holds its limits (limits.h, kMaxTemplate...).
class Heap {
 public:
  Heap();
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // One unit of work done; faults when there were too many.
  void step(uint64_t count = 1);
  // The same, of the rendering that this thread is at; nothing where there is none. For what walks through
  // values without a heap at hand: a list that holds another twice, which holds another twice, has 2^depth
  // values to compare and takes no memory.
  static void step_of_this_thread();
  // `bytes` more are held until the end. Faults when it is too much.
  void hold(uint64_t bytes);
  void push(Values& values, Value value) {
    hold(sizeof(Value));
    values.push_back(std::move(value));
  }

  Value string(std::string text);
  Value list(Values items);
  Value tuple(Values items);
  Value pair(Value a, Value b);
  Value iterator(Values items, const char* type = "generator");
  Value undefined(std::string_view name, const char* owner = nullptr);
  Value undefined_message(std::string_view message);
  Value method(const Value& self, std::string_view name);

  template <class T>
  T* make() {
    hold(sizeof(T) + 16);
    auto owned = std::make_unique<T>();
    T* raw = owned.get();
    objects_.push_back(std::move(owned));
    return raw;
  }

 private:
  friend struct Str;
  Heap* const outer_;  // that this thread was at
  uint64_t steps_ = 0;
  uint64_t held_ = 0;
  std::vector<std::unique_ptr<Object>> objects_;
};

// The name of a value's type as Python's messages give it: "dict", "str", "int".
const char* type_name(const Value& value);
// "'x' is undefined" and so on. Requires: kUndefined.
std::string undefined_text(const Value& value);
[[noreturn]] void fault_undefined(const Value& value);

bool truthy(const Value& value);
// Equality is recursive: faults on values nested too deeply.
bool equal(const Value& a, const Value& b, int depth = 0);
bool same_object(const Value& a, const Value& b);
uint64_t hash(const Value& value, int depth = 0);

// Values deeper than this are not compared, printed or turned into JSON. Conversations reach about 20.
inline constexpr int kMaxValueDepth = 200;

}  // namespace jinja
}  // namespace spillway
