#include "tune/fingerprint.h"

#include <xxhash.h>

#include <cmath>

#include "sys/cpu.h"
#include "sys/memory_limits.h"
#include "sys/system_facts.h"

namespace spillway::tune {
namespace {

class Hash {
 public:
  Hash() : state_(XXH3_createState()) { XXH3_128bits_reset(state_); }
  ~Hash() { XXH3_freeState(state_); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;

  void add(std::span<const std::byte> bytes) { XXH3_128bits_update(state_, bytes.data(), bytes.size()); }
  void add(uint64_t number) { add(std::as_bytes(std::span(&number, 1))); }
  std::string text() const { return hexadecimal_128(XXH3_128bits_digest(state_)); }

 private:
  XXH3_state_t* const state_;
};

struct Range {
  uint64_t offset = 0, bytes = 0;
};

constexpr uint64_t kSampleBytes = 4096;  // what a disk reads at least

void add_samples(const gguf::TensorInfo& tensor, std::vector<Range>& ranges) {
  if (tensor.bytes <= 3 * kSampleBytes) {
    ranges.push_back({tensor.offset, tensor.bytes});
    return;
  }
  ranges.push_back({tensor.offset, kSampleBytes});
  ranges.push_back({tensor.offset + tensor.bytes / 2, kSampleBytes});
  ranges.push_back({tensor.offset + tensor.bytes - kSampleBytes, kSampleBytes});
}

// What of a file goes into the hash, in order.
std::vector<Range> ranges_of_shard(const engine::ModelFiles& files, uint32_t shard) {
  std::vector<Range> ranges{{0, files.files[shard]->size()}};
  for (const gguf::TensorInfo& tensor : files.model.tensors())
    if (tensor.shard == shard) {
      ranges[0].bytes = std::min(ranges[0].bytes, tensor.offset);
      add_samples(tensor, ranges);
    }
  return ranges;
}

Result<void> add_range(const sys::ReadableFile& file, Range range, std::vector<std::byte>& room, Hash& hash) {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  while (range.bytes > 0) {
    const uint64_t n = std::min(range.bytes, kPiece);
    room.resize(n);
    SW_TRY(file.read_at(range.offset, room));
    hash.add(room);
    range = {range.offset + n, range.bytes - n};
  }
  return {};
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

class Changes {
 public:
  void compare(std::string_view what, const std::string& was, const std::string& is) {
    if (was != is)
      list.push_back(fmt::format("{} was '{}', now it is '{}'", what, was.empty() ? "unknown" : was,
                                 is.empty() ? "unknown" : is));
  }
  void compare_bytes(std::string_view what, uint64_t was, uint64_t is) {
    if (was >> 20 != is >> 20)
      list.push_back(fmt::format("{} was {} MiB, now it is {} MiB", what, was >> 20, is >> 20));
  }
  std::vector<std::string> list;
};

}  // namespace

report::Build build_facts() {
#if defined(__clang__)
  const char* compiler = "clang " __clang_version__;
#else
  const char* compiler = "gcc " __VERSION__;
#endif
  constexpr std::string_view kSanitizers = SPILLWAY_SANITIZERS;
  return {.version = fmt::format("{} (build {})", SPILLWAY_VERSION, sys::build_id().substr(0, 16)),
          .compiler = compiler,
          .type = fmt::format("{}{}{}", SPILLWAY_BUILD_TYPE,
                              kSanitizers.empty() ? "" : ", sanitizers: ", kSanitizers)};
}

Result<report::Model> model_facts(const engine::ModelFiles& files) {
  SW_ASSIGN(const auto name, files.model.metadata().find_string("general.name"));
  report::Model facts{.name = std::string(name.value_or("")),
                      .file = file_name(files.files[0]->path()),
                      .bytes = files.file_bytes};
  Hash hash;
  std::vector<std::byte> room;
  for (uint32_t shard = 0; shard < files.files.size(); ++shard) {
    const sys::ReadableFile& file = *files.files[shard];
    const std::vector<Range> ranges = ranges_of_shard(files, shard);
    for (const Range range : ranges) file.will_need(range.offset, range.bytes);
    hash.add(file.size());
    for (const Range range : ranges) SW_TRY(add_range(file, range, room, hash));
  }
  facts.content = hash.text();
  return facts;
}

Result<report::Model> model_facts(const std::string& path) {
  SW_ASSIGN(const engine::ModelFiles files, engine::open_model_files(path));
  return model_facts(files);
}

Result<report::Machine> machine_facts(const backend::DeviceInfo* device) {
  SW_ASSIGN(const sys::CpuTopology cpu, sys::read_cpu_topology());
  SW_ASSIGN(const sys::MemoryLimits memory, sys::read_memory_limits());
  report::Machine facts{.cpu = sys::cpu_name(),
                        .cores = static_cast<uint32_t>(cpu.usable.size()),
                        .memory_bytes = memory.total_bytes,
                        .device = "none",
                        .system = sys::system_name()};
  if (cpu.quota_cpus)
    facts.cores = std::min(facts.cores, std::max(1u, static_cast<uint32_t>(std::floor(*cpu.quota_cpus))));
  if (device != nullptr) {
    facts.device = device->name;
    facts.driver = device->driver;
    facts.device_bytes = device->memory_bytes;
  }
  return facts;
}

std::vector<std::string> changes(const report::Build& was, const report::Build& is) {
  Changes found;
  found.compare("the program", was.version, is.version);
  found.compare("its compiler", was.compiler, is.compiler);
  found.compare("its kind of build", was.type, is.type);
  return found.list;
}

// The content decides; a renamed file is the same model.
std::vector<std::string> changes(const report::Model& was, const report::Model& is) {
  if (was.content == is.content && was.bytes == is.bytes) return {};
  const auto text = [](const report::Model& model) {
    return fmt::format("{} ({} bytes, content {})", model.file, model.bytes, model.content);
  };
  Changes found;
  found.compare("the model", text(was), text(is));
  return found.list;
}

std::vector<std::string> changes(const report::Machine& was, const report::Machine& is) {
  Changes found;
  found.compare("the CPU", was.cpu, is.cpu);
  found.compare("the number of cores", fmt::format("{}", was.cores), fmt::format("{}", is.cores));
  found.compare_bytes("the memory", was.memory_bytes, is.memory_bytes);
  found.compare("the device", was.device, is.device);
  found.compare("its driver", was.driver, is.driver);
  found.compare_bytes("the device's memory", was.device_bytes, is.device_bytes);
  found.compare("the system", was.system, is.system);
  return found.list;
}

}  // namespace spillway::tune
