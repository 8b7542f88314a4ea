// Does a device keep the promise of equal bits? A few products, norms, exponentials and an attention with the
// values that devices differ in: scales that are denormal halves, integers above 2^24, halfway cases of every
// rounding, infinities and NaNs, compared with numerics/. It takes milliseconds, and is run before a device
// is used; one that fails still computes, and the user is told that its results may differ in the last bits.
#pragma once

#include <string>
#include <vector>

#include "backend/device.h"

namespace spillway::backend {

struct SelfTestOptions {
  std::vector<TensorType> types;  // of weights; each has products of its own
  KvTypes kv_types;
};

// What came out otherwise than defined, a sentence each; empty where all is well. An error where the device
// does not work at all. Prepares the device: it is of no use afterwards. Requires: not prepared yet.
Result<std::vector<std::string>> self_test(Device& device, const SelfTestOptions& options);

}  // namespace spillway::backend
