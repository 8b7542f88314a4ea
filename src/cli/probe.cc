// `spillway probe`: measures this machine, and writes a hardware profile (docs/hardware-profile.md).
#include "cli/probe.h"

#include <set>

#include "base/limits.h"
#include "cli/arguments.h"
#include "cli/common.h"
#include "cli/output_file.h"
#include "cli/probe_text.h"
#include "cli/profiles.h"
#include "cli/progress_bar.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "engine/devices.h"
#include "sys/cpu.h"
#include "tune/fingerprint.h"
#include "tune/probe.h"
#include "tune/run_recorder.h"

namespace spillway::cli {
namespace {

struct ProbeFlags {
  std::string device = "auto", out;
  uint32_t threads = 0;
  double seconds = 10;
  uint64_t host_device_mib = 0;
  bool json = false;
};

Result<uint32_t> threads_of(const ProbeFlags& flags) {
  if (flags.threads != 0) return flags.threads;
  SW_ASSIGN(const sys::CpuTopology topology, sys::read_cpu_topology());
  return sys::choose_threads(topology).threads;
}

std::string device_id_of(const tune::MachineTarget& target) {
  return target.device() == nullptr ? "none" : target.device()->id;
}

Result<int> probe_command(const ProbeFlags& flags) {
  SW_TRY(check_output_file(flags.out, {}));
  catch_interrupts();
  engine::DeviceOptions device{.device = flags.device};
  device.host.memory_bytes = flags.host_device_mib << 20;
  SW_ASSIGN(engine::OpenedDevice opened, engine::open_device(device));
  if (!opened.device && !flags.json)
    note(fmt::format("no device is measured: {}; link, device and contended rates stay unknown",
                     opened.reason));
  SW_ASSIGN(const uint32_t threads, threads_of(flags));
  SW_ASSIGN(const auto target, tune::MachineTarget::create({.threads = threads}, std::move(opened.device)));
  const auto file = measure_machine(*target, flags.seconds);
  if (!file && file.error().kind == Error::Kind::kCancelled) {
    note("stopped: a profile needs all of its measurements, so nothing was written");
    return kExitInterrupted;
  }
  if (!file) return std::unexpected(file.error());

  const std::string path = flags.out.empty() ? saved_profile_path(device_id_of(*target)) : flags.out;
  if (flags.out != "-") fmt::print("{}", flags.json ? tune::to_json(*file) : probe_text(*file));
  if (!path.empty()) SW_TRY(write_profile(path, *file));
  if (flags.out == "-") return finish_output();
  if (path.empty())
    note("nothing was written: neither XDG_DATA_HOME nor HOME is set; --out names a file");
  else
    say(fmt::format("written to {}{}", printable(path),
                    flags.out.empty() && target->device() != nullptr
                        ? "; from now on runs with this device start from it"
                        : ""));
  return finish_output();
}

}  // namespace

Result<tune::ProfileFile> measure_machine(tune::MachineTarget& target, double seconds) {
  ProgressBar bar("measuring");
  constexpr double kPercent = 100;
  auto file = tune::probe(target, {.seconds = seconds, .types = tune::common_types()}, [&](double share) {
    bar.update(static_cast<uint64_t>(share * kPercent), static_cast<uint64_t>(kPercent));
    return !interrupted();
  });
  bar.clear();
  if (!file) return file;
  SW_ASSIGN(file->machine, tune::machine_facts(target.device()));
  file->created = tune::utc_now();
  file->limits = tune::read_machine_limits();
  file->profile.name = fmt::format("{}; {}", file->machine.cpu, file->machine.device);
  file->profile.source = fmt::format("measured here by 'spillway probe' at {}", file->created);
  if (target.device() != nullptr && target.device()->software)
    file->notes.push_back(
        "The device is software: its rates are those of the processor, and say nothing of a GPU.");
  return file;
}

void add_probe(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<ProbeFlags>();
  CLI::App* command =
      app.add_subcommand("probe", "Measure this machine in about ten seconds: CPU, memory, device and link");
  command
      ->add_option("--device,--dev", flags->device,
                   "auto: the first GPU, or none; none: the CPU alone; vulkan[:N]; host: a pretended device")
      ->capture_default_str();
  command->add_option("-t,--threads", flags->threads, "threads; 0: as many as a run would use")
      ->check(CLI::Range(0u, limits::kMaxThreads))
      ->capture_default_str();
  command
      ->add_option("--seconds", flags->seconds,
                   "time to measure; a slow or busy machine takes longer, as everything runs three times at "
                   "least")
      ->check(NumberWithin(0.1, 600.0))
      ->capture_default_str();
  command->add_option("--out", flags->out,
                      "write the profile to this file, and not to where runs look for it "
                      "(~/.local/share/spillway/profiles)");
  command
      ->add_option("--host-device-mib", flags->host_device_mib,
                   "memory of the device 'host'; 0: what is free")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print the profile itself");
  command->callback([flags, &exit_code] {
    const auto result = probe_command(*flags);
    exit_code = result ? *result : report(result.error());
  });
}

}  // namespace spillway::cli
