// The model itself, in one process: the cache is allocated once at the largest size that is allowed, smaller
// ones are a limit on its slots (Engine::reconfigure), and every try begins with an empty cache. Only another
// loading mode needs the model to be loaded again.
#pragma once

#include <functional>
#include <memory>

#include "engine/engine.h"
#include "sys/clock.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "tune/lab.h"
#include "tune/workload.h"

namespace spillway::tune {

struct EngineLabSetup {
  // Loads the model in a loading mode, all else being as the first time.
  std::function<Result<std::unique_ptr<engine::Engine>>(engine::LoadMode)> load;
  const text::Tokenizer* tokenizer = nullptr;
  const text::ChatTemplate* chat_template = nullptr;  // null: texts are continued
  Workload workload;
  Workload topics;                           // for calibration alone, beside the workload
  std::vector<engine::LoadMode> load_modes;  // others that may be tried
  uint32_t users = 1;
  bool limited = false;  // the cache is smaller than it would be without flags
  std::vector<ThreadChoice> threads;
  std::function<bool()> stopped;
};

class EngineLab final : public Lab {
 public:
  // `engine`: loaded with the largest cache and micro-batch that may be tried. All that is referred to must
  // outlive this.
  EngineLab(std::unique_ptr<engine::Engine> engine, EngineLabSetup setup);

  const LabFacts& facts() const override { return facts_; }
  Result<Trial> run(const Settings& settings, const Task& task) override;
  double seconds() const override { return clock_.now_s(); }
  bool stopped() const override { return setup_.stopped && setup_.stopped(); }

  const engine::Engine& engine() const { return *engine_; }

 private:
  void add_prompt(std::vector<Conversation> prompt, bool held_out);
  std::vector<std::vector<Conversation>> together(const Workload& workload) const;
  Result<void> configure(const Settings& settings);
  Result<report::Run> answer(std::span<const uint32_t> prompts, uint32_t generate, double until_s);

  std::unique_ptr<engine::Engine> engine_;
  const EngineLabSetup setup_;
  const sys::MonotonicClock clock_;
  LabFacts facts_;
  std::vector<std::vector<Conversation>> prompts_;  // of each: the conversations that go on at once
  const engine::LoadMode loaded_;                   // at first
  engine::LoadMode mode_;                           // now
};

// The smallest --max-device-mib with which a layer's experts are cached or resident; nothing where no size
// would do. Plans only; nothing is loaded.
std::optional<uint64_t> least_device_mib(const engine::ModelFiles& files, engine::Options options,
                                         const engine::OpenedDevice& opened);
// Whether a plan serves any layer's experts from the device.
bool serves_experts(const engine::Placement& placement);

}  // namespace spillway::tune
