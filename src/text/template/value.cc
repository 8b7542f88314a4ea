#include "text/template/value.h"

#include <cmath>
#include <cstring>

#include "base/assert.h"
#include "base/limits.h"
#include "text/template/loop.h"
#include "text/template/macro.h"
#include "text/template/utf8.h"

namespace spillway {
namespace jinja {

Str::Str(std::string bytes, Heap* owner)
    : text(std::move(bytes)), length(utf8_length(text)), heap(owner), charged(text.size() + sizeof(Str)) {
  if (heap) heap->hold(charged);
}

Str::~Str() {
  if (heap) heap->held_ -= charged;
}

Value Value::none() {
  Value v;
  v.kind = Kind::kNone;
  return v;
}

Value Value::of(bool b) {
  Value v;
  v.kind = Kind::kBool;
  v.boolean = b;
  return v;
}

Value Value::of(Int i) {
  Value v;
  v.kind = Kind::kInt;
  v.integer = i;
  return v;
}

Value Value::of(double d) {
  Value v;
  v.kind = Kind::kFloat;
  v.real = d;
  return v;
}

Value Value::of(StrRef s) {
  Value v;
  v.kind = Kind::kString;
  v.str = std::move(s);
  return v;
}

Value Value::of(Kind kind, Object* object) {
  Value v;
  v.kind = kind;
  v.object = object;
  return v;
}

ListObject& Value::list() const {
  SW_ASSERT(is_sequence());
  return *static_cast<ListObject*>(object);
}
DictObject& Value::dict() const {
  SW_ASSERT(is(Kind::kDict));
  return *static_cast<DictObject*>(object);
}
RangeObject& Value::range() const {
  SW_ASSERT(is(Kind::kRange));
  return *static_cast<RangeObject*>(object);
}
ViewObject& Value::view() const {
  SW_ASSERT(is(Kind::kView));
  return *static_cast<ViewObject*>(object);
}
IteratorObject& Value::iterator() const {
  SW_ASSERT(is(Kind::kIterator));
  return *static_cast<IteratorObject*>(object);
}
NamespaceObject& Value::ns() const {
  SW_ASSERT(is(Kind::kNamespace));
  return *static_cast<NamespaceObject*>(object);
}
MacroObject& Value::macro() const {
  SW_ASSERT(is(Kind::kMacro));
  return *static_cast<MacroObject*>(object);
}
MethodObject& Value::method() const {
  SW_ASSERT(is(Kind::kMethod));
  return *static_cast<MethodObject*>(object);
}
FunctionObject& Value::function() const {
  SW_ASSERT(is(Kind::kFunction));
  return *static_cast<FunctionObject*>(object);
}
LoopObject& Value::loop() const {
  SW_ASSERT(is(Kind::kLoop));
  return *static_cast<LoopObject*>(object);
}
CyclerObject& Value::cycler() const {
  SW_ASSERT(is(Kind::kCycler));
  return *static_cast<CyclerObject*>(object);
}
JoinerObject& Value::joiner() const {
  SW_ASSERT(is(Kind::kJoiner));
  return *static_cast<JoinerObject*>(object);
}

// ---- dictionaries

std::optional<size_t> DictObject::index_of(const Value& key) const {
  if (items.size() <= kLinear) {
    for (size_t i = 0; i < items.size(); ++i)
      if (equal(items[i].first, key)) return i;
    return std::nullopt;
  }
  const auto [begin, end] = index_.equal_range(hash(key));
  for (auto it = begin; it != end; ++it)
    if (equal(items[it->second].first, key)) return it->second;
  return std::nullopt;
}

const Value* DictObject::find(const Value& key) const {
  const auto at = index_of(key);
  return at ? &items[*at].second : nullptr;
}

const Value* DictObject::find(std::string_view key) const {
  if (items.size() <= kLinear) {
    for (const auto& [k, v] : items)
      if (k.is(Kind::kString) && k.text() == key) return &v;
    return nullptr;
  }
  return find(Value::of(std::make_shared<Str>(std::string(key), nullptr)));
}

void DictObject::set(const Value& key, Value value) {
  const uint64_t h = hash(key);
  if (const auto at = index_of(key)) {
    items[*at].second = std::move(value);
    return;
  }
  items.emplace_back(key, std::move(value));
  if (items.size() == kLinear + 1) {
    for (size_t i = 0; i < items.size(); ++i) index_.emplace(hash(items[i].first), static_cast<uint32_t>(i));
  } else if (items.size() > kLinear) {
    index_.emplace(h, static_cast<uint32_t>(items.size() - 1));
  }
}

// ---- the heap

namespace {
thread_local Heap* heap_of_this_thread = nullptr;
}  // namespace

Heap::Heap() : outer_(heap_of_this_thread) { heap_of_this_thread = this; }

Heap::~Heap() {
  heap_of_this_thread = outer_;
  // Strings inside the objects count themselves off: the objects go before the counter.
  objects_.clear();
}

void Heap::step(uint64_t count) {
  steps_ += count;
  if (steps_ > limits::kMaxTemplateSteps)
    fault("the template did more than {} steps: it does not seem to end", limits::kMaxTemplateSteps);
}

void Heap::step_of_this_thread() {
  if (heap_of_this_thread != nullptr) heap_of_this_thread->step();
}

void Heap::hold(uint64_t bytes) {
  if (bytes > limits::kMaxTemplateMemoryBytes || held_ > limits::kMaxTemplateMemoryBytes - bytes)
    fault("the template needs more than {} MiB of memory", limits::kMaxTemplateMemoryBytes >> 20);
  held_ += bytes;
}

Value Heap::string(std::string text) {
  step(1 + text.size() / 256);  // copying text is work too
  return Value::of(std::make_shared<Str>(std::move(text), this));
}

Value Heap::list(Values items) {
  auto* object = make<ListObject>();
  object->items = std::move(items);
  return Value::of(Kind::kList, object);
}

Value Heap::tuple(Values items) {
  auto* object = make<ListObject>();
  object->items = std::move(items);
  return Value::of(Kind::kTuple, object);
}

Value Heap::pair(Value a, Value b) {
  Values items;
  items.reserve(2);
  push(items, std::move(a));
  push(items, std::move(b));
  return tuple(std::move(items));
}

Value Heap::iterator(Values items, const char* type) {
  auto* object = make<IteratorObject>();
  object->items = std::move(items);
  object->type = type;
  return Value::of(Kind::kIterator, object);
}

Value Heap::undefined(std::string_view name, const char* owner) {
  Value v;
  v.owner = owner;
  v.str = std::make_shared<Str>(std::string(name), this);
  return v;
}

Value Heap::undefined_message(std::string_view message) { return undefined(message, ""); }

Value Heap::method(const Value& self, std::string_view name) {
  auto* object = make<MethodObject>();
  object->self = self;
  object->name = name;
  return Value::of(Kind::kMethod, object);
}

// ---- properties

const char* type_name(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return value.markup ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kRange:
      return "range";
    case Kind::kView:
      switch (value.view().what) {
        case ViewOf::kKeys:
          return "dict_keys";
        case ViewOf::kValues:
          return "dict_values";
        case ViewOf::kItems:
          return "dict_items";
      }
      return "dict_keys";
    case Kind::kIterator:
      return value.iterator().type;
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kMacro:
      return "Macro";
    case Kind::kMethod:
      return "builtin_function_or_method";
    case Kind::kFunction:
      return "function";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kJoiner:
      return "Joiner";
  }
  return "object";
}

std::string undefined_text(const Value& value) {
  std::string name = value.str ? value.text() : "value";
  if (!value.owner) return fmt::format("'{}' is undefined", name);
  if (*value.owner == 0) return name;
  if (std::strcmp(value.owner, "NoneType") == 0) return fmt::format("'None' has no attribute '{}'", name);
  return fmt::format("'{} object' has no attribute '{}'", value.owner, name);
}

void fault_undefined(const Value& value) { fault("{}", undefined_text(value)); }

bool truthy(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return value.boolean;
    case Kind::kInt:
      return value.integer != 0;
    case Kind::kFloat:
      return value.real != 0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple:
      return !value.list().items.empty();
    case Kind::kDict:
      return !value.dict().items.empty();
    case Kind::kRange:
      return value.range().length > 0;
    case Kind::kView:
      return !value.view().of->items.empty();
    default:
      return true;
  }
}

bool equal(const Value& a, const Value& b, int depth) {
  Heap::step_of_this_thread();
  if (depth > kMaxValueDepth) fault("a value is nested more than {} deep", kMaxValueDepth);
  if (a.is_number() && b.is_number()) {
    if (a.is(Kind::kFloat) || b.is(Kind::kFloat)) return a.as_double() == b.as_double();
    return a.as_int() == b.as_int();
  }
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      return a.str == b.str || a.text() == b.text();
    case Kind::kList:
    case Kind::kTuple: {
      const auto &x = a.list().items, &y = b.list().items;
      if (x.size() != y.size()) return false;
      for (size_t i = 0; i < x.size(); ++i)
        if (!equal(x[i], y[i], depth + 1)) return false;
      return true;
    }
    case Kind::kDict: {
      const auto &x = a.dict(), &y = b.dict();
      if (x.items.size() != y.items.size()) return false;
      for (const auto& [key, value] : x.items) {
        const Value* other = y.find(key);
        if (!other || !equal(value, *other, depth + 1)) return false;
      }
      return true;
    }
    case Kind::kRange: {
      const auto &x = a.range(), &y = b.range();
      return x.length == y.length &&
             (x.length == 0 || (x.start == y.start && (x.length == 1 || x.step == y.step)));
    }
    case Kind::kMethod:
      return a.method().name == b.method().name && same_object(a.method().self, b.method().self);
    default:
      return a.object == b.object;
  }
}

bool same_object(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kNone:
      return true;
    case Kind::kBool:
      return a.boolean == b.boolean;
    case Kind::kInt:
      return a.integer == b.integer;
    case Kind::kFloat:
      return a.real == b.real;
    case Kind::kString:
      return a.str == b.str || a.text() == b.text();  // CPython shares equal literals
    case Kind::kUndefined:
      return a.str == b.str;
    default:
      return a.object == b.object;
  }
}

uint64_t hash(const Value& value, int depth) {
  Heap::step_of_this_thread();
  if (depth > kMaxValueDepth) fault("a value is nested more than {} deep", kMaxValueDepth);
  switch (value.kind) {
    case Kind::kUndefined:
      return 1;
    case Kind::kNone:
      return 2;
    case Kind::kBool:
    case Kind::kInt:
      return std::hash<double>()(value.as_double());
    case Kind::kFloat:
      return std::hash<double>()(value.real);
    case Kind::kString:
      return std::hash<std::string>()(value.text());
    case Kind::kTuple: {
      uint64_t h = 3;
      for (const Value& item : value.list().items) h = h * 1000003 + hash(item, depth + 1);
      return h;
    }
    case Kind::kList:
    case Kind::kDict:
      fault("unhashable type: '{}'", type_name(value));
    default:
      return std::hash<const void*>()(value.object);
  }
}

}  // namespace jinja
}  // namespace spillway
