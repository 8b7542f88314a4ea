// Writes a random model for tests and benchmarks. The file that the speed figures of docs/results use:
//   make_model --layers 24 --hidden 1024 --heads 16 --kv-heads 4 --head-length 64 --experts 64 --used 8
//              --expert-width 512 --vocabulary 32000 --type Q4_K --distinct 8 --out bench-q4k.gguf
#include <CLI/CLI.hpp>
#include <cstdio>

#include "support/model_maker.h"

int main(int argc, char** argv) {
  using namespace spillway;
  test_support::ModelSpec spec;
  std::string type = "F32", expert_type, out;
  CLI::App app("Writes a random model", "make_model");
  app.add_option("--family", spec.family)->capture_default_str();
  app.add_option("--layers", spec.layers)->capture_default_str();
  app.add_option("--hidden", spec.hidden)->capture_default_str();
  app.add_option("--heads", spec.heads)->capture_default_str();
  app.add_option("--kv-heads", spec.kv_heads)->capture_default_str();
  app.add_option("--head-length", spec.head_length)->capture_default_str();
  app.add_option("--experts", spec.experts)->capture_default_str();
  app.add_option("--used", spec.used)->capture_default_str();
  app.add_option("--expert-width", spec.expert_width)->capture_default_str();
  app.add_option("--shared-width", spec.shared_width)->capture_default_str();
  app.add_option("--vocabulary", spec.vocabulary)->capture_default_str();
  app.add_option("--context", spec.context)->capture_default_str();
  app.add_option("--type", type, "of all matrices but the router")->capture_default_str();
  app.add_option("--expert-type", expert_type, "of the experts; default: --type");
  app.add_flag("--split-experts", spec.split_experts, "one tensor per expert");
  app.add_option("--seed", spec.seed)->capture_default_str();
  app.add_option("--distinct", spec.distinct, "different random matrices per shape");
  app.add_option("--out", out)->required();
  CLI11_PARSE(app, argc, argv);
  const TensorTypeInfo* dense = find_tensor_type(type);
  const TensorTypeInfo* experts = find_tensor_type(expert_type.empty() ? type : expert_type);
  if (!dense || !experts) {
    std::fprintf(stderr, "make_model: unknown type\n");
    return 2;
  }
  spec.type = dense->type;
  spec.expert_type = experts->type;
  test_support::make_model(spec).write(out);
  return 0;
}
