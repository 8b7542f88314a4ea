// Routes in other micro-batches than those they were recorded in. What a router says of a token depends on no
// other token of the batch, so steps can be put together; they can't be taken apart.
#pragma once

#include "experts/routes.h"

namespace spillway::tune {

// Appends the steps [first, first + n) of `from` to `to` as one. Requires: the same layers in each of them.
void append_merged(experts::Routes& to, const experts::Routes& from, size_t first, size_t n);

// A prompt's micro-batches of `recorded` tokens each (the last may be smaller), put together to `ubatch`.
// Requires: ubatch >= recorded > 1.
experts::Routes with_ubatch(const experts::Routes& routes, uint32_t recorded, uint32_t ubatch);

}  // namespace spillway::tune
