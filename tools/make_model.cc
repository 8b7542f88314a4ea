// Writes a random model for tests and benchmarks, and prints the file's hash. The file that the speed figures
// of docs/results use:
//   make_model --layers 24 --hidden 1024 --heads 16 --kv-heads 4 --head-length 64 --experts 64 --used 8
//              --expert-width 512 --vocabulary 32000 --type Q4_K --distinct 8 --out bench-q4k.gguf
#include <cstdio>

#include "support/model_flags.h"

int main(int argc, char** argv) {
  using namespace spillway;
  CLI::App app("Writes a random model", "make_model");
  test_support::ModelFlags flags;
  std::string out;
  bool hash = false;
  flags.add_to(app);
  app.add_option("--out", out)->required();
  app.add_flag("--hash", hash, "print the XXH3 of the file");
  CLI11_PARSE(app, argc, argv);
  const auto spec = flags.resolve();
  if (!spec) {
    std::fprintf(stderr, "make_model: %s\n", spec.error().message.c_str());
    return 2;
  }
  const test_support::MadeModel model = test_support::make_model(*spec);
  model.write(out);
  if (hash) std::printf("%016llx\n", static_cast<unsigned long long>(test_support::file_hash(model)));
  return 0;
}
