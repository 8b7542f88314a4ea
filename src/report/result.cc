#include "report/result.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/json_text.h"
#include "base/limits.h"

namespace spillway::report {
namespace {

constexpr double kMostNumber = 1e15;  // more is damage

using Json = nlohmann::ordered_json;

// The fields of each value with their names, once for both directions. `f` is a JsonWriter or a Reader.
template <class F>
void fields(F& f, Build& v) {
  f("version", v.version), f("compiler", v.compiler), f("type", v.type);
}
template <class F>
void fields(F& f, Model& v) {
  f("name", v.name), f("file", v.file), f("content", v.content), f("bytes", v.bytes);
}
template <class F>
void fields(F& f, Machine& v) {
  f("cpu", v.cpu), f("cores", v.cores), f("memory_bytes", v.memory_bytes), f("device", v.device);
  f("driver", v.driver), f("device_bytes", v.device_bytes), f("system", v.system);
}
template <class F>
void fields(F& f, Workload& v) {
  f("name", v.name), f("content", v.content), f("requests", v.requests), f("users", v.users);
}
template <class F>
void fields(F& f, Setting& v) {
  f("name", v.name), f("flags", v.flags);
}
template <class F>
void fields(F& f, Request& v) {
  f("user", v.user), f("topic", v.topic), f("turn", v.turn), f("prompt_tokens", v.prompt_tokens);
  f("cached_tokens", v.cached_tokens), f("generated_tokens", v.generated_tokens), f("ttft_s", v.ttft_s);
  f("prefill_s", v.prefill_s), f("decode_s", v.decode_s), f("itl_ms", v.itl_ms), f("finish", v.finish);
}
template <class F>
void fields(F& f, Experts& v) {
  f("tokens", v.tokens), f("hits", v.hits), f("misses", v.misses), f("cpu", v.cpu);
  f("uploaded", v.uploaded), f("promoted", v.promoted), f("evicted", v.evicted), f("bytes_up", v.bytes_up);
  f("waits", v.waits), f("device_s", v.device_s), f("link_s", v.link_s), f("cpu_s", v.cpu_s);
  f("wait_s", v.wait_s), f("plan_s", v.plan_s);
}
template <class F>
void fields(F& f, HitPoint& v) {
  f("tokens", v.tokens), f("hits", v.hits), f("misses", v.misses);
}
template <class F>
void fields(F& f, Load& v) {
  f("other_cpu", v.other_cpu), f("throttled_s", v.throttled_s);
}
template <class F>
void fields(F& f, Run& v) {
  f("setting", v.setting), f("seed", v.seed), f("started", v.started), f("warm", v.warm);
  f("seconds", v.seconds), f("requests", v.requests), f("experts", v.experts), f("hit_points", v.hit_points);
  f("cpu_s", v.cpu_s), f("host_peak_bytes", v.host_peak_bytes), f("device_peak_bytes", v.device_peak_bytes);
  f("load", v.load), f("cut_short", v.cut_short);
}
template <class F>
void fields(F& f, Resources& v) {
  f("device_us", v.device_us), f("link_us", v.link_us), f("cpu_us", v.cpu_us), f("wait_us", v.wait_us);
  f("total_us", v.total_us);
}
template <class F>
void fields(F& f, Row& v) {
  f("setting", v.setting), f("label", v.label), f("cache_bytes", v.cache_bytes), f("share", v.share);
  f("decode_tok_s", v.decode_tok_s), f("decode_low", v.decode_low), f("decode_high", v.decode_high);
  f("prefill_tok_s", v.prefill_tok_s), f("ttft_s", v.ttft_s), f("p95_itl_ms", v.p95_itl_ms);
  f("hit_rate", v.hit_rate), f("predicted_tok_s", v.predicted_tok_s), f("resources", v.resources);
  f("verdict", v.verdict), f("machine", v.machine);
}
template <class F>
void fields(F& f, Term& v) {
  f("name", v.name), f("unit", v.unit), f("value", v.value), f("label", v.label), f("low", v.low);
  f("high", v.high), f("note", v.note), f("group", v.group);
}
template <class F>
void fields(F& f, CurvePoint& v) {
  f("x", v.x), f("value", v.value), f("low", v.low), f("high", v.high);
}
template <class F>
void fields(F& f, Curve& v) {
  f("name", v.name), f("points", v.points);
}
template <class F>
void fields(F& f, CurveSet& v) {
  f("title", v.title), f("x", v.x), f("unit", v.unit), f("label", v.label), f("curves", v.curves);
}
template <class F>
void fields(F& f, ResultFile& v) {
  f("schema", v.schema), f("kind", v.kind), f("created", v.created), f("command", v.command);
  f("build", v.build), f("model", v.model), f("machine", v.machine), f("workload", v.workload),
      f("goal", v.goal);
  f("settings", v.settings), f("runs", v.runs), f("rows", v.rows), f("terms", v.terms), f("curves", v.curves);
  f("notes", v.notes);
  f("conclusion", v.conclusion);
}

template <class T>
inline constexpr bool kIsPlain = std::is_arithmetic_v<T> || std::is_same_v<T, std::string>;

struct JsonWriter {
  Json json = Json::object();

  static Json value(const std::map<std::string, std::string>& v) { return v; }
  static Json value(Label v) { return label_name(v); }
  template <class T>
  static Json value(const T& v) {
    if constexpr (kIsPlain<T>) {
      return v;
    } else {
      JsonWriter writer;
      fields(writer, const_cast<T&>(v));  // a writer only reads
      return writer.json;
    }
  }
  template <class T>
  static Json value(const std::vector<T>& list) {
    Json array = Json::array();
    for (const T& v : list) array.push_back(value(v));
    return array;
  }

  template <class T>
  void operator()(const char* name, const T& v) {
    json[name] = value(v);
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>& v) {
    if (v) json[name] = value(*v);
  }
};

// Keys that are missing leave the default, keys that are not known are passed over: files of a later minor
// change can be read. The first error is kept and nothing is read after it.
struct Reader {
  const Json& json;
  std::string place;
  std::optional<Error>& error;

  void wrong(const std::string& where, const char* needed, const Json& found) {
    if (!error)
      error = Error{Error::Kind::kInvalid,
                    fmt::format("{}: {} is needed, found {}", where, needed, found.type_name())};
  }
  void take(const std::string& where, const Json& j, std::string& v) {
    if (!j.is_string()) return wrong(where, "a text", j);
    v = j.get<std::string>();
  }
  void take(const std::string& where, const Json& j, bool& v) {
    if (!j.is_boolean()) return wrong(where, "true or false", j);
    v = j.get<bool>();
  }
  void take(const std::string& where, const Json& j, double& v) {
    if (!j.is_number()) return wrong(where, "a number", j);
    v = j.get<double>();
    if (!(std::abs(v) <= kMostNumber)) return wrong(where, "a number that can be, below 1e15,", j);
  }
  template <class T>
    requires std::is_unsigned_v<T>
  void take(const std::string& where, const Json& j, T& v) {
    if (!j.is_number_unsigned()) return wrong(where, "a whole number from 0", j);
    const uint64_t number = j.get<uint64_t>();
    if (number > std::numeric_limits<T>::max()) return wrong(where, "a smaller number", j);
    v = static_cast<T>(number);
  }
  void take(const std::string& where, const Json& j, Label& v) {
    std::string name;
    take(where, j, name);
    for (uint32_t i = 0; i < kLabels; ++i)
      if (name == label_name(static_cast<Label>(i))) {
        v = static_cast<Label>(i);
        return;
      }
    wrong(where, "default, measured, predicted or estimated", j);
  }
  void take(const std::string& where, const Json& j, std::map<std::string, std::string>& v) {
    if (!j.is_object()) return wrong(where, "an object", j);
    for (const auto& [key, value] : j.items()) take(fmt::format("{}.{}", where, key), value, v[key]);
  }
  template <class T>
  void take(const std::string& where, const Json& j, std::vector<T>& v) {
    if (!j.is_array()) return wrong(where, "a list", j);
    v.resize(j.size());
    for (size_t i = 0; i < v.size() && !error; ++i) take(fmt::format("{}[{}]", where, i), j[i], v[i]);
  }
  template <class T>
  void take(const std::string& where, const Json& j, std::optional<T>& v) {
    take(where, j, v.emplace());
  }
  template <class T>
    requires(std::is_class_v<T>)
  void take(const std::string& where, const Json& j, T& v) {
    if (!j.is_object()) return wrong(where, "an object", j);
    Reader inner{j, where, error};
    fields(inner, v);
  }

  template <class T>
  void operator()(const char* name, T& v) {
    if (error) return;
    if (const auto found = json.find(name); found != json.end() && !found->is_null())
      take(place.empty() ? name : place + "." + name, *found, v);
  }
};

// What is wrong with a text that is no JSON, and where.
std::string json_fault(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    return fmt::format("it is {}, an object is needed", json.type_name());
  } catch (const Json::exception& fault) {
    const std::string_view words =
        fault.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
    const size_t name = words.find("] ");
    return std::string(name == std::string_view::npos ? words : words.substr(name + 2));
  }
}

// Times and speeds below zero are no measurements.
Result<void> check_signs(const ResultFile& result) {
  for (size_t i = 0; i < result.runs.size(); ++i)
    for (size_t k = 0; k < result.runs[i].requests.size(); ++k) {
      const Request& request = result.runs[i].requests[k];
      if (request.ttft_s < 0 || request.prefill_s < 0 || request.decode_s < 0 ||
          std::ranges::any_of(request.itl_ms, [](double ms) { return ms < 0; }))
        return invalid("runs[{}].requests[{}]: a time is below 0", i, k);
    }
  for (size_t i = 0; i < result.rows.size(); ++i)
    if (result.rows[i].decode_tok_s < 0) return invalid("rows[{}].decode_tok_s is below 0", i);
  return {};
}

}  // namespace

Result<ResultFile> parse_result(std::string_view text) {
  if (text.size() > limits::kMaxResultBytes)
    return invalid("the result has {} bytes, at most {} are read", text.size(), limits::kMaxResultBytes);
  if (const auto size = check_json_size(text); !size) return std::unexpected(size.error().in("not a result"));
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return invalid("not a result: {}", json_fault(text));
  const auto schema = json.find("schema");
  if (schema == json.end() || !schema->is_number_unsigned())
    return invalid("not a result of this program: it has no 'schema'");
  if (*schema != kResultSchema)
    return unsupported("the result has schema {}, this build reads {}: use the build that wrote it",
                       schema->dump(), kResultSchema);
  constexpr std::string_view kKinds[] = {"bench", "tune", "plan", "verify"};
  const auto kind = json.find("kind");
  if (kind == json.end() || !kind->is_string() ||
      std::ranges::find(kKinds, kind->get<std::string>()) == std::end(kKinds))
    return invalid("not a result: 'kind' is {}, one of {} is needed",
                   kind == json.end() ? "missing" : kind->dump(), fmt::join(kKinds, ", "));
  ResultFile result;
  std::optional<Error> error;
  Reader reader{json, "", error};
  fields(reader, result);
  if (error) return std::unexpected(*error);
  for (size_t i = 0; i < result.runs.size(); ++i)
    if (result.runs[i].setting >= result.settings.size())
      return invalid("runs[{}].setting is {}, there are {} settings", i, result.runs[i].setting,
                     result.settings.size());
  SW_TRY(check_signs(result));
  return result;
}

std::string to_json(const ResultFile& result) {
  return JsonWriter::value(result).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace spillway::report
