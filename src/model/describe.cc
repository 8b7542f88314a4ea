#include "model/describe.h"

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
    return unsupported("model family '{}' is not supported; this program runs {}", *architecture, known);
  }

  Builder builder(metadata, tensors, *architecture);
  Description model{.family = std::string(*architecture)};
  SW_ASSIGN(const auto name, metadata.find_string("general.name"));
  model.name = std::string(name.value_or(""));
  SW_TRY(family->describe(builder, model));
  model.unused_tensors = builder.unused();
  return model;
}

}  // namespace spillway::model
