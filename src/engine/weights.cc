#include "engine/weights.h"

#include <atomic>

#include "base/checked.h"
#include "numerics/float_bits.h"
#include "numerics/layout.h"
#include "sys/load.h"

namespace spillway::engine {
namespace {

// Without the page cache's read-ahead a thread has one request under way, so it should be a large one:
// measured with one reader on a virtual disk, 1.0 GB/s with 256 KiB (the best for copies out of the
// cache), 1.6 with 1 MiB, 1.5 with 4.
constexpr uint64_t kDirectPieceBytes = 1 << 20;

bool is_vector(const model::Weight& weight) { return weight.rows == 1 && weight.type == TensorType::kF32; }

uint64_t arena_bytes(const model::Weight& weight) {
  return ceil_div(numerics::interleaved_bytes(weight.type, weight.rows, weight.cols), kCacheLineBytes) *
         kCacheLineBytes;
}

}  // namespace

uint64_t HostWeights::interleaved_bytes(std::span<const model::Weight> weights,
                                        const std::vector<bool>& on_host) {
  uint64_t total = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (is_vector(weights[i]))
      total += weights[i].bytes();
    else if (on_host[i])
      total += arena_bytes(weights[i]);
  }
  return total;
}

std::vector<std::span<const std::byte>> HostWeights::ranges() const {
  std::vector<std::span<const std::byte>> ranges;
  if (arena_.size() > 0) ranges.push_back(arena_.bytes());
  for (const sys::MappedFile& mapping : mappings_) ranges.push_back(mapping.bytes());
  return ranges;
}

std::span<const float> HostWeights::vector(backend::WeightId id) const {
  if (id == backend::kNoWeight) return {};
  return {reinterpret_cast<const float*>(matrices_[id].data), matrices_[id].cols};
}

Result<HostWeights> HostWeights::load(const ModelFiles& files, std::span<const model::Weight> weights,
                                      const std::vector<bool>& on_host, LoadMode mode,
                                      const cpu::Kernels& kernels, uint32_t threads,
                                      const Progress& progress) {
  HostWeights host;
  for (const model::Weight& weight : weights)
    host.matrices_.push_back({.type = weight.type, .rows = weight.rows, .cols = weight.cols});
  SW_TRY(host.copy_vectors(files, weights));
  if (mode == LoadMode::kMmap) {
    SW_TRY(host.map(files, weights));
  } else {
    SW_TRY(host.read(files, weights, on_host, mode, kernels, threads, progress));
    if (mode == LoadMode::kMlock && host.arena_.size() > 0) SW_TRY(sys::lock_memory(host.arena_.bytes()));
  }
  return host;
}

Result<void> HostWeights::copy_vectors(const ModelFiles& files, std::span<const model::Weight> weights) {
  // Each on a cache line of its own: kernels load whole registers.
  constexpr size_t kLine = kCacheLineBytes / sizeof(float);
  size_t values = 0;
  for (const model::Weight& weight : weights)
    if (is_vector(weight)) values += ceil_div(weight.cols, kLine) * kLine;
  vectors_ = AlignedArray<float>(values);
  own_bytes_ += values * sizeof(float);
  float* next = vectors_.data();
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!is_vector(weights[i])) continue;
    SW_TRY(files.files[weights[i].shard]->read_at(weights[i].offset,
                                                  std::as_writable_bytes(std::span(next, weights[i].cols))));
    for (uint32_t c = 0; c < weights[i].cols; ++c) next[c] = numerics::flush(next[c]);
    matrices_[i].layout = cpu::Layout::kFile;
    matrices_[i].data = reinterpret_cast<const std::byte*>(next);
    next += ceil_div(weights[i].cols, kLine) * kLine;
  }
  return {};
}

Result<void> HostWeights::map(const ModelFiles& files, std::span<const model::Weight> weights) {
  for (const auto& file : files.files) {
    SW_ASSIGN(sys::MappedFile mapping, sys::MappedFile::open(file->path()));
    mappings_.push_back(std::move(mapping));
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    if (is_vector(weights[i])) continue;
    matrices_[i].layout = cpu::Layout::kFile;
    matrices_[i].data = mappings_[weights[i].shard].bytes().data() + weights[i].offset;
  }
  return {};
}

Result<void> HostWeights::read(const ModelFiles& files, std::span<const model::Weight> weights,
                               const std::vector<bool>& on_host, LoadMode mode, const cpu::Kernels& kernels,
                               uint32_t threads, const Progress& progress) {
  uint64_t total = 0;
  const auto is_read = [&](size_t i) { return on_host[i] && !is_vector(weights[i]); };
  for (size_t i = 0; i < weights.size(); ++i)
    if (is_read(i)) total += arena_bytes(weights[i]);
  if (total == 0) return {};
  auto arena = sys::Allocation::create(total, sys::Pages::kPreferHuge);
  if (!arena)
    return std::unexpected(arena.error().in(fmt::format(
        "the weights need {} MiB of memory; '-lm mmap' uses the file where it lies instead", total >> 20)));
  arena_ = std::move(*arena);
  own_bytes_ += total;

  std::vector<std::unique_ptr<sys::ReadableFile>> direct;
  if (mode == LoadMode::kDirect) {
    SW_ASSIGN(direct, open_direct(files));
  }
  const auto& from = direct.empty() ? files.files : direct;
  std::vector<sys::LoadItem> items;
  std::byte* next = arena_.data();
  uint64_t file_total = 0;
  for (uint32_t i = 0; i < weights.size(); ++i) {
    const model::Weight& weight = weights[i];
    if (!is_read(i)) continue;
    matrices_[i].layout = cpu::Layout::kInterleaved;
    matrices_[i].data = next;
    const uint64_t row_size = row_bytes(weight.type, weight.cols);
    items.push_back({.file = from[weight.shard].get(),
                     .offset = weight.offset,
                     .bytes = weight.bytes(),
                     .transform = [&weight, &kernels, row_size, to = next](std::span<const std::byte> piece,
                                                                           uint64_t at) -> Result<void> {
                       kernels.interleave(weight.type, piece.size() / row_size, weight.cols, piece.data(),
                                          to + at);
                       return {};
                     },
                     .unit_bytes = cpu::kGroupRows * row_size});
    next += arena_bytes(weight);
    file_total += weight.bytes();
  }

  std::atomic<bool> cancel = false;
  sys::LoadOptions options{.threads = threads, .cancel = &cancel};
  if (mode == LoadMode::kDirect) options.piece_bytes = kDirectPieceBytes;
  if (progress)
    options.progress = [&](uint64_t done) {
      if (!progress(done, file_total)) cancel = true;
    };
  return sys::load(items, options);
}

}  // namespace spillway::engine
