// Reads ranges of files into memory with several threads, rearranging them on the way.
//
// The aim is the speed of the plain copy out of the page cache, so bytes should cross DRAM as rarely as in a
// plain read: a thread reads a piece of 256 KiB into a buffer that stays in its L2 cache, and the caller's
// transform writes it from there to its place in memory. There is no second pass, and a destination's pages
// are first touched by the thread that fills them. Destinations should lie in huge pages (sys/memory.h).
//
// Measured with two threads on two Zen 5 cores, warm, fresh huge pages, against plain reads of 4 MiB (13
// GB/s): 83 % where the transform interleaves 16 rows by in-register transposes and streaming stores of whole
// lines, 78 % with ordinary stores (their lines come from DRAM first), 62 % where the compiler left the
// transpose's registers in memory. Of the plain read's time, zeroing the fresh pages takes a third and
// reading the page cache half. Reading to the place itself and rearranging there was no faster; mapping the
// file took three times as long.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "sys/file.h"

namespace spillway::sys {

// One range, usually a tensor.
struct LoadItem {
  const ReadableFile* file = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;

  // Where the bytes go as they are. Null where `transform` takes them.
  std::byte* to = nullptr;

  // Takes a piece of the range: `piece_offset` counts from the range's start and is a multiple of unit_bytes;
  // so is the piece's size, but for the range's end. Called from several threads at a time, for different
  // pieces, in no certain order. The piece is gone afterwards. An error ends the loading.
  std::function<Result<void>(std::span<const std::byte> piece, uint64_t piece_offset)> transform;
  uint64_t unit_bytes = 1;  // such as the bytes of 16 rows
};

struct LoadOptions {
  uint32_t threads = 2;
  uint64_t piece_bytes =
      256 << 10;  // for transforms; a larger unit takes precedence. Half of an L2 cache or less.
  uint64_t chunk_bytes = 4 << 20;  // what a thread takes at a time: large for the disk, small for an even end

  // Told the bytes done so far, after each chunk, from the loading threads, one call at a time.
  std::function<void(uint64_t done_bytes)> progress;
  // Loading ends soon (one piece) after it becomes true, with an error of kind kCancelled.
  const std::atomic<bool>* cancel = nullptr;
};

// Loads every item, in the order given as far as several threads keep one. On an error (the first that
// occurred) the destinations hold anything. Requires: each item has a file, and either `to` or `transform`;
// unit_bytes > 0.
Result<void> load(std::span<const LoadItem> items, const LoadOptions& options);

}  // namespace spillway::sys
