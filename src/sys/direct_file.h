// Files read around the page cache: loading a model once evicts nothing from it, and leaves no second copy of
// the weights in it.
//
// The system then wants offsets, lengths and addresses that are multiples of the disk's block. A reader that
// has a buffer to spare reads the blocks around its range (read_window) and copies nothing; any other read
// goes through a buffer of whole blocks.
#pragma once

#include "sys/file.h"

namespace spillway::sys {

// What reads blocks; a seam, so that tests can do without a disk.
class BlockReader {
 public:
  virtual ~BlockReader() = default;
  // Reads from `offset` on and returns the bytes read: fewer than to.size() only where the file ends, or
  // where the system stopped at a block. Requires: the offset, the size and the address of `to` are multiples
  // of kDirectBlockBytes. Any number of threads at a time.
  virtual Result<size_t> read_blocks(uint64_t offset, std::span<std::byte> to) const = 0;
};

// A file of `size` bytes that is read by blocks only. kUnsupported, with the reader's reason, where its first
// or last block can't be read.
Result<std::unique_ptr<ReadableFile>> make_direct_file(std::unique_ptr<BlockReader> reader, std::string path,
                                                       uint64_t size);

// Opens a regular file with O_DIRECT. kUnsupported where its file system refuses that; else as open_file().
Result<std::unique_ptr<ReadableFile>> open_direct_file(const std::string& path);

}  // namespace spillway::sys
