// A loaded model that computes logits. One engine is one model with its weights, KV cache and threads; it is
// used by one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/expert_step.h"
#include "engine/kv_pages.h"
#include "engine/memory_plan.h"
#include "engine/model_files.h"
#include "engine/options.h"
#include "experts/trace.h"
#include "model/description.h"

namespace spillway::engine {

enum class Want : uint8_t { kNothing, kLast, kAll };  // rows of logits of an item

// Tokens to append to a sequence.
struct BatchItem {
  SequenceId sequence = 0;
  std::span<const int32_t> tokens;
  Want want = Want::kLast;
};

// Receives rows of logits: `token` is an index into the item's tokens; `logits` holds vocabulary() values and
// is valid during the call.
using LogitsSink = std::function<void(size_t item, size_t token, std::span<const float> logits)>;

// Of all planned layers since the model was loaded or reconfigured. All measured.
struct ExpertStats {
  experts::LayerCounters total;
  struct Layer {
    uint32_t layer = 0;  // of the model
    experts::LayerCounters counters;
  };
  std::vector<Layer> layers;
  struct Resident {
    uint32_t layer = 0;
    ResidentUses uses;
  };
  std::vector<Resident> resident;       // layers whose experts are all on the device; not in `total`
  std::vector<std::string> controller;  // what the planner tried, found and chose: sentences
  StepTimes times;
  uint64_t pinned_bytes = 0;       // host memory that copies need no staging for
  uint64_t host_expert_bytes = 0;  // host memory that experts are copied from
};

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> load(const Options& options, const Progress& progress = {});
  ~Engine();

  const gguf::Metadata& metadata() const;
  const model::Description& description() const;
  const MemoryPlan& memory() const;                                 // what is in force
  double load_seconds() const;                                      // measured
  uint32_t vocabulary() const { return description().vocabulary; }  // values of a row of logits
  uint32_t context() const { return memory().context; }
  const Placement& placement() const;
  const backend::DeviceInfo* device() const;  // null: the CPU alone
  ExpertStats expert_stats() const;
  // What was asked for and is not in force, and why: a sentence each.
  std::vector<std::string> notes() const;

  // Other settings without loading again: the cache is emptied, statistics start anew, sequences stay as they
  // are. An error leaves everything as it was, but where the device is lost.
  Result<void> reconfigure(const RunSettings& settings);

  // Writes a trace (experts/trace.h) of all that is planned from now on, until end_trace(). kUnsupported
  // where nothing is planned. Requires: nothing has been decoded yet since the load or reconfigure().
  Result<void> begin_trace(const std::string& source, experts::TraceWriter::Sink sink);
  Result<void> end_trace();
  // Records what runs when from now on; the engine keeps it. Null where nothing is recorded.
  void record_timeline();
  const Timeline* timeline() const;

  SequenceId open_sequence();
  void close_sequence(SequenceId id);
  uint32_t length(SequenceId id) const;
  void truncate(SequenceId id, uint32_t length);
  SequenceId fork(SequenceId id, uint32_t length);

  // Appends the items' tokens to their sequences and computes the logits that they want; prompt pieces and
  // single tokens of several sequences share micro-batches. A sequence may appear in one item only. A token
  // outside the vocabulary, a full cache or a cancelled call is an error, after which every sequence is as
  // long as before. `keep_going` is asked between micro-batches; unset = never stop.
  Result<void> decode(std::span<const BatchItem> items, const LogitsSink& sink,
                      const std::function<bool()>& keep_going = {});

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace spillway::engine
