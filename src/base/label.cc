#include "base/label.h"

namespace spillway {

std::string_view label_name(Label label) {
  switch (label) {
    case Label::kDefault:
      return "default";
    case Label::kMeasured:
      return "measured";
    case Label::kPredicted:
      return "predicted";
    case Label::kEstimated:
      break;
  }
  return "estimated";
}

}  // namespace spillway
