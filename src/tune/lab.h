// Where settings are tried: the seam between the tuner and what it tunes. engine_lab.h runs the model,
// sim_lab.h a machine made up for tests, whose clock is simulated; the tuner can't tell them apart.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experts/trace.h"
#include "report/result.h"
#include "tune/settings.h"

namespace spillway::tune {

// A conversation of the workload, by its index in LabFacts::prompts.
struct Prompt {
  std::string topic;
  bool held_out = false;  // calibration does not see it
};

// A number of threads, and how fast they compute experts against the number that is loaded.
struct ThreadChoice {
  uint32_t threads = 0;
  double cpu_rate = 1.0;
};

struct LabFacts {
  std::vector<experts::GroupShape> groups;  // the planned layers; none: nothing is left to decide
  std::vector<uint32_t> ring_slots;         // (groups)
  uint64_t dense_bytes = 0;                 // read per token beside the experts
  uint64_t max_cache_bytes = 0;             // what is allocated: no cache can be larger
  uint64_t other_device_bytes = 0;          // that the device holds beside the cache
  bool limited = false;                     // that is less than a command line without flags would allocate
  bool all_fits = false;                    // all experts could be resident on the device, within the limits
  std::vector<uint32_t> ubatches;           // that can be tried, ascending
  uint32_t default_ubatch = 512;
  std::vector<ThreadChoice> threads;    // that can be tried; empty: only what is loaded
  std::string load_mode;                // that is loaded, as -lm takes it
  std::vector<std::string> load_modes;  // others that may be tried, for which the model is loaded again
  std::vector<Prompt> prompts;
  uint32_t users = 1;
  std::vector<std::string> notes;  // what to know of this lab, whole sentences
};

// One try: the cache is empty at the start; warm-up prompts come first, then those that are measured.
struct Task {
  std::vector<uint32_t> warm_up, measured;  // prompts
  uint32_t generate = 64;                   // most tokens of an answer
  double most_seconds = 0;                  // past this the try is cut short, and says so; 0: never
  bool trace = false;
};

struct Trial {
  report::Run run;           // the measured prompts alone; `setting` is left to the caller
  experts::Trace trace;      // of everything, where it was asked for
  size_t warm_up_steps = 0;  // of the trace
};

class Lab {
 public:
  virtual ~Lab() = default;
  virtual const LabFacts& facts() const = 0;
  // Errors: settings that can't be tried here; kCancelled where somebody stopped it.
  virtual Result<Trial> run(const Settings& settings, const Task& task) = 0;
  // By the clock that the time budget is kept by.
  virtual double seconds() const = 0;
  // A person wants to stop.
  virtual bool stopped() const = 0;
};

}  // namespace spillway::tune
