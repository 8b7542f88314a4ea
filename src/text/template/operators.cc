#include "text/template/operators.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "text/template/format.h"
#include "text/template/print.h"
#include "text/template/utf8.h"

namespace spillway {
namespace jinja {
namespace {

constexpr std::string_view kOpNames[] = {
    "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};

std::string_view op_name(Op op) { return kOpNames[static_cast<size_t>(op)]; }

[[noreturn]] void fault_operands(Op op, const Value& a, const Value& b) {
  if (a.is(Kind::kUndefined)) fault_undefined(a);
  if (b.is(Kind::kUndefined)) fault_undefined(b);
  fault("unsupported operand type(s) for {}: '{}' and '{}'", op_name(op), type_name(a), type_name(b));
}

// By reference: the operation that writes `value` stands among the arguments.
Int checked(bool overflowed, const Int& value) {
  if (overflowed) fault("an integer outgrew 128 bits");
  return value;
}

Value int_power(Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 0) fault("0.0 cannot be raised to a negative power");
    return Value::of(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  Int result = 1;
  bool overflowed = false;
  while (exponent > 0) {
    if (exponent & 1) overflowed |= __builtin_mul_overflow(result, base, &result);
    exponent >>= 1;
    if (exponent > 0 && base != 0 && base != 1 && base != -1)
      overflowed |= __builtin_mul_overflow(base, base, &base);
    if (exponent > 0 && base == -1) base = 1;
    if (overflowed) break;
  }
  return Value::of(checked(overflowed, result));
}

Value int_arithmetic(Op op, Int a, Int b) {
  Int result = 0;
  switch (op) {
    case Op::kAdd:
      return Value::of(checked(__builtin_add_overflow(a, b, &result), result));
    case Op::kSubtract:
      return Value::of(checked(__builtin_sub_overflow(a, b, &result), result));
    case Op::kMultiply:
      return Value::of(checked(__builtin_mul_overflow(a, b, &result), result));
    case Op::kDivide:
      if (b == 0) fault("division by zero");
      return Value::of(static_cast<double>(a) / static_cast<double>(b));
    case Op::kFloorDivide:
    case Op::kModulo: {
      if (b == 0) fault("integer division or modulo by zero");
      if (b == -1) return op == Op::kModulo ? Value::of(Int{0}) : negative(Value::of(a));
      Int quotient = a / b, rest = a % b;
      if (rest != 0 && (rest < 0) != (b < 0)) --quotient, rest += b;
      return Value::of(op == Op::kModulo ? rest : quotient);
    }
    case Op::kPower:
      return int_power(a, b);
    default:
      fault("not an arithmetic operator");
  }
}

Value float_arithmetic(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return Value::of(a + b);
    case Op::kSubtract:
      return Value::of(a - b);
    case Op::kMultiply:
      return Value::of(a * b);
    case Op::kDivide:
      if (b == 0) fault("float division by zero");
      return Value::of(a / b);
    case Op::kFloorDivide:
    case Op::kModulo: {
      if (b == 0) fault("float floor division or modulo by zero");
      // The remainder takes the sign of b; the quotient is made from it, so that both agree.
      double rest = std::fmod(a, b);
      double quotient = (a - rest) / b;
      if (rest != 0) {
        if ((b < 0) != (rest < 0)) rest += b, quotient -= 1.0;
      } else {
        rest = std::copysign(0.0, b);
      }
      if (op == Op::kModulo) return Value::of(rest);
      if (quotient == 0) return Value::of(std::copysign(0.0, a / b));
      const double whole = std::floor(quotient);
      return Value::of(quotient - whole > 0.5 ? whole + 1.0 : whole);
    }
    case Op::kPower: {
      if (a == 0 && b < 0) fault("0.0 cannot be raised to a negative power");
      if (a < 0 && std::isfinite(a) && std::isfinite(b) && std::floor(b) != b)
        fault("a negative number to a fractional power is complex");
      const double result = std::pow(a, b);
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) fault("the result of ** is too large");
      return Value::of(result);
    }
    default:
      fault("not an arithmetic operator");
  }
}

Value repeat(Heap& heap, const Value& a, Int count) {
  const Int times = std::max<Int>(count, 0);
  if (a.is(Kind::kString)) {
    const std::string& text = a.text();
    if (static_cast<Int>(text.size()) * std::min<Int>(times, Int{1} << 62) >
        static_cast<Int>(limits::kMaxTemplateOutputBytes))
      fault("a repeated string has more than {} MiB", limits::kMaxTemplateOutputBytes >> 20);
    const size_t size = text.size() * static_cast<size_t>(times);
    std::string out;
    out.reserve(size);
    // By doubling what is there: a piece at a time, 200 MB of single characters take a second, and a
    // sanitized build 17.
    if (size > 0) out = text;
    while (out.size() < size) out.append(out, 0, std::min(out.size(), size - out.size()));
    return text_like(heap, a, std::move(out));
  }
  const Values& items = a.list().items;
  Values out;
  if (!items.empty())
    for (Int i = 0; i < times; ++i)
      for (const Value& item : items) heap.step(), heap.push(out, item);
  return a.is(Kind::kList) ? heap.list(std::move(out)) : heap.tuple(std::move(out));
}

}  // namespace

Value text_like(Heap& heap, const Value& like, std::string text) {
  Value value = heap.string(std::move(text));
  value.markup = like.markup;
  return value;
}

Value concatenate(Heap& heap, const Value& a, const Value& b) {
  check_output(a.text());
  check_output(b.text());
  Value value;
  if (a.markup == b.markup) {
    value = heap.string(a.text() + b.text());
  } else {
    value = heap.string(a.markup ? a.text() + html_escaped(b.text()) : html_escaped(a.text()) + b.text());
  }
  value.markup = a.markup || b.markup;
  check_output(value.text());
  return value;
}

Value arithmetic(Heap& heap, Op op, const Value& a, const Value& b) {
  heap.step();
  if (a.is_number() && b.is_number()) {
    if (a.is(Kind::kFloat) || b.is(Kind::kFloat)) return float_arithmetic(op, a.as_double(), b.as_double());
    return int_arithmetic(op, a.as_int(), b.as_int());
  }
  if (a.is(Kind::kUndefined)) fault_undefined(a);
  if (op == Op::kModulo && a.is(Kind::kString)) return format_percent(heap, a, b);
  if (b.is(Kind::kUndefined)) fault_undefined(b);
  if (op == Op::kAdd) {
    if (a.is(Kind::kString) && b.is(Kind::kString)) return concatenate(heap, a, b);
    if (a.is_sequence() && a.kind == b.kind) {
      Values items;
      for (const Value* side : {&a, &b})
        for (const Value& item : side->list().items) heap.push(items, item);
      return a.is(Kind::kList) ? heap.list(std::move(items)) : heap.tuple(std::move(items));
    }
    if (a.is(Kind::kString)) fault("can only concatenate str (not \"{}\") to str", type_name(b));
  }
  if (op == Op::kMultiply) {
    const bool b_counts = b.is(Kind::kInt) || b.is(Kind::kBool),
               a_counts = a.is(Kind::kInt) || a.is(Kind::kBool);
    if ((a.is(Kind::kString) || a.is_sequence()) && b_counts) return repeat(heap, a, b.as_int());
    if ((b.is(Kind::kString) || b.is_sequence()) && a_counts) return repeat(heap, b, a.as_int());
  }
  fault_operands(op, a, b);
}

Value negative(const Value& a) {
  if (a.is(Kind::kUndefined)) fault_undefined(a);
  if (a.is(Kind::kFloat)) return Value::of(-a.real);
  if (!a.is_number()) fault("bad operand type for unary -: '{}'", type_name(a));
  Int result = 0;
  return Value::of(checked(__builtin_sub_overflow(Int{0}, a.as_int(), &result), result));
}

Value positive(const Value& a) {
  if (a.is(Kind::kUndefined)) fault_undefined(a);
  if (a.is(Kind::kFloat)) return a;
  if (!a.is_number()) fault("bad operand type for unary +: '{}'", type_name(a));
  return Value::of(a.as_int());
}

// ---- comparison

bool less(const Value& a, const Value& b, int depth) {
  Heap::step_of_this_thread();
  if (depth > kMaxValueDepth) fault("a value is nested more than {} deep", kMaxValueDepth);
  if (a.is_number() && b.is_number()) {
    if (a.is(Kind::kFloat) || b.is(Kind::kFloat)) return a.as_double() < b.as_double();
    return a.as_int() < b.as_int();
  }
  // UTF-8 sorts as its code points do.
  if (a.is(Kind::kString) && b.is(Kind::kString)) return a.text() < b.text();
  if (a.is_sequence() && a.kind == b.kind) {
    const auto &x = a.list().items, &y = b.list().items;
    for (size_t i = 0; i < x.size() && i < y.size(); ++i)
      if (!equal(x[i], y[i], depth + 1)) return less(x[i], y[i], depth + 1);
    return x.size() < y.size();
  }
  if (a.is(Kind::kUndefined)) fault_undefined(a);
  if (b.is(Kind::kUndefined)) fault_undefined(b);
  fault("'<' not supported between instances of '{}' and '{}'", type_name(a), type_name(b));
}

namespace {

// <= is not "not >" where NaN takes part, nor in sequences that hold one.
bool less_or_equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is(Kind::kFloat) || b.is(Kind::kFloat)) return a.as_double() <= b.as_double();
    return a.as_int() <= b.as_int();
  }
  return less(a, b) || equal(a, b);
}

}  // namespace

bool compare(Heap& heap, Op op, const Value& a, const Value& b) {
  heap.step();
  switch (op) {
    case Op::kEqual:
      return equal(a, b);
    case Op::kNotEqual:
      return !equal(a, b);
    case Op::kLess:
      return less(a, b);
    case Op::kLessEqual:
      return less_or_equal(a, b);
    case Op::kGreater:
      return less(b, a);
    case Op::kGreaterEqual:
      return less_or_equal(b, a);
    case Op::kIn:
      return contains(heap, b, a);
    case Op::kNotIn:
      return !contains(heap, b, a);
    default:
      fault("not a comparison");
  }
}

bool contains(Heap& heap, const Value& container, const Value& item) {
  switch (container.kind) {
    case Kind::kString:
      if (!item.is(Kind::kString))
        fault("'in <string>' requires string as left operand, not {}", type_name(item));
      heap.step(container.text().size() / 256);
      return container.text().find(item.text()) != std::string::npos;
    case Kind::kDict:
      hash(item);  // a key that can't be one is a fault, also deep within a tuple
      return container.dict().find(item) != nullptr;
    case Kind::kView:
      if (container.view().what == ViewOf::kKeys) return container.view().of->find(item) != nullptr;
      break;
    default:
      break;
  }
  if (!iterable(container)) fault("argument of type '{}' is not iterable", type_name(container));
  bool found = false;
  iterate(heap, container, [&](const Value& element) {
    found = equal(element, item);
    return !found;
  });
  return found;
}

// ---- iteration

bool iterable(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kRange:
    case Kind::kView:
    case Kind::kIterator:
    case Kind::kLoop:
      return true;
    default:
      return false;
  }
}

void iterate(Heap& heap, const Value& value, const std::function<bool(const Value&)>& visit) {
  switch (value.kind) {
    case Kind::kUndefined:
      return;
    case Kind::kString: {
      const std::string& text = value.text();
      for (size_t i = 0; i < text.size();) {
        const size_t start = i;
        utf8_next(text, i);
        if (!visit(heap.string(text.substr(start, i - start)))) return;
      }
      return;
    }
    case Kind::kList:
    case Kind::kTuple:
      for (const Value& item : value.list().items) {
        heap.step();
        if (!visit(item)) return;
      }
      return;
    case Kind::kDict:
      for (const auto& entry : value.dict().items) {
        heap.step();
        if (!visit(entry.first)) return;
      }
      return;
    case Kind::kRange: {
      const auto& range = value.range();
      for (size_t i = 0; i < range.length; ++i) {
        heap.step();
        if (!visit(Value::of(range.start + range.step * static_cast<Int>(i)))) return;
      }
      return;
    }
    case Kind::kView:
      for (const auto& [key, mapped] : value.view().of->items) {
        heap.step();
        const auto what = value.view().what;
        if (!visit(what == ViewOf::kKeys ? key : what == ViewOf::kValues ? mapped : heap.pair(key, mapped)))
          return;
      }
      return;
    case Kind::kIterator: {
      auto& iterator = value.iterator();
      while (iterator.next < iterator.items.size()) {
        heap.step();
        if (!visit(iterator.items[iterator.next++])) return;
      }
      return;
    }
    default:
      fault("'{}' object is not iterable", type_name(value));
  }
}

Values to_values(Heap& heap, const Value& value) {
  Values items;
  iterate(heap, value, [&](const Value& item) {
    heap.push(items, item);
    return true;
  });
  return items;
}

std::optional<size_t> length_of(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return value.str->length;
    case Kind::kList:
    case Kind::kTuple:
      return value.list().items.size();
    case Kind::kDict:
      return value.dict().items.size();
    case Kind::kRange:
      return value.range().length;
    case Kind::kView:
      return value.view().of->items.size();
    default:
      return std::nullopt;
  }
}

// ---- subscripts

std::optional<Value> element(Heap& heap, const Value& container, const Value& key) {
  if (container.is(Kind::kUndefined)) fault_undefined(container);
  if (container.is(Kind::kDict)) {
    if (key.is(Kind::kList) || key.is(Kind::kDict)) return std::nullopt;
    const Value* found = container.dict().find(key);
    return found ? std::optional(*found) : std::nullopt;
  }
  if (!key.is(Kind::kInt) && !key.is(Kind::kBool)) return std::nullopt;
  const auto length = length_of(container);
  if (!length || container.is(Kind::kView)) return std::nullopt;
  Int index = key.as_int();
  if (index < 0) index += static_cast<Int>(*length);
  if (index < 0 || index >= static_cast<Int>(*length)) return std::nullopt;
  const auto at = static_cast<size_t>(index);
  switch (container.kind) {
    case Kind::kString: {
      const std::string& text = container.text();
      if (container.str->ascii()) return text_like(heap, container, std::string(1, text[at]));
      heap.step(text.size() / 256);
      size_t end = utf8_offset(text, at);
      const size_t begin = end;
      utf8_next(text, end);
      return text_like(heap, container, text.substr(begin, end - begin));
    }
    case Kind::kRange:
      return Value::of(container.range().start + container.range().step * static_cast<Int>(at));
    default:
      return container.list().items[at];
  }
}

namespace {

// A slice's part as an integer; faults on what is none.
std::optional<Int> slice_part(const Value* part) {
  if (!part || part->is(Kind::kNone)) return std::nullopt;
  if (part->is(Kind::kUndefined)) fault_undefined(*part);
  if (!part->is(Kind::kInt) && !part->is(Kind::kBool)) fault("slice indices must be integers or None");
  // Clamped: beyond any length, and sums can't overflow.
  return std::clamp(part->as_int(), -(Int{1} << 100), Int{1} << 100);
}

}  // namespace

Value slice(Heap& heap, const Value& container, const Value* start, const Value* stop, const Value* step) {
  if (container.is(Kind::kUndefined)) fault_undefined(container);
  const bool sliceable = container.is(Kind::kString) || container.is_sequence() || container.is(Kind::kRange);
  if (container.is(Kind::kDict)) fault("unhashable type: 'slice'");
  if (!sliceable) fault("'{}' object is not subscriptable", type_name(container));
  const auto length = static_cast<Int>(*length_of(container));
  const Int by = slice_part(step).value_or(1);
  if (by == 0) fault("slice step cannot be zero");
  const auto bound = [&](const std::optional<Int>& given, Int otherwise) {
    if (!given) return otherwise;
    Int at = *given < 0 ? *given + length : *given;
    return by > 0 ? std::clamp<Int>(at, 0, length) : std::clamp<Int>(at, -1, length - 1);
  };
  const Int from = bound(slice_part(start), by > 0 ? 0 : length - 1);
  const Int to = bound(slice_part(stop), by > 0 ? length : -1);
  const auto inside = [&](Int i) { return by > 0 ? i < to : i > to; };

  if (container.is(Kind::kString)) {
    const std::string& text = container.text();
    heap.step(text.size() / 256);
    if (by == 1) {
      if (from >= to) return text_like(heap, container, "");
      const bool ascii = container.str->ascii();
      const size_t begin = ascii ? static_cast<size_t>(from) : utf8_offset(text, static_cast<size_t>(from));
      const size_t end = ascii ? static_cast<size_t>(to) : utf8_offset(text, static_cast<size_t>(to));
      return text_like(heap, container, text.substr(begin, end - begin));
    }
    std::vector<uint32_t> offsets;  // of the code points
    offsets.reserve(static_cast<size_t>(length) + 1);
    for (size_t i = 0; i < text.size();) {
      offsets.push_back(static_cast<uint32_t>(i));
      utf8_next(text, i);
    }
    offsets.push_back(static_cast<uint32_t>(text.size()));
    std::string out;
    for (Int i = from; inside(i); i += by) {
      const auto at = static_cast<size_t>(i);
      out.append(text, offsets[at], offsets[at + 1] - offsets[at]);
    }
    return text_like(heap, container, std::move(out));
  }
  if (container.is(Kind::kRange)) {
    const auto& range = container.range();
    auto* cut = heap.make<RangeObject>();
    cut->start = range.start + range.step * from;
    cut->stop = range.start + range.step * to;
    cut->step = range.step * by;
    cut->length =
        inside(from)
            ? static_cast<size_t>((by > 0 ? to - from + by - 1 : from - to - by - 1) / (by > 0 ? by : -by))
            : 0;
    return Value::of(Kind::kRange, cut);
  }
  Values out;
  for (Int i = from; inside(i); i += by)
    heap.step(), heap.push(out, container.list().items[static_cast<size_t>(i)]);
  return container.is(Kind::kList) ? heap.list(std::move(out)) : heap.tuple(std::move(out));
}

}  // namespace jinja
}  // namespace spillway
