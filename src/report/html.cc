#include "report/html.h"

#include <fmt/format.h>

#include "report/html_style.h"
#include "report/svg.h"

namespace spillway::report {
namespace {

const char* class_of(Paragraph::Kind kind) {
  constexpr const char* kClasses[] = {"", " class=\"conclusion\"", " class=\"warning\""};
  return kClasses[static_cast<size_t>(kind)];
}

struct HtmlWriter {
  std::string out;
  uint32_t n_charts = 0;

  void operator()(const Paragraph& paragraph) {
    out += fmt::format("<p{}>{}</p>\n", class_of(paragraph.kind), escaped(paragraph.text));
  }
  void operator()(const List& list) {
    out += fmt::format("<ul{}>\n", class_of(list.kind));
    for (const std::string& item : list.items) out += fmt::format("<li>{}</li>\n", escaped(item));
    out += "</ul>\n";
  }
  void operator()(const Table& table) { write(table, table.title); }
  void operator()(const Closed& closed) {
    out += fmt::format("<details><summary>{}</summary>\n", escaped(closed.table.title));
    write(closed.table, "");
    out += "</details>\n";
  }
  void operator()(const Figure& figure) {
    const auto [title, description] =
        std::visit([](const auto& chart) { return std::pair(chart.title, chart.description); }, figure.chart);
    ++n_charts;
    out += fmt::format(
        "<figure>\n<figcaption><p class=\"title\">{}</p><p class=\"about\">{}</p></figcaption>\n{}",
        escaped(title), escaped(description), draw_legend(figure.chart));
    out += fmt::format("<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n",
                       draw(figure.chart, Width::kWide, fmt::format("f{}w", n_charts)),
                       draw(figure.chart, Width::kNarrow, fmt::format("f{}n", n_charts)));
    if (!figure.numbers.rows.empty()) {
      out += "<details><summary>The numbers</summary>\n";
      write(figure.numbers, "");
      out += "</details>\n";
    }
    out += "</figure>\n";
  }

 private:
  void write(const Table& table, const std::string& caption) {
    // Can be scrolled sideways, by keyboard too.
    out += fmt::format("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>\n",
                       escaped(table.title.empty() ? "Table" : table.title));
    if (!caption.empty()) out += fmt::format("<caption>{}</caption>\n", escaped(caption));
    // Texts keep the width that lets them be read; the table is scrolled instead.
    constexpr size_t kLong = 30;
    const auto cell_class = [&](size_t column, size_t length = 0) {
      if (length > kLong) return " class=\"long\"";
      return table.columns[column].kind == Column::Kind::kNumber ? " class=\"number\"" : " class=\"text\"";
    };
    out += "<thead><tr>";
    for (size_t i = 0; i < table.columns.size(); ++i)
      out += fmt::format("<th scope=\"col\"{}>{}</th>", cell_class(i), escaped(table.columns[i].title));
    out += "</tr></thead>\n<tbody>\n";
    for (const auto& row : table.rows) {
      out += "<tr>";
      for (size_t i = 0; i < row.size(); ++i)
        out += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", escaped(row[i]))
                      : fmt::format("<td{}>{}</td>", cell_class(i, row[i].size()), escaped(row[i]));
      out += "</tr>\n";
    }
    out += "</tbody>\n</table></div>\n";
  }
};

}  // namespace

std::string to_html(const Page& page) {
  HtmlWriter writer;
  writer.out = kHtmlBegin;
  // The policy keeps the page to itself, whatever a result might smuggle in.
  writer.out += fmt::format(
      "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n"
      "<body>\n<main>\n<header><h1>{}</h1>\n<p>{}</p></header>\n",
      escaped(page.title), style_sheet(), escaped(page.title), escaped(page.subtitle));
  for (const Section& section : page.sections) {
    writer.out += fmt::format("<section>\n<h{0}>{1}</h{0}>\n", section.level, escaped(section.title));
    for (const Block& block : section.blocks) std::visit(writer, block);
    writer.out += "</section>\n";
  }
  return std::move(writer.out) + "</main>\n</body>\n</html>\n";
}

}  // namespace spillway::report
