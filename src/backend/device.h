// A device beside the CPU: memory of its own, an in-order stream of operations, and a link over which weights
// arrive. The engine drives it; it decides nothing. Backends: backend/host (a pretended device made of
// threads and an arena) and backend/vulkan.
//
// Two queues work side by side:
//   - the stream runs operations in the order of the calls (those of Compute, and those below). Calls only
//     enqueue; submit() hands over what was enqueued, so that a whole layer can be recorded at once;
//   - the link runs copies of experts into slots, in order, as soon as what each waits for is done.
// A Point is a moment in one of them. The stream waits for points of the link (stream_wait), a copy for a
// point of the stream (before its slot may be overwritten), the host for either (wait).
//
// Every expert on the device lies in a slot of a pool, in the interleaved layout: those of fully resident
// layers, those that the cache holds and those that pass through. For each MoE layer a table of n_experts
// slot numbers lies on the device; set_slot() changes it in stream order, so that operations enqueued before
// see the old entry.
//
// A device belongs to one engine and is called from one thread. Errors of the stream and the link are kept
// and returned by the next wait() or finish(); after one, the device is lost: every call returns at once and
// does nothing, wait() and finish() give the same error.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/compute.h"
#include "backend/shapes.h"
#include "base/result.h"

namespace spillway::backend {

struct DeviceInfo {
  std::string id;                // as --device takes it: "host", "vulkan:0"
  std::string name;              // "NVIDIA GeForce RTX 3060"
  std::string driver;            // name and version
  uint64_t memory_bytes = 0;     // device memory in all
  uint64_t available_bytes = 0;  // of it, free for this process now, as far as the system says
  uint64_t max_allocation_bytes = 0;
  bool software = false;           // runs on the CPU: for correctness, not for speed
  bool unified_memory = false;     // shares the host's memory
  bool copy_queue = false;         // copies run beside the stream
  std::vector<std::string> notes;  // features found or missing that matter, a sentence each
};

// One matrix or vector as a device holds it. Vectors are (1, cols) of F32.
struct WeightShape {
  TensorType type = TensorType::kF32;
  uint32_t rows = 0;
  uint32_t cols = 0;
  bool on_device = false;  // else the device never sees it
  bool operator==(const WeightShape&) const = default;
};

struct ExpertMatrices {
  Matrix gate, up, down;
};

// How the parts of an expert lie in a slot: gate (width, hidden), up (width, hidden), down (hidden, width),
// each interleaved, at 256-byte boundaries one after the other.
struct ExpertLayout {
  WeightShape gate, up, down;
  bool operator==(const ExpertLayout&) const = default;
  static constexpr uint64_t kAlignment = 256;
  uint64_t up_offset() const;
  uint64_t down_offset() const;
  uint64_t slot_bytes() const;
  ExpertMatrices matrices(const std::byte* slot) const;
};

struct PoolSpec {
  ExpertLayout layout;
  uint32_t slots = 0;
};

// A layer as the device needs it. Layers that run elsewhere have on_device false.
struct DeviceLayer {
  bool on_device = false;
  uint32_t kv_heads = 0;
  uint32_t key_length = 0;
  uint32_t value_length = 0;
  uint32_t pool = UINT32_MAX;  // of its experts; none for a dense layer
  uint32_t n_experts = 0;
};

// Everything that a device holds, fixed at load: allocated at once, and it does not grow.
struct DeviceSpec {
  std::vector<WeightShape> weights;  // by WeightId
  std::vector<PoolSpec> pools;
  std::vector<DeviceLayer> layers;  // by layer
  std::vector<RopeTable> ropes;     // copied by prepare()
  KvTypes kv_types;
  uint32_t kv_pages = 0;
  uint32_t vocabulary = 0;
  uint32_t logits_rows = 0;  // rows of logits() at once
  ComputeSizes sizes;
};

// Bytes of device memory by use, for the memory plan; the same formula that prepare() follows.
struct DeviceBytes {
  uint64_t weights = 0;
  uint64_t kv = 0;
  uint64_t scratch = 0;  // activations, tables, ropes, logits
  uint64_t experts = 0;  // all pools
  uint64_t total() const { return weights + kv + scratch + experts; }
};

// A moment of a queue: reached once all that was enqueued there before is done. The default is reached from
// the beginning.
struct Point {
  enum class Queue : uint8_t { kStream, kLink };
  Queue queue = Queue::kStream;
  uint64_t value = 0;
};

// When the work between the previous point of the queue and this one ran, on the device's clock in
// nanoseconds; both 0 where the device can't say.
struct Interval {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  uint64_t length_ns() const { return end_ns - begin_ns; }
};

struct ExpertSlot {
  uint32_t expert = 0;
  uint32_t slot = 0;
};

// What the router chose for the rows of the step, in memory that the host reads: rank r of row t is
// ids[t * used + r].
struct Routed {
  std::span<const uint32_t> ids;  // (rows, used)
  std::span<const float> x;       // (rows, hidden) what the experts multiply, for those that run on the CPU
};

// Decides where the experts of a layer run, and sees to it; the engine's part of moe().
class ExpertRunner {
 public:
  virtual ~ExpertRunner() = default;
  virtual void moe(BufferId x, const MoeSpec& spec, BufferId out) = 0;
};

class Device : public Compute {
 public:
  virtual const DeviceInfo& info() const = 0;

  // ---- load ----

  virtual DeviceBytes bytes(const DeviceSpec& spec) const = 0;
  // Allocates everything. kNoMemory with needed and free bytes where it does not fit. Once.
  virtual Result<void> prepare(const DeviceSpec& spec) = 0;
  // Tells of host memory that experts will be copied from, so that copies need no staging. Returns the bytes
  // that are pinned from now on: all, some or none, `why_not` saying why. Lives as long as the device.
  virtual uint64_t pin(std::span<const std::byte> range, std::string* why_not) = 0;
  // Copies a weight of on_device, from either layout. Blocks.
  virtual Result<void> upload(WeightId id, const Matrix& from) = 0;
  void set_runner(ExpertRunner* runner) { runner_ = runner; }

  // ---- queues ----

  virtual void submit() = 0;
  // A point after all that was enqueued in the stream. Enqueues a time stamp.
  virtual Point mark() = 0;
  virtual void stream_wait(Point link_point) = 0;
  virtual bool reached(Point point) = 0;
  // Submits, and blocks until the point is reached.
  virtual Result<void> wait(Point point) = 0;
  // Of a point that was reached, at most kTimedPoints points ago.
  virtual Interval interval(Point point) = 0;
  static constexpr uint64_t kTimedPoints = 4096;

  // Copies an expert from host memory into a slot once `after` (of the stream) is reached; the file's layout
  // is rearranged on the way. The matrices must stay valid until the returned point is reached.
  virtual Point copy_expert(uint32_t pool, uint32_t slot, const ExpertMatrices& from, Point after) = 0;

  // ---- experts, in the stream ----

  // The layer's table from here on; kNoSlot takes the expert out.
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  virtual void set_slot(uint32_t layer, uint32_t expert, uint32_t slot) = 0;

  // Chooses the experts of each row (MoeSpec.routing). kNow also brings ids and x to routed(), for a host
  // that waits; kLater the ids to chosen().
  enum class ForHost : uint8_t { kNo, kNow, kLater };
  virtual void route(BufferId x, const MoeSpec& spec, ForHost for_host) = 0;
  // After the point that was marked behind route() has been waited for, until the next route().
  virtual Routed routed() = 0;
  // (rows, used) as routed() shows them, of the layer's last route() with kLater; after finish(), until the
  // next begin().
  virtual std::span<const uint32_t> chosen(uint32_t layer) = 0;

  // Computes the outputs of all (row, rank) pairs whose expert has a slot in the layer's table; needs nothing
  // from the host.
  virtual void experts_in_table(BufferId x, const MoeSpec& spec) = 0;
  // The same of these experts only, from these slots, whatever the table says.
  virtual void experts_in_slots(BufferId x, const MoeSpec& spec, std::span<const ExpertSlot> experts) = 0;
  // Takes the outputs of pairs that were computed elsewhere: pair i (t * used + r) from rows + i' * hidden,
  // i' its place in `pairs`. Both are copied before the call returns.
  virtual void take_outputs(const MoeSpec& spec, std::span<const uint32_t> pairs, const float* rows) = 0;
  // out = the weighted sum of the pairs' outputs in ascending rank (docs/numerics.md).
  virtual void combine(const MoeSpec& spec, BufferId out) = 0;

  // ---- the rest, in the stream ----

  virtual void copy_kv_page(uint32_t from, uint32_t to) = 0;
  // The step's rows of a buffer, from and to the host. `from` is copied before the call returns; `to` is
  // filled by finish() or a later wait().
  virtual void write_buffer(BufferId id, const float* from) = 0;
  virtual void read_buffer(BufferId id, float* to) = 0;

  // Compute: the engine's runner decides.
  void moe(BufferId x, const MoeSpec& spec, BufferId out) final { runner_->moe(x, spec, out); }

 protected:
  ExpertRunner* runner_ = nullptr;
};

}  // namespace spillway::backend
