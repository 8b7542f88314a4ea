#include "text/template/json_text.h"

#include <algorithm>
#include <cmath>

#include "text/template/operators.h"
#include "text/template/print.h"
#include "text/template/utf8.h"

namespace spillway {
namespace jinja {

Value from_json(Heap& heap, const nlohmann::ordered_json& json, int depth) {
  if (depth > kMaxValueDepth)
    fault("the data given to the template is nested more than {} deep", kMaxValueDepth);
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Type::null:
    case Type::discarded:
      return Value::none();
    case Type::boolean:
      return Value::of(json.get<bool>());
    case Type::number_integer:
      return Value::of(static_cast<Int>(json.get<int64_t>()));
    case Type::number_unsigned:
      return Value::of(static_cast<Int>(json.get<uint64_t>()));
    case Type::number_float:
      return Value::of(json.get<double>());
    case Type::string: {
      const auto& text = json.get_ref<const std::string&>();
      if (!utf8_valid(text)) fault("a string given to the template is not valid UTF-8");
      return heap.string(text);
    }
    case Type::binary:
      fault("binary data can't be given to a template");
    case Type::array: {
      Values items;
      items.reserve(json.size());
      for (const auto& item : json) heap.push(items, from_json(heap, item, depth + 1));
      return heap.list(std::move(items));
    }
    case Type::object: {
      auto* dict = heap.make<DictObject>();
      for (const auto& [key, value] : json.items()) {
        if (!utf8_valid(key)) fault("a key given to the template is not valid UTF-8");
        heap.hold(2 * sizeof(Value));
        dict->set(heap.string(key), from_json(heap, value, depth + 1));
      }
      return Value::of(Kind::kDict, dict);
    }
  }
  return Value::none();
}

namespace {

class Writer {
 public:
  Writer(Heap& heap, const JsonStyle& style) : heap_(heap), style_(style) {}

  void write(const Value& value, int depth) {
    heap_.step();
    check_output(out);
    if (depth > kMaxValueDepth) fault("tojson: a value is nested more than {} deep", kMaxValueDepth);
    switch (value.kind) {
      case Kind::kNone:
        out += "null";
        return;
      case Kind::kBool:
        out += value.boolean ? "true" : "false";
        return;
      case Kind::kInt:
        out += int_text(value.integer);
        return;
      case Kind::kFloat:
        out += real(value.real);
        return;
      case Kind::kString:
        string(value.text());
        return;
      case Kind::kList:
      case Kind::kTuple:
        list(value.list().items, depth);
        return;
      case Kind::kDict:
        dict(value.dict(), depth);
        return;
      case Kind::kUndefined:
        fault("tojson: {} (Undefined is not JSON serializable)", undefined_text(value));
      default:
        fault("tojson: object of type {} is not JSON serializable", type_name(value));
    }
  }

  std::string out;

 private:
  static std::string real(double v) {
    if (std::isnan(v)) return "NaN";
    if (std::isinf(v)) return v < 0 ? "-Infinity" : "Infinity";
    return float_text(v);
  }

  void string(std::string_view text) {
    heap_.step(text.size() / 256);
    out.push_back('"');
    for (size_t i = 0; i < text.size();) {
      const size_t start = i;
      const char32_t c = utf8_next(text, i);
      switch (c) {
        case '"':
          out += "\\\"";
          break;
        case '\\':
          out += "\\\\";
          break;
        case '\n':
          out += "\\n";
          break;
        case '\r':
          out += "\\r";
          break;
        case '\t':
          out += "\\t";
          break;
        case '\b':
          out += "\\b";
          break;
        case '\f':
          out += "\\f";
          break;
        default:
          if (c < 0x20 || (style_.ascii && c > 0x7F && c < 0x10000)) {
            out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
          } else if (style_.ascii && c >= 0x10000) {
            const uint32_t v = static_cast<uint32_t>(c) - 0x10000;
            out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (v >> 10), 0xDC00 + (v & 0x3FF));
          } else {
            out.append(text.substr(start, i - start));
          }
      }
    }
    out.push_back('"');
  }

  void new_line(int depth) {
    if (!style_.indent) return;
    out.push_back('\n');
    for (int i = 0; i < depth; ++i) out += *style_.indent;
  }

  void list(const Values& items, int depth) {
    out.push_back('[');
    bool first = true;
    for (const Value& item : items) {
      if (!first) out += style_.item_separator;
      first = false;
      new_line(depth + 1);
      write(item, depth + 1);
    }
    if (!items.empty()) new_line(depth);
    out.push_back(']');
  }

  void key(const Value& value) {
    switch (value.kind) {
      case Kind::kString:
        string(value.text());
        return;
      case Kind::kNone:
        out += "\"null\"";
        return;
      case Kind::kBool:
        out += value.boolean ? "\"true\"" : "\"false\"";
        return;
      case Kind::kInt:
        out += "\"" + int_text(value.integer) + "\"";
        return;
      case Kind::kFloat:
        out += "\"" + real(value.real) + "\"";
        return;
      default:
        fault("tojson: keys must be str, int, float, bool or None, not {}", type_name(value));
    }
  }

  void dict(const DictObject& dict, int depth) {
    std::vector<const std::pair<Value, Value>*> entries;
    entries.reserve(dict.items.size());
    for (const auto& entry : dict.items) entries.push_back(&entry);
    if (style_.sort_keys)
      std::stable_sort(entries.begin(), entries.end(),
                       [](auto* a, auto* b) { return less(a->first, b->first); });
    out.push_back('{');
    bool first = true;
    for (const auto* entry : entries) {
      if (!first) out += style_.item_separator;
      first = false;
      new_line(depth + 1);
      key(entry->first);
      out += style_.key_separator;
      write(entry->second, depth + 1);
    }
    if (!entries.empty()) new_line(depth);
    out.push_back('}');
  }

  Heap& heap_;
  const JsonStyle& style_;
};

}  // namespace

std::string to_json(Heap& heap, const Value& value, const JsonStyle& style) {
  Writer writer(heap, style);
  writer.write(value, 0);
  return std::move(writer.out);
}

}  // namespace jinja
}  // namespace spillway
