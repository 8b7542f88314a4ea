#include "report/markdown.h"

#include <fmt/format.h>

#include "report/words.h"

namespace spillway::report {
namespace {

const char* before(Paragraph::Kind kind) {
  constexpr const char* kBefore[] = {"", "> ", "> **Note.** "};
  return kBefore[static_cast<size_t>(kind)];
}

struct MarkdownWriter {
  std::string out;

  void operator()(const Paragraph& paragraph) {
    out += fmt::format("{}{}\n\n", before(paragraph.kind), markdown_escaped(paragraph.text));
  }
  void operator()(const List& list) {
    for (const std::string& item : list.items)
      out += fmt::format("{}- {}\n", before(list.kind), markdown_escaped(item));
    out += "\n";
  }
  void operator()(const Table& table) {
    if (table.rows.empty()) return;  // of a chart whose numbers stand in another table
    if (!table.title.empty()) out += fmt::format("**{}**\n\n", markdown_escaped(table.title));
    std::string ruler = "|";
    out += "|";
    for (const Column& column : table.columns) {
      out += fmt::format(" {} |", markdown_escaped(column.title));
      ruler += column.kind == Column::Kind::kNumber ? "---:|" : "---|";
    }
    out += "\n" + ruler + "\n";
    for (const auto& row : table.rows) {
      out += "|";
      for (const std::string& cell : row) out += fmt::format(" {} |", markdown_escaped(cell));
      out += "\n";
    }
    out += "\n";
  }
  void operator()(const Figure& figure) { (*this)(figure.numbers); }
  void operator()(const Closed& closed) {
    out += fmt::format("<details><summary>{}</summary>\n\n", markdown_escaped(closed.table.title));
    Table untitled = closed.table;
    untitled.title.clear();
    (*this)(untitled);
    out += "</details>\n\n";
  }
};

}  // namespace

std::string to_markdown(const Page& page) {
  MarkdownWriter writer;
  writer.out = fmt::format("# {}\n\n", markdown_escaped(page.title));
  if (!page.subtitle.empty()) writer.out += markdown_escaped(page.subtitle) + "\n\n";
  for (const Section& section : page.sections) {
    writer.out += fmt::format("{} {}\n\n", std::string(section.level, '#'), markdown_escaped(section.title));
    for (const Block& block : section.blocks) std::visit(writer, block);
  }
  return std::move(writer.out);
}

std::string markdown_escaped(std::string_view text) {
  std::string result;
  for (const char c : clean_text(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '@':  // would call people
        result += "&#64;";
        break;
      case '\\':
      case '`':
      case '*':
      case '_':
      case '|':
      case '[':
      case ']':
      case '#':
      case '~':
      case '!':
        result += '\\';
        [[fallthrough]];
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace spillway::report
