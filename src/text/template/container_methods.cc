#include <algorithm>
#include <cmath>

#include "text/template/loop.h"
#include "text/template/methods.h"
#include "text/template/operators.h"

namespace spillway {
namespace jinja {
namespace {

constexpr std::string_view kStringMethods[] = {
    "capitalize", "casefold",     "center",       "count",   "encode",     "endswith",    "expandtabs",
    "find",       "format",       "format_map",   "index",   "isalnum",    "isalpha",     "isascii",
    "isdecimal",  "isdigit",      "isidentifier", "islower", "isnumeric",  "isprintable", "isspace",
    "istitle",    "isupper",      "join",         "ljust",   "lower",      "lstrip",      "maketrans",
    "partition",  "removeprefix", "removesuffix", "replace", "rfind",      "rindex",      "rjust",
    "rpartition", "rsplit",       "rstrip",       "split",   "splitlines", "startswith",  "strip",
    "swapcase",   "title",        "translate",    "upper",   "zfill"};
constexpr std::string_view kListMethods[] = {"append", "clear", "copy",   "count",   "extend", "index",
                                             "insert", "pop",   "remove", "reverse", "sort"};
constexpr std::string_view kTupleMethods[] = {"count", "index"};
constexpr std::string_view kDictMethods[] = {"clear", "copy",    "fromkeys",   "get",    "items", "keys",
                                             "pop",   "popitem", "setdefault", "update", "values"};
constexpr std::string_view kLoopMethods[] = {"changed", "cycle"};
constexpr std::string_view kCyclerMethods[] = {"next", "reset"};
constexpr std::string_view kIntMethods[] = {"bit_length"};
constexpr std::string_view kFloatMethods[] = {"is_integer"};

template <size_t N>
bool among(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Value find_in_list(Heap& heap, const Value& self, const Arguments& arguments) {
  const Bound b(arguments, "index", {"value", "start", "stop"}, 1);
  const Values items = to_values(heap, self);
  const auto length = static_cast<Int>(items.size());
  const auto clamp = [&](size_t which, Int otherwise) {
    const Int v = b.integer(which, otherwise);
    return std::clamp<Int>(v < 0 ? v + length : v, 0, length);
  };
  for (Int i = clamp(1, 0); i < clamp(2, length); ++i) {
    heap.step();
    if (equal(items[static_cast<size_t>(i)], *b[0])) return Value::of(i);
  }
  fault("the value is not in the {}", type_name(self));
}

Value make_view(Heap& heap, const Value& self, ViewOf what) {
  auto* view = heap.make<ViewObject>();
  view->of = &self.dict();
  view->what = what;
  return Value::of(Kind::kView, view);
}

Value call_dict_method(Heap& heap, const Value& self, std::string_view name, const Arguments& arguments) {
  if (name == "keys") return Bound(arguments, name, {}, 0), make_view(heap, self, ViewOf::kKeys);
  if (name == "values") return Bound(arguments, name, {}, 0), make_view(heap, self, ViewOf::kValues);
  if (name == "items") return Bound(arguments, name, {}, 0), make_view(heap, self, ViewOf::kItems);
  if (name == "get") {
    const Bound b(arguments, name, {"key", "default"}, 1);
    hash(*b[0]);  // faults on what can't be a key
    if (const Value* found = self.dict().find(*b[0])) return *found;
    return b.given(1) ? *b[1] : Value::none();
  }
  if (name == "copy") {
    auto* copy = heap.make<DictObject>();
    for (const auto& [key, value] : self.dict().items) {
      heap.step();
      heap.hold(2 * sizeof(Value));
      copy->set(key, value);
    }
    return Value::of(Kind::kDict, copy);
  }
  fault("the dict method '{}' is not supported", name);
}

Value call_loop_method(const Value& self, std::string_view name, const Arguments& arguments, Heap& heap) {
  LoopObject& loop = self.loop();
  if (name == "cycle") {
    if (arguments.positional.empty()) fault("no items for cycling given");
    return arguments.positional[static_cast<size_t>(loop.index0) % arguments.positional.size()];
  }
  const Value now = heap.tuple(arguments.positional);
  const bool changed = !loop.changed || !equal(*loop.changed, now);
  if (changed) loop.changed = now;
  return Value::of(changed);
}

}  // namespace

bool has_method(const Value& value, std::string_view name) {
  switch (value.kind) {
    case Kind::kString:
      return among(kStringMethods, name);
    case Kind::kList:
      return among(kListMethods, name);
    case Kind::kTuple:
    case Kind::kRange:
      return among(kTupleMethods, name);
    case Kind::kDict:
      return among(kDictMethods, name);
    case Kind::kLoop:
      return among(kLoopMethods, name);
    case Kind::kCycler:
      return among(kCyclerMethods, name);
    case Kind::kBool:
    case Kind::kInt:
      return among(kIntMethods, name);
    case Kind::kFloat:
      return among(kFloatMethods, name);
    default:
      return false;
  }
}

bool is_refused(const Value& value, std::string_view name) {
  if (value.is(Kind::kList))
    return name == "append" || name == "clear" || name == "extend" || name == "insert" || name == "pop" ||
           name == "remove" || name == "reverse" || name == "sort";
  if (value.is(Kind::kDict))
    return name == "clear" || name == "pop" || name == "popitem" || name == "setdefault" || name == "update";
  return false;
}

Value call_container_method(Heap& heap, const Value& self, std::string_view name,
                            const Arguments& arguments) {
  switch (self.kind) {
    case Kind::kDict:
      return call_dict_method(heap, self, name, arguments);
    case Kind::kLoop:
      return call_loop_method(self, name, arguments, heap);
    case Kind::kCycler: {
      auto& cycler = self.cycler();
      if (name == "reset") return cycler.position = 0, Value::none();
      const Value value = cycler.items[cycler.position];
      cycler.position = (cycler.position + 1) % cycler.items.size();
      return value;
    }
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      if (name == "index") return find_in_list(heap, self, arguments);
      if (name == "count") {
        const Bound b(arguments, name, {"value"}, 1);
        size_t count = 0;
        for (const Value& item : to_values(heap, self)) {
          count += equal(item, *b[0]);
        }
        return Value::size(count);
      }
      if (name == "copy") return heap.list(to_values(heap, self));
      break;
    case Kind::kBool:
    case Kind::kInt: {
      Int left = self.as_int() < 0 ? -self.as_int() : self.as_int();
      size_t bits = 0;
      for (; left > 0; left >>= 1) ++bits;
      return Value::size(bits);
    }
    case Kind::kFloat:
      return Value::of(std::isfinite(self.real) && self.real == std::trunc(self.real));
    default:
      break;
  }
  fault("the {} method '{}' is not supported", type_name(self), name);
}

}  // namespace jinja
}  // namespace spillway
