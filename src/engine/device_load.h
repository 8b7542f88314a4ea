// Brings a model onto a device: its dense weights, and all experts of the layers that are resident.
#pragma once

#include <span>

#include "backend/device.h"
#include "engine/model_files.h"
#include "engine/options.h"
#include "engine/placement.h"

namespace spillway::engine {

// Weights that the host holds too are taken from `host` (by WeightId, data null where it has none), the
// others from the files: mapped, or, with the mode kDirect, around the page cache. `progress` counts bytes on
// the device. Blocks.
Result<void> load_device(backend::Device& device, const ModelFiles& files, const Program& program,
                         const Placement& placement, const backend::DeviceSpec& spec,
                         std::span<const backend::Matrix> host, LoadMode mode, const Progress& progress);

}  // namespace spillway::engine
