// A call of decode(): items are cut into micro-batches, and each goes through the layers.
#include <algorithm>
#include <cstring>

#include "engine/engine_state.h"

namespace spillway::engine {

void Engine::State::copy_page(KvPages::Copy copy) {
  if (opened.device) opened.device->copy_kv_page(copy.from, copy.to);
  for (const cpu::KvLayer& kv : kv_layers) {
    std::memcpy(kv.keys + copy.to * kv.key_page_bytes, kv.keys + copy.from * kv.key_page_bytes,
                kv.key_page_bytes);
    std::memcpy(kv.values + copy.to * kv.value_page_bytes, kv.values + copy.from * kv.value_page_bytes,
                kv.value_page_bytes);
  }
}

Result<void> Engine::State::run(std::span<const BatchItem> items, const LogitsSink& sink,
                                const std::function<bool()>& keep_going) {
  // Room for everything first: nothing is computed in vain.
  for (const BatchItem& item : items) {
    SW_ASSIGN(const std::vector<KvPages::Copy> copies,
              pages->reserve(item.sequence, static_cast<uint32_t>(item.tokens.size())));
    for (const KvPages::Copy copy : copies) copy_page(copy);
  }

  std::vector<int32_t> tokens;
  std::vector<uint32_t> positions;
  std::vector<backend::Piece> parts;
  std::vector<std::pair<size_t, size_t>> origin;  // (item, token) of each row
  size_t item = 0, token = 0;
  while (item < items.size()) {
    if (keep_going && !keep_going()) return fail(Error::Kind::kCancelled, "stopped");
    tokens.clear(), positions.clear(), parts.clear(), origin.clear();
    while (item < items.size() && tokens.size() < plan->memory.ubatch) {
      const BatchItem& from = items[item];
      const size_t n = std::min(from.tokens.size() - token, plan->memory.ubatch - tokens.size());
      const uint32_t position = pages->length(from.sequence);
      if (n > 0) {
        parts.push_back({.first_row = static_cast<uint32_t>(tokens.size()),
                         .rows = static_cast<uint32_t>(n),
                         .first_position = position,
                         .pages = pages->pages(from.sequence)});
        for (size_t i = 0; i < n; ++i) {
          tokens.push_back(from.tokens[token + i]);
          positions.push_back(position + static_cast<uint32_t>(i));
          origin.emplace_back(item, token + i);
        }
        pages->advance(from.sequence, static_cast<uint32_t>(n));
      }
      token += n;
      if (token == from.tokens.size()) ++item, token = 0;
    }
    if (tokens.empty()) break;
    SW_TRY(run_micro_batch(items, origin, {.tokens = tokens, .positions = positions, .pieces = parts}, sink));
  }
  return {};
}

Result<void> Engine::State::run_layers(const backend::Step& step) {
  const Program& program = plan->program;
  const uint32_t first = plan->placement.first_device_layer;
  const auto n = static_cast<uint32_t>(program.layers.size());
  cpu->begin(step);
  cpu->embed(program.embedding, kHidden);
  program.run_layers(*cpu, 0, first);
  if (first == n) return {};
  backend::Device& device = *opened.device;
  device.begin(step);
  device.write_buffer(kHidden, cpu->buffer_rows(kHidden).data());
  program.run_layers(device, first, n);
  if (plan->placement.output_on_device) return {};
  device.read_buffer(kHidden, cpu->buffer_rows(kHidden).data());
  return device.finish();
}

Result<void> Engine::State::run_micro_batch(std::span<const BatchItem> items,
                                            std::span<const std::pair<size_t, size_t>> origin,
                                            const backend::Step& step, const LogitsSink& sink) {
  const Program& program = plan->program;
  const uint64_t begin_ns = clock().now_ns();
  if (trace) trace->begin_step(step.rows());
  SW_TRY(run_layers(step));

  std::vector<uint32_t> rows;
  for (uint32_t r = 0; r < step.rows(); ++r) {
    const auto [item, token] = origin[r];
    const BatchItem& from = items[item];
    if (from.want == Want::kAll || (from.want == Want::kLast && token + 1 == from.tokens.size()))
      rows.push_back(r);
  }
  const size_t stride = plan->description.vocabulary;
  for (size_t first = 0; first < rows.size(); first += logits_rows) {
    const std::span<const uint32_t> part =
        std::span(rows).subspan(first, std::min<size_t>(logits_rows, rows.size() - first));
    output_side().logits(kHidden, part, program.output_norm, program.norm_epsilon, program.output,
                         logits.data(), stride);
    SW_TRY(output_side().finish());
    for (size_t i = 0; i < part.size(); ++i)
      sink(origin[part[i]].first, origin[part[i]].second, {logits.data() + i * stride, stride});
  }
  SW_TRY(output_side().finish());
  if (experts) experts->end_step();
  if (trace) trace->end_step(clock().now_ns() - begin_ns);
  return {};
}

}  // namespace spillway::engine
