// A table of texts: aligned for a terminal, as markdown, as CSV.
#pragma once

#include <string>
#include <vector>

namespace spillway::cli {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> head) : head_(std::move(head)) {}
  // Requires: as many cells as the head has.
  void add(std::vector<std::string> row);
  // Those that are empty in every row.
  void drop_empty_columns();

  // The first column to the left, others to the right. Lines end with a line break.
  std::string text() const;
  std::string markdown() const;  // aligned too; '|' is escaped
  std::string csv() const;       // quoted where needed (RFC 4180, but with plain line breaks)

 private:
  std::string aligned(const char* before, const char* between, const char* after,
                      const std::string& rule) const;
  std::vector<size_t> widths() const;

  std::vector<std::string> head_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace spillway::cli
