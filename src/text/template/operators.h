// What Python does with values: arithmetic, comparison, membership, iteration, subscripts.
#pragma once

#include <functional>

#include "text/template/ast.h"
#include "text/template/value.h"

namespace spillway {
namespace jinja {

Value arithmetic(Heap& heap, Op op, const Value& a, const Value& b);
Value negative(const Value& a);
Value positive(const Value& a);
// One link of a comparison chain, `in` and `not in` too.
bool compare(Heap& heap, Op op, const Value& a, const Value& b);
// a < b in Python's sense; faults where types have no order.
bool less(const Value& a, const Value& b, int depth = 0);
bool contains(Heap& heap, const Value& container, const Value& item);

// Calls `visit` with each element until it returns false. Faults if the value can't be iterated. A generator
// is used up as far as it was walked.
void iterate(Heap& heap, const Value& value, const std::function<bool(const Value&)>& visit);
bool iterable(const Value& value);
Values to_values(Heap& heap, const Value& value);
// len(), or nothing for what has none.
std::optional<size_t> length_of(const Value& value);

// container[key], or nothing where it has no such element (the caller makes it undefined).
std::optional<Value> element(Heap& heap, const Value& container, const Value& key);
// container[start:stop:step]; null parts are left out.
Value slice(Heap& heap, const Value& container, const Value* start, const Value* stop, const Value* step);

// Text `a` then text `b`, with a's and b's markup: what + does to strings.
Value concatenate(Heap& heap, const Value& a, const Value& b);
// `like` with other text: keeps the markup flag.
Value text_like(Heap& heap, const Value& like, std::string text);

}  // namespace jinja
}  // namespace spillway
