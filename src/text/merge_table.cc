#include "text/merge_table.h"

#include <bit>
#include <queue>

#include "base/assert.h"

namespace spillway {
namespace text {
namespace {

// Up to this many symbols the scan wins over the heap (measured on English words: equal at about 40).
constexpr size_t kScanLimit = 32;
constexpr uint32_t kNone = ~uint32_t{0};

}  // namespace

MergeTable::MergeTable(size_t expected_merges) {
  const size_t size = std::bit_ceil(expected_merges * 2 + 16);
  slots_.resize(size);
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
}

void MergeTable::add(uint32_t left, uint32_t right, Join join) {
  SW_ASSERT(left < 1u << 31 && right < 1u << 31);
  if (used_ * 2 > slots_.size()) grow();
  const uint64_t key = uint64_t{left} << 32 | right;
  size_t slot = slot_of(key);
  while (slots_[slot].key != kFree && slots_[slot].key != key) slot = (slot + 1) & mask_;
  if (slots_[slot].key == key) return;
  slots_[slot] = {key, join};
  ++used_;
}

void MergeTable::grow() {
  MergeTable larger(slots_.size());
  for (const Slot& slot : slots_)
    if (slot.key != kFree)
      larger.add(static_cast<uint32_t>(slot.key >> 32), static_cast<uint32_t>(slot.key), slot.join);
  *this = std::move(larger);
}

void MergeTable::merge(std::vector<uint32_t>& symbols) const {
  symbols.size() <= kScanLimit ? merge_by_scan(symbols) : merge_by_heap(symbols);
}

void MergeTable::merge_by_scan(std::vector<uint32_t>& symbols) const {
  if (symbols.size() < 2) return;
  // ranks[i]: of the pair (i, i + 1).
  thread_local std::vector<Join> joins;
  const auto look_up = [&](size_t i) {
    const Join* join = find(symbols[i], symbols[i + 1]);
    return join ? *join : Join{kNone, 0};
  };
  joins.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i) joins.push_back(look_up(i));
  while (!joins.empty()) {
    size_t best = 0;
    for (size_t i = 1; i < joins.size(); ++i)
      if (joins[i].rank < joins[best].rank) best = i;
    if (joins[best].rank == kNone) break;
    symbols[best] = joins[best].symbol;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    joins.erase(joins.begin() + static_cast<ptrdiff_t>(best));
    if (best > 0) joins[best - 1] = look_up(best - 1);
    if (best < joins.size()) joins[best] = look_up(best);
  }
}

void MergeTable::merge_by_heap(std::vector<uint32_t>& symbols) const {
  struct Node {
    uint32_t symbol, previous, next;  // symbol kNone: joined into an earlier node
  };
  struct Candidate {
    uint32_t rank, at;             // position of the left symbol
    uint32_t left, right, joined;  // the pair when it was found: stale once either differs
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  const auto count = static_cast<uint32_t>(symbols.size());
  if (count < 2) return;
  std::vector<Node> nodes(count);
  std::vector<Candidate> storage;
  storage.reserve(count);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap(std::greater<>{},
                                                                              std::move(storage));
  const auto consider = [&](uint32_t at) {
    if (at == kNone || nodes[at].next == kNone) return;
    const uint32_t left = nodes[at].symbol, right = nodes[nodes[at].next].symbol;
    if (const Join* join = find(left, right)) heap.push({join->rank, at, left, right, join->symbol});
  };
  for (uint32_t i = 0; i < count; ++i)
    nodes[i] = {symbols[i], i == 0 ? kNone : i - 1, i + 1 < count ? i + 1 : kNone};
  for (uint32_t i = 0; i + 1 < count; ++i) consider(i);
  while (!heap.empty()) {
    const Candidate best = heap.top();
    heap.pop();
    Node& left = nodes[best.at];
    if (left.symbol != best.left || left.next == kNone || nodes[left.next].symbol != best.right) continue;
    Node& right = nodes[left.next];
    right.symbol = kNone;
    left.symbol = best.joined;
    left.next = right.next;
    if (left.next != kNone) nodes[left.next].previous = best.at;
    consider(left.previous);
    consider(best.at);
  }
  size_t kept = 0;
  for (uint32_t at = 0; at != kNone; at = nodes[at].next) symbols[kept++] = nodes[at].symbol;
  symbols.resize(kept);
}

}  // namespace text
}  // namespace spillway
