#include "model/describe.h"

#include <charconv>

#include "gguf/names.h"
#include "model/families/family.h"

namespace spillway::model {
namespace {

struct Family {
  std::string_view architecture;
  Result<void> (*describe)(Builder&, Description&);
};

constexpr Family kFamilies[] = {
    {"qwen3moe", describe_qwen3moe},
    {"qwen2moe", describe_qwen2moe},
    {"llama", describe_llama},
    {"olmoe", describe_olmoe},
};

// Whether a tensor that nobody asked for must not be passed over: those of layers that run (a bias that a
// family doesn't have, say) and of the model's ends. What else a file may carry (a vision tower, next-token
// layers) is none of our business and only noted.
bool changes_the_result(std::string_view tensor, size_t layers) {
  // Rotary tables that old converters stored; the metadata says the same.
  if (tensor.ends_with("attn_rot_embd.weight") || tensor.ends_with("rope_freqs.weight") ||
      tensor.ends_with("attn_rot_embd") || tensor.ends_with("attention.rotary_emb.inv_freq"))
    return false;
  for (const std::string_view end : {"output", "token_embd", "position_embd"})
    if (tensor.starts_with(end)) return true;
  if (!tensor.starts_with("blk.")) return false;
  size_t layer = 0;
  const char* begin = tensor.data() + 4;
  const auto [stop, error] = std::from_chars(begin, tensor.data() + tensor.size(), layer);
  return error == std::errc() && stop != begin && layer < layers;
}

// Keys of other families that would change the arithmetic of these. None of ours applies them; a file that
// sets one all the same may mean something else than it gets.
constexpr std::string_view kNotApplied[] = {"attention.sliding_window", "attn_logit_softcapping",
                                            "final_logit_softcapping",  "rope.local.freq_base",
                                            "rope.freq_base_swa",       "leading_dense_block_count",
                                            "expert_group_count",       "expert_group_used_count"};

Result<void> note_not_applied(const gguf::Metadata& metadata, Description& model) {
  for (const std::string_view key : kNotApplied) {
    const std::string full = fmt::format("{}.{}", model.family, key);
    SW_ASSIGN(const auto value, metadata.find_float(full));
    // An expert group count of 1 and a window or a bound of 0 say what is done anyway.
    if (value && *value != 0 && !(key.starts_with("expert_group") && *value == 1))
      model.notes.push_back(
          fmt::format("'{}' is {}, and this program does not apply it in this family: if the model was made "
                      "with it, its answers will be worse",
                      full, *value));
  }
  return {};
}

}  // namespace

Result<Description> describe(const gguf::Metadata& metadata, std::span<const gguf::TensorInfo> tensors) {
  SW_ASSIGN(const auto architecture, metadata.find_string("general.architecture"));
  if (!architecture)
    return invalid("key 'general.architecture' is missing: the file does not say which model it holds");
  const Family* family = nullptr;
  for (const Family& known : kFamilies)
    if (known.architecture == *architecture) family = &known;
  if (family == nullptr) {
    std::string known;
    for (const Family& f : kFamilies) known += fmt::format("{}{}", known.empty() ? "" : ", ", f.architecture);
    return unsupported("model family {} is not supported; this program runs {}", gguf::quoted(*architecture),
                       known);
  }

  Builder builder(metadata, tensors, *architecture);
  Description model{.family = std::string(*architecture)};
  SW_ASSIGN(const auto name, metadata.find_string("general.name"));
  const std::string shown =
      gguf::quoted(name.value_or(""));  // without control characters, which a terminal obeys
  model.name = shown.substr(1, shown.size() - 2);
  SW_TRY(family->describe(builder, model));
  SW_TRY(note_not_applied(metadata, model));
  model.unused_tensors = builder.unused();
  for (const std::string& tensor : model.unused_tensors)
    if (changes_the_result(tensor, model.layers.size()))
      return unsupported(
          "tensor '{}' belongs to a part of the model that is run, but this program has no use for it "
          "in family '{}': the results would be wrong",
          tensor, *architecture);
  return model;
}

}  // namespace spillway::model
