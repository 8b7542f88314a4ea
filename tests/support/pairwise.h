// Covering arrays: few rows in which every pair of values of every two parameters appears.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace spillway::test_support {

// A small generator of our own: the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t below(uint32_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((state_ >> 33) % n);
  }

 private:
  uint64_t state_;
};

// Rows of value indices, sizes[p] values for parameter p. Greedy: each row is the best of 40 random fillings
// that start from a pair not yet covered; within a few rows of the least possible for our sizes.
inline std::vector<std::vector<uint32_t>> covering_array(const std::vector<uint32_t>& sizes, uint64_t seed) {
  using Pair = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;  // parameter, value, parameter, value
  std::set<Pair> open;
  for (uint32_t a = 0; a < sizes.size(); ++a)
    for (uint32_t b = a + 1; b < sizes.size(); ++b)
      for (uint32_t i = 0; i < sizes[a]; ++i)
        for (uint32_t j = 0; j < sizes[b]; ++j) open.insert({a, i, b, j});
  Random random(seed);
  std::vector<std::vector<uint32_t>> rows;
  const auto covers = [&](const std::vector<uint32_t>& row, auto&& body) {
    for (uint32_t a = 0; a < row.size(); ++a)
      for (uint32_t b = a + 1; b < row.size(); ++b) body(Pair{a, row[a], b, row[b]});
  };
  while (!open.empty()) {
    std::vector<uint32_t> best;
    size_t best_new = 0;
    for (int attempt = 0; attempt < 40; ++attempt) {
      std::vector<uint32_t> row(sizes.size());
      for (uint32_t p = 0; p < sizes.size(); ++p) row[p] = random.below(sizes[p]);
      auto from = open.begin();
      std::advance(from, random.below(static_cast<uint32_t>(open.size())));
      row[std::get<0>(*from)] = std::get<1>(*from);
      row[std::get<2>(*from)] = std::get<3>(*from);
      size_t fresh = 0;
      covers(row, [&](const Pair& pair) { fresh += open.count(pair); });
      if (fresh > best_new) best = row, best_new = fresh;
    }
    covers(best, [&](const Pair& pair) { open.erase(pair); });
    rows.push_back(std::move(best));
  }
  return rows;
}

}  // namespace spillway::test_support
