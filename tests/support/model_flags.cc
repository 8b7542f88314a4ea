#include "support/model_flags.h"

namespace spillway::test_support {

void ModelFlags::add_to(CLI::App& app) {
  app.add_option("--family", spec.family, "qwen3moe, qwen2moe, llama or olmoe")->capture_default_str();
  app.add_option("--layers", spec.layers)->capture_default_str();
  app.add_option("--hidden", spec.hidden)->capture_default_str();
  app.add_option("--heads", spec.heads)->capture_default_str();
  app.add_option("--kv-heads", spec.kv_heads)->capture_default_str();
  app.add_option("--head-length", spec.head_length)->capture_default_str();
  app.add_option("--experts", spec.experts, "0: a dense model")->capture_default_str();
  app.add_option("--used", spec.used)->capture_default_str();
  app.add_option("--expert-width", spec.expert_width)->capture_default_str();
  app.add_option("--expert-scale", spec.expert_scale, "factor on the experts' weights; 0: no key")
      ->capture_default_str();
  app.add_option("--shared-width", spec.shared_width)->capture_default_str();
  app.add_option("--vocabulary", spec.vocabulary)->capture_default_str();
  app.add_option("--context", spec.context)->capture_default_str();
  app.add_option("--type", type, "of all matrices but the router")->capture_default_str();
  app.add_option("--expert-type", expert_type, "of the experts; default: --type");
  app.add_flag("--split-experts", spec.split_experts, "one tensor per expert");
  app.add_flag("--tied", spec.tied, "no output head of its own");
  app.add_option("--dense-layers", spec.dense_layers, "layers without experts")->delimiter(',');
  app.add_option("--dense-width", spec.dense_width)->capture_default_str();
  app.add_option("--rope-length", spec.rope_length, "values of a head that turn; 0: all")
      ->capture_default_str();
  app.add_option("--rope-scaling", spec.rope_scaling, "linear, yarn, or unnamed: a factor without a type");
  app.add_option("--rope-factor", spec.rope_factor)->capture_default_str();
  app.add_option("--rope-original-context", spec.rope_original_context)->capture_default_str();
  app.add_flag("--rope-factors", spec.rope_factors, "a rope_freqs.weight tensor");
  app.add_flag("--decisive-router", spec.decisive_router, "the token alone decides its experts");
  app.add_option("--seed", spec.seed)->capture_default_str();
  app.add_option("--distinct", spec.distinct, "different random matrices per shape");
}

Result<ModelSpec> ModelFlags::resolve() const {
  const TensorTypeInfo* dense = find_tensor_type(type);
  const TensorTypeInfo* experts = find_tensor_type(expert_type.empty() ? type : expert_type);
  if (dense == nullptr) return invalid("--type {} is not a tensor type", type);
  if (experts == nullptr) return invalid("--expert-type {} is not a tensor type", expert_type);
  ModelSpec resolved = spec;
  resolved.type = dense->type;
  resolved.expert_type = experts->type;
  return resolved;
}

Result<ModelSpec> parse_model_flags(const std::string& flags) {
  CLI::App app;
  ModelFlags parsed;
  parsed.add_to(app);
  try {
    app.parse(flags);
  } catch (const CLI::ParseError& error) {
    return invalid("model flags '{}': {}", flags, error.what());
  }
  return parsed.resolve();
}

}  // namespace spillway::test_support
