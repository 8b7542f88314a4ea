#include "cli/text_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"

namespace spillway::cli {
namespace {

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n\r") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

}  // namespace

void TextTable::add(std::vector<std::string> row) {
  SW_ASSERT(row.size() == head_.size());
  rows_.push_back(std::move(row));
}

void TextTable::drop_empty_columns() {
  for (size_t c = head_.size(); c-- > 0;) {
    if (!std::ranges::all_of(rows_, [&](const auto& row) { return row[c].empty(); })) continue;
    const auto at = static_cast<std::ptrdiff_t>(c);
    head_.erase(head_.begin() + at);
    for (auto& row : rows_) row.erase(row.begin() + at);
  }
}

std::vector<size_t> TextTable::widths() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < head_.size(); ++c) {
    size_t width = head_[c].size();
    for (const auto& row : rows_) width = std::max(width, row[c].size());
    widths.push_back(width);
  }
  return widths;
}

std::string TextTable::aligned(const char* before, const char* between, const char* after,
                               const std::string& rule) const {
  const std::vector<size_t> width = widths();
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    text += before;
    for (size_t c = 0; c < cells.size(); ++c)
      text += c == 0 ? fmt::format("{:<{}}", cells[c], width[c])
                     : fmt::format("{}{:>{}}", between, cells[c], width[c]);
    text += std::string(after) + "\n";
  };
  line(head_);
  text += rule;
  for (const auto& row : rows_) line(row);
  return text;
}

std::string TextTable::text() const { return aligned("  ", "  ", "", ""); }

std::string TextTable::markdown() const {
  TextTable escaped = *this;
  for (auto& row : escaped.rows_)
    for (std::string& cell : row)
      for (size_t at = cell.find('|'); at != cell.npos; at = cell.find('|', at + 2)) cell.insert(at, "\\");
  std::string rule = "|";
  const std::vector<size_t> width = escaped.widths();
  for (size_t c = 0; c < width.size(); ++c)
    rule += c == 0 ? std::string(width[c] + 2, '-') + "|" : std::string(width[c] + 1, '-') + ":|";
  return escaped.aligned("| ", " | ", " |", rule + "\n");
}

std::string TextTable::csv() const {
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    for (size_t c = 0; c < cells.size(); ++c) text += (c == 0 ? "" : ",") + quoted(cells[c]);
    text += "\n";
  };
  line(head_);
  for (const auto& row : rows_) line(row);
  return text;
}

}  // namespace spillway::cli
