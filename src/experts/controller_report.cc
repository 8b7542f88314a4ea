#include <algorithm>

#include "experts/controller.h"

namespace spillway {
namespace experts {
namespace {

std::string name_of(const Alternative& alternative) {
  if (!alternative.cache) return "no cache";
  return fmt::format("admission factor {} {} promotions", alternative.admit,
                     alternative.promote ? "with" : "without");
}

}  // namespace

std::vector<std::string> describe(const ControllerReport& report) {
  std::vector<std::string> lines;
  const Alternative& chosen = report.alternatives[report.chosen];
  if (chosen.rehearsed == 0) {
    lines.push_back(fmt::format("In force: {}, the default; nothing was rehearsed yet.", name_of(chosen)));
  } else {
    std::string tried;
    for (const Alternative& alternative : report.alternatives)
      if (&alternative != &chosen)
        tried +=
            fmt::format("{}{} {:.0f}", tried.empty() ? "" : ", ", name_of(alternative), alternative.layer_us);
    lines.push_back(
        fmt::format("In force: {}, predicted to take {:.0f} us a layer; tried as well: {} (predicted, of {} "
                    "layers each; {} "
                    "changes).",
                    name_of(chosen), chosen.layer_us, tried, chosen.rehearsed, report.changes));
  }
  if (report.probes > 0)
    lines.push_back(fmt::format(
        "{} layers were split the second-best way to see how that does: {:.2f} % of the time, {:.2f} ms at "
        "most "
        "(measured).",
        report.probes, 100.0 * report.probes_us / report.watched_us, report.dearest_probe_us / 1000.0));
  std::string corrected;
  for (uint32_t k = 0; k < kSplitKinds; ++k)
    if (report.seen[k] > 0)
      corrected += fmt::format("{}{} {:.2f}", corrected.empty() ? "" : ", ",
                               split_kind_name(static_cast<SplitKind>(k)), report.corrections[k]);
  if (!corrected.empty())
    lines.push_back(fmt::format("Measured / predicted time of layers with {}.", corrected));
  return lines;
}

}  // namespace experts
}  // namespace spillway
