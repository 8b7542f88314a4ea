// From a file's metadata and tensor list to a Description.
#pragma once

#include <span>

#include "base/result.h"
#include "gguf/metadata.h"
#include "gguf/reader.h"
#include "model/description.h"

namespace spillway::model {

// Errors name the key or tensor at fault; a family that this program doesn't run is kUnsupported and named,
// and so is a tensor of a layer that runs which the family doesn't know. Other tensors without a use are
// listed.
Result<Description> describe(const gguf::Metadata& metadata, std::span<const gguf::TensorInfo> tensors);

}  // namespace spillway::model
