#include "engine/check_weights.h"

#include <atomic>
#include <cmath>
#include <mutex>

#include "base/aligned_array.h"
#include "engine/program.h"
#include "numerics/formats.h"

namespace spillway::engine {
namespace {

// The first column of a row whose block is damaged, or nothing.
std::optional<uint32_t> damaged_column(const model::Weight& weight, const std::byte* row) {
  const TensorTypeInfo& type = info(weight.type);
  const bool quantized = numerics::format_traits(weight.type).quantized;
  numerics::CanonicalBlock block;
  for (uint32_t column = 0; column < weight.cols; column += type.block_length, row += type.block_bytes) {
    if (quantized) {
      numerics::unpack_block(weight.type, row, block);
      if (!std::isfinite(block.d) || !std::isfinite(block.dm)) return column;
    } else if (!std::isfinite(numerics::load_float(weight.type, row))) {
      return column;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<void> check_weights(const ModelFiles& files, const model::Description& description,
                           sys::ThreadPool& pool, const Progress& progress) {
  const Program program(description);
  uint64_t total = 0;
  for (const model::Weight& weight : program.weights) total += weight.bytes();

  sys::TaskCounter counter;
  counter.reset(program.weights.size());
  std::atomic<uint64_t> done = 0;
  std::atomic<bool> stop = false;
  std::mutex mutex;
  std::optional<Error> first_error;
  const auto give_up = [&](Error error) {
    const std::lock_guard lock(mutex);
    if (!first_error) first_error = std::move(error);
    stop = true;
  };
  pool.run([&](uint32_t thread) {
    AlignedArray<std::byte> buffer;
    for (auto task = counter.next(); !task.empty() && !stop; task = counter.next()) {
      const model::Weight& weight = program.weights[task.begin];
      if (buffer.size() < weight.bytes()) buffer = AlignedArray<std::byte>(weight.bytes());
      if (auto read = files.files[weight.shard]->read_at(weight.offset, buffer.span().first(weight.bytes()));
          !read)
        return give_up(read.error().in(fmt::format("tensor '{}'", weight.tensor)));
      for (uint32_t row = 0; row < weight.rows; ++row)
        if (const auto column =
                damaged_column(weight, buffer.data() + row * row_bytes(weight.type, weight.cols)))
          return give_up(
              {Error::Kind::kInvalid,
               fmt::format(
                   "tensor '{}'{}, row {}, column {}: the block's scale is NaN or infinite; the file is "
                   "damaged, fetch it again",
                   weight.tensor, weight.expert ? fmt::format(", expert {}", *weight.expert) : "", row,
                   *column)});
      const uint64_t so_far = done += weight.bytes();
      if (thread == 0 && progress && !progress(so_far, total))
        return give_up({Error::Kind::kCancelled, "stopped"});
    }
  });
  if (first_error) return std::unexpected(*first_error);
  return {};
}

}  // namespace spillway::engine
