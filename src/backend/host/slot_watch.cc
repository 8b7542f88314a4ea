#include "backend/host/slot_watch.h"

namespace spillway::backend {
namespace {

std::unexpected<Error> overwritten(SlotId slot, uint64_t copy, uint64_t operation, uint64_t after) {
  return invalid(
      "race: copy {} overwrites slot {} of pool {} while operation {} may still read it; it waits for "
      "operations up to {} only",
      copy, slot.slot, slot.pool, operation, after);
}

}  // namespace

SlotWatch::SlotWatch(const std::vector<uint32_t>& slots_of_pools) {
  for (const uint32_t slots : slots_of_pools) slots_.emplace_back(slots);
}

Result<void> SlotWatch::copy(SlotId id, uint64_t copy, uint64_t enqueued, uint64_t after_operation,
                             uint64_t over) {
  const sys::MutexLock lock(mutex_);
  Slot& slot = slots_[id.pool][id.slot];
  if (slot.last_read > after_operation) return overwritten(id, copy, slot.last_read, after_operation);
  slot.copies.push_back({copy, enqueued, after_operation});
  while (slot.copies.size() > 1 && slot.copies[1].enqueued <= over) slot.copies.erase(slot.copies.begin());
  return {};
}

Result<void> SlotWatch::enter_table(SlotId id) const {
  const sys::MutexLock lock(mutex_);
  if (slots_[id.pool][id.slot].copies.empty())
    return invalid("race: slot {} of pool {} is put into a table, and was never filled", id.slot, id.pool);
  return {};
}

Result<void> SlotWatch::read(SlotId id, uint64_t operation, uint64_t after_copy) {
  const sys::MutexLock lock(mutex_);
  Slot& slot = slots_[id.pool][id.slot];
  size_t before = 0;  // copies that were called before the operation was enqueued
  while (before < slot.copies.size() && slot.copies[before].enqueued < operation) ++before;
  if (before == 0)
    return invalid("race: operation {} reads slot {} of pool {}, which was never filled", operation, id.slot,
                   id.pool);
  const Copy& filled = slot.copies[before - 1];
  if (filled.number > after_copy)
    return invalid(
        "race: operation {} reads slot {} of pool {} while copy {} may still be under way; it waits for "
        "copies up to {} only",
        operation, id.slot, id.pool, filled.number, after_copy);
  for (size_t later = before; later < slot.copies.size(); ++later)
    if (slot.copies[later].after_operation < operation)
      return overwritten(id, slot.copies[later].number, operation, slot.copies[later].after_operation);
  slot.copies.erase(slot.copies.begin(), slot.copies.begin() + static_cast<ptrdiff_t>(before) - 1);
  slot.last_read = operation;
  return {};
}

}  // namespace spillway::backend
