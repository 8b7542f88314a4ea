#include "engine/kv_pages.h"

#include "base/assert.h"
#include "base/checked.h"

namespace spillway::engine {

KvPages::KvPages(uint32_t pages, uint32_t page_positions)
    : page_positions_(page_positions), users_(pages, 0) {
  for (uint32_t page = pages; page-- > 0;) free_.push_back(page);  // lowest first off the back
}

SequenceId KvPages::open() {
  for (SequenceId id = 0; id < sequences_.size(); ++id)
    if (!sequences_[id].open) {
      sequences_[id] = {.open = true};
      return id;
    }
  sequences_.push_back({.open = true});
  return static_cast<SequenceId>(sequences_.size() - 1);
}

void KvPages::release(uint32_t page) {
  SW_ASSERT(users_[page] > 0);
  if (--users_[page] == 0) free_.push_back(page);
}

void KvPages::close(SequenceId id) {
  truncate(id, 0);
  sequences_[id].open = false;
}

Result<std::vector<KvPages::Copy>> KvPages::reserve(SequenceId id, uint32_t n) {
  Sequence& s = sequences_[id];
  SW_ASSERT(s.open);
  const uint32_t needed = static_cast<uint32_t>(ceil_div(uint64_t{s.length} + n, page_positions_));
  // A partly filled last page that others read must be copied before this sequence writes into it.
  const bool copy_last =
      n > 0 && s.length % page_positions_ != 0 && users_[s.pages[s.length / page_positions_]] > 1;
  const uint32_t have = static_cast<uint32_t>(s.pages.size());
  const uint32_t missing = (needed > have ? needed - have : 0) + (copy_last ? 1 : 0);
  if (missing > free_.size())
    return fail(Error::Kind::kNoMemory,
                "the KV cache is full: {} more positions need {} pages of {} positions, {} are free", n,
                missing, page_positions_, free_.size());

  const auto take = [&] {
    const uint32_t page = free_.back();
    free_.pop_back();
    users_[page] = 1;
    return page;
  };
  std::vector<Copy> copies;
  if (copy_last) {
    uint32_t& last = s.pages[s.length / page_positions_];
    copies.push_back({.from = last, .to = take()});
    release(last);
    last = copies.back().to;
  }
  while (s.pages.size() < needed) s.pages.push_back(take());
  return copies;
}

void KvPages::advance(SequenceId id, uint32_t n) {
  Sequence& s = sequences_[id];
  s.length += n;
  SW_ASSERT(uint64_t{s.length} <= uint64_t{s.pages.size()} * page_positions_);
}

void KvPages::truncate(SequenceId id, uint32_t length) {
  Sequence& s = sequences_[id];
  SW_ASSERT(s.open && length <= s.length);
  const uint32_t keep = static_cast<uint32_t>(ceil_div(length, page_positions_));
  while (s.pages.size() > keep) {
    release(s.pages.back());
    s.pages.pop_back();
  }
  s.length = length;
}

SequenceId KvPages::fork(SequenceId id, uint32_t length) {
  const SequenceId to = open();  // may move sequences_
  const Sequence& from = sequences_[id];
  SW_ASSERT(from.open && length <= from.length);
  Sequence& s = sequences_[to];
  s.length = length;
  s.pages.assign(from.pages.begin(), from.pages.begin() + ceil_div(length, page_positions_));
  for (const uint32_t page : s.pages) ++users_[page];
  return to;
}

void KvPages::forget_all() {
  for (SequenceId id = 0; id < sequences_.size(); ++id)
    if (sequences_[id].open) truncate(id, 0);
}

}  // namespace spillway::engine
