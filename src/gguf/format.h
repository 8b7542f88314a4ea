// What the reader and the writer share.
#pragma once

#include "base/result.h"
#include "gguf/reader.h"

namespace spillway::gguf {

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr std::string_view kAlignmentKey = "general.alignment";

// The alignment that `metadata` asks for (see reader.h for the rule).
Result<uint64_t> alignment_of(const Metadata& metadata);

// Checks n_dims, dims and block length of `tensor` and sets bytes and size_known. Errors don't name the
// tensor.
Result<void> set_size(TensorInfo& tensor);

// Metadata values and arrays, as they lie in a file; implemented in value_reader.cc.
class Cursor;
Result<Value> read_value(Cursor& cursor);

}  // namespace spillway::gguf
