// Loads models that a test made, and runs them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/model_maker.h"

namespace spillway::test_support {

// A model's file for as long as this lives.
class ModelFile {
 public:
  explicit ModelFile(const MadeModel& model);
  explicit ModelFile(const ModelSpec& spec) : ModelFile(make_model(spec)) {}
  ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Stops the test program with the message where the model can't be loaded. options.path is set here.
std::unique_ptr<engine::Engine> load_engine(const ModelFile& file, engine::Options options);

// `n` token ids below `vocabulary`, the same for the same seed.
std::vector<int32_t> random_tokens(size_t n, uint32_t vocabulary, uint64_t seed);

// Appends the tokens to the sequence in pieces of `piece` (0: all at once) and gives every row of logits:
// (tokens, vocabulary). Stops the test program on an error.
std::vector<float> append(engine::Engine& engine, engine::SequenceId sequence,
                          std::span<const int32_t> tokens, size_t piece = 0);

// The same in a sequence of its own, which is closed again.
std::vector<float> all_logits(engine::Engine& engine, std::span<const int32_t> tokens, size_t piece = 0);

}  // namespace spillway::test_support
