// From a file's metadata and tensor list to a Description.
#pragma once

#include <span>

#include "base/result.h"
#include "gguf/metadata.h"
#include "gguf/reader.h"
#include "model/description.h"

namespace spillway::model {

// Errors name the key or tensor at fault; a family that this program doesn't run is kUnsupported and named.
Result<Description> describe(const gguf::Metadata& metadata, std::span<const gguf::TensorInfo> tensors);

}  // namespace spillway::model
