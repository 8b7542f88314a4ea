// The engine under both kinds of BPE: which two neighbouring symbols join, into what, and how early; and the
// loop that joins until nothing does.
//
// A symbol is the id of a token, or a number past the vocabulary for a text that is no token but can become
// part of one. The lowest rank joins first, and of equal ranks the leftmost pair.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace spillway {
namespace text {

class MergeTable {
 public:
  struct Join {
    uint32_t rank;
    uint32_t symbol;
  };

  explicit MergeTable(size_t expected_merges);

  // The first rank given for a pair stays: merges come best first.
  void add(uint32_t left, uint32_t right, Join join);

  const Join* find(uint32_t left, uint32_t right) const {
    const uint64_t key = uint64_t{left} << 32 | right;
    for (size_t slot = slot_of(key);; slot = (slot + 1) & mask_) {
      if (slots_[slot].key == key) return &slots_[slot].join;
      if (slots_[slot].key == kFree) return nullptr;
    }
  }

  // Joins in place; `symbols` shrinks to what is left. O(n log n) time.
  void merge(std::vector<uint32_t>& symbols) const;

  // The two loops behind merge(), for their comparison in tests. The first looks at all pairs each time,
  // O(n^2) but quickest on a word; the second keeps a heap and a linked list.
  void merge_by_scan(std::vector<uint32_t>& symbols) const;
  void merge_by_heap(std::vector<uint32_t>& symbols) const;

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};  // no pair: symbols are below 2^31
  struct Slot {
    uint64_t key = kFree;
    Join join{};
  };

  size_t slot_of(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_; }  // 2^64 / golden ratio
  void grow();

  std::vector<Slot> slots_;
  size_t mask_ = 0, used_ = 0;
  int shift_ = 0;
};

}  // namespace text
}  // namespace spillway
