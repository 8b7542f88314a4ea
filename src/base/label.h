// Where a number comes from (promise 5 of the design: never mixed without saying so).
#pragma once

#include <cstdint>
#include <string_view>

namespace spillway {

enum class Label : uint8_t {
  kDefault,    // nobody measured anything
  kMeasured,   // a run on this machine
  kPredicted,  // fitted or replayed from records of this machine
  kEstimated,  // from another machine's profile or from data sheets
};
inline constexpr uint32_t kLabels = 4;
std::string_view label_name(Label label);

}  // namespace spillway
