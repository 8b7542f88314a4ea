#include "base/limits.h"
#include "text/template/interpreter.h"
#include "text/template/operators.h"
#include "text/template/print.h"
#include "text/template/strftime.h"

namespace spillway {
namespace jinja {
namespace {

// The reference's sandbox refuses longer ranges.
constexpr Int kMaxRange = 100000;

Value make_range(Heap& heap, const Arguments& arguments) {
  if (!arguments.keywords.empty()) fault("range() takes no keyword arguments");
  const Bound b(arguments, "range", {"start", "stop", "step"}, 1);
  Int start = 0, stop = b.integer(0, 0), step = 1;
  if (b.given(1)) start = stop, stop = b.integer(1, 0), step = b.integer(2, 1);
  if (step == 0) fault("range() arg 3 must not be zero");
  constexpr Int kBound = Int{1} << 64;  // so that differences and products can't overflow
  for (const Int v : {start, stop, step})
    if (v > kBound || v < -kBound) fault("range() of numbers beyond 64 bits");
  const Int span = step > 0 ? stop - start : start - stop, by = step > 0 ? step : -step;
  const Int length = span <= 0 ? 0 : (span + by - 1) / by;
  if (length > kMaxRange)
    fault("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", int_text(kMaxRange));
  auto* range = heap.make<RangeObject>();
  range->start = start, range->stop = stop, range->step = step;
  range->length = static_cast<size_t>(length);
  return Value::of(Kind::kRange, range);
}

// dict(mapping or pairs, name=value...)
void fill_dict(Heap& heap, DictObject& dict, const Arguments& arguments, std::string_view function) {
  const auto set = [&](const Value& key, const Value& value) {
    heap.step();
    heap.hold(2 * sizeof(Value));
    dict.set(key, value);
  };
  if (arguments.positional.size() > 1) fault("{} takes at most 1 positional argument", function);
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (from.is(Kind::kDict)) {
      for (const auto& [key, value] : from.dict().items) set(key, value);
    } else {
      iterate(heap, from, [&](const Value& pair) {
        const Values parts = to_values(heap, pair);
        if (parts.size() != 2) fault("{} needs pairs, found an element of length {}", function, parts.size());
        set(parts[0], parts[1]);
        return true;
      });
    }
  }
  for (const auto& [name, value] : arguments.keywords) set(heap.string(name), value);
}

}  // namespace

Value Interpreter::call_function(Global which, const Arguments& arguments) {
  switch (which) {
    case Global::kRange:
      return make_range(heap_, arguments);
    case Global::kDict: {
      auto* dict = heap_.make<DictObject>();
      fill_dict(heap_, *dict, arguments, "dict");
      return Value::of(Kind::kDict, dict);
    }
    case Global::kNamespace: {
      auto* ns = heap_.make<NamespaceObject>();
      fill_dict(heap_, ns->attributes, arguments, "namespace");
      return Value::of(Kind::kNamespace, ns);
    }
    case Global::kCycler: {
      if (arguments.positional.empty()) fault("cycler: at least one item has to be provided");
      auto* cycler = heap_.make<CyclerObject>();
      cycler->items = arguments.positional;
      return Value::of(Kind::kCycler, cycler);
    }
    case Global::kJoiner: {
      const Bound b(arguments, "joiner", {"sep"}, 0);
      auto* joiner = heap_.make<JoinerObject>();
      joiner->separator = b.given(0) ? *b[0] : heap_.string(", ");
      return Value::of(Kind::kJoiner, joiner);
    }
    case Global::kRaiseException: {
      const Bound b(arguments, "raise_exception", {"message"}, 1);
      throw Fault{Error::Kind::kRefused, to_text(*b[0])};
    }
    case Global::kStrftimeNow: {
      const Bound b(arguments, "strftime_now", {"format"}, 1);
      if (b.text(0).size() > 4096) fault("strftime_now: the format is too long");
      return heap_.string(format_time(*now_, b.text(0)));
    }
  }
  return Value::none();
}

}  // namespace jinja
}  // namespace spillway
