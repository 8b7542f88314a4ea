// Which KV pages belong to which sequence. Pages are counted, so that sequences with the same beginning share
// them; the memory itself belongs to the device. No page is ever read by a sequence that doesn't list it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace spillway::engine {

using SequenceId = uint32_t;

class KvPages {
 public:
  // `pages` pages of `page_positions` positions each.
  KvPages(uint32_t pages, uint32_t page_positions);

  SequenceId open();
  void close(SequenceId id);

  uint32_t length(SequenceId id) const { return sequences_[id].length; }
  std::span<const uint32_t> pages(SequenceId id) const { return sequences_[id].pages; }

  // Makes room for `n` more positions; the length stays until advance(). kNoMemory, and nothing changed,
  // where no page is free. Pages in `copied` were shared and are now the sequence's own: the caller copies
  // (from, to) before use.
  struct Copy {
    uint32_t from = 0;
    uint32_t to = 0;
  };
  Result<std::vector<Copy>> reserve(SequenceId id, uint32_t n);
  void advance(SequenceId id, uint32_t n);

  // Forgets the positions from `length` on. Requires: length <= length(id).
  void truncate(SequenceId id, uint32_t length);

  // A new sequence with the first `length` positions of `id`, sharing its pages.
  SequenceId fork(SequenceId id, uint32_t length);

  // Every sequence is empty from here on.
  void forget_all();

  uint32_t free_pages() const { return static_cast<uint32_t>(free_.size()); }

 private:
  struct Sequence {
    bool open = false;
    uint32_t length = 0;
    std::vector<uint32_t> pages;
  };

  void release(uint32_t page);

  const uint32_t page_positions_;
  std::vector<uint32_t> users_;  // per page
  std::vector<uint32_t> free_;
  std::vector<Sequence> sequences_;
};

}  // namespace spillway::engine
