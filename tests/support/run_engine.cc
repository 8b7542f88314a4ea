#include "support/run_engine.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>

namespace spillway::test_support {
namespace {

[[noreturn]] void stop(const std::string& message) {
  std::fprintf(stderr, "test support: %s\n", message.c_str());
  std::abort();
}

}  // namespace

ModelFile::ModelFile(const MadeModel& model) {
  const char* folder = std::getenv("TMPDIR");
  path_ = std::string(folder ? folder : "/tmp") + "/spillway-test-XXXXXX.gguf";
  const int descriptor = mkstemps(path_.data(), 5);
  if (descriptor < 0) stop("no temporary file can be made: " + path_);
  close(descriptor);
  model.write(path_);
}

ModelFile::~ModelFile() { unlink(path_.c_str()); }

std::unique_ptr<engine::Engine> load_engine(const ModelFile& file, engine::Options options) {
  options.path = file.path();
  auto engine = engine::Engine::load(options);
  if (!engine) stop(engine.error().message);
  return std::move(*engine);
}

std::vector<int32_t> random_tokens(size_t n, uint32_t vocabulary, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int32_t> tokens(n);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % vocabulary);
  return tokens;
}

std::vector<float> append(engine::Engine& engine, engine::SequenceId sequence,
                          std::span<const int32_t> tokens, size_t piece) {
  const size_t columns = engine.vocabulary();
  std::vector<float> rows(tokens.size() * columns);
  if (piece == 0) piece = tokens.size();
  for (size_t first = 0; first < tokens.size(); first += piece) {
    const engine::BatchItem item{.sequence = sequence,
                                 .tokens = tokens.subspan(first, std::min(piece, tokens.size() - first)),
                                 .want = engine::Want::kAll};
    const auto done = engine.decode({&item, 1}, [&](size_t, size_t token, std::span<const float> row) {
      std::copy(row.begin(), row.end(), rows.begin() + static_cast<ptrdiff_t>((first + token) * columns));
    });
    if (!done) stop(done.error().message);
  }
  return rows;
}

std::vector<float> all_logits(engine::Engine& engine, std::span<const int32_t> tokens, size_t piece) {
  const engine::SequenceId sequence = engine.open_sequence();
  std::vector<float> rows = append(engine, sequence, tokens, piece);
  engine.close_sequence(sequence);
  return rows;
}

}  // namespace spillway::test_support
