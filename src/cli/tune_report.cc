#include "cli/tune_report.h"

#include <algorithm>
#include <cmath>

#include "cli/common.h"

namespace spillway::cli {
namespace {

// Of the settings that were only predicted, what a person may want to see; --out has them all.
constexpr size_t kPredictedRows = 5;

// Texts in columns: words to the left, numbers to the right.
class Table {
 public:
  // `words`: columns of words, by index.
  Table(std::vector<std::string> head, std::vector<size_t> words) : words_(std::move(words)) {
    rows_.push_back(std::move(head));
  }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void remove(size_t column) {
    for (auto& row : rows_) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
    std::erase(words_, column);
    for (size_t& word : words_) word -= word > column;
  }
  std::string text() const {
    std::vector<size_t> widths(rows_[0].size());
    for (const auto& row : rows_)
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string text;
    for (const auto& row : rows_) {
      std::string line = "  ";
      for (size_t i = 0; i < row.size(); ++i)
        line += std::ranges::find(words_, i) != words_.end() ? fmt::format("{:<{}}  ", row[i], widths[i])
                                                             : fmt::format("{:>{}}  ", row[i], widths[i]);
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
  }

 private:
  std::vector<size_t> words_;
  std::vector<std::vector<std::string>> rows_;
};

std::string times(const std::optional<double>& value, double factor, const char* unit) {
  return value && *value > 0 ? fmt::format("{:.{}f} {}", *value * factor, *value * factor < 100 ? 1 : 0, unit)
                             : "";
}

std::vector<std::string> row_of(const report::Row& row) {
  const bool measured = row.label == Label::kMeasured;
  std::string error;
  if (measured && row.predicted_tok_s)
    error = fmt::format("{:.1f} ({:+.0f} %)", *row.predicted_tok_s,
                        100 * (*row.predicted_tok_s / row.decode_tok_s - 1));
  return {row.setting,
          std::string(label_name(row.label)),
          fmt::format("{:.1f}", row.decode_tok_s),
          row.decode_low && row.decode_high
              ? fmt::format("{:.1f} to {:.1f}", *row.decode_low, *row.decode_high)
              : "",
          error,
          times(row.ttft_s, 1000, "ms"),
          times(row.p95_itl_ms, 1, "ms"),
          row.hit_rate ? fmt::format("{:.0f} %", 100 * *row.hit_rate) : "",
          row.verdict};
}

std::string terms_text(const std::vector<report::Term>& terms) {
  Table table({"term", "", "", "95 %", "from"}, {0, 2, 4});
  for (const report::Term& term : terms)
    table.add(
        {term.name, fmt::format("{:.4g} {}", term.value, term.unit), std::string(label_name(term.label)),
         term.low && term.high ? fmt::format("{:.4g} to {:.4g}", *term.low, *term.high) : "", term.note});
  return table.text();
}

}  // namespace

std::string tune_text(const tune::TuneReport& report) {
  const report::ResultFile& result = report.result;
  std::string text = result.conclusion + "\n";
  if (!result.rows.empty()) {
    Table table({"setting", "", "tok/s", "95 %", "predicted", "TTFT", "p95", "hits", "against the first"},
                {0, 1, 8});
    size_t predicted = 0;
    for (const report::Row& row : result.rows)
      if (row.label == Label::kMeasured || predicted++ < kPredictedRows) table.add(row_of(row));
    if (report.model_failed) table.remove(4);
    text += "\nSettings, on prompts that calibration did not see:\n" + table.text();
    if (predicted > kPredictedRows)
      text +=
          fmt::format("  and {} more that were predicted only (--out has all)\n", predicted - kPredictedRows);
  }
  if (!result.terms.empty())
    text += fmt::format("\nWhere the time of a layer goes (predicted: fitted to these runs{}):\n",
                        report.model_failed ? "; not used, the model failed" : "") +
            terms_text(result.terms);
  if (!result.notes.empty()) text += "\nNotes:\n";
  for (const std::string& note : result.notes) text += "  - " + note + "\n";
  return text;
}

}  // namespace spillway::cli
