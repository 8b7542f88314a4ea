// Reads the header of a GGUF file (versions 2 and 3, little-endian): a pure function of bytes.
//
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Where it is silent, or readers disagree:
//   alignment      any multiple of 8 up to limits::kMaxAlignment, power of two or not; 32 where the key is
//   missing offsets        must be multiples of the alignment; order and gaps are free; overlapping tensors
//   are refused end of file    a tensor must end at or before it; whether the last one is padded, and what
//   follows, is free dimensions     at most 4, none of them 0; 0 dimensions is a single value; a row must be
//   whole blocks names          of keys and tensors: valid UTF-8, 1 to limits::kMaxNameBytes bytes, no
//   control characters, no
//                  duplicates
//   bool           0 or 1
//   tensor types   any. `bytes` is known for every type that the format has now, also where Spillway can't
//   compute
//                  with it; a type that is not known is kept with `size_known` false. Whoever needs the
//                  tensor refuses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/metadata.h"

namespace spillway::gguf {

inline constexpr uint64_t kDefaultAlignment = 32;

struct TensorInfo {
  std::string name;
  uint32_t type_id = 0;  // see base/tensor_type.h
  uint32_t n_dims = 0;
  std::array<uint64_t, 4> dims = {1, 1, 1,
                                  1};  // dims[0] is the row length: contiguous values; unused ones are 1
  uint64_t offset = 0;                 // in bytes from the start of its file
  uint64_t bytes = 0;                  // 0 where !size_known
  uint32_t shard = 0;                  // which file, from 0; set by gguf/shards.h
  bool size_known = true;              // false: the type id is not known to this program

  uint64_t rows() const { return dims[1] * dims[2] * dims[3]; }
  uint64_t values() const { return dims[0] * rows(); }  // checked not to wrap when parsed
  bool operator==(const TensorInfo&) const = default;
};

// For messages: "blk.0.ffn_up_exps.weight (Q4_K, 64x128x4)".
std::string describe(const TensorInfo& tensor);

struct Header {
  uint32_t version = 3;
  uint64_t alignment = kDefaultAlignment;
  Metadata metadata;
  std::vector<TensorInfo> tensors;  // in the order of the file
  uint64_t data_offset = 0;  // where tensor data begins; may lie past the end of a file without tensors
};

// Parses the header from the first bytes of a file of `file_bytes` bytes. `prefix` may be the whole (mapped)
// file or any part that holds the header; what lies past the header is not read. A prefix that ends inside
// the header is an error; see parse_prefix.
Result<Header> parse_header(std::span<const std::byte> prefix, uint64_t file_bytes);

// The same, for callers that read piece by piece: no header, and the number of bytes that the next prefix
// must hold at least (more than this one, at most file_bytes), where `prefix` is sound but ends inside the
// header.
struct PrefixResult {
  std::optional<Header> header;
  uint64_t need_bytes = 0;
};
Result<PrefixResult> parse_prefix(std::span<const std::byte> prefix, uint64_t file_bytes);

// Reads a header through a callback that fills `to` with the bytes from `offset` on (in full, or an error).
using ReadAt = std::function<Result<void>(uint64_t offset, std::span<std::byte> to)>;
Result<Header> read_header(uint64_t file_bytes, const ReadAt& read_at);

// Block length and bytes of every type id that the format has, also those that Spillway doesn't compute with;
// nothing for ids that were removed or are not known.
struct BlockSize {
  uint32_t values = 0;
  uint32_t bytes = 0;
};
std::optional<BlockSize> block_size(uint32_t type_id);

}  // namespace spillway::gguf
