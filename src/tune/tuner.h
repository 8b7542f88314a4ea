// The whole of `spillway tune`: calibrates, fits, searches, and then runs what it would recommend beside what
// people have without it, and recommends only what was seen to be better.
//
//   calibration   runs of a few settings that show each resource alone and together, on calibration's prompts
//   fit           the time model (time_model.h), and how far it is from these same runs
//   search        predictions over a grid (search.h)
//   contest       the best prediction, its neighbours, the default and no cache, on held-out prompts
//   final         the best of these against the default, measured anew, until it is decided or time is over
#pragma once

#include <functional>
#include <string>

#include "report/result.h"
#include "tune/figures.h"
#include "tune/lab.h"

namespace spillway::tune {

struct TuneOptions {
  Goal goal = Goal::kDecode;
  double seconds = 600;  // of the lab's clock, from the call on
  // Go on with a model that failed: to see how wrong it is, never to recommend anything.
  bool use_failed_model = false;
};

struct TuneProgress {
  std::string doing;  // "calibrating", ...
  double done_s = 0, total_s = 0;
};

enum class Outcome : uint8_t {
  kTuned,           // something better than the default
  kDefault,         // nothing that is seen to be better
  kNoCache,         // the cache does not pay
  kEverythingFits,  // the cache is not needed
  kInterrupted,     // a person stopped it before anything could be said
};

struct TuneReport {
  Outcome outcome = Outcome::kDefault;
  Settings recommended;       // what a command line without flags does, where nothing better is
  bool model_failed = false;  // its error is above kMostModelError: what is measured is all there is
  double model_error = 0;
  uint64_t cache_bytes = 0;  // of the default's cache
  double gain = 1;           // of the recommended against the default, measured, by the goal; 1: not resolved
  bool stopped = false;      // by hand
  // Kind, settings, runs, rows (the default's first), terms, notes, conclusion; the rest is the caller's.
  report::ResultFile result;
};

inline constexpr double kMostModelError = 0.10;
inline constexpr double kLeastGain = 0.03;  // as report::kMargin: a difference below it is none for people

// `probed`: what is known of the machine before. `progress` is told now and then.
// kNoMemory: the limits allow nothing, with the smallest that would do.
Result<TuneReport> tune(Lab& lab, const experts::HardwareProfile& probed, const TuneOptions& options,
                        const std::function<void(const TuneProgress&)>& progress = {});

}  // namespace spillway::tune
