#include "engine/device_load.h"

#include <array>

#include "sys/memory.h"

namespace spillway::engine {
namespace {

class Loader {
 public:
  Loader(backend::Device& device, const Program& program, std::span<const backend::Matrix> host,
         const Progress& progress)
      : device_(device), program_(program), host_(host), progress_(progress) {}

  Result<void> open(const ModelFiles& files, LoadMode mode) {
    if (mode == LoadMode::kDirect) {
      SW_ASSIGN(direct_, open_direct(files));
      return {};
    }
    for (const auto& file : files.files) {
      SW_ASSIGN(sys::MappedFile mapping, sys::MappedFile::open(file->path()));
      mappings_.push_back(std::move(mapping));
    }
    return {};
  }

  Result<void> load(const Placement& placement, const backend::DeviceSpec& spec) {
    for (backend::WeightId id = 0; id < spec.weights.size(); ++id)
      if (spec.weights[id].on_device) total_ += program_.weights[id].bytes();
    for (uint32_t l = 0; l < placement.layers.size(); ++l)
      if (placement.layers[l].experts == ExpertPlace::kResident)
        for (const backend::ExpertWeights& e : program_.layers[l].experts) total_ += bytes_of(e);

    for (backend::WeightId id = 0; id < spec.weights.size(); ++id) {
      if (!spec.weights[id].on_device) continue;
      SW_ASSIGN(const backend::Matrix from, matrix(id, 0));
      SW_TRY(device_.upload(id, from));
      SW_TRY(advance(program_.weights[id].bytes()));
    }
    for (uint32_t l = 0; l < placement.layers.size(); ++l)
      if (placement.layers[l].experts == ExpertPlace::kResident) SW_TRY(load_layer(l, placement.layers[l]));
    return device_.wait(device_.mark());
  }

 private:
  // A layer's experts one after the other: the wait keeps staging memory small and the progress true.
  Result<void> load_layer(uint32_t layer, const LayerPlacement& at) {
    const auto& experts = program_.layers[layer].experts;
    for (uint32_t e = 0; e < experts.size(); ++e) {
      const uint32_t slot = at.first_slot + e;
      SW_ASSIGN(const backend::Matrix gate, matrix(experts[e].gate, 0));
      SW_ASSIGN(const backend::Matrix up, matrix(experts[e].up, 1));
      SW_ASSIGN(const backend::Matrix down, matrix(experts[e].down, 2));
      const backend::Point arrived = device_.copy_expert(at.pool, slot, {gate, up, down}, {});
      SW_TRY(device_.wait(arrived));
      device_.stream_wait(arrived);
      device_.set_slot(layer, e, slot);
      SW_TRY(advance(bytes_of(experts[e])));
    }
    return {};
  }

  uint64_t bytes_of(const backend::ExpertWeights& e) const {
    return program_.weights[e.gate].bytes() + program_.weights[e.up].bytes() +
           program_.weights[e.down].bytes();
  }

  // Read around the page cache, it lies in the buffer of that number until the next call for it.
  Result<backend::Matrix> matrix(backend::WeightId id, size_t buffer) {
    if (host_[id].data != nullptr) return host_[id];
    const model::Weight& weight = program_.weights[id];
    backend::Matrix matrix{
        .type = weight.type, .layout = backend::Layout::kFile, .rows = weight.rows, .cols = weight.cols};
    if (direct_.empty()) {
      matrix.data = mappings_[weight.shard].bytes().data() + weight.offset;
      return matrix;
    }
    const uint64_t needed = weight.bytes() + sys::kWindowSlackBytes;
    if (buffers_[buffer].size() < needed) {
      SW_ASSIGN(buffers_[buffer], sys::Allocation::create(needed, sys::Pages::kPreferHuge));
    }
    SW_ASSIGN(const std::span<const std::byte> bytes,
              direct_[weight.shard]->read_window(weight.offset, weight.bytes(), buffers_[buffer].bytes()));
    matrix.data = bytes.data();
    return matrix;
  }

  Result<void> advance(uint64_t bytes) {
    done_ += bytes;
    if (progress_ && !progress_(done_, total_)) return fail(Error::Kind::kCancelled, "stopped");
    return {};
  }

  backend::Device& device_;
  const Program& program_;
  const std::span<const backend::Matrix> host_;
  const Progress& progress_;
  std::vector<sys::MappedFile> mappings_;  // one of the two is empty
  std::vector<std::unique_ptr<sys::ReadableFile>> direct_;
  std::array<sys::Allocation, 3> buffers_;  // an expert's matrices are copied together
  uint64_t done_ = 0, total_ = 0;
};

}  // namespace

Result<void> load_device(backend::Device& device, const ModelFiles& files, const Program& program,
                         const Placement& placement, const backend::DeviceSpec& spec,
                         std::span<const backend::Matrix> host, LoadMode mode, const Progress& progress) {
  Loader loader(device, program, host, progress);
  SW_TRY(loader.open(files, mode));
  return loader.load(placement, spec);
}

}  // namespace spillway::engine
