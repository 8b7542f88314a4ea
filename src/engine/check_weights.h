// A look at every block scale of a model before it is run.
#pragma once

#include "base/result.h"
#include "engine/model_files.h"
#include "engine/options.h"
#include "model/description.h"
#include "sys/thread_pool.h"

namespace spillway::engine {

// Reads all weights; the first block whose scale (or, in F32, F16 and BF16, value) is NaN or infinite is an
// error that names tensor, expert and row. Such a block harms only tokens that are routed to it, so a model
// may seem fine for long.
Result<void> check_weights(const ModelFiles& files, const model::Description& description,
                           sys::ThreadPool& pool, const Progress& progress);

}  // namespace spillway::engine
