#include <algorithm>

#include "text/template/filters.h"
#include "text/template/interpreter.h"
#include "text/template/methods.h"
#include "text/template/number.h"
#include "text/template/operators.h"
#include "text/template/print.h"
#include "text/template/utf8.h"

namespace spillway {
namespace jinja {

Value follow(Interpreter& in, Value value, const Value& path, const Value* otherwise) {
  const auto step = [&](const Value& key) {
    value = in.item(value, key);
    if (otherwise && value.is(Kind::kUndefined)) value = *otherwise;
  };
  if (path.is(Kind::kNone)) return value;
  if (!path.is(Kind::kString)) {
    step(path);
    return value;
  }
  const std::string& text = path.text();
  for (size_t at = 0;;) {
    const size_t dot = std::min(text.find('.', at), text.size());
    const std::string part = text.substr(at, dot - at);
    const bool digits = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    step(digits && part.size() < 30 ? Value::of(*parse_int(part)) : in.heap().string(part));
    if (dot >= text.size()) return value;
    at = dot + 1;
  }
}

namespace {

Value lowered(Heap& heap, const Value& value) {
  return value.is(Kind::kString) ? text_like(heap, value, to_lower(value.text())) : value;
}

// The keys by which sort orders: one per comma-separated path, strings in lower case unless told otherwise.
Value sort_key(Interpreter& in, const Value& item, const Value* attribute, bool case_sensitive) {
  Heap& heap = in.heap();
  const auto finish = [&](const Value& v) { return case_sensitive ? v : lowered(heap, v); };
  if (!attribute || attribute->is(Kind::kNone)) return finish(item);
  if (!attribute->is(Kind::kString)) return finish(follow(in, item, *attribute));
  Values keys;
  const std::string& paths = attribute->text();
  for (size_t at = 0;;) {
    const size_t comma = std::min(paths.find(',', at), paths.size());
    heap.push(keys, finish(follow(in, item, heap.string(paths.substr(at, comma - at)))));
    if (comma >= paths.size()) break;
    at = comma + 1;
  }
  return heap.list(std::move(keys));
}

// Stable, like Python's; `reverse` keeps the order of equals too.
Values sorted_by(Heap& heap, std::vector<std::pair<Value, Value>> keyed, bool reverse) {
  const auto before = [&](const auto& a, const auto& b) {
    heap.step();
    return reverse ? less(b.first, a.first) : less(a.first, b.first);
  };
  std::stable_sort(keyed.begin(), keyed.end(), before);
  Values out;
  for (auto& [key, value] : keyed) heap.push(out, std::move(value));
  return out;
}

Value sorted(Interpreter& in, const Value& value, const Arguments& a) {
  const Bound b(a, "sort", {"reverse", "case_sensitive", "attribute"}, 0);
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : to_values(in.heap(), value)) {
    in.heap().hold(2 * sizeof(Value));
    keyed.emplace_back(sort_key(in, item, b[2], b.flag(1, false)), item);
  }
  return in.heap().list(sorted_by(in.heap(), std::move(keyed), b.flag(0, false)));
}

Value dict_sorted(Interpreter& in, const Value& value, const Arguments& a) {
  const Bound b(a, "dictsort", {"case_sensitive", "by", "reverse"}, 0);
  const std::string by = b.text(1, "key");
  if (by != "key" && by != "value") fault("dictsort sorts by 'key' or 'value', not '{}'", by);
  if (value.is(Kind::kUndefined)) fault_undefined(value);
  if (!value.is(Kind::kDict)) fault("dictsort needs a dict, not '{}'", type_name(value));
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, mapped] : value.dict().items) {
    in.heap().hold(2 * sizeof(Value));
    const Value& order = by == "key" ? key : mapped;
    keyed.emplace_back(b.flag(0, false) ? order : lowered(in.heap(), order), in.heap().pair(key, mapped));
  }
  return in.heap().list(sorted_by(in.heap(), std::move(keyed), b.flag(2, false)));
}

Value unique(Interpreter& in, const Value& value, const Arguments& a) {
  const Bound b(a, "unique", {"case_sensitive", "attribute"}, 0);
  DictObject seen;
  Values out;
  for (const Value& item : to_values(in.heap(), value)) {
    Value key = b.given(1) ? follow(in, item, *b[1]) : item;
    if (!b.flag(0, false)) key = lowered(in.heap(), key);
    hash(key);
    if (seen.find(key)) continue;
    in.heap().hold(2 * sizeof(Value));
    seen.set(key, Value::none());
    in.heap().push(out, item);
  }
  return in.heap().iterator(std::move(out));
}

Value extreme(Interpreter& in, const Value& value, const Arguments& a, bool largest) {
  const Bound b(a, largest ? "max" : "min", {"case_sensitive", "attribute"}, 0);
  std::optional<Value> best, best_key;
  for (const Value& item : to_values(in.heap(), value)) {
    Value key = b.given(1) ? follow(in, item, *b[1]) : item;
    if (!b.flag(0, false)) key = lowered(in.heap(), key);
    if (!best || (largest ? less(*best_key, key) : less(key, *best_key))) best = item, best_key = key;
  }
  return best ? *best : in.heap().undefined_message("No aggregated item, sequence was empty.");
}

Value grouped(Interpreter& in, const Value& value, const Arguments& a) {
  const Bound b(a, "groupby", {"attribute", "default", "case_sensitive"}, 1);
  Heap& heap = in.heap();
  const bool case_sensitive = b.flag(2, false);
  const Value* otherwise = b.given(1) && !b[1]->is(Kind::kNone) ? b[1] : nullptr;
  const auto real_key = [&](const Value& item) { return follow(in, item, *b[0], otherwise); };
  const auto key_of = [&](const Value& item) {
    return case_sensitive ? real_key(item) : lowered(heap, real_key(item));
  };
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : to_values(heap, value)) {
    heap.hold(2 * sizeof(Value));
    keyed.emplace_back(key_of(item), item);
  }
  Values groups, members;
  std::optional<Value> key;
  const auto close = [&] {
    if (members.empty()) return;
    const Value head = real_key(members[0]);
    Value group = heap.pair(head, heap.list(std::move(members)));
    group.list().grouped = true;
    heap.push(groups, group);
    members = Values();
  };
  for (const Value& item : sorted_by(heap, std::move(keyed), false)) {
    const Value now = key_of(item);
    if (key && !equal(*key, now)) close();
    key = now;
    heap.push(members, item);
  }
  close();
  return heap.list(std::move(groups));
}

Value joined(Interpreter& in, const Value& value, const Arguments& a) {
  const Bound b(a, "join", {"d", "attribute"}, 0);
  const std::string separator = b.given(0) ? to_text(*b[0]) : "";
  std::string out;
  bool first = true;
  iterate(in.heap(), value, [&](const Value& item) {
    if (!first) out += separator;
    first = false;
    append_text(out, b.given(1) && !b[1]->is(Kind::kNone) ? follow(in, item, *b[1]) : item);
    return true;
  });
  return in.heap().string(std::move(out));
}

Value summed(Interpreter& in, const Value& value, const Arguments& a) {
  const Bound b(a, "sum", {"attribute", "start"}, 0);
  Value total = b.given(1) ? *b[1] : Value::of(Int{0});
  if (total.is(Kind::kString)) fault("sum can't add strings: use join");
  iterate(in.heap(), value, [&](const Value& item) {
    total = arithmetic(in.heap(), Op::kAdd, total,
                       b.given(0) && !b[0]->is(Kind::kNone) ? follow(in, item, *b[0]) : item);
    return true;
  });
  return total;
}

Value batched(Interpreter& in, const Value& value, const Arguments& a) {
  const Bound b(a, "batch", {"linecount", "fill_with"}, 1);
  Heap& heap = in.heap();
  const Int size = b.integer(0, 1);
  Values rows, row;
  for (const Value& item : to_values(heap, value)) {
    if (static_cast<Int>(row.size()) == size) heap.push(rows, heap.list(std::exchange(row, {})));
    heap.push(row, item);
  }
  if (!row.empty()) {
    if (b.given(1) && !b[1]->is(Kind::kNone))
      while (static_cast<Int>(row.size()) < size) heap.step(), heap.push(row, *b[1]);
    heap.push(rows, heap.list(std::move(row)));
  }
  return heap.iterator(std::move(rows));
}

Value sliced(Interpreter& in, const Value& value, const Arguments& a) {
  const Bound b(a, "slice", {"slices", "fill_with"}, 1);
  Heap& heap = in.heap();
  const Values items = to_values(heap, value);
  const Int slices = b.integer(0, 1);
  if (slices == 0) fault("slice into 0 parts");
  Values rows;
  if (slices < 0) return heap.iterator(std::move(rows));
  const Int each = static_cast<Int>(items.size()) / slices, longer = static_cast<Int>(items.size()) % slices;
  size_t at = 0;
  for (Int i = 0; i < slices; ++i) {
    heap.step();
    Values row;
    for (Int k = 0; k < each + (i < longer); ++k) heap.push(row, items[at++]);
    if (i >= longer && b.given(1) && !b[1]->is(Kind::kNone)) heap.push(row, *b[1]);
    heap.push(rows, heap.list(std::move(row)));
  }
  return heap.iterator(std::move(rows));
}

Value mapped(Interpreter& in, const Value& value, const Arguments& a) {
  Heap& heap = in.heap();
  Values out;
  if (!truthy(value)) return heap.iterator(std::move(out));
  if (a.positional.empty()) {
    const Value *attribute = nullptr, *otherwise = nullptr;
    for (const auto& [name, given] : a.keywords) {
      if (name == "attribute") {
        attribute = &given;
      } else if (name == "default") {
        otherwise = given.is(Kind::kNone) ? nullptr : &given;
      } else {
        fault("map has no argument named '{}'", name);
      }
    }
    if (!attribute) fault("map requires a filter argument");
    for (const Value& item : to_values(heap, value)) heap.push(out, follow(in, item, *attribute, otherwise));
    return heap.iterator(std::move(out));
  }
  if (!a.positional[0].is(Kind::kString))
    fault("map needs the name of a filter, not '{}'", type_name(a.positional[0]));
  Arguments rest;
  rest.positional.assign(a.positional.begin() + 1, a.positional.end());
  rest.keywords = a.keywords;
  for (const Value& item : to_values(heap, value))
    heap.push(out, in.filter(a.positional[0].text(), item, rest));
  return heap.iterator(std::move(out));
}

// select, reject, selectattr, rejectattr
Value selected(Interpreter& in, const Value& value, const Arguments& a, bool by_attribute, bool keep) {
  Heap& heap = in.heap();
  Values out;
  if (!truthy(value)) return heap.iterator(std::move(out));
  if (by_attribute && a.positional.empty()) fault("Missing parameter for attribute name");
  const size_t at = by_attribute;
  Arguments rest;
  const bool has_test = a.positional.size() > at;
  if (has_test) {
    if (!a.positional[at].is(Kind::kString))
      fault("the name of a test is a string, not '{}'", type_name(a.positional[at]));
    rest.positional.assign(a.positional.begin() + static_cast<ptrdiff_t>(at) + 1, a.positional.end());
    rest.keywords = a.keywords;
  }
  for (const Value& item : to_values(heap, value)) {
    const Value looked_at = by_attribute ? follow(in, item, a.positional[0]) : item;
    const bool hit = has_test ? in.test(a.positional[at].text(), looked_at, rest) : truthy(looked_at);
    if (hit == keep) heap.push(out, item);
  }
  return heap.iterator(std::move(out));
}

Value reversed(Heap& heap, const Value& value) {
  if (value.is(Kind::kString)) {
    std::string out;
    for (size_t end = value.text().size(); end > 0;) {
      const size_t start = utf8_before(value.text(), end);
      out.append(value.text(), start, end - start);
      end = start;
    }
    return text_like(heap, value, std::move(out));
  }
  if (!iterable(value)) fault("argument must be iterable");
  Values items = to_values(heap, value);
  std::reverse(items.begin(), items.end());
  if (value.is(Kind::kIterator) || value.is(Kind::kUndefined)) return heap.list(std::move(items));
  return heap.iterator(std::move(items), value.is(Kind::kList)    ? "list_reverseiterator"
                                         : value.is(Kind::kDict)  ? "dict_reversekeyiterator"
                                         : value.is(Kind::kRange) ? "range_iterator"
                                                                  : "reversed");
}

Value last_of(Heap& heap, const Value& value) {
  if (value.is(Kind::kUndefined) || value.is(Kind::kIterator) || !iterable(value)) {
    if (value.is(Kind::kUndefined)) return heap.undefined_message("No last item, sequence was empty.");
    fault("'{}' object is not reversible", type_name(value));
  }
  if (const auto length = length_of(value);
      length && *length > 0 && !value.is(Kind::kDict) && !value.is(Kind::kView))
    return *element(heap, value, Value::of(Int{-1}));
  const Values items = to_values(heap, value);
  return items.empty() ? heap.undefined_message("No last item, sequence was empty.") : items.back();
}

Value first_of(Heap& heap, const Value& value) {
  std::optional<Value> first;
  iterate(heap, value, [&](const Value& item) {
    first = item;
    return false;
  });
  return first ? *first : heap.undefined_message("No first item, sequence was empty.");
}

}  // namespace

std::optional<Value> sequence_filter(Interpreter& in, std::string_view name, const Value& value,
                                     const Arguments& a) {
  Heap& heap = in.heap();
  const auto none = [&] { Bound(a, name, {}, 0); };
  if (name == "length" || name == "count") {
    none();
    if (value.is(Kind::kLoop)) return in.attribute(value, "length");
    const auto length = length_of(value);
    if (!length) fault("object of type '{}' has no len()", type_name(value));
    return Value::size(*length);
  }
  if (name == "join") return joined(in, value, a);
  if (name == "default" || name == "d") {
    const Bound b(a, name, {"default_value", "boolean"}, 0);
    if (value.is(Kind::kUndefined) || (b.flag(1, false) && !truthy(value)))
      return b.given(0) ? *b[0] : heap.string("");
    return value;
  }
  if (name == "list") return none(), heap.list(to_values(heap, value));
  if (name == "first") return none(), first_of(heap, value);
  if (name == "last") return none(), last_of(heap, value);
  if (name == "items") {
    none();
    if (value.is(Kind::kUndefined)) return heap.iterator({});
    if (!value.is(Kind::kDict)) fault("Can only get item pairs from a mapping.");
    Values pairs;
    for (const auto& [key, mapped_to] : value.dict().items) heap.push(pairs, heap.pair(key, mapped_to));
    return heap.iterator(std::move(pairs));
  }
  if (name == "map") return mapped(in, value, a);
  if (name == "select") return selected(in, value, a, false, true);
  if (name == "reject") return selected(in, value, a, false, false);
  if (name == "selectattr") return selected(in, value, a, true, true);
  if (name == "rejectattr") return selected(in, value, a, true, false);
  if (name == "sort") return sorted(in, value, a);
  if (name == "dictsort") return dict_sorted(in, value, a);
  if (name == "unique") return unique(in, value, a);
  if (name == "reverse") return none(), reversed(heap, value);
  if (name == "sum") return summed(in, value, a);
  if (name == "min") return extreme(in, value, a, false);
  if (name == "max") return extreme(in, value, a, true);
  if (name == "batch") return batched(in, value, a);
  if (name == "slice") return sliced(in, value, a);
  if (name == "groupby") return grouped(in, value, a);
  if (name == "attr") {
    const Bound b(a, name, {"name"}, 1);
    const std::string& attribute = b.text(0);
    if (!value.is(Kind::kDict) || has_method(value, attribute)) return in.attribute(value, attribute);
    return heap.undefined(attribute, type_name(value));
  }
  return std::nullopt;
}

}  // namespace jinja
}  // namespace spillway
