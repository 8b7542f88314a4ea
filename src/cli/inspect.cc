// `spillway inspect`: what a file holds, and whether and how it will run here, byte by byte. Loads no
// weights.
#include <map>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "cli/common.h"
#include "cli/expert_report.h"
#include "cli/load_flags.h"
#include "cli/model_text.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"
#include "engine/check_weights.h"
#include "engine/engine.h"
#include "model/sizes.h"

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InspectFlags {
  LoadFlags load;
  bool json = false, tensors = false, metadata = false, check = false;
};

Json family_json(const model::Description& m, const model::Sizes& sizes) {
  Json json = {{"family", m.family},
               {"name", m.name},
               {"layers", m.layers.size()},
               {"moe_layers", sizes.moe_layers},
               {"hidden", m.hidden},
               {"vocabulary_rows", m.vocabulary},
               {"trained_context", m.trained_context},
               {"parameters", sizes.parameters},
               {"active_parameters", sizes.active_parameters}};
  const model::Attention& a = m.layers[0].attention;
  json["attention"] = {{"heads", a.heads},
                       {"kv_heads", a.kv_heads},
                       {"key_length", a.key_length},
                       {"value_length", a.value_length}};
  for (const model::Layer& layer : m.layers)
    if (const auto* moe = std::get_if<model::MoeFfn>(&layer.ffn)) {
      json["experts"] = {{"count", moe->experts.size()},
                         {"used", moe->used},
                         {"width", moe->experts[0].gate.rows},
                         {"bytes_each", moe->experts[0].gate.bytes() + moe->experts[0].up.bytes() +
                                            moe->experts[0].down.bytes()},
                         {"shared", moe->shared.has_value()}};
      break;
    }
  return json;
}

Json sizes_json(const model::Description& m, const model::Sizes& s) {
  Json by_type = Json::object();
  for (const auto& [group, types] : model::bytes_by_type(m)) by_type[group] = types;
  return {{"total_bytes", s.total_bytes()},
          {"dense_bytes", s.dense_bytes()},
          {"expert_bytes", s.expert_bytes},
          {"embedding_bytes", s.embedding_bytes},
          {"output_bytes", s.output_bytes},
          {"attention_bytes", s.attention_bytes},
          {"dense_ffn_bytes", s.dense_ffn_bytes},
          {"shared_expert_bytes", s.shared_expert_bytes},
          {"router_bytes", s.router_bytes},
          {"read_per_token_bytes", s.bytes_per_token},
          {"by_type", by_type}};
}

// The tokenizer and template as the file has them; a fault in them is shown, since the weights may run
// without.
Json text_json(const std::string& path, const gguf::Metadata& metadata, uint32_t rows) {
  Json json;
  const auto tokenizer = load_tokenizer(path, metadata, rows);
  if (!tokenizer) return {{"error", tokenizer.error().message}};
  const text::Vocabulary& v = (*tokenizer)->vocabulary();
  json["tokens"] = v.size();
  json["pre"] = v.pre().value_or("");
  Json ends = Json::array();
  for (const uint32_t id : v.end_of_generation()) ends.push_back({{"id", id}, {"text", v.text(id)}});
  json["end_of_generation"] = ends;
  json["warnings"] = (*tokenizer)->warnings();
  const auto chat_template = load_chat_template(metadata, v, "");
  if (!chat_template) {
    json["chat_template"] = {{"error", chat_template.error().message}};
  } else if (!*chat_template) {
    json["chat_template"] = nullptr;
  } else {
    const text::Capabilities& c = (*chat_template)->capabilities();
    json["chat_template"] = {
        {"system", c.system_role}, {"tools", c.tools}, {"thinking_switch", c.enable_thinking}};
  }
  return json;
}

Json plan_json(const engine::MemoryPlan& plan) {
  return {{"load_mode", engine::load_mode_name(plan.mode)},
          {"load_mode_reason", plan.mode_reason},
          {"weights_own_bytes", plan.weight_bytes},
          {"weights_mapped_bytes", plan.mapped_bytes},
          {"kv_bytes", plan.kv_bytes},
          {"scratch_bytes", plan.scratch_bytes},
          {"rope_bytes", plan.rope_bytes},
          {"own_bytes", plan.own_bytes()},
          {"usable_memory_bytes", plan.usable_bytes},
          {"context", plan.context},
          {"ubatch", plan.ubatch},
          {"threads", plan.threads},
          {"threads_reason", plan.threads_reason},
          {"kernels", plan.instruction_set},
          {"fits", plan.fits},
          {"verdict", plan.verdict}};
}

void print_plan(const engine::MemoryPlan& plan) {
  fmt::print("\nHere (planned, nothing loaded)\n");
  fmt::print("  weights    {} own memory{}: {}\n", format_bytes(plan.weight_bytes),
             plan.mapped_bytes ? fmt::format(", {} mapped file", format_bytes(plan.mapped_bytes)) : "",
             plan.mode_reason);
  fmt::print("  KV cache   {} for {} positions\n",
             plan.kv_bytes > 0 ? format_bytes(plan.kv_bytes) : "on the device", plan.context);
  fmt::print("  scratch    {} for micro-batches of {}; rope tables {}\n", format_bytes(plan.scratch_bytes),
             plan.ubatch, format_bytes(plan.rope_bytes));
  fmt::print(
      "  sum        {} of {} usable{}\n", format_bytes(plan.own_bytes()), format_bytes(plan.usable_bytes),
      plan.device_bytes ? fmt::format(", {} of it the device's", format_bytes(plan.device_bytes)) : "");
  fmt::print("  compute    CPU, {} threads ({}), {} kernels\n", plan.threads, plan.threads_reason,
             plan.instruction_set);
  fmt::print("  {}\n", plan.verdict);
}

void print_model(const engine::ModelFiles& files, const model::Description& m, const model::Sizes& s,
                 const Json& text) {
  fmt::print("{} ({}), GGUF, {} file{}, {}\n", m.name.empty() ? "unnamed model" : m.name, m.family,
             files.files.size(), files.files.size() == 1 ? "" : "s", format_bytes(files.file_bytes));
  const auto count = [](double n) {
    return n < 1e8 ? fmt::format("{:.1f} M", n * 1e-6) : fmt::format("{:.2f} G", n * 1e-9);
  };
  fmt::print("  {} parameters, {} active; {} layers ({} MoE), hidden {}, trained for {} positions\n",
             count(s.parameters), count(s.active_parameters), m.layers.size(), s.moe_layers, m.hidden,
             m.trained_context);
  const Json family = family_json(m, s);
  const model::Attention& a = m.layers[0].attention;
  fmt::print("  attention: {} heads, {} key-value heads of {}\n", a.heads, a.kv_heads, a.key_length);
  if (family.contains("experts")) {
    const Json& e = family["experts"];
    fmt::print("  experts: {} per layer, {} used per token, width {}, {} each{}\n",
               e["count"].get<uint64_t>(), e["used"].get<uint64_t>(), e["width"].get<uint64_t>(),
               format_bytes(e["bytes_each"]), e["shared"].get<bool>() ? ", and a shared expert" : "");
  }
  fmt::print("\nSizes\n");
  for (const auto& [group, types] : model::bytes_by_type(m)) {
    std::string list;
    for (const auto& [type, bytes] : types)
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", type, format_bytes(bytes));
    fmt::print("  {:<20} {}\n", group, list);
  }
  fmt::print("  {:<20} {} dense + {} experts; {} read per token\n", "all", format_bytes(s.dense_bytes()),
             format_bytes(s.expert_bytes), format_bytes(s.bytes_per_token));
  fmt::print("  KV per position      {} (f16)\n", format_bytes(model::kv_bytes_per_position(m, 2, 2)));

  fmt::print("\nText\n");
  if (text.contains("error")) {
    fmt::print("  tokenizer: cannot be used: {}\n", printable(text["error"].get<std::string>()));
    return;
  }
  const std::string pre = text["pre"];
  fmt::print("  tokenizer: {} tokens, {}\n", text["tokens"].get<uint64_t>(),
             pre.empty() ? "no pre-tokenizer named" : "pre-tokenizer " + pre);
  for (const Json& warning : text["warnings"])
    fmt::print("  warning: {}\n", printable(warning.get<std::string>()));
  const Json& t = text["chat_template"];
  if (t.is_null())
    fmt::print("  chat template: none\n");
  else if (t.contains("error"))
    fmt::print("  chat template: cannot be used: {}\n", printable(t["error"].get<std::string>()));
  else
    fmt::print("  chat template: {}{}{}\n", t["system"].get<bool>() ? "system role" : "no system role",
               t["tools"].get<bool>() ? ", tools" : "",
               t["thinking_switch"].get<bool>() ? ", thinking on/off" : "");
}

void print_tensors(const gguf::Model& model) {
  fmt::print("\nTensors\n");
  for (const gguf::TensorInfo& t : model.tensors())
    fmt::print("  {:<40} {:<8} [{}] {} bytes at {} of file {}\n", t.name, tensor_type_name(t.type_id),
               fmt::join(t.dims.begin(), t.dims.begin() + t.n_dims, ", "), t.bytes, t.offset, t.shard + 1);
}

// A sound file that this program can't run: what is in it all the same.
void print_unknown(const engine::ModelFiles& files, bool tensors) {
  const auto architecture = files.model.metadata().find_string("general.architecture");
  std::map<std::string, uint64_t> bytes_by_type;
  for (const gguf::TensorInfo& t : files.model.tensors())
    bytes_by_type[std::string(tensor_type_name(t.type_id))] += t.bytes;
  fmt::print("{}, GGUF, {} file{}, {}, {} tensors\n",
             architecture && *architecture ? printable(**architecture) : "no architecture named",
             files.files.size(), files.files.size() == 1 ? "" : "s", format_bytes(files.file_bytes),
             files.model.tensors().size());
  for (const auto& [type, bytes] : bytes_by_type) fmt::print("  {:<8} {}\n", type, format_bytes(bytes));
  if (tensors) print_tensors(files.model);
}

Result<void> check(const engine::ModelFiles& files, const engine::Plan& plan) {
  catch_interrupts();
  SW_ASSIGN(const auto pool, sys::ThreadPool::create(plan.memory.threads));
  ProgressBar bar("checking", ProgressBar::Unit::kBytes);
  return engine::check_weights(files, plan.description, *pool, [&](uint64_t done, uint64_t total) {
    bar.update(done, total);
    return !interrupted();
  });
}

Result<void> inspect(const InspectFlags& flags, const CLI::App& command) {
  SW_ASSIGN(const engine::Options options, flags.load.options(command));
  SW_ASSIGN(const engine::ModelFiles files, engine::open_model_files(options.path));
  if (flags.metadata)
    for (const auto& entry : files.model.metadata().entries())
      fmt::print("{} = {}\n", entry.key, entry.value.to_text());
  SW_ASSIGN(const engine::OpenedDevice opened, engine::open_device(options.device));
  auto plan = engine::plan(files, options, opened);
  if (!plan) {
    if (!flags.json) print_unknown(files, flags.tensors);
    return std::unexpected(plan.error().in(options.path));
  }
  const model::Sizes sizes = model::measure_sizes(plan->description);
  const Json text = text_json(options.path, files.model.metadata(), plan->description.vocabulary);
  if (flags.check) SW_TRY(check(files, *plan));
  if (flags.json) {
    Json json = family_json(plan->description, sizes);
    json["files"] = files.model.paths();
    json["file_bytes"] = files.file_bytes;
    json["sizes"] = sizes_json(plan->description, sizes);
    json["text"] = text;
    json["kv_bytes_per_position_f16"] = model::kv_bytes_per_position(plan->description, 2, 2);
    json["plan"] = plan_json(plan->memory);
    if (opened.device)
      json["plan"]["device"] = placement_json(plan->memory, plan->placement, opened.device->info());
    json["unused_tensors"] = plan->description.unused_tensors;
    json["notes"] = plan->description.notes;
    if (flags.tensors) {
      json["tensors"] = Json::array();
      for (const gguf::TensorInfo& t : files.model.tensors())
        json["tensors"].push_back({{"name", t.name},
                                   {"type", tensor_type_name(t.type_id)},
                                   {"dims", std::vector<uint64_t>(t.dims.begin(), t.dims.begin() + t.n_dims)},
                                   {"bytes", t.bytes},
                                   {"offset", t.offset},
                                   {"file", t.shard + 1}});
    }
    fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
    return {};
  }
  print_model(files, plan->description, sizes, text);
  print_plan(plan->memory);
  if (opened.device) {
    fmt::print("\nOn the device (planned)\n{}\n",
               describe_placement(plan->memory, plan->placement, opened.device->info()));
    for (const std::string& words : plan->placement.notes) fmt::print("note: {}\n", words);
    for (const std::string& words : flags.load.device.without_use(command, plan->placement))
      fmt::print("note: {}\n", words);
  } else {
    fmt::print("  device     none: {}\n", plan->memory.device_reason);
    for (const std::string& words : flags.load.device.without_device(command))
      fmt::print("note: {}\n", words);
  }
  const auto& unused = plan->description.unused_tensors;
  if (!unused.empty())
    fmt::print("  {} tensor{} in the file will not be used, such as '{}'\n", unused.size(),
               unused.size() == 1 ? "" : "s", unused[0]);
  for (const std::string& words : plan->description.notes) fmt::print("  note: {}\n", words);
  if (flags.check) fmt::print("  checked: every block scale is a finite number\n");
  if (flags.tensors) print_tensors(files.model);
  return {};
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* command = app.add_subcommand("inspect", "Show what a file holds and how it will run here");
  command->add_flag("--json", flags->json, "print JSON");
  command->add_flag("--tensors", flags->tensors, "list every tensor");
  command->add_flag("--metadata", flags->metadata, "list every metadata key");
  command->add_flag("--check", flags->check,
                    "read all weights and look for block scales that are NaN or infinite");
  flags->load.add_to(*command);
  flags->load.add_records_to(*command);
  command->callback([flags, command, &exit_code] {
    const auto result = inspect(*flags, *command);
    exit_code = !result ? report(result.error()) : finish_output();
  });
}

}  // namespace spillway::cli
