// Which program, model and machine a record is of: the facts of report/result.h, taken here and now, and what
// differs between two such facts in words.
#pragma once

#include <string>
#include <vector>

#include "backend/device.h"
#include "base/result.h"
#include "engine/model_files.h"
#include "report/result.h"
#include "tune/content_hash.h"

namespace spillway::tune {

// The version names the linker's build id: another program has another, whatever its version number.
report::Build build_facts();

// `content` is a hash (XXH3, 128 bits) of, for each file in the order of the shards:
//   its size; all bytes before its first tensor (metadata and the table of tensors: names, types, shapes,
//   places); of each tensor the first, the middle and the last 4 KiB, or the whole of a smaller one.
// It costs at most 12 KiB of reading a tensor and the header, so it can be taken at every start. It does not
// cover the rest of the tensors: a file whose weights were changed in place between these samples has the
// same hash. The names of files and folders are not in it.
Result<report::Model> model_facts(const engine::ModelFiles& files);
Result<report::Model> model_facts(const std::string& path);

// Cores and memory are those that this process may use (affinity, CPU quota, control groups). Null: no
// device.
Result<report::Machine> machine_facts(const backend::DeviceInfo* device);

// What changed, a phrase for each difference: "the CPU was 'a', now it is 'b'". Empty where all is equal.
std::vector<std::string> changes(const report::Build& was, const report::Build& is);
std::vector<std::string> changes(const report::Model& was, const report::Model& is);
std::vector<std::string> changes(const report::Machine& was, const report::Machine& is);

}  // namespace spillway::tune
