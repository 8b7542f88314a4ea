#include "sys/load.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "base/assert.h"
#include "sys/memory.h"
#include "sys/thread_pool.h"

namespace spillway::sys {
namespace {

// A part of an item that one thread loads; begin is a multiple of the item's unit.
struct Chunk {
  const LoadItem* item;
  uint64_t begin;
  uint64_t end;
};

// The largest multiple of `unit` up to `bytes`, but at least one.
uint64_t whole_units(uint64_t bytes, uint64_t unit) { return std::max<uint64_t>(bytes / unit, 1) * unit; }

std::vector<Chunk> cut(std::span<const LoadItem> items, uint64_t chunk_bytes) {
  std::vector<Chunk> chunks;
  for (const LoadItem& item : items) {
    SW_ASSERT(item.file && item.unit_bytes > 0 && (item.to != nullptr) != static_cast<bool>(item.transform));
    const uint64_t step = whole_units(chunk_bytes, item.unit_bytes);
    for (uint64_t begin = 0; begin < item.bytes; begin += std::min(step, item.bytes - begin))
      chunks.push_back({&item, begin, begin + std::min(step, item.bytes - begin)});
  }
  return chunks;
}

class Loader {
 public:
  Loader(std::vector<Chunk> chunks, const LoadOptions& options)
      : chunks_(std::move(chunks)), options_(options) {
    counter_.reset(chunks_.size());
    for (const Chunk& chunk : chunks_) {
      if (!chunk.item->transform) continue;
      const uint64_t piece = whole_units(options.piece_bytes, chunk.item->unit_bytes);
      buffer_bytes_ = std::max(buffer_bytes_, std::min(piece, chunk.end - chunk.begin) + kWindowSlackBytes);
    }
  }

  // The work of one thread.
  void work() {
    Allocation buffer;
    if (buffer_bytes_ > 0) {
      // A whole huge page even for less: the rows of a group then share one TLB entry.
      Result<Allocation> made =
          Allocation::create(std::max(buffer_bytes_, kHugePageBytes), Pages::kPreferHuge);
      if (!made) return stop(std::move(made).error());
      buffer = *std::move(made);
    }
    while (!stopped_.load(std::memory_order_relaxed)) {
      const TaskCounter::Range range = counter_.next();
      if (range.empty()) return;
      const Chunk& chunk = chunks_[range.begin];
      Result<void> loaded = load_chunk(chunk, buffer.bytes());
      if (!loaded) return stop(std::move(loaded).error());
      report(chunk.end - chunk.begin);
    }
  }

  Result<void> result() {
    if (error_) return std::unexpected(*std::move(error_));
    return {};
  }

 private:
  Result<void> load_chunk(const Chunk& chunk, std::span<std::byte> buffer) {
    const LoadItem& item = *chunk.item;
    const uint64_t step =
        item.transform ? whole_units(options_.piece_bytes, item.unit_bytes) : options_.chunk_bytes;
    for (uint64_t at = chunk.begin; at < chunk.end; at += std::min(step, chunk.end - at)) {
      if (options_.cancel && options_.cancel->load(std::memory_order_relaxed))
        return fail(Error::Kind::kCancelled, "loading was cancelled");
      const uint64_t n = std::min(step, chunk.end - at);
      if (!item.transform) {
        SW_TRY(item.file->read_at(item.offset + at, std::span(item.to + at, n)));
        continue;
      }
      SW_ASSIGN(const std::span<const std::byte> piece, item.file->read_window(item.offset + at, n, buffer));
      SW_TRY(item.transform(piece, at));
    }
    return {};
  }

  void report(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    done_bytes_ += bytes;
    if (options_.progress) options_.progress(done_bytes_);
  }

  void stop(Error error) {
    stopped_.store(true, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }

  const std::vector<Chunk> chunks_;
  const LoadOptions& options_;
  uint64_t buffer_bytes_ = 0;
  TaskCounter counter_;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;  // guards the rest
  uint64_t done_bytes_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<void> load(std::span<const LoadItem> items, const LoadOptions& options) {
  SW_ASSERT(options.threads > 0 && options.piece_bytes > 0 && options.chunk_bytes > 0);
  std::vector<Chunk> chunks = cut(items, options.chunk_bytes);
  const uint32_t threads = static_cast<uint32_t>(std::clamp<size_t>(chunks.size(), 1, options.threads));
  SW_ASSIGN(const auto pool, ThreadPool::create(threads));
  Loader loader(std::move(chunks), options);
  pool->run([&](uint32_t) { loader.work(); });
  return loader.result();
}

}  // namespace spillway::sys
