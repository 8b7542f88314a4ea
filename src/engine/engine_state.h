// What an engine is made of. Private to engine*.cc.
#pragma once

#include "backend/cpu/cpu_compute.h"
#include "engine/engine.h"
#include "engine/program.h"
#include "engine/rope_tables.h"
#include "engine/weights.h"
#include "sys/thread_pool.h"

namespace spillway::engine {

struct Engine::State {
  Options options;
  ModelFiles files;
  std::unique_ptr<Plan> plan;
  double load_seconds = 0;
  sys::MonotonicClock real_clock;
  std::unique_ptr<sys::ThreadPool> pool;
  HostWeights weights;
  std::vector<RopeTables> ropes;
  sys::Allocation kv_memory;
  std::vector<cpu::KvLayer> kv_layers;
  std::unique_ptr<KvPages> pages;
  std::unique_ptr<cpu::CpuCompute> cpu;
  std::unique_ptr<cpu::ExpertCompute> cpu_experts;  // where some are planned
  std::unique_ptr<experts::TraceWriter> trace;      // while one is written; the planner tells it
  std::unique_ptr<experts::Planner> planner;
  std::unique_ptr<Timeline> timeline;
  std::unique_ptr<ExpertStep> experts;  // where there is a device
  uint64_t pinned_bytes = 0;
  std::vector<std::string> notes;
  AlignedArray<float> logits;  // (logits_rows, vocabulary)
  uint32_t logits_rows = 0;
  // Ends first: its copies, those of experts that were promoted last too, read the memory above.
  OpenedDevice opened;
  // The most that reconfigure() can choose.
  uint32_t loaded_threads = 0;
  uint32_t loaded_ubatch = 0;

  static Result<std::unique_ptr<State>> load(const Options& options, const Progress& progress);
  Result<void> allocate_kv();
  Result<void> test_device();
  Result<void> start_device(const Progress& progress);
  void pin_experts();
  // What runs on the pool, and what drives the device: made again by reconfigure().
  void start_cpu();
  Result<std::unique_ptr<experts::Planner>> make_planner(const experts::PlannerSettings& settings,
                                                         const experts::HardwareProfile& profile,
                                                         std::span<const uint32_t> slots) const;
  void start_experts();
  Result<void> reconfigure(const RunSettings& settings);
  void copy_page(KvPages::Copy copy);
  Result<void> run(std::span<const BatchItem> items, const LogitsSink& sink,
                   const std::function<bool()>& keep_going);
  // `origin`: the (item, token) of each row.
  Result<void> run_micro_batch(std::span<const BatchItem> items,
                               std::span<const std::pair<size_t, size_t>> origin, const backend::Step& step,
                               const LogitsSink& sink);
  // The layers, on the CPU and then on the device. The result is where the output head is.
  Result<void> run_layers(const backend::Step& step);
  // Simulated where the device is.
  const sys::Clock& clock() const {
    const sys::FakeClock* simulated = options.device.host.clock;
    return simulated ? static_cast<const sys::Clock&>(*simulated) : real_clock;
  }
  backend::Compute& output_side() {
    return plan->placement.output_on_device ? static_cast<backend::Compute&>(*opened.device) : *cpu;
  }
};

}  // namespace spillway::engine
