#include "tune/probe.h"

#include "tune/probe_steps.h"

namespace spillway::tune {
namespace {

// Of the time, by what is measured; without a device the first three take it all.
struct Shares {
  double memory = 0.10, kernels = 0.35, wake = 0.03;
  double link = 0.20, device = 0.17, waits = 0.05, both = 0.10;
  double cpu() const { return memory + kernels + wake; }
};

// Above it the median is not to be trusted to a few percent.
constexpr double kWideSpread = 0.2;
constexpr double kBusyCores = 0.25;

void note_doubts(ProfileFile& file) {
  if (file.other_cores > kBusyCores)
    file.notes.push_back(
        fmt::format("The machine was busy: other programs used {:.1f} cores on average while it was "
                    "measured. Measure again when it is idle.",
                    file.other_cores));
  std::string wide;
  for (const auto& [name, spread] : file.spreads)
    if (spread.relative_spread() > kWideSpread)
      wide += fmt::format("{}{} ({:.0f} %)", wide.empty() ? "" : ", ", name, 100 * spread.relative_spread());
  if (!wide.empty())
    file.notes.push_back(
        fmt::format("These varied from one repetition to the next (width of the middle half): {}.", wide));
}

}  // namespace

std::vector<TensorType> common_types() {
  return {TensorType::kQ4_K, TensorType::kQ6_K,   TensorType::kQ8_0,   TensorType::kMXFP4, TensorType::kQ4_0,
          TensorType::kQ5_K, TensorType::kIQ4_XS, TensorType::kIQ4_NL, TensorType::kQ3_K,  TensorType::kQ2_K};
}

Result<ProfileFile> probe(ProbeTarget& target, const ProbeOptions& options, const ProbeProgress& progress) {
  const Shares shares;
  const double factor = target.has_device() ? 1 : 1 / shares.cpu();
  const double begin_us = target.now_us();
  target.other_cores();
  Meter meter(target, options.seconds, progress);
  ProfileFile file;
  file.profile = experts::default_profile();
  ProbeSteps steps(target, meter, options.types, file);

  SW_TRY(steps.memory(shares.memory * factor));
  SW_TRY(steps.cpu_kernels(shares.kernels * factor));
  SW_TRY(steps.wake(shares.wake * factor));
  if (target.has_device()) {
    SW_TRY(steps.device_wait(0.2 * shares.waits));
    SW_TRY(steps.link(shares.link));
    SW_TRY(steps.device(shares.device));
    SW_TRY(steps.waits(0.8 * shares.waits));
    SW_TRY(steps.both(shares.both));
  } else {
    steps.without_device();
  }
  steps.finish();

  file.seconds = (target.now_us() - begin_us) * 1e-6;
  file.other_cores = target.other_cores();
  note_doubts(file);
  SW_TRY(file.profile.check());
  return file;
}

}  // namespace spillway::tune
