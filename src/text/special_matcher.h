// Finds token texts (special tokens) inside a text: leftmost first, then the longest.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace spillway {
namespace text {

class SpecialMatcher {
 public:
  struct Match {
    size_t position, length;
    uint32_t id;
  };

  // Texts must outlive the matcher; empty ones are left out.
  explicit SpecialMatcher(std::vector<std::pair<std::string_view, uint32_t>> texts);

  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  std::optional<Match> match_at(std::string_view text, size_t position) const;

  std::vector<std::pair<std::string_view, uint32_t>> texts_;  // sorted, without repetition
  std::array<bool, 256> starts_{};                            // by first byte
};

}  // namespace text
}  // namespace spillway
