// The dense operations: each call becomes a closure that runs the same call of the CPU's, later.
#include <algorithm>

#include "backend/host/host_implementation.h"
#include "base/assert.h"
#include "base/checked.h"
#include "numerics/layout.h"

namespace spillway::backend {

Work HostDevice::product_work(WeightId id, uint64_t tokens) const {
  const WeightShape& w = spec_.weights[id];
  return {.bytes = w.rows * row_bytes(w.type, w.cols), .multiply_adds = tokens * w.rows * w.cols};
}

void HostDevice::begin(const Step& step) {
  SW_ASSERT(step.rows() <= spec_.sizes.max_rows);
  step_ = step;
  enqueue({}, [this, step] { compute_->begin(step); });
}

void HostDevice::copy_kv_page(uint32_t from, uint32_t to) {
  SW_ASSERT(from < spec_.kv_pages && to < spec_.kv_pages);
  Work work;
  for (const cpu::KvLayer& kv : memory_.kv()) work.bytes += 2 * (kv.key_page_bytes + kv.value_page_bytes);
  enqueue(work, [this, from, to] { memory_.copy_kv_page(from, to); });
}

void HostDevice::write_buffer(BufferId id, const float* from) {
  const size_t values = size_t{rows()} * spec_.sizes.buffer_widths[id];
  enqueue({}, [this, id, copy = std::vector<float>(from, from + values)] {
    std::ranges::copy(copy, compute_->buffer_rows(id).begin());
  });
}

void HostDevice::read_buffer(BufferId id, float* to) {
  enqueue({}, [this, id, to] { std::ranges::copy(compute_->buffer_rows(id), to); });
}

void HostDevice::embed(WeightId table, BufferId out) {
  need(table);
  enqueue({.bytes = rows() * row_bytes(spec_.weights[table].type, spec_.weights[table].cols)},
          [this, table, out] { compute_->embed(table, out); });
}

void HostDevice::rms_norm(BufferId x, uint32_t width, WeightId weight, float epsilon, BufferId y) {
  need(weight);
  enqueue({}, [=, this] { compute_->rms_norm(x, width, weight, epsilon, y); });
}

void HostDevice::head_norm(BufferId x, uint32_t heads, uint32_t head_length, WeightId weight, float epsilon) {
  need(weight);
  enqueue({}, [=, this] { compute_->head_norm(x, heads, head_length, weight, epsilon); });
}

void HostDevice::linear(BufferId x, std::span<const Linear> targets) {
  Work work;
  for (const Linear& target : targets) {
    need(target.weight);
    need(target.bias);
    const Work one = product_work(target.weight, rows());
    work.bytes += one.bytes;
    work.multiply_adds += one.multiply_adds;
  }
  enqueue(work, [this, x, copy = std::vector<Linear>(targets.begin(), targets.end())] {
    compute_->linear(x, copy);
  });
}

void HostDevice::rope(BufferId x, const RopeSpec& spec) {
  enqueue({}, [this, x, spec] { compute_->rope(x, spec); });
}

void HostDevice::store_kv(BufferId key, BufferId value, const AttentionSpec& spec) {
  SW_ASSERT(spec_.layers[spec.layer].on_device);
  enqueue({}, [this, key, value, spec] { compute_->store_kv(key, value, spec); });
}

void HostDevice::attention(BufferId q, const AttentionSpec& spec, BufferId out) {
  SW_ASSERT(spec_.layers[spec.layer].on_device);
  const cpu::KvLayer& kv = memory_.kv()[spec.layer];
  Work work;
  for (const Piece& piece : step_.pieces) {
    const uint64_t keys = uint64_t{piece.first_position} + piece.rows;
    work.bytes += ceil_div(keys, kPagePositions) * (kv.key_page_bytes + kv.value_page_bytes);
    work.multiply_adds += keys * piece.rows * spec.heads * (spec.key_length + spec.value_length);
  }
  enqueue(work, [this, q, spec, out] { compute_->attention(q, spec, out); });
}

void HostDevice::silu_mul(BufferId gate, BufferId up, uint32_t width) {
  enqueue({}, [=, this] { compute_->silu_mul(gate, up, width); });
}

void HostDevice::add(BufferId y, BufferId x, uint32_t width) {
  enqueue({}, [=, this] { compute_->add(y, x, width); });
}

void HostDevice::add_gated(BufferId y, BufferId x, BufferId gate, uint32_t width) {
  enqueue({}, [=, this] { compute_->add_gated(y, x, gate, width); });
}

void HostDevice::logits(BufferId x, std::span<const uint32_t> wanted, WeightId norm, float epsilon,
                        WeightId output, float* out, size_t out_stride) {
  SW_ASSERT(wanted.size() <= spec_.logits_rows);
  need(norm);
  need(output);
  enqueue(product_work(output, wanted.size()),
          [=, this, copy = std::vector<uint32_t>(wanted.begin(), wanted.end())] {
            compute_->logits(x, copy, norm, epsilon, output, out, out_stride);
          });
}

}  // namespace spillway::backend
