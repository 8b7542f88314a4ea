#include "report/compare_runs.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace spillway::report {

bool same_work(const Setting& a, const Setting& b) {
  return std::ranges::all_of(
      std::vector<std::string>{"-p", "-n", "--workload", "--users", "--ignore-eos", "--seed"},
      [&](const std::string& flag) {
        const auto of_a = a.flags.find(flag), of_b = b.flags.find(flag);
        if (of_a == a.flags.end() || of_b == b.flags.end())
          return (of_a == a.flags.end()) == (of_b == b.flags.end());
        return of_a->second == of_b->second;
      });
}

Comparison compare_runs(const ResultFile& result, uint32_t a, uint32_t b, RunValue value) {
  const auto whole = [&](uint32_t setting) {
    std::vector<size_t> runs;
    for (size_t i = 0; i < result.runs.size(); ++i) {
      const Run& run = result.runs[i];
      if (run.setting == setting && run.warm && run.cut_short.empty() && value.of(run) > 0) runs.push_back(i);
    }
    return runs;
  };
  std::vector<size_t> left = whole(a);
  std::vector<double> of_a, of_b;
  for (const size_t run : whole(b)) {
    if (left.empty()) break;
    const auto nearest = std::ranges::min_element(
        left, {}, [run](size_t other) { return other < run ? run - other : other - run; });
    of_a.push_back(value.of(result.runs[*nearest]));
    of_b.push_back(value.of(result.runs[run]));
    left.erase(nearest);
  }
  return compare(of_a, of_b, value.better);
}

}  // namespace spillway::report
