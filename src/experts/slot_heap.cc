#include "experts/slot_heap.h"

#include "base/assert.h"

namespace spillway {
namespace experts {

void SlotHeap::sift_up(size_t i, std::vector<uint32_t>& position) {
  const Entry entry = entries_[i];
  while (i > 0) {
    const size_t parent = (i - 1) / 2;
    if (!before(entry, entries_[parent])) break;
    place(i, entries_[parent], position);
    i = parent;
  }
  place(i, entry, position);
}

void SlotHeap::sift_down(size_t i, std::vector<uint32_t>& position) {
  const Entry entry = entries_[i];
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= entries_.size()) break;
    if (child + 1 < entries_.size() && before(entries_[child + 1], entries_[child])) ++child;
    if (!before(entries_[child], entry)) break;
    place(i, entries_[child], position);
    i = child;
  }
  place(i, entry, position);
}

void SlotHeap::push(const Entry& entry, std::vector<uint32_t>& position) {
  SW_ASSERT(position[entry.slot] == kNone);
  entries_.push_back(entry);
  sift_up(entries_.size() - 1, position);
}

void SlotHeap::erase(SlotId slot, std::vector<uint32_t>& position) {
  const size_t i = position[slot];
  SW_ASSERT(i < entries_.size() && entries_[i].slot == slot);
  position[slot] = kNone;
  const Entry last = entries_.back();
  entries_.pop_back();
  if (i == entries_.size()) return;
  place(i, last, position);
  sift_down(i, position);
  sift_up(position[last.slot], position);
}

}  // namespace experts
}  // namespace spillway
