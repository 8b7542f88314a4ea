// What a report says, before it is HTML or Markdown: sections of texts, tables and charts. Texts are as they
// come from results; whoever writes a page escapes them.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "report/chart.h"
#include "report/result.h"

namespace spillway::report {

struct Column {
  enum class Kind : uint8_t { kText, kNumber };
  std::string title;
  Kind kind = Kind::kText;
};

struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // (rows, columns)
};

struct Paragraph {
  enum class Kind : uint8_t { kPlain, kConclusion, kWarning };
  std::string text;
  Kind kind = Kind::kPlain;
};

struct List {
  std::vector<std::string> items;
  Paragraph::Kind kind = Paragraph::Kind::kPlain;
};

// A chart with the numbers that it shows, for those who cannot see it, and for Markdown.
struct Figure {
  Chart chart;
  Table numbers;
};

// A long table that is of use to few: closed at first.
struct Closed {
  Table table;
};

using Block = std::variant<Paragraph, List, Table, Figure, Closed>;

struct Section {
  std::string title;
  uint32_t level = 2;  // of its heading
  std::vector<Block> blocks;
};

struct Page {
  std::string title;
  std::string subtitle;
  std::vector<Section> sections;
};

struct NamedResult {
  std::string file;  // its name, for people
  ResultFile result;
};

// One page about all results, in their order. Whatever was not found with the build, machine, model and
// workload of the first says so wherever its numbers stand. Requires: at least one.
Page make_page(std::span<const NamedResult> results);

// In what `other` differs from `here`: "model b (content cd34), not a (content ab12)"; "another kind of
// result (plan)". What one of them does not know is no difference. Empty: numbers of one may stand for the
// other, as far as both know.
std::vector<std::string> differences(const ResultFile& here, const ResultFile& other);
// Of what that is compared, what one of them does not know: "the model's content".
std::vector<std::string> not_known(const ResultFile& here, const ResultFile& other);

}  // namespace spillway::report
