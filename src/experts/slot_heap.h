// The slots of one layer that may be evicted, least key first: a binary heap with positions, so that any slot
// can be taken out in O(log n). Keys are given when a slot is put in and do not change while it is in. Equal
// keys: the one that was put in earlier goes first.
#pragma once

#include <cstdint>
#include <vector>

#include "experts/types.h"

namespace spillway {
namespace experts {

class SlotHeap {
 public:
  struct Entry {
    double key;
    uint64_t serial;  // of the insertion, growing
    SlotId slot;
  };

  void reserve(uint32_t n) { entries_.reserve(n); }
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  const Entry& top() const { return entries_.front(); }

  // `position`: (slots of the pool), shared by the heaps of its layers; a slot is in one of them at most.
  void push(const Entry& entry, std::vector<uint32_t>& position);
  void erase(SlotId slot, std::vector<uint32_t>& position);
  // Keys halved together keep their order until some become equal by reaching 0: puts the order right after
  // `key` was applied to all entries. O(n).
  template <class Key>
  void rekey(Key key, std::vector<uint32_t>& position) {
    for (Entry& entry : entries_) entry.key = key(entry.slot);
    for (size_t i = entries_.size(); i-- > 0;) sift_down(i, position);
  }

 private:
  static bool before(const Entry& a, const Entry& b) {
    return a.key < b.key || (a.key == b.key && a.serial < b.serial);
  }
  void place(size_t i, const Entry& entry, std::vector<uint32_t>& position) {
    entries_[i] = entry;
    position[entry.slot] = static_cast<uint32_t>(i);
  }
  void sift_up(size_t i, std::vector<uint32_t>& position);
  void sift_down(size_t i, std::vector<uint32_t>& position);

  std::vector<Entry> entries_;
};

}  // namespace experts
}  // namespace spillway
