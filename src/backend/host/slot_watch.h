// Finds misuse of slots from the order of the calls, whatever the threads happen to do.
//
// Every operation of the stream has a number, counted from 1, and so has every copy of the link. What is
// known to be over when a call is made is told as "everything up to number n". A copy into a slot and an
// operation that reads it are in order if either
//   - the copy was called first, and the stream (or the host, before it enqueued the operation) waited for
//   it;
//   - or the operation was enqueued first, and the copy waits for it (or the host did, before it called).
// An operation tells which slots it reads only when it runs: which experts the tokens chose is known to the
// device alone. So each pair of a copy and an operation is looked at when the later of copy call and run
// comes, and the verdict is the same either way.
//
// Any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "sys/mutex.h"

namespace spillway::backend {

struct SlotId {
  uint32_t pool = 0;
  uint32_t slot = 0;
};

class SlotWatch {
 public:
  explicit SlotWatch(const std::vector<uint32_t>& slots_of_pools);

  // A call of copy_expert(): copy number `copy`, called when `enqueued` operations had been enqueued, that
  // starts when those up to `after_operation` are over. Those up to `over` have run by now, so that what only
  // they could see may be forgotten.
  Result<void> copy(SlotId slot, uint64_t copy, uint64_t enqueued, uint64_t after_operation, uint64_t over);

  // A call of set_slot().
  Result<void> enter_table(SlotId slot) const;

  // Operation number `operation` runs and reads the slot; when it was enqueued, copies up to `after_copy`
  // were over, or would be before it ran. Operations come in ascending order.
  Result<void> read(SlotId slot, uint64_t operation, uint64_t after_copy);

 private:
  struct Copy {
    uint64_t number;
    uint64_t enqueued;
    uint64_t after_operation;
  };
  struct Slot {
    // Since the one that filled the slot for the last operation that read it, in order of the calls.
    std::vector<Copy> copies;
    uint64_t last_read = 0;
  };

  mutable sys::Mutex mutex_;
  std::vector<std::vector<Slot>> slots_ SW_GUARDED_BY(mutex_);  // by pool
};

}  // namespace spillway::backend
